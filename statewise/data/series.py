"""Sequences of numbers, of any lengths: sensors, events, time series."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from statewise.data.labels import Indices, check_labels, frozen, places, shares
from statewise.data.series_parts import Scale, check_steps, frozen_numbers, numbered, usual_features
from statewise.errors import ArgumentError, DataError, LengthError, ShapeError


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Series:
    """Sequences of numbers, kept one behind the other in one array, each perhaps with its class.

    Args:
        values: the numbers of all steps, (steps, features); they are kept in float32.
        starts: where each sequence begins in ``values``; one more entry says where the last one ends.
        features: the names of the numbers of a step.
        labels: the class of each sequence, by its place in ``classes``; None where sequences have none.
        classes: the names of the classes; empty without labels.
        names: of the sequences; empty where they have none.

    >>> two = Series.from_arrays([[1.0, 2.0, 3.0], [5.0]], labels=["up", "flat"])
    >>> two.lengths.tolist(), two.classes, two.sequence(0).tolist()
    ([3, 1], ('flat', 'up'), [[1.0], [2.0], [3.0]])
    >>> values, lengths, labels = two.padded([1, 0])
    >>> values.flatten(1).tolist(), lengths.tolist(), labels.tolist()
    ([[5.0, 0.0, 0.0], [1.0, 2.0, 3.0]], [1, 3], [0, 1])
    """

    values: npt.NDArray[Any]
    starts: npt.NDArray[Any]
    features: tuple[str, ...]
    labels: npt.NDArray[Any] | None = None
    classes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen_numbers(self.values))
        object.__setattr__(self, "starts", frozen(self.starts, np.int64))
        for name in ("features", "classes", "names"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        check_steps(self.values, self.starts, self.features, self.names)
        if self.labels is None:
            if self.classes:
                raise ArgumentError(where="Series.classes", got=self.classes, wanted="none without labels")
            return
        object.__setattr__(self, "labels", frozen(self.labels, np.int64))
        check_labels(self.labels, self.classes, where="Series")
        if len(self.labels) != len(self):
            raise LengthError(where="Series.labels", got=f"{len(self.labels)} labels", wanted=f"{len(self)}")

    @classmethod
    def from_arrays(
        cls,
        sequences: Iterable[Any],
        *,
        labels: Sequence[str] | None = None,
        features: Iterable[str] | None = None,
        classes: Iterable[str] | None = None,
        names: Iterable[str] = (),
    ) -> Series:
        """Sequences that are arrays or lists: (steps,) for one number a step, or (steps, features).

        Args:
            sequences: at least one.
            labels: the name of the class of each; None for none.
            features: the names of the numbers of a step; None for ``value``, or ``x1``, ``x2`` and so on.
            classes: the names of the classes in their order; None for the labels that occur, sorted.
            names: of the sequences.
        """
        arrays = [np.asarray(each, dtype=np.float32) for each in sequences]
        if not arrays:
            raise LengthError(where="Series.from_arrays", got="no sequences", wanted="at least one")
        arrays = [each[:, None] if each.ndim == 1 else each for each in arrays]
        widths = {each.shape[1:] for each in arrays}
        if len(widths) > 1 or arrays[0].ndim != 2:
            raise ShapeError(where="Series.from_arrays", got=f"steps of {sorted(widths)}", wanted="(steps, features)")
        starts = np.concatenate(([0], np.cumsum([len(each) for each in arrays])))
        known = None if labels is None else tuple(sorted(set(labels)) if classes is None else classes)
        return cls(
            values=np.concatenate(arrays),
            starts=starts,
            features=usual_features(arrays[0].shape[1]) if features is None else tuple(features),
            labels=None if labels is None or known is None else numbered(labels, known),
            classes=known or (),
            names=tuple(names),
        )

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """How many steps each sequence has."""
        return np.diff(self.starts)

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """How many sequences each class has; none without labels."""
        found = np.zeros(0, dtype=np.int64) if self.labels is None else self.labels
        return np.bincount(found, minlength=len(self.classes)).astype(np.int64)

    def scale(self) -> Scale:
        """Mean and deviation of each feature over all steps, for standardisation by a training set.

        >>> Series.from_arrays([[1.0, 3.0], [1.0, 3.0]]).scale()
        Scale(mean=(2.0,), deviation=(1.0,))
        """
        values = self.values.astype(np.float64)
        deviation = values.std(0)
        # What hardly moves beside its size is rounding: it is a constant, and tells nothing.
        deviation[deviation <= 1e-6 * np.abs(values).max(0, initial=0.0)] = 1.0
        return Scale(tuple(values.mean(0).tolist()), tuple(deviation.tolist()))

    def sequence(self, index: int | np.integer[Any]) -> npt.NDArray[np.float32]:
        """The numbers of one sequence, (steps, features)."""
        at = int(places([int(index)], len(self))[0])
        found: npt.NDArray[np.float32] = self.values[self.starts[at] : self.starts[at + 1]]
        return found

    def name(self, index: int) -> str:
        """What one sequence is called: its name, else its number from 1."""
        return self.names[index] if self.names else str(index + 1)

    def select(self, indices: Indices) -> Series:
        """The sequences at some places, in the order of these places; or where a mask of truth values holds."""
        at = places(indices, len(self))
        lengths = self.lengths[at]
        return self._cut(self.starts[at], lengths, at)

    def split(self, fraction: float, *, seed: int) -> tuple[Series, Series]:
        """Two parts drawn at random, each in the order of the whole and with every class in the same share.

        Args:
            fraction: how much of the whole the first part has, between 0 and 1; the second has the rest.
            seed: what the draw depends on.
        """
        strata = np.zeros(len(self), dtype=np.int64) if self.labels is None else self.labels
        first, second = shares(strata, fraction, seed=seed)
        return self.select(first), self.select(second)

    def split_steps(self, fraction: float) -> tuple[Series, Series]:
        """The beginning of every sequence, and the rest of it, which comes later: what a forecast must be tested on.

        Args:
            fraction: how much of each sequence the first part has, between 0 and 1.

        >>> [part.sequence(0).tolist() for part in Series.from_arrays([[1.0, 2.0, 3.0, 4.0]]).split_steps(0.5)]
        [[[1.0], [2.0]], [[3.0], [4.0]]]
        """
        if not 0 < fraction < 1:
            raise ArgumentError(where="split_steps.fraction", got=fraction, wanted="a number between 0 and 1")
        first = np.floor(self.lengths * fraction + 0.5).astype(np.int64)
        at = np.arange(len(self))
        return self._cut(self.starts[:-1], first, at), self._cut(self.starts[:-1] + first, self.lengths - first, at)

    def windows(self, steps: int) -> Series:
        """Long sequences cut into pieces that share one step, so that each next value is the target of one piece.

        Args:
            steps: the most that a piece has, 2 or more.

        >>> [piece.flatten().tolist() for piece in map(Series.from_arrays([[1, 2, 3, 4]]).windows(3).sequence, (0, 1))]
        [[1.0, 2.0, 3.0], [3.0, 4.0]]
        """
        if type(steps) is not int or steps < 2:
            raise ArgumentError(where="Series.windows", got=steps, wanted="a whole number of at least 2")
        pieces = np.maximum(1, -(-(self.lengths - 1) // (steps - 1)))
        at = np.repeat(np.arange(len(self)), pieces)
        inside = np.arange(len(at)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        begins = self.starts[at] + inside * (steps - 1)
        return self._cut(begins, np.minimum(steps, self.starts[at + 1] - begins), at)

    def longer_than(self, steps: int) -> Series:
        """The sequences of more steps than these."""
        return self.select(self.lengths > steps)

    def unlabelled(self) -> Series:
        """The same sequences without their classes."""
        return replace(self, labels=None, classes=())

    def with_features(self, names: Sequence[str], *, where: str = "Series") -> Series:
        """The same sequences with some of the features, in a given order.

        Args:
            names: of the features.
            where: what to call the sequences in an error.
        """
        if tuple(names) == self.features:
            return self
        missing = [name for name in names if name not in self.features]
        if missing:
            got = f"the features {', '.join(self.features)}"
            raise DataError(where=where, got=got, wanted=f"{', '.join(names)}: {missing[0]!r} is not among them")
        columns = [self.features.index(name) for name in names]
        return replace(self, values=self.values[:, columns], features=tuple(names))

    def check_classes(self, *, where: str = "series") -> None:
        """Refuse what no classes can be learnt from: no sequences, no labels, or one class only.

        Args:
            where: what to call them in the error.

        Raises:
            DataError: names how many sequences each class has.
        """
        if self.labels is None or np.count_nonzero(self.counts) < 2:
            counted = ", ".join(f"{count} of {name!r}" for name, count in zip(self.classes, self.counts, strict=True))
            raise DataError(
                where=where,
                got="no labels" if self.labels is None else counted or "no sequences",
                wanted="sequences of two classes or more",
                remedy="Name the column of the labels, add sequences of another class, or forecast the next value.",
            )

    def padded(
        self, indices: Indices
    ) -> tuple[Float32[Tensor, "batch steps features"], Int64[Tensor, "batch"], Int64[Tensor, "batch"] | None]:
        """A batch: numbers with 0 behind the end of shorter sequences, their lengths, and their labels if any."""
        at = places(indices, len(self))
        lengths = self.lengths[at]
        steps = np.arange(lengths.max(initial=0))
        inside = steps < lengths[:, None]
        values = np.zeros((*inside.shape, len(self.features)), dtype=np.float32)
        values[inside] = self.values[(self.starts[at][:, None] + steps)[inside]]
        labels = None if self.labels is None else torch.from_numpy(self.labels[at])
        return torch.from_numpy(values), torch.from_numpy(lengths), labels

    def report(self) -> str:
        """How many sequences there are, how long they are, and where their values lie.

        >>> print(Series.from_arrays([[1.0, 2.0], [6.0]], labels=["low", "high"]).report())
        2 sequences of 1 to 2 steps, 3 in all
          value: 1 to 6, mean 3, deviation 2.16
          high: 1, low: 1
        """
        sizes = f"{self.lengths.min()} to {self.lengths.max()} steps" if len(self) else "no steps"
        lines = [f"{len(self)} sequences of {sizes}, {len(self.values)} in all"]
        scale = self.scale() if len(self.values) else Scale((), ())
        for name, column, mean, deviation in zip(self.features, self.values.T, *scale, strict=len(self.values) > 0):
            lines.append(
                f"  {name}: {column.min():.4g} to {column.max():.4g}, mean {mean:.4g}, deviation {deviation:.3g}"
            )
        if self.classes:
            counted = zip(self.classes, self.counts.tolist(), strict=True)
            lines.append("  " + ", ".join(f"{name}: {count}" for name, count in counted))
        return "\n".join(lines)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Series):
            return NotImplemented
        mine, yours = ((each.features, each.classes, each.names) for each in (self, other))
        arrays = [(self.starts, other.starts), (self.values, other.values), (self.labels, other.labels)]
        return mine == yours and all(
            (one is None and two is None) or (one is not None and two is not None and np.array_equal(one, two))
            for one, two in arrays
        )

    def __hash__(self) -> int:
        return hash((self.features, self.classes, self.names, self.starts.tobytes(), self.values.tobytes()))

    def __repr__(self) -> str:
        kinds = f", {len(self.classes)} classes" if self.classes else ""
        return f"Series({len(self)} sequences, {len(self.values)} steps of {', '.join(self.features)}{kinds})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that the arrays of a copy are read-only too.
        return partial(Series, **{field.name: getattr(self, field.name) for field in fields(self)}), ()

    def _cut(self, begins: npt.NDArray[Any], lengths: npt.NDArray[Any], at: npt.NDArray[Any]) -> Series:
        """Some stretches of the values; each is of the sequence at a place, whose name and class it has."""
        starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        inside = np.arange(starts[-1]) - np.repeat(starts[:-1] - begins, lengths)
        return replace(
            self,
            values=self.values[inside],
            starts=starts,
            labels=None if self.labels is None else self.labels[at],
            names=tuple(self.names[place] for place in at.tolist()) if self.names else (),
        )
