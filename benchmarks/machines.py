"""How long do the algorithms on machines take?

The worst of several shapes of machines of 300 states and 50 symbols must be minimised within 0.3 seconds, and a machine
of 30 states laid out for drawing within 2 seconds. The shapes are those on which partition refinement is known to be
slow: chains and counters, whose states are told apart one by one, and machines that halve at every step.

Usage: python benchmarks/machines.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from statewise.automata import MooreMachine, to_svg
from statewise.data import random_machine

STATES, SYMBOLS = 300, 50
MOST_SECONDS = {"minimise": 0.3, "draw": 2.0}


def _machine(table: np.ndarray, outputs: np.ndarray) -> MooreMachine:
    return MooreMachine(alphabet=tuple(f"s{i}" for i in range(table.shape[1])), transitions=table, outputs=outputs)


def shapes() -> dict[str, MooreMachine]:
    """Machines that are hard to minimise, each for its own reason."""
    states = np.arange(STATES)
    last = (states == STATES - 1).astype(np.int64)
    rng = np.random.default_rng(0)
    onwards = np.minimum(states + 1, STATES - 1)
    chain = np.repeat(onwards[:, None], SYMBOLS, axis=1)
    counter = np.repeat(states[:, None], SYMBOLS, axis=1)
    counter[:, 0] = (states + 1) % STATES
    halving = np.repeat((states // 2)[:, None], SYMBOLS, axis=1)
    halving[:, 0] = (2 * states + 1) % STATES
    return {
        "chain": _machine(chain, last),
        "counter": _machine(counter, last),
        "halving": _machine(halving, last),
        "random": _machine(rng.integers(0, STATES, (STATES, SYMBOLS)), rng.integers(0, 2, STATES)),
        "alike": _machine(rng.integers(0, STATES, (STATES, SYMBOLS)), np.zeros(STATES, dtype=np.int64)),
    }


def seconds(work: Callable[[], object], repetitions: int = 5) -> float:
    """The best of some, as others may use the machine."""
    found = []
    for _ in range(repetitions):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found)


def main() -> int:
    """Measure, print, and say by the exit code whether all is within the limits."""
    took = {name: seconds(shape.minimise) for name, shape in shapes().items()}
    for name, each in took.items():
        print(f"minimise {STATES} x {SYMBOLS}, {name}: {each * 1000:.1f} ms")
    drawn = random_machine(30, 2, seed=0)
    worst = {"minimise": max(took.values()), "draw": seconds(lambda: to_svg(drawn), repetitions=2)}
    print(f"draw 30 states: {worst['draw'] * 1000:.0f} ms")
    shares = {name: worst[name] / most for name, most in MOST_SECONDS.items()}
    print("share of what is allowed: " + ", ".join(f"{name} {share:.2f}" for name, share in shares.items()))
    return 0 if max(shares.values()) <= 1.0 else 1


if __name__ == "__main__":
    sys.exit(main())
