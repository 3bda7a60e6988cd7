"""What changes from epoch to epoch: the longest sequence, the temperature of centroids, and their noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from statewise.errors import ArgumentError


class Curriculum:
    """Short sequences first, longer ones when those are learnt (algorithm A2; Wang & Niepert 2019, section 5).

    The longest sequence grows after an epoch whose training loss is below ``solved``, and after ``every`` epochs
    anyway. Lengths that no example has are passed over.

    Args:
        lengths: those that occur.
        start: the longest of the first epoch; the shortest that occurs if that is longer. None for all from the
            beginning.
        step: by how much the longest may grow at once.
        every: after how many epochs it grows at the latest; None for only when the loss is low.
        solved: the training loss that is low.

    >>> curriculum = Curriculum([1, 2, 3, 9], start=2)
    >>> [curriculum.observe(loss) for loss in (0.5, 0.05, 0.05)], curriculum.longest, curriculum.complete
    ([False, True, True], 9, True)
    """

    def __init__(
        self,
        lengths: Sequence[int] | npt.NDArray[Any],
        *,
        start: int | None,
        step: int = 1,
        every: int | None = None,
        solved: float = 0.1,
    ) -> None:
        self.lengths = np.unique(np.asarray(lengths, dtype=np.int64))
        if not len(self.lengths):
            raise ArgumentError(where="Curriculum.lengths", got="none", wanted="at least one")
        self.step, self.every, self.solved = step, every, solved
        whole = int(self.lengths[-1])
        self.longest = whole if start is None else self._reached(max(start, int(self.lengths[0])))
        self.epochs = 0  # with this longest
        self.seen = 0
        self.complete_at = 0  # after which epoch it was complete

    @property
    def complete(self) -> bool:
        """Whether all sequences are trained on."""
        return self.longest >= int(self.lengths[-1])

    def observe(self, loss: float) -> bool:
        """Whether the longest grows after an epoch.

        Args:
            loss: the mean training loss of the epoch.
        """
        self.epochs, self.seen = self.epochs + 1, self.seen + 1
        if self.complete or not (loss < self.solved or (self.every is not None and self.epochs >= self.every)):
            return False
        later = int(self.lengths[self.lengths > self.longest][0])
        self.longest, self.epochs = self._reached(max(self.longest + self.step, later)), 0
        if self.complete:
            self.complete_at = self.seen
        return True

    def state(self) -> dict[str, Any]:
        """What it remembers, as strict JSON."""
        return {name: getattr(self, name) for name in ("longest", "epochs", "seen", "complete_at")}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state` gave."""
        for name in ("longest", "epochs", "seen", "complete_at"):
            setattr(self, name, state[name])

    def _reached(self, wanted: int) -> int:
        """The longest length that occurs and is not above that which is wanted."""
        return int(self.lengths[self.lengths <= wanted][-1])


class NoiseRamp:
    """Noise that grows while the training loss stays low, which makes the transitions of a network hard (A3).

    ``sigma <- min(sigma + ramp * updates, most)`` after an epoch with a loss below ``solved``, but by at most a quarter
    of ``most`` at once, which long epochs would exceed. An epoch of one update, a full batch, is the rule of A3.

    Args:
        noise: at first.
        ramp: growth for each update.
        most: where it stops; noise that begins above it stays as it is.
        solved: the training loss that is low.

    >>> ramp = NoiseRamp(0.0, ramp=0.01, most=1.0)
    >>> [ramp.observe(loss, updates=20) for loss in (0.5, 0.05, 0.01)], ramp.noise
    ([False, True, True], 0.4)
    """

    def __init__(self, noise: float, *, ramp: float, most: float, solved: float = 0.1) -> None:
        self.noise, self.ramp, self.most, self.solved = noise, ramp, most, solved

    def observe(self, loss: float, *, updates: int) -> bool:
        """Whether the noise grows after an epoch.

        Args:
            loss: the mean training loss of the epoch.
            updates: how many it had.
        """
        growth = min(self.ramp * updates, self.most / 4)
        grown = max(self.noise, min(self.noise + growth, self.most))
        if not loss < self.solved or grown == self.noise:
            return False
        self.noise = grown
        return True

    def state(self) -> dict[str, Any]:
        """What it remembers, as strict JSON."""
        return {"noise": self.noise}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state` gave."""
        self.noise = float(state["noise"])


def temperature_at(epoch: int, epochs: int, *, begin: float, end: float | None) -> float:
    """The temperature of an epoch, in equal ratios from the first to the last.

    ``tau_e = begin * (end / begin) ** (e / (epochs - 1))``

    Args:
        epoch: its number, from 0.
        epochs: how many there are.
        begin: the temperature of the first.
        end: that of the last; None for the same.

    >>> [temperature_at(epoch, 3, begin=1.0, end=0.25) for epoch in range(3)]
    [1.0, 0.5, 0.25]
    """
    if end is None:
        return begin
    fraction = min(1.0, epoch / (epochs - 1)) if epochs > 1 else 1.0
    # Not the product, so that the ends are exact.
    return begin if fraction == 0 else end if fraction == 1 else float(begin * (end / begin) ** fraction)
