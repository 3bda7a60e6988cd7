"""Pictures as labelled sequences: read pixel by pixel, or row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from statewise.data.labels import Indices, Labelled, check_labels, frozen, places
from statewise.errors import ArgumentError, ShapeError

#: What a step may be.
BY = ("pixels", "rows")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Images(Labelled):
    """Pictures as sequences of grey values, one pixel or one row a step, each with its class.

    Args:
        values: from 0 to 255, one row for each picture, in the order in which a network reads them.
        labels: the class of each picture.
        classes: the names of the classes.
        height: rows of a picture.
        width: columns of a picture.
        permutation: the pixel, counted row by row, that each step reads; None for row by row.
        by: "pixels", where a step is one grey value, or "rows", where it is a whole row of them.

    >>> values, labels = np.array([[0, 255, 51, 0]]), np.array([1])
    >>> images = Images(values=values, labels=labels, classes=("no", "yes"), height=2, width=2)
    >>> [round(value, 1) for value in images.padded([0])[0].flatten().tolist()]
    [0.0, 1.0, 0.2, 0.0]
    >>> images.permuted(seed=3).pictures()[0].tolist()
    [[0, 255], [51, 0]]
    >>> images.by_rows().padded([0])[0].shape
    torch.Size([1, 2, 2])
    """

    values: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    classes: tuple[str, ...]
    height: int
    width: int
    permutation: npt.NDArray[Any] | None = None
    by: str = "pixels"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen(self.values, np.uint8))
        object.__setattr__(self, "labels", frozen(self.labels, np.int64))
        object.__setattr__(self, "classes", tuple(self.classes))
        if self.permutation is not None:
            object.__setattr__(self, "permutation", frozen(self.permutation, np.int64))
        check_labels(self.labels, self.classes, where="Images")
        if self.values.shape != (len(self.labels), self.pixels):
            wanted = f"({len(self.labels)}, {self.pixels}): a row of {self.height} x {self.width} for each label"
            raise ShapeError(where="Images.values", got=self.values.shape, wanted=wanted)
        if self.permutation is not None and not np.array_equal(np.sort(self.permutation), np.arange(self.pixels)):
            raise ArgumentError(where="Images.permutation", got="others", wanted=f"each of 0 to {self.pixels - 1} once")
        self._check_by()

    @property
    def pixels(self) -> int:
        """How many pixels a picture has."""
        return self.height * self.width

    @property
    def steps(self) -> int:
        """How long the sequence of a picture is."""
        return self.height if self.by == "rows" else self.pixels

    @property
    def features(self) -> int:
        """How many grey values a step has."""
        return self.width if self.by == "rows" else 1

    def select(self, indices: Indices) -> Images:
        at = places(indices, len(self))
        return self._with(self.values[at], self.labels[at], self.permutation)

    def by_rows(self) -> Images:
        """The same pictures with a row a step: as many steps as rows, each with as many numbers as columns."""
        return replace(self, by="rows")

    def permuted(self, *, seed: int) -> Images:
        """The same pictures with their pixels read in one random order, the same for all; it is kept with them."""
        order = np.random.Generator(np.random.PCG64(seed)).permutation(self.pixels)
        return self.in_order(order)

    def in_order(self, permutation: npt.NDArray[np.int64] | Sequence[int]) -> Images:
        """The same pictures with their pixels read in a given order, such as that of a training run."""
        plain = self.pictures().reshape(len(self), self.pixels)
        return self._with(plain[:, np.asarray(permutation)], self.labels, np.asarray(permutation))

    def pictures(self) -> npt.NDArray[np.uint8]:
        """The pictures as they are seen: (pictures, height, width), whatever the order of reading."""
        values = self.values
        if self.permutation is not None:
            values = np.empty_like(self.values)
            values[:, self.permutation] = self.values
        return values.reshape(len(self), self.height, self.width)

    def padded(self, indices: Indices) -> tuple[Float32[Tensor, "batch steps features"], None, Int64[Tensor, "batch"]]:
        """A batch: grey values from 0 to 1, no lengths since all are full, and labels."""
        at = places(indices, len(self))
        values = torch.from_numpy(self.values[at]).to(torch.float32).div_(255)
        return values.unflatten(1, (self.steps, self.features)), None, torch.from_numpy(self.labels[at])

    def __repr__(self) -> str:
        order = "a row a step" if self.by == "rows" else "row by row" if self.permutation is None else "permuted"
        return f"Images({len(self)} of {self.height} x {self.width}, {len(self.classes)} classes, {order})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that the arrays of a copy are read-only too.
        return partial(Images, **{field.name: getattr(self, field.name) for field in fields(self)}), ()

    def _with(self, values: Any, labels: Any, permutation: npt.NDArray[np.int64] | None) -> Images:
        return replace(self, values=values, labels=labels, permutation=permutation)

    def _check_by(self) -> None:
        if self.by not in BY:
            raise ArgumentError(where="Images.by", got=self.by, wanted='"pixels" or "rows"')
        if self.by == "rows" and self.permutation is not None:
            raise ArgumentError(
                where="Images.by",
                got="rows of pictures whose pixels are permuted",
                wanted="pixels in their places: others make no rows",
                remedy="Read permuted pictures by pixels, or leave the permutation out.",
            )
