"""The copying memory task: symbols are shown, a long blank follows, then they are to be repeated."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int64
from torch import Tensor

from statewise.data.labels import Indices, frozen, places
from statewise.errors import ArgumentError

BLANK, CUE, FIRST, SYMBOLS = 0, 9, 1, 10  # c0; c9; c1 to c8 are shown


@dataclass(frozen=True, kw_only=True, eq=False)
class Copying:
    """Inputs and targets of the copying memory task (Arjovsky, Shah & Bengio 2016).

    An input is ``n`` symbols of c1 to c8, ``T - 1`` blanks c0, the cue c9, ``n`` blanks; its target is ``T + n`` blanks
    and the ``n`` symbols. Only the symbols are kept in memory; the rest is written when it is asked for.

    Args:
        shown: (sequences, n), the symbols, from 1 to 8.
        delay: T, the steps from the last symbol shown to the cue, which is the last of them.

    >>> task = copying(3, n=2, count=1, seed=0)
    >>> task.inputs.tolist(), task.targets.tolist()
    ([[3, 5, 0, 0, 9, 0, 0]], [[0, 0, 0, 0, 0, 3, 5]])
    """

    shown: npt.NDArray[np.uint8]
    delay: int
    tokens: int = SYMBOLS

    def __post_init__(self) -> None:
        object.__setattr__(self, "shown", frozen(self.shown, np.uint8))

    def __len__(self) -> int:
        return len(self.shown)

    @property
    def steps(self) -> int:
        """The length of every sequence: T + 2 n."""
        return self.delay + 2 * int(self.shown.shape[1])

    @property
    def inputs(self) -> Int64[Tensor, "sequences steps"]:
        """All inputs."""
        return self._inputs(torch.from_numpy(self.shown.astype(np.int64)))

    @property
    def targets(self) -> Int64[Tensor, "sequences steps"]:
        """All targets."""
        return self._targets(torch.from_numpy(self.shown.astype(np.int64)))

    def select(self, indices: Indices) -> Copying:
        """The sequences at some places, in the order of these places."""
        return Copying(shown=self.shown[places(indices, len(self))], delay=self.delay)

    def padded(self, indices: Indices) -> tuple[Int64[Tensor, "batch steps"], None, Int64[Tensor, "batch steps"]]:
        """A batch: inputs, no lengths since all are full, and the target of every step."""
        shown = torch.from_numpy(self.shown[places(indices, len(self))].astype(np.int64))
        return self._inputs(shown), None, self._targets(shown)

    @property
    def baseline(self) -> float:
        """See `copying_baseline`."""
        return copying_baseline(self.delay, n=self.shown.shape[1])

    def _inputs(self, shown: Tensor) -> Tensor:
        inputs = torch.full((len(shown), self.steps), BLANK)
        inputs[:, : shown.shape[1]] = shown
        inputs[:, shown.shape[1] + self.delay - 1] = CUE
        return inputs

    def _targets(self, shown: Tensor) -> Tensor:
        targets = torch.full((len(shown), self.steps), BLANK)
        targets[:, self.steps - shown.shape[1] :] = shown
        return targets


def copying(delay: int, *, n: int = 10, count: int = 100_000, seed: int = 0) -> Copying:
    """Draw sequences of the copying memory task; Wang & Niepert (2019) train on 100,000 and test on 10,000.

    Args:
        delay: T, from 1.
        n: how many symbols are shown.
        count: how many sequences.
        seed: what the draw depends on.
    """
    for name, value, least in (("delay", delay, 1), ("n", n, 1), ("count", count, 0)):
        if value < least:
            raise ArgumentError(where=f"copying.{name}", got=value, wanted=f"an integer >= {least}")
    generator = np.random.Generator(np.random.PCG64(seed))
    return Copying(shown=generator.integers(FIRST, CUE, size=(count, n), dtype=np.uint8), delay=delay)


def copying_baseline(delay: int, *, n: int = 10) -> float:
    """The cross-entropy per step of the best guess without memory: ``n ln 8 / (T + 2 n)``.

    >>> round(copying_baseline(100), 6), round(copying_baseline(500), 6)
    (0.173287, 0.039989)
    """
    return n * math.log(CUE - FIRST) / (delay + 2 * n)
