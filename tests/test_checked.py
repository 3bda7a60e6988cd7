"""Annotations are checked while tests run: shapes and plain types, of functions, methods and dataclasses."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import settings
from jaxtyping import TypeCheckError

from checked import Limit
from statewise.commands.naming import naming_options
from statewise.memory import matricize
from statewise.memory.telling import counted
from statewise.sweep.tries import Try
from statewise.transforms import Noise

WRONG: Any = "no number"


def test_a_plain_type_is_checked_without_jaxtyping() -> None:
    assert counted(2, "step") == "2 steps"
    with pytest.raises(TypeCheckError, match="no number"):
        counted(WRONG, "step")


def test_a_shape_is_checked() -> None:
    whole: Any = torch.arange(4).reshape(2, 2)
    assert matricize(whole.float(), 1).shape == (2, 2)
    with pytest.raises(TypeCheckError, match="Float"):
        matricize(whole, 1)


def test_an_int_is_good_where_a_float_is_asked_for() -> None:
    assert Noise("gaussian", 1).gamma == 1


def test_methods_dataclasses_and_generators_are_checked() -> None:
    with pytest.raises(TypeCheckError):
        Try(value=WRONG, runs=())
    with pytest.raises(TypeCheckError):
        Try.of(WRONG, 0.99)
    with pytest.raises(TypeCheckError), naming_options(WRONG):
        pass


def test_a_slow_run_checks_every_call() -> None:
    assert (math.inf if settings.get_current_profile_name() == "slow" else 20) == Limit.calls


def test_in_a_quick_run_only_the_first_calls_of_a_test_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limit, "calls", 2)
    for _ in range(2):
        with pytest.raises(TypeCheckError):
            counted(WRONG, "step")
    with pytest.raises(ValueError, match="Cannot specify ','"):
        counted(WRONG, "step")
    monkeypatch.setattr(Limit, "test", Limit.test + 1)  # another test begins
    with pytest.raises(TypeCheckError):
        counted(WRONG, "step")


@pytest.mark.usefixtures("as_users_have_it")
def test_users_have_no_such_check() -> None:
    with pytest.raises(ValueError, match="Cannot specify ','"):  # Python's own word
        counted(WRONG, "step")
