"""How long does an epoch of language modelling take, against the same model on cuDNN's LSTM?

An epoch of Penn Treebank's size (929,589 tokens of 10,000 words; 332 updates of 80 x 35) for the medium model of Dieng
et al. 2018: two layers of 650, tied softmax, SGD, gradients clipped, the state carried. Ours has Gaussian noise fed
back in both layers, drawn anew in every step, and runs through the training loop that a user runs: `LanguageTraining`,
with its sums, its watch over the loss and its whole-step CUDA graph. Against it stands the plain model on
`torch.nn.LSTM`, without any noise, in the loop that a user of torch writes; and the same captured in a CUDA graph by
our `TrainingStep`, which is more than most users do. All in one process, in turns, under the same autocast. The tokens
are random, which changes no time.

    python benchmarks/lm_epoch.py [--precision bf16 tf32] [--rounds 3] [--json FILE] [--check]

Bars: at most 1.5 seconds an epoch, and at least 2.5 times as fast as the eager loop on cuDNN's layer. With --check a
missed bar makes the exit code 1. Without a CUDA device a hundredth of the work runs on the CPU, and no bar applies.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import statewise
from statewise.data import Columns, Corpus, TokenStream, Vocabulary
from statewise.models import LanguageModelConfig
from statewise.train import LanguageTraining, TrainingSettings, TrainingStep, precisely

MOST_SECONDS, LEAST_RATIO = 1.5, 2.5
WARMUP = 4  # an epoch's first and last segment have shapes of their own, and three calls of a kind run eagerly
SMALL = 100  # a CPU does one part of so many


class TorchModel(nn.Module):
    """The medium model as a user of torch writes it."""

    def __init__(self, words: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, hidden)
        self.lstm = nn.LSTM(hidden, hidden, 2)
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, tokens: Tensor, targets: Tensor, state: Any) -> tuple[Tensor, Any]:
        hidden, state = self.lstm(self.embedding(tokens), state)
        logits = F.linear(hidden, self.embedding.weight, self.bias)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten()), state


def corpus(words: int, tokens: int) -> Corpus:
    """Random tokens."""
    numbers = np.random.default_rng(0).integers(words, size=tokens)
    vocabulary = Vocabulary([f"w{i}" for i in range(words - 2)] + ["<unk>", "<eos>"])
    stream = TokenStream(numbers)
    return Corpus("random", vocabulary, stream, stream, stream)


def ours(text: Corpus, precision: str, hidden: int, device: torch.device) -> Callable[[], None]:
    """An epoch of the regularized model."""
    config = LanguageModelConfig(hidden=(hidden, hidden), noise="gaussian", gamma=1.1)
    model = config.build(len(text.vocabulary)).to(device)
    training = LanguageTraining(model, TrainingSettings(precision=precision), text, device=device)

    def epoch() -> None:
        for _ in training.updates():
            pass
        training.position.segment = training.position.row = 0
        training.carried = None

    return epoch


def theirs(text: Corpus, precision: str, hidden: int, device: torch.device, *, graph: bool) -> Callable[[], None]:
    """An epoch of the plain model on torch's layer, eagerly or as a graph."""
    model = TorchModel(len(text.vocabulary), hidden).to(device)
    columns = Columns(text.train, 80).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=30.0, fused=graph or None)
    captured = TrainingStep(model, lambda model, *arguments: model(*arguments), optimizer, clip=0.25)

    def eager(tokens: Tensor, targets: Tensor, state: Any) -> Any:
        optimizer.zero_grad()
        loss, state = model(tokens, targets, state)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        return loss.detach(), (state[0].detach(), state[1].detach())

    def epoch() -> None:
        state, total = None, torch.zeros((), device=device)
        with precisely(precision, device):
            for tokens, targets in columns.segments(35):
                loss, state = (captured if graph else eager)(tokens, targets, state)
                total += loss

    return epoch


def seconds(epoch: Callable[[], None], device: torch.device) -> float:
    """How long an epoch takes, until the device is done."""
    began = time.perf_counter()
    epoch()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def measure(precision: str, rounds: int, device: torch.device) -> dict[str, Any]:
    """The columns take turns, after epochs for compilation and for the capture of every kind of segment."""
    full = device.type == "cuda"
    text = corpus(10_000 if full else 500, 929_589 if full else 929_589 // SMALL)
    hidden = 650 if full else 64
    columns = {
        "statewise with noise": ours(text, precision, hidden, device),
        "cuDNN, plain, eager": theirs(text, precision, hidden, device, graph=False),
        "cuDNN, plain, captured": theirs(text, precision, hidden, device, graph=True),
    }
    times: dict[str, list[float]] = {name: [] for name in columns}
    for turn in range(rounds + WARMUP):
        for name, epoch in columns.items():
            taken = seconds(epoch, device)
            if turn >= WARMUP:
                times[name].append(taken)
    mine, eager, captured = times.values()
    return {
        "precision": precision,
        "seconds": {name: statistics.median(found) for name, found in times.items()},
        "ratio to eager": statistics.median([b / a for a, b in zip(mine, eager, strict=True)]),
        "ratio to captured": statistics.median([b / a for a, b in zip(mine, captured, strict=True)]),
    }


def main() -> None:
    """Measure, print, and compare with the bars."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precision", nargs="+", choices=("bf16", "tf32", "single"), default=["bf16", "tf32"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name() if device.type == "cuda" else platform.processor() or platform.machine()
    print(f"{name}, torch {torch.__version__}, statewise {statewise.__version__}")
    rows, missed = [], False
    for precision in options.precision if device.type == "cuda" else ["single"]:
        row = measure(precision, options.rounds, device)
        rows.append(row)
        for column, taken in row["seconds"].items():
            print(f"{precision:6} {column:24} {taken:8.3f} s an epoch")
        mine = row["seconds"]["statewise with noise"]
        if device.type == "cuda":
            missed |= mine > MOST_SECONDS or row["ratio to eager"] < LEAST_RATIO
        print(f"{precision:6} ratio to eager {row['ratio to eager']:.2f} (bar {LEAST_RATIO}, and {MOST_SECONDS} s)")
        print(f"{precision:6} ratio to captured {row['ratio to captured']:.2f}")
    if options.json:
        about = {"device": name, "torch": torch.__version__, "time": datetime.now(UTC).isoformat(timespec="seconds")}
        options.json.write_text(json.dumps({**about, "rows": rows}, indent=2) + "\n")
    raise SystemExit(1 if options.check and missed else 0)


if __name__ == "__main__":
    main()
