"""Numeric sequences made by this package: enough to see a network learn within seconds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from statewise.data.series import Series
from statewise.errors import ArgumentError

SHAPES = ("sawtooth", "sine", "square")
_LENGTHS = (20, 60)  # steps of a burst, the last one excluded
_PERIODS = (8.0, 16.0)
SEASON = 12.0  # steps


def sample_bursts(count: int = 300, *, noise: float = 0.2, seed: int = 0) -> Series:
    """Noisy bursts of a sine, a sawtooth or a square wave, of several lengths, periods, phases and heights.

    The feature ``signal`` has the wave; ``load`` is a slow drift around 1,000 that tells nothing of the class, as many
    a sensor: features lie on scales of their own.

    Args:
        count: sequences; the classes have the same share.
        noise: the deviation of what is added to the signal.
        seed: of everything that is drawn.

    >>> print(sample_bursts(6).report())
    6 sequences of 23 to 54 steps, 233 in all
      signal: -1.611 to 1.546, mean -0.02673, deviation 0.724
      load: 984 to 1016, mean 1001, deviation 6.54
      sawtooth: 2, sine: 2, square: 2
    """
    if count < len(SHAPES):
        raise ArgumentError(where="sample_bursts.count", got=count, wanted=f"{len(SHAPES)} or more, one for each class")
    drawn = np.random.Generator(np.random.PCG64(seed))
    labels = [SHAPES[at % len(SHAPES)] for at in range(count)]
    return Series.from_arrays(
        [_burst(label, noise, drawn) for label in labels], labels=labels, features=("signal", "load"), classes=SHAPES
    )


def _burst(shape: str, noise: float, drawn: np.random.Generator) -> npt.NDArray[np.float64]:
    steps = np.arange(drawn.integers(*_LENGTHS))
    turns = steps / drawn.uniform(*_PERIODS) + drawn.uniform()
    within = turns - np.floor(turns)
    waves = {"sine": np.sin(2 * np.pi * within), "sawtooth": 2 * within - 1, "square": np.where(within < 0.5, 1, -1)}
    signal = drawn.uniform(0.7, 1.3) * waves[shape] + noise * drawn.normal(size=len(steps))
    load = 1000 + np.cumsum(3 * drawn.normal(size=len(steps)))
    return np.stack((signal, load), axis=1)


def sample_seasons(count: int = 60, *, steps: int = 100, noise: float = 0.1, seed: int = 0) -> Series:
    """Sequences whose next value can be foretold: a season with noise, and a chaotic map.

    ``season`` is a sine of 12 steps and of any phase, with noise, around 20. ``chaos`` is the logistic map ``x' = 3.9 x
    (1 - x)``: exact from one step to the next, and unknown after some. The last value is a poor forecast of either.

    Args:
        count: sequences.
        steps: of each.
        noise: the deviation of what is added to the season, whose height is 1.
        seed: of everything that is drawn.

    >>> sample_seasons(2, steps=50)
    Series(2 sequences, 100 steps of season, chaos)
    """
    drawn = np.random.Generator(np.random.PCG64(seed))
    return Series.from_arrays((_season(steps, noise, drawn) for _ in range(count)), features=("season", "chaos"))


def _season(steps: int, noise: float, drawn: np.random.Generator) -> npt.NDArray[np.float64]:
    season = 20 + np.sin(2 * np.pi * (np.arange(steps) / SEASON + drawn.uniform())) + noise * drawn.normal(size=steps)
    chaos = np.empty(steps)
    now = drawn.uniform(0.1, 0.9)
    for step in range(steps):
        now = 3.9 * now * (1 - now)
        chaos[step] = now
    return np.stack((season, chaos), axis=1)
