"""Dyck paths: rows of steps up and down that stay at or over 0 and end there; counted, and drawn uniformly."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from statewise.errors import ArgumentError


def count_paths(semilength: int, height: int) -> int:
    """How many paths of so many steps up, and as many down, have exactly that greatest height.

    >>> [count_paths(5, height) for height in range(1, 6)]
    [1, 15, 18, 7, 1]
    """
    if semilength == 0 or height == 0:
        return int(semilength == height)
    return _within(semilength, height) - _within(semilength, height - 1)


def draw_paths(semilengths: npt.NDArray[np.int64], height: int, generator: np.random.Generator) -> npt.NDArray[np.int8]:
    """Paths of exactly that greatest height, each uniform among those of its length.

    The next step goes up with the share of the paths that do, among all that can still be completed. The counts are
    whole numbers of any size; only their ratio is rounded, to the nearest number of 53 bits.

    Args:
        semilengths: (paths,), the steps up of each path; not less than the height.
        height: the greatest height of every path.
        generator: what the draw depends on.

    Returns:
        (paths, 2 * the longest): 1 up, -1 down, 0 behind the end.
    """
    if len(semilengths) and int(semilengths.min()) < height:
        raise ArgumentError(where="draw_paths.semilengths", got=int(semilengths.min()), wanted=f"{height} or more")
    longest = int(semilengths.max(initial=0))
    chances = _chances(height, 2 * longest)
    left = 2 * np.asarray(semilengths, dtype=np.int64)
    at, reached = np.zeros(len(left), dtype=np.int64), np.zeros(len(left), dtype=np.int64)
    reached[:] = height == 0
    steps = np.zeros((len(left), 2 * longest), dtype=np.int8)
    for place in range(2 * longest):
        up = generator.random(len(left)) < chances[left, reached, at]
        step = np.where(left > 0, np.where(up, 1, -1), 0)
        steps[:, place] = step
        at += step
        reached |= at == height
        left = np.maximum(left - 1, 0)
    return steps


@lru_cache(maxsize=64)
def _chances(height: int, longest: int) -> npt.NDArray[np.float64]:
    """The chance of a step up: (steps left, whether the height was reached, height now)."""
    chances = np.zeros((longest + 1, 2, height + 1))
    # ways[reached][now]: how many rows of so many steps end at 0, and reach the height if it is not reached yet.
    ways = [[0] * (height + 1), [1] + [0] * height]
    for left in range(1, longest + 1):
        before, ways = ways, [[0] * (height + 1), [0] * (height + 1)]
        for reached in (0, 1):
            for now in range(height + 1):
                higher = before[reached or int(now + 1 == height)][now + 1] if now < height else 0
                lower = before[reached][now - 1] if now else 0
                ways[reached][now] = higher + lower
                chances[left, reached, now] = higher / (higher + lower) if higher else 0.0
    chances.setflags(write=False)
    return chances


def _within(semilength: int, bound: int) -> int:
    """How many paths never rise over a bound."""
    ways = [1] + [0] * bound
    for _ in range(2 * semilength):
        ways = [(ways[now - 1] if now else 0) + (ways[now + 1] if now < bound else 0) for now in range(bound + 1)]
    return ways[0]
