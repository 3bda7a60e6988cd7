"""Small edits of words in the rows of a table, all rows at once: how near misses are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def choose(mask: Mask, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """For each row one of the places where the mask holds, all with the same chance; 0 if it holds nowhere."""
    wanted = (generator.random(len(mask)) * mask.sum(1)).astype(np.int64)
    found: npt.NDArray[np.int64] = np.argmax(np.cumsum(mask, axis=1) > wanted[:, None], axis=1)
    return found


def put(tokens: Table, places: npt.NDArray[Any], symbols: npt.NDArray[Any]) -> Table:
    """One symbol of each row replaced."""
    edited = tokens.copy()
    edited[np.arange(len(tokens)), places] = symbols
    return edited


def delete(tokens: Table, places: npt.NDArray[Any]) -> Table:
    """One symbol of each row left out; the last column then holds what it held."""
    columns = np.arange(tokens.shape[1])
    shifted = np.minimum(columns + (columns >= places[:, None]), tokens.shape[1] - 1)
    return np.take_along_axis(tokens, shifted, axis=1)


def insert(tokens: Table, places: npt.NDArray[Any], symbols: npt.NDArray[Any]) -> Table:
    """One symbol put before a place of each row; the last column drops out."""
    columns = np.arange(tokens.shape[1])
    shifted = np.take_along_axis(tokens, np.maximum(columns - (columns > places[:, None]), 0), axis=1)
    return put(shifted, places, symbols)


def swap(tokens: Table, one: npt.NDArray[Any], other: npt.NDArray[Any]) -> Table:
    """Two symbols of each row exchanged."""
    rows = np.arange(len(tokens))
    return put(put(tokens, one, tokens[rows, other]), other, tokens[rows, one])
