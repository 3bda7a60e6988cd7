"""What does a certificate of a large network cost, beside running the network over its data once?

An LSTM of 1,500 units with a head of 10 classes reads sequences of 28 steps of 28 numbers. `certify` runs it over the
sequences once, and over a dozen at most again, alone, which is counted. Then it works with its weights: norms of nine
matrices, the walk over the steps, the search over margins, the length of the weights' description, what-ifs. The ratio
is of that work to the time of one pass over 60,000 sequences, which is taken from the pass that was made, in proportion
to its sequences, in one process.

    python benchmarks/certify.py [--hidden 1500] [--sequences 512] [--steps 28] [--seed 0] [--json FILE] [--check]

Bar: no more sequences are run than that, the norms take less than 5 seconds on two cores, and the work with the weights
less than a tenth of the pass. With --check a missed bar makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import statewise
from statewise.bounds import certify
from statewise.bounds.grid import Ledger
from statewise.bounds.measured_class import network_class
from statewise.bounds.reading import read_model

FEATURES, CLASSES, WHOLE = 28, 10, 60_000
NORMS, SHARE, AGAIN = 5.0, 0.1, 12


class Counted(nn.Module):
    """A classifier that counts the sequences it was run on, and the seconds that took."""

    def __init__(self, hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        self.layer = statewise.LSTM(FEATURES, hidden, batch_first=True, generator=generator)
        self.head = nn.Linear(hidden, CLASSES)
        self.sequences, self.seconds = 0, 0.0

    def forward(self, inputs: Tensor) -> Tensor:
        began = time.perf_counter()
        logits: Tensor = self.head(self.layer(inputs)[0][:, -1])
        self.sequences, self.seconds = self.sequences + len(inputs), self.seconds + time.perf_counter() - began
        return logits


def measure(hidden: int, sequences: int, steps: int, seed: int) -> dict[str, Any]:
    """Certify one network; gives the seconds of each part."""
    generator = torch.Generator().manual_seed(seed)
    model = Counted(hidden, generator).eval()
    inputs = torch.rand(sequences, steps, FEATURES, generator=generator)
    labels = torch.randint(CLASSES, (sequences,), generator=generator)
    began = time.perf_counter()
    found = certify(model, (inputs, labels), iid=True, input_bound=FEATURES**0.5)
    seconds = time.perf_counter() - began
    matrices = read_model(model).matrices
    assert matrices is not None
    began = time.perf_counter()
    network_class(matrices, steps=steps, input_bound=FEATURES**0.5, ledger=Ledger())
    norms = time.perf_counter() - began
    whole = model.seconds * WHOLE / sequences
    return {
        "hidden": hidden,
        "sequences": sequences,
        "run": model.sequences,
        "pass_seconds": model.seconds,
        "pass_of_60000_seconds": whole,
        "norm_seconds": norms,
        "weights_seconds": seconds - model.seconds,
        "ratio": (seconds - model.seconds) / whole,
        "nats": found.claim("kl").total_nats,
    }


def main() -> int:
    """Measure, print, and say whether the bar was met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", type=int, default=1500)
    parser.add_argument("--sequences", type=int, default=512)
    parser.add_argument("--steps", type=int, default=28)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    found = measure(arguments.hidden, arguments.sequences, arguments.steps, arguments.seed)
    met = found["run"] <= found["sequences"] + AGAIN and found["norm_seconds"] < NORMS and found["ratio"] < SHARE
    print(f"{found['run']:,} runs of {found['sequences']:,} sequences, in {found['pass_seconds']:.1f} s")
    print(f"norms {found['norm_seconds']:.2f} s; all work with the weights {found['weights_seconds']:.2f} s")
    print(
        f"ratio to a pass over {WHOLE:,} sequences ({found['pass_of_60000_seconds']:.0f} s): {found['ratio']:.4f} "
        f"({'the bar is met' if met else 'the bar is missed'})"
    )
    if arguments.json:
        machine = {"cores": os.cpu_count(), "processor": platform.machine(), "torch": torch.__version__}
        when = datetime.now(UTC).isoformat(timespec="seconds")
        arguments.json.write_text(json.dumps({"time": when, "machine": machine, "found": found}, indent=1) + "\n")
    return 1 if arguments.check and not met else 0


if __name__ == "__main__":
    raise SystemExit(main())
