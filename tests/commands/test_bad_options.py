"""Numbers that are none, for every numeric option of the commands that read a run: each is refused by its name."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from commands.typing_commands import Typed
from statewise.cli import main
from statewise.commands import extract, generate

_BAD = ("nan", "inf", "1e400", "x", "")


def numeric(command: ModuleType) -> list[str]:
    """The options of a command that take a number, from its parser."""
    actions: list[Any] = command.parser()._actions
    numbers = [
        each for each in actions if each.type in (int, float) or getattr(each, "_typehint", None) in (int, float)
    ]
    return [each.option_strings[-1] for each in numbers if each.option_strings]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("options")
    (place / "words.tsv").write_text("yes\tab\nno\tba\nyes\taab\n" * 12)
    options = ["--hidden", "3", "--batch", "8", "--epochs", "1", "--device", "cpu", "--quiet"]
    main(["train", "classify", "--data", str(place / "words.tsv"), "--out", str(place / "run"), *options])
    return place / "run"


@pytest.mark.parametrize("option", numeric(generate))
def test_generate_refuses_what_is_no_number(refused: Typed, trained: Path, option: str) -> None:
    for value in _BAD:
        assert option.removeprefix("--") in refused("generate", str(trained), f"{option}={value}")


@pytest.mark.parametrize("option", numeric(extract))
def test_extract_refuses_what_is_no_number(refused: Typed, classifier: Path, option: str) -> None:
    for value in (*_BAD, "-1"):
        assert option.removeprefix("--") in refused("extract", str(classifier), f"{option}={value}")


def test_there_are_options_to_be_tried() -> None:
    assert {"--length", "--temperature", "--top", "--seed"} <= set(numeric(generate))
    assert numeric(extract) == ["--check"]
