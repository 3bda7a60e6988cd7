"""What does a machine without the C++ kernel lose?

A training step (forward and backward, one layer with multiplicative noise fed back, inputs as wide as the state) with
the kernel and without (``STATEWISE_NATIVE=0``, where the reference loop serves and the noise is drawn in torch). Each
side is a process of its own; they take turns of two steps, of which the second is timed, since threads sleep between
turns, and the ratio is the median over these pairs. Peak memory is what a training step adds to its process.

    python benchmarks/fallback_cpu.py [--threads 1] [--repetitions 15] [--json FILE] [--check]

Bar: the loop takes at least LEAST times as long everywhere, or the kernel is not worth its code. With --check a missed
bar makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from layers_cpu import make, peak_memory, record, training_step

SIZES = ((35, 20, 200), (200, 64, 128), (35, 80, 650))  # steps, batch, hidden
LEAST = 2.0
SIDES = {"kernel": "1", "loop": "0"}


class Side:
    """A process with the kernel or without, which runs a step each time it is asked."""

    def __init__(self, name: str, kind: str, size: tuple[int, int, int]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--threads", str(torch.get_num_threads()), "--side", kind, *map(str, size)],
            env={**os.environ, "STATEWISE_NATIVE": SIDES[name]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.asks, self.answers = self.process.stdin, self.process.stdout
        self.megabytes = float(self.answers.readline())
        self.plan = self.answers.readline().strip()

    def step(self) -> float:
        """Seconds of one training step."""
        self.asks.write("\n")
        self.asks.flush()
        return float(self.answers.readline())

    def end(self) -> None:
        """Let the process end."""
        self.asks.close()
        self.process.wait()


def serve(kind: str, size: tuple[int, int, int]) -> None:
    """Be one side: say the peak memory and the plan, then run a step for each line that is read."""
    print(peak_memory(kind, "noise", size))
    layer: Any = make(kind, "noise", size[2])
    steps, batch, hidden = size
    x, grad = torch.randn(steps, batch, hidden, requires_grad=True), torch.randn(steps, batch, hidden)
    print(layer.plan(x), flush=True)
    for _ in sys.stdin:
        training_step(layer, x, grad)
        print(training_step(layer, x, grad), flush=True)


def measure(kind: str, size: tuple[int, int, int], repetitions: int) -> dict[str, Any]:
    """A row of the table."""
    sides = {name: Side(name, kind, size) for name in SIDES}
    seconds: dict[str, list[float]] = {name: [] for name in SIDES}
    for turn in range(repetitions + 1):
        for name, side in sides.items():
            found = side.step()
            if turn:  # the first is a rehearsal
                seconds[name].append(found)
    for side in sides.values():
        side.end()
    pairs = zip(seconds["loop"], seconds["kernel"], strict=True)
    return {
        "layer": kind,
        "size": size,
        "ms": {name: round(1e3 * statistics.median(each), 1) for name, each in seconds.items()},
        "loop_over_kernel": round(statistics.median(loop / kernel for loop, kernel in pairs), 2),
        "memory_mb": {name: round(side.megabytes, 1) for name, side in sides.items()},
        "plans": {name: side.plan for name, side in sides.items()},
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--side", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    if arguments.side:
        kind, *size = arguments.side
        serve(kind, tuple(map(int, size)))  # type: ignore[arg-type]
        return 0
    print("layer  steps,batch,hidden  ms kernel, loop       loop/kernel  MB kernel, loop")
    results = []
    for kind in ("LSTM", "GRU"):
        for size in SIZES:
            result = measure(kind, size, arguments.repetitions)
            ms, mb = result["ms"], result["memory_mb"]
            print(
                f"{kind:5s}  {','.join(map(str, size)):18s}  {ms['kernel']:8.1f}, {ms['loop']:8.1f}  "
                f"{result['loop_over_kernel']:11.2f}  {mb['kernel']:8.1f}, {mb['loop']:.1f}",
                flush=True,
            )
            results.append(result)
    if arguments.json:
        command = f"python benchmarks/{Path(__file__).name} --threads {arguments.threads}"
        found = record(arguments, results) | {"command": f"{command} --repetitions {arguments.repetitions}"}
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    least = min(result["loop_over_kernel"] for result in results)
    met = least >= LEAST
    print(f"least time of the loop over the kernel: {least:.2f} (bar {LEAST:.2f}: {'met' if met else 'missed'})")
    return 1 if arguments.check and not met else 0


if __name__ == "__main__":
    sys.exit(main())
