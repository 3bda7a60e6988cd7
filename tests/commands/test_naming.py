from __future__ import annotations

from contextlib import AbstractContextManager

import pytest

from statewise.commands.naming import naming_options, typed
from statewise.errors import ArgumentError, MissingExtraError


def test_an_error_names_the_option_and_stays_of_its_type() -> None:
    with pytest.raises(MissingExtraError, match=r"^--tune: got no optuna.*pip install") as caught, _naming():
        raise MissingExtraError.of("tune_rate", package="optuna", extra="sweep")
    assert caught.value.__cause__ is None
    with pytest.raises(ArgumentError, match=r"^--rates: got 0\.1 -1, wanted some above 0\. Leave it out\.$"), _naming():
        raise ArgumentError(where="Trial.lr", got=(0.1, -1.0), wanted="some above 0, or None")


def test_what_an_error_says_itself_stays_and_other_places_too() -> None:
    with pytest.raises(ArgumentError, match=r"wanted more\. Its own advice\.$"), _naming():
        raise ArgumentError(where="Trial.lr", got=0, wanted="more", remedy="Its own advice.")
    with pytest.raises(ArgumentError, match=r"^Trial\.depth: got 0, wanted 1, or None\.$"), _naming():
        raise ArgumentError(where="Trial.depth", got=0, wanted="1, or None")
    with pytest.raises(ZeroDivisionError), _naming():
        raise ZeroDivisionError


def test_what_is_typed() -> None:
    assert typed([1e-4, 2.0]) == "0.0001 2"
    assert typed(0.1 + 0.2) == "0.30000000000000004"  # or two that differ would look the same
    assert typed("auto") == "auto"
    assert typed(tuple(range(9))) == "0 1 2 3 ... 8 (9 of them)"


def _naming() -> AbstractContextManager[None]:
    return naming_options({"Trial.lr": "--rates", "tune_rate": "--tune"}, {"--rates": "Leave it out."})
