"""How much faster do many small networks train side by side than one after another?

Orthogonal networks of 48 channels learn copying memory over 100 steps, 128 fresh sequences an iteration: examples,
forward, backward, updates. Three ways take turns in one process: 32 replicas in one pool; the same pool with one
network, an iteration of which is counted 32 times; and, as most would write it, a module, autograd and an optimiser. On
a CUDA device the pools replay graphs, also the one with a single network. The ratio is the median over the rounds.

    python benchmarks/replicas.py [--replicas 32] [--width 48] [--iterations 20] [--rounds 5] [--device cpu]
                                  [--threads 2] [--json FILE] [--check]

Bar: side by side they train at least 10 times as fast as one after another on an H200, and 1.5 times on two cores. With
--check a missed bar makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from statewise.data import CopyingMemory
from statewise.models import OrthogonalNetwork
from statewise.sweep import Trial
from statewise.sweep.heap import keep_freed_memory
from statewise.sweep.networks import fresh_state
from statewise.sweep.pool import Pool
from statewise.sweep.sources import FreshExamples
from statewise.train import RMSpropTF

TASK = CopyingMemory(m=10, n=32, delay=80)
BARS = {"cuda": 10.0, "cpu": 1.5}


def pool_of(replicas: int, width: int, device: torch.device) -> Callable[[int], None]:
    """Training of some networks side by side, for a number of iterations."""
    trial = Trial(task=TASK, depth=1, width=width)
    pool = Pool(trial.shape, replicas, FreshExamples(TASK, trial.batch, device), device)
    for slot in range(replicas):
        pool.put(slot, fresh_state(trial.shape, seed=slot), seed=slot)
        pool.set_rates(slot, trial.lr, trial.recurrent_rate)
    return pool.advance


def plain_loop(width: int, device: torch.device) -> Callable[[int], None]:
    """Training of one network by a loop of one's own."""
    network = OrthogonalNetwork(TASK.inputs, TASK.classes, width, device=device)
    optimizer = RMSpropTF(network.parameter_groups(1e-3, 1e-4))

    def train(iterations: int) -> None:
        for _ in range(iterations):
            symbols, answers = TASK.examples(torch.rand(128, TASK.needs, device=device))
            loss = F.cross_entropy(network(symbols.T).flatten(0, 1), answers.T.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return train


def seconds(train: Callable[[int], None], iterations: int, device: torch.device) -> float:
    """Of one iteration."""
    began = time.perf_counter()
    train(iterations)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return (time.perf_counter() - began) / iterations


def measure(replicas: int, width: int, iterations: int, rounds: int, device: torch.device) -> dict[str, Any]:
    """Medians of the seconds of an iteration, and of the ratios within a round."""
    ways = {"together": pool_of(replicas, width, device), "alone": pool_of(1, width, device)}
    ways["loop"] = plain_loop(width, device)
    for train in ways.values():
        seconds(train, 6, device)
    found = [{name: seconds(train, iterations, device) for name, train in ways.items()} for _ in range(rounds)]
    return {
        "replicas": replicas,
        "width": width,
        "steps": TASK.steps,
        "rounds": rounds,
        **{f"{name}_ms": 1e3 * statistics.median(each[name] for each in found) for name in ways},
        "ratio": statistics.median(replicas * each["alone"] / each["together"] for each in found),
        "ratio_to_loop": statistics.median(replicas * each["loop"] / each["together"] for each in found),
    }


def main() -> int:
    """Measure, print, and say whether the bar was met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, default=32)
    parser.add_argument("--width", type=int, default=48)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    keep_freed_memory()
    device = torch.device(arguments.device)
    found = measure(arguments.replicas, arguments.width, arguments.iterations, arguments.rounds, device)
    met = found["ratio"] >= BARS[device.type]
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {arguments.threads} threads"
    print(f"{name}: an iteration of {found['replicas']} networks side by side {found['together_ms']:.2f} ms, ")
    print(f"of one alone {found['alone_ms']:.3f} ms, of one by a plain loop {found['loop_ms']:.2f} ms")
    print(
        f"side by side is {found['ratio']:.2f} times as fast as one after another "
        f"({'the bar is met' if met else 'the bar is missed'}), {found['ratio_to_loop']:.2f} times as fast as the loop"
    )
    if arguments.json:
        machine = {"device": name, "cores": os.cpu_count(), "cpu": platform.machine(), "torch": torch.__version__}
        when = datetime.now(UTC).isoformat(timespec="seconds")
        text = json.dumps({"time": when, "machine": machine, "found": found}, indent=1)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    return 1 if arguments.check and not met else 0


if __name__ == "__main__":
    raise SystemExit(main())
