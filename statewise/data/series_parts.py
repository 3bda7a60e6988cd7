"""What sequences of numbers are made of: features, their scale, and values that nobody can change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from statewise.errors import ArgumentError, LengthError, NonFiniteError, ShapeError

#: What the only feature is called where nobody says.
VALUE = "value"


class Scale(NamedTuple):
    """Where the values of each feature lie: what a network takes off them, and what it divides them by.

    Attributes:
        mean: of each feature.
        deviation: of each feature, above 0; 1 for a feature that never changes.
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]


def usual_features(count: int) -> tuple[str, ...]:
    """The names of features that nobody has named.

    >>> usual_features(1), usual_features(2)
    (('value',), ('x1', 'x2'))
    """
    return (VALUE,) if count == 1 else tuple(f"x{number}" for number in range(1, count + 1))


def numbered(labels: Sequence[str], classes: tuple[str, ...]) -> npt.NDArray[np.int64]:
    """The places of labels among the classes."""
    numbers = {name: number for number, name in enumerate(classes)}
    if strange := next((label for label in labels if label not in numbers), None):
        raise ArgumentError(where="Series.labels", got=repr(strange), wanted=f"one of {', '.join(classes)}")
    return np.array([numbers[label] for label in labels], dtype=np.int64)


def frozen_numbers(values: Any) -> npt.NDArray[np.float32]:
    """A copy in float32 that nobody can write into."""
    given = np.asarray(values)
    if given.dtype.kind not in "fiub":
        raise ArgumentError(where="Series.values", got=f"an array of {given.dtype}", wanted="numbers")
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
        array = np.array(given, dtype=np.float32, order="C")
    array.setflags(write=False)
    return array.view()


def check_steps(
    values: npt.NDArray[Any], starts: npt.NDArray[Any], features: tuple[str, ...], names: tuple[str, ...]
) -> None:
    """Refuse sequences that are not whole: other columns than features, other places than steps, no finite numbers.

    Args:
        values: of all steps.
        starts: of the sequences.
        features: names of the columns.
        names: of the sequences; empty for none.
    """
    count = len(starts) - 1
    if values.ndim != 2 or values.shape[1] != len(features) or not features:
        wanted = f"(steps, {len(features)}), a column for each feature"
        raise ShapeError(where="Series.values", got=values.shape, wanted=wanted)
    if len(set(features)) < len(features):
        raise ArgumentError(where="Series.features", got=features, wanted="names, each of them once")
    whole = starts.ndim == 1 and len(starts) and starts[0] == 0
    if not whole or starts[-1] != len(values) or (np.diff(starts) < 0).any():
        wanted = f"places that rise from 0 to {len(values)}, the number of steps"
        raise ArgumentError(where="Series.starts", got="others", wanted=wanted)
    if names and len(names) != count:
        raise LengthError(where="Series.names", got=f"{len(names)} names", wanted=f"{count}, or none")
    if not np.isfinite(values).all():
        step, feature = np.argwhere(~np.isfinite(values))[0].tolist()
        at = int(np.searchsorted(starts, step, side="right")) - 1
        where = f"Series, sequence {at}, step {step - int(starts[at])}, feature {features[feature]!r}"
        raise NonFiniteError(where=where, got=str(values[step, feature]), wanted="finite numbers")
