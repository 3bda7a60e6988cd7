"""Helpers that tests of every room share."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

import pytest
import torch
from torch import Tensor, nn

from statewise.files.atomic import locked
from statewise.native import load_native

#: The engines of a CPU; where nothing compiled the kernel there is one.
CPU_ENGINES = ("reference", "cpu") if load_native().available else ("reference",)
needs_kernel = pytest.mark.skipif(not load_native().available, reason=load_native().reason or "no kernel")


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


@contextmanager
def threads(count: int) -> Iterator[None]:
    """A region in which torch has so many threads; elsewhere a test has one."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def shared_data(name: str) -> Path:
    """The file or folder ``name`` of the benchmark data; skips the test where the data is absent.

    The data is looked for in the folder that STATEWISE_DATA names, else in ``shared/data`` beside the repository.
    """
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("STATEWISE_DATA", beside)) / name
    if not path.exists():
        pytest.skip(f"benchmark data {name!r} is absent; STATEWISE_DATA may name its folder")
    return path


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that is made by the first test process that needs it; each process has a copy of its own.

    Args:
        factory: pytest's own.
        name: one for all processes.
        make: fills an empty folder.
    """
    base = factory.getbasetemp()
    whole = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"made-{name}"
    with locked(whole.with_suffix(".lock")):
        done = whole / "made-once"
        if not done.exists():
            shutil.rmtree(whole, ignore_errors=True)  # begun by a process that failed
            whole.mkdir()
            make(whole)
            done.touch()
    return Path(shutil.copytree(whole, factory.mktemp(name) / name))


def fill(layer: nn.Module, **values: Tensor | float) -> None:
    """Write values into parameters of a layer, by name."""
    with torch.no_grad():
        for name, value in values.items():
            layer.get_parameter(name).copy_(torch.as_tensor(value, dtype=torch.float64))


def weight(layer: nn.Module, name: str) -> Tensor:
    """A weight of a layer, parametrized or not."""
    value = getattr(layer, name)
    assert isinstance(value, Tensor)
    return value


def doubles(*values: float) -> Tensor:
    """A vector in double precision."""
    return torch.tensor(values, dtype=torch.float64)


@contextmanager
def forbidden_to_wait() -> Iterator[None]:
    """A region in which whatever makes the host wait for a CUDA device is an error."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls the mode a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)
