"""What a machine is made of, looked over: names, and read-only tables of whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from statewise.errors import ArgumentError, DtypeError, ShapeError


def checked_names(names: Sequence[str], where: str, *, distinct: bool) -> tuple[str, ...]:
    """The names as a tuple of texts; if they are to tell things apart, none empty and none twice."""
    names = tuple(names)
    for name in names:
        if not isinstance(name, str):
            raise DtypeError(where=where, got=name, wanted="texts")
        if distinct and not name:
            raise ArgumentError(where=where, got="an empty name", wanted="names of one character or more")
    if distinct and len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ArgumentError(where=where, got=f"{twice!r} more than once", wanted="distinct names")
    return names


def whole_numbers(values: Any, where: str, shape: tuple[int | None, ...]) -> np.ndarray:
    """The values as a read-only array of their own, of the wanted shape, in 64-bit whole numbers."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise DtypeError(where=where, got=f"dtype {array.dtype}", wanted="whole numbers")
    wanted = tuple("any" if size is None else size for size in shape)
    if array.ndim != len(shape) or any(size not in (None, is_) for size, is_ in zip(shape, array.shape, strict=True)):
        if not (array.size == 0 and 0 in shape):
            raise ShapeError(where=where, got=array.shape, wanted=f"the shape {wanted}")
        array = array.reshape([size or 0 for size in shape])
    array = array.astype(np.int64, copy=True)
    array.flags.writeable = False
    return array


def numbers_below(values: Any, where: str, shape: tuple[int | None, ...], below: int) -> np.ndarray:
    """The same, with every number from 0 to one under the limit."""
    array = whole_numbers(values, where, shape)
    if array.size and not 0 <= array.min() <= array.max() < below:
        wrong = array[(array < 0) | (array >= below)].flat[0]
        raise ArgumentError(where=where, got=int(wrong), wanted=f"numbers from 0 to {below - 1}")
    return array
