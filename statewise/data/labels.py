"""What all labelled examples have in common, whatever they are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from statewise.errors import ArgumentError, DataError, DtypeError, LengthError

Indices = Sequence[int] | npt.NDArray[Any] | torch.Tensor | slice
Kind = TypeVar("Kind", bound="Labelled")


class Labelled(ABC):
    """Examples that each belong to one class."""

    labels: npt.NDArray[Any]
    classes: tuple[str, ...]

    @abstractmethod
    def select(self: Kind, indices: Indices) -> Kind:
        """The examples at some places, in the order of these places; or where a mask of truth values holds."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """How many examples each class has."""
        return np.bincount(self.labels, minlength=len(self.classes)).astype(np.int64)

    def check_classes(self, *, where: str = "examples") -> None:
        """Refuse what nothing can be learnt from: no examples, or examples of one class only.

        Args:
            where: what to call them in the error.

        Raises:
            DataError: names how many examples each class has.
        """
        found = ", ".join(f"{count} of {name!r}" for name, count in zip(self.classes, self.counts, strict=True))
        if len(self) == 0:
            remedy = "Draw more words, or other lengths: no word of these lengths was taken."
            raise DataError(where=where, got="no examples", wanted="examples of two classes or more", remedy=remedy)
        if np.count_nonzero(self.counts) < 2:
            remedy = "Add examples of another class; for a language, words of other lengths."
            raise DataError(where=where, got=found, wanted="examples of two classes or more", remedy=remedy)

    def split(self: Kind, fraction: float, *, seed: int) -> tuple[Kind, Kind]:
        """Two parts drawn at random, each in the order of the whole and with every class in the same share.

        Args:
            fraction: how much of the whole the first part has, between 0 and 1; the second has the rest.
            seed: what the draw depends on.
        """
        first, second = shares(self.labels, fraction, seed=seed)
        return self.select(first), self.select(second)


def shares(
    strata: npt.NDArray[Any], fraction: float, *, seed: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Two parts of some places drawn at random, each in rising order and with every stratum in the same share.

    Args:
        strata: a number for each place; places of one number are a stratum.
        fraction: how much of the whole the first part has, between 0 and 1; the second has the rest.
        seed: what the draw depends on.
    """
    if not 0 < fraction < 1:
        raise ArgumentError(where="split.fraction", got=fraction, wanted="a number between 0 and 1")
    generator = np.random.Generator(np.random.PCG64(seed))
    # In a random order, sorted by class; then every place has its share, rounded along the whole row.
    order = generator.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    steps = np.floor(np.arange(len(strata) + 1) * fraction + 0.5)
    first = np.diff(steps) > 0
    return np.sort(order[first]), np.sort(order[~first])


def frozen(values: Any, kind: type[np.integer[Any]]) -> npt.NDArray[Any]:
    """An array of some type that nobody can write into; a copy unless nobody else can either."""
    array = given = np.asarray(values)
    if array.size and array.dtype.kind not in "iub":
        raise DtypeError(where="examples", got=f"an array of {array.dtype}", wanted="integers")
    array = array.astype(np.int8) if array.dtype == np.bool_ else array
    bounds = np.iinfo(kind)
    if array.size and array.dtype != kind and (int(array.min()) < bounds.min or int(array.max()) > bounds.max):
        got, wanted = f"{array.min()} to {array.max()}", f"numbers from {bounds.min} to {bounds.max}"
        raise ArgumentError(where="examples", got=got, wanted=wanted)
    array = np.ascontiguousarray(array, dtype=kind)
    if np.may_share_memory(array, given) and _can_be_written(given):
        array = array.copy()
    array.setflags(write=False)
    # Of a read-only array only read-only views can be made.
    return array.view()


def _can_be_written(array: npt.NDArray[Any]) -> bool:
    """Whether somebody may write into the memory of an array, through whatever it is a view of."""
    holder: Any = array
    while isinstance(holder, np.ndarray):
        if holder.flags.writeable:
            return True
        holder = holder.base
    return not (holder is None or isinstance(holder, bytes))


def check_labels(labels: npt.NDArray[np.int64], classes: tuple[str, ...], *, where: str) -> None:
    """Refuse labels that name no class, and classes without or with the same names."""
    if labels.ndim != 1:
        raise LengthError(where=f"{where}.labels", got=f"shape {labels.shape}", wanted="one label for each example")
    if not classes or len(set(classes)) < len(classes):
        raise ArgumentError(where=f"{where}.classes", got=classes, wanted="names, each of them once")
    wrong = np.flatnonzero((labels < 0) | (labels >= len(classes)))
    if len(wrong):
        got, wanted = f"{labels[wrong[0]]} at {wrong[0]}", f"a class from 0 to {len(classes) - 1}"
        raise ArgumentError(where=f"{where}.labels", got=got, wanted=wanted)


def places(indices: Indices, count: int) -> npt.NDArray[np.int64]:
    """Indices of any kind as an array of places; a mask becomes the places where it holds."""
    if isinstance(indices, slice):
        return np.arange(count, dtype=np.int64)[indices]
    found = indices.cpu().numpy() if isinstance(indices, torch.Tensor) else np.asarray(indices)
    if found.dtype == np.bool_:
        if found.shape != (count,):
            raise LengthError(where="indices", got=f"a mask of shape {found.shape}", wanted=f"a mask of {count}")
        return np.flatnonzero(found).astype(np.int64)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise DtypeError(where="indices", got=f"{found.dtype} of shape {found.shape}", wanted="integers in a row")
    found = found.astype(np.int64)
    if found.size and not (-count <= found.min() and found.max() < count):
        raise ArgumentError(where="indices", got=f"{found.min()} to {found.max()}", wanted=f"places under {count}")
    return np.where(found < 0, found + count, found)
