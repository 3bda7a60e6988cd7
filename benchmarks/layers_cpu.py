"""Is a regularized layer of statewise as fast on a CPU as torch.nn's plain one?

A training step (forward and backward, one layer, inputs as wide as the state) of statewise WITH multiplicative noise
fed back, or with ten centroids, against the PLAIN layer of torch.nn, which can do neither. The layers take turns in
one process; a ratio is the median over these pairs, so it says little about the machine and much about the code.
Peak memory is that of a step in a process of its own.

    python benchmarks/layers_cpu.py [--repetitions 25] [--only LSTM] [--seed 0] [--json FILE] [--check]

Bars: time with noise relative to torch.nn as in THRESHOLDS; centroids at most 1.3 times the noise row; memory at most
1.2 times torch.nn's. With --check a missed bar makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import statewise

SIZES = ((35, 80, 650), (35, 20, 200), (25, 128, 100), (200, 64, 128))  # steps, batch, hidden
THRESHOLDS = {"LSTM": (1.10, 1.10, 0.95, 0.85), "GRU": (0.95, 0.55, 0.55, 0.55)}
CENTROIDS_OVER_NOISE = 1.3
MEMORY = 1.2
ROWS = ("torch", "plain", "noise", "centroids")


def make(kind: str, row: str, hidden: int) -> nn.Module:
    """The layer of one row of the table."""
    if row == "torch":
        plain: nn.Module = getattr(nn, kind)(hidden, hidden)
        return plain
    # A small deviation: what is timed is the same at any, and fed-back noise compounds in a GRU.
    noise = statewise.Noise("gaussian", 0.1, placement="recurrent")
    transforms = {"plain": (), "noise": (noise,), "centroids": (statewise.Centroids(10),)}[row]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", statewise.CompoundingNoiseWarning)
        layer: nn.Module = getattr(statewise, kind)(hidden, hidden, transforms=transforms)
        return layer


def training_step(layer: nn.Module, x: Tensor, grad: Tensor) -> float:
    """Seconds of one forward and backward pass; the gradients start from nothing each time."""
    layer.zero_grad(set_to_none=True)
    x.grad = None
    start = time.perf_counter()
    layer(x)[0].backward(grad)
    return time.perf_counter() - start


def time_rows(kind: str, size: tuple[int, int, int], repetitions: int) -> dict[str, Any]:
    """Median seconds of every row, and median ratios of the pairs."""
    steps, batch, hidden = size
    layers = {row: make(kind, row, hidden) for row in ROWS}
    x, grad = torch.randn(steps, batch, hidden, requires_grad=True), torch.randn(steps, batch, hidden)
    for layer in layers.values():
        training_step(layer, x, grad)
    seconds: dict[str, list[float]] = {row: [] for row in ROWS}
    for _ in range(repetitions):
        for row, layer in layers.items():
            seconds[row].append(training_step(layer, x, grad))

    def ratio(row: str, base: str) -> float:
        return statistics.median(a / b for a, b in zip(seconds[row], seconds[base], strict=True))

    return {
        "layer": kind,
        "size": size,
        "torch_ms": 1e3 * statistics.median(seconds["torch"]),
        "plain": ratio("plain", "torch"),
        "noise": ratio("noise", "torch"),
        "centroids": ratio("centroids", "torch"),
        "centroids_over_noise": ratio("centroids", "noise"),
        "plan": str(layers["noise"].plan(x)),  # type: ignore[operator]
    }


def peak_memory(kind: str, row: str, size: tuple[int, int, int]) -> float:
    """Megabytes that two training steps add to a process at their peak; run in a process of its own."""
    steps, batch, hidden = size
    layer = make(kind, row, hidden)
    # Libraries load on a small problem, which is not to be counted.
    training_step(layer, torch.randn(1, 1, hidden, requires_grad=True), torch.randn(1, 1, hidden))
    x, grad = torch.randn(steps, batch, hidden, requires_grad=True), torch.randn(steps, batch, hidden)
    Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
    before = _status("VmRSS")
    for _ in range(2):
        training_step(layer, x, grad)
    return (_status("VmHWM") - before) / 1024


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1])


def measure_memory(kind: str, row: str, size: tuple[int, int, int]) -> float:
    """:func:`peak_memory` in a fresh process."""
    command = [sys.executable, __file__, "--memory-of", kind, row, *map(str, size)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def report(results: list[dict[str, Any]], show: Callable[[str], None]) -> bool:
    """Print the table; return whether every bar was met."""
    show("layer  steps,batch,hidden  torch ms   plain   noise (bar)      centroids/noise  memory noise, centroids")
    met = True
    for result in results:
        bar = THRESHOLDS[result["layer"]][SIZES.index(tuple(result["size"]))]
        memory = result["memory"]
        worst = max(memory["noise"], memory["centroids"]) / memory["torch"]
        fine = result["noise"] <= bar and result["centroids_over_noise"] <= CENTROIDS_OVER_NOISE and worst <= MEMORY
        met = met and fine
        show(
            f"{result['layer']:5s}  {','.join(map(str, result['size'])):18s}  {result['torch_ms']:8.2f}  "
            f"{result['plain']:6.3f}  {result['noise']:6.3f} ({bar:.2f})  {result['centroids_over_noise']:12.3f}     "
            f"{memory['noise'] / memory['torch']:8.2f}, {memory['centroids'] / memory['torch']:.2f}"
            f"{'' if fine else '   MISSED'}"
        )
    return met


def record(arguments: argparse.Namespace, results: list[dict[str, Any]]) -> dict[str, Any]:
    """The results with everything needed to judge and to repeat them."""
    processors = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":")[1].strip() for line in processors if line.startswith("model name")), "unknown")
    return {
        "command": f"python benchmarks/layers_cpu.py --repetitions {arguments.repetitions} --seed {arguments.seed}",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"processor": model, "cores": os.cpu_count(), "threads": torch.get_num_threads()},
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "statewise": statewise.__version__,
        },
        "results": results,
    }


def main() -> int:
    """Measure, print, and say whether the bars were met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=25)
    parser.add_argument("--only", choices=tuple(THRESHOLDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--memory-of", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        kind, row, *size = arguments.memory_of
        print(peak_memory(kind, row, tuple(map(int, size))))  # type: ignore[arg-type]
        return 0
    torch.manual_seed(arguments.seed)
    results = []
    for kind in (arguments.only,) if arguments.only else THRESHOLDS:
        for size in SIZES:
            # The largest size is 30 times slower than the others, and steadier.
            repetitions = max(5, arguments.repetitions // 3) if size[2] > 500 else arguments.repetitions
            result = time_rows(kind, size, repetitions)
            result["memory"] = {row: measure_memory(kind, row, size) for row in ROWS}
            results.append(result)
    met = report(results, print)
    if arguments.json:
        arguments.json.write_text(json.dumps(record(arguments, results), indent=1) + "\n")
    worst = max(r["noise"] / THRESHOLDS[r["layer"]][SIZES.index(tuple(r["size"]))] for r in results)
    print(f"worst time with noise relative to its bar: {worst:.3f} ({'all bars met' if met else 'a bar was missed'})")
    return 1 if arguments.check and not met else 0


if __name__ == "__main__":
    raise SystemExit(main())
