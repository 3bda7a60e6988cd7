"""Every error the library raises on purpose has a name, says what was got and wanted, and survives a journey."""

from __future__ import annotations

import copy
import inspect
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest
import torch

from statewise import errors
from statewise.errors import (
    ArgumentError,
    AssumptionError,
    DeviceError,
    DtypeError,
    EngineError,
    LengthError,
    MissingExtraError,
    NonFiniteError,
    NotMemorylessError,
    SecondDerivativeError,
    ShapeError,
    StatewiseError,
    UnknownSymbolError,
)

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, StatewiseError)]
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def test_no_kind_of_error_is_forgotten_here() -> None:
    assert {kind.__name__ for kind in KINDS} == {
        "StatewiseError",
        "ArgumentError",
        "AssumptionError",
        "DataError",
        "DeviceError",
        "DivergedError",
        "DtypeError",
        "EngineError",
        "ExportError",
        "LengthError",
        "MissingExtraError",
        "ModelFolderError",
        "NewerFormatError",
        "NonFiniteError",
        "NotMemorylessError",
        "RunFolderError",
        "RunInUseError",
        "SecondDerivativeError",
        "ShapeError",
        "TensorFileError",
        "UnknownArgumentError",
        "UnknownSymbolError",
    }


@EVERY_KIND
def test_the_text_says_where_what_was_got_what_was_wanted_and_the_remedy(kind: Any) -> None:
    error = kind(where="Noise.gamma", got=-1.0, wanted="a number >= 0", remedy="Use 0 for no noise.")
    assert str(error) == "Noise.gamma: got -1.0, wanted a number >= 0. Use 0 for no noise."


@EVERY_KIND
def test_without_a_remedy_the_text_ends_with_what_was_wanted(kind: Any) -> None:
    assert str(kind(where="k", got=0, wanted="at least 1")) == "k: got 0, wanted at least 1."


@EVERY_KIND
@pytest.mark.parametrize(
    ("got", "shown"),
    [("a description", "a description"), ((1, 2), "(1, 2)"), (None, "None"), (torch.float16, "torch.float16")],
)
def test_a_description_is_shown_as_it_is_and_a_value_as_python_writes_it(kind: Any, got: object, shown: str) -> None:
    assert str(kind(where="here", got=got, wanted="else")) == f"here: got {shown}, wanted else."


@EVERY_KIND
def test_the_parts_can_be_read_by_a_program(kind: Any) -> None:
    error = kind(where="here", got=3, wanted="else", remedy="Go.")
    assert (error.where, error.got, error.wanted, error.remedy) == ("here", 3, "else", "Go.")


@EVERY_KIND
def test_the_parts_must_be_named(kind: Any) -> None:
    with pytest.raises(TypeError, match="positional"):
        kind("here", 3, "else")
    with pytest.raises(TypeError, match="wanted"):
        kind(where="here", got=3)


@EVERY_KIND
@pytest.mark.parametrize("journey", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_survives_copying_and_pickling(kind: Any, journey: Any) -> None:
    error = kind(where="here", got=(1, 2), wanted="else", remedy="Go.")
    arrived = journey(error)
    assert type(arrived) is kind
    assert str(arrived) == str(error)
    assert (arrived.where, arrived.got, arrived.wanted, arrived.remedy) == ("here", (1, 2), "else", "Go.")


def fail() -> None:
    raise ShapeError(where="x", got=(1,), wanted="(2,)", remedy="Go.")


def test_an_error_crosses_from_a_worker_process() -> None:
    with (
        ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool,
        pytest.raises(ShapeError, match=r"x: got \(1,\), wanted \(2,\)\. Go\."),
    ):
        pool.submit(fail).result()


@pytest.mark.parametrize(
    ("kind", "bases"),
    [
        (ArgumentError, (StatewiseError, ValueError)),
        (ShapeError, (ArgumentError, ValueError)),
        (LengthError, (ArgumentError, ValueError)),
        (DeviceError, (ArgumentError, ValueError)),
        (UnknownSymbolError, (ArgumentError, ValueError)),
        (NotMemorylessError, (StatewiseError, TypeError)),
        (AssumptionError, (StatewiseError, ValueError)),
        (DtypeError, (StatewiseError, TypeError)),
        (NonFiniteError, (StatewiseError, ArithmeticError)),
        (EngineError, (StatewiseError, RuntimeError)),
        (SecondDerivativeError, (EngineError, RuntimeError)),
        (MissingExtraError, (StatewiseError, ImportError)),
    ],
)
def test_code_that_catches_pythons_own_errors_catches_ours(kind: Any, bases: tuple[type, ...]) -> None:
    with pytest.raises(kind) as caught:
        raise kind(where="here", got=3, wanted="else")
    assert all(isinstance(caught.value, base) for base in bases)


@EVERY_KIND
def test_every_kind_says_when_it_is_raised(kind: Any) -> None:
    assert vars(kind)["__doc__"].strip().splitlines()[0].endswith(".")
