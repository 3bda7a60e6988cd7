"""How deep, how wide? What circuits can remember at equal numbers of parameters, and what trained networks do.

Run: python examples/choose_a_depth.py (some seconds on a CPU)
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import torch

from statewise.data import CopyingMemory
from statewise.memory import advise, generic_profile, generic_rank, rank_text, width_within
from statewise.sweep import Trial, train_replicas


def main() -> None:
    """Ask for ranks, for advice, and train two depths on a small task."""
    print("What almost all circuits can carry from the first half of 8 symbols of 3 kinds into the second:")
    for depth in (1, 2, 3):
        print(f"  {depth} layers of 3 channels: {generic_rank(inputs=3, width=3, steps=8, depth=depth).sentence}")
    print("Where two layers forget, split by split:", generic_profile(inputs=2, width=2, steps=10, depth=2).ranks)

    print("\nWithin 1,024 parameters, for 40 steps of 10 symbols:")
    advised = advise(budget=1024, steps=40, inputs=10, classes=10)
    for pair in advised.pairs:
        known = "proved" if pair.proved else "conjectured"
        print(f"  {pair.depth} layers of {pair.width} channels: a rank of at least {rank_text(pair.least)} ({known})")
    print(f"  {advised.sentence}")

    task = CopyingMemory(m=8, n=4, delay=0)
    print(f"\nTrained side by side to repeat {task.m} symbols of {task.n} kinds, 300 iterations, 200 parameters:")
    for depth in (1, 2):
        width = width_within(budget=200, inputs=task.inputs, classes=task.classes, depth=depth)
        like = Trial(task=task, depth=depth, width=width, lr=1e-2, lr_recurrent=1e-3, batch=32, validate=200, test=500)
        trials = [replace(like, seed=seed, iterations=300, check_every=100) for seed in range(3)]
        with tempfile.TemporaryDirectory() as folder:
            runs = [Path(folder) / str(seed) for seed in range(3)]
            outcomes = train_replicas(trials, runs, device=torch.device("cpu"))
        told = ", ".join(f"{outcome.accuracy:.2f}" for outcome in outcomes)
        print(f"  {depth} layers of {width} channels: {told} of the symbols are right (chance {task.chance:.2f})")


if __name__ == "__main__":
    main()
