"""Helpers that tests of every room share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypedDict

import pytest
import torch
from beartype import BeartypeConf, beartype

# The run-time check of every annotation; as for mypy, an int is good where a float is asked for.
checked = beartype(conf=BeartypeConf(is_pep484_tower=True))


class Tolerance(TypedDict):
    """The two arguments of ``torch.testing.assert_close`` that say how close is close."""

    rtol: float
    atol: float


_TOLERANCES: dict[torch.dtype, Tolerance] = {
    torch.float64: {"rtol": 1e-10, "atol": 1e-10},
    torch.float32: {"rtol": 2e-5, "atol": 1e-5},
    torch.float16: {"rtol": 1e-2, "atol": 2e-3},
    torch.bfloat16: {"rtol": 3e-2, "atol": 2e-2},
}


def tolerance(dtype: torch.dtype) -> Tolerance:
    """How far two correct computations in ``dtype`` may differ, as ``assert_close(a, b, **tolerance(a.dtype))``.

    >>> tolerance(torch.float64)
    {'rtol': 1e-10, 'atol': 1e-10}
    """
    return _TOLERANCES[dtype].copy()


def shared_data(name: str) -> Path:
    """The file or folder ``name`` of the benchmark data; skips the test where the data is absent.

    The data is looked for in the folder that STATEWISE_DATA names, else in ``shared/data`` beside the repository.
    """
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("STATEWISE_DATA", beside)) / name
    if not path.exists():
        pytest.skip(f"benchmark data {name!r} is absent; STATEWISE_DATA may name its folder")
    return path
