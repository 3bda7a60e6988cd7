"""``statewise explore`` as it is typed; what it serves is tested with the explorer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands.typing_commands import Typed
from statewise.commands import explore
from statewise.commands.explored import explored
from statewise.explorer import Address, Explorer


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Explorer]:
    """What would be served; nobody listens."""
    found: list[Explorer] = []

    def serve(explorer: Explorer, *, port: int, ready: Any) -> None:
        found.append(explorer)
        ready(Address(port=port or 4321, token="secret"))

    monkeypatch.setattr(explore, "serve", serve)
    return found


def test_the_address_is_printed(typed: Typed, trained: Path, started: list[Explorer]) -> None:
    said = typed("explore", str(trained), "--examples", "20")
    assert "http://127.0.0.1:4321/#secret\n" in said
    assert "small: a language model, 20 examples to compare with." in said
    assert [example.part for example in started[0].runs[0].examples] == ["train"] * 16 + ["valid"] * 4


def test_programs_get_a_line_of_json(typed: Typed, trained: Path, tagger: Path, started: list[Explorer]) -> None:
    said = typed("explore", str(trained), str(tagger), "--examples", "0", "--port", "8123", "--json")
    assert json.loads(said) == {"url": "http://127.0.0.1:8123/#secret", "port": 8123, "runs": ["small", "run"]}
    assert len(started[0].runs) == 2


def test_a_browser_is_opened_where_it_is_wanted(
    typed: Typed, trained: Path, started: list[Explorer], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("statewise.commands.explore.webbrowser.open", opened.append)
    typed("explore", str(trained), "--examples", "0")
    assert opened == []
    typed("explore", str(trained), "--examples", "0", "--open")
    assert opened == ["http://127.0.0.1:4321/#secret"]


def test_what_cannot_be_explored_is_refused(refused: Typed, trained: Path, tmp_path: Path) -> None:
    assert "no config.json, wanted the folder of a run" in refused("explore", str(tmp_path))
    assert "--examples: got -1" in refused("explore", str(trained), "--examples", "-1")
    assert "--port: got 99999" in refused("explore", str(trained), "--examples", "0", "--port", "99999")


def test_data_that_has_gone_is_told(tagger: Path, tmp_path: Path) -> None:
    config = json.loads((tagger / "config.json").read_text(encoding="utf-8"))
    config["source"]["data"] = str(tmp_path / "gone.conll")
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in tagger.iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    (copy / "config.json").write_text(json.dumps(config), encoding="utf-8")
    found = explored(str(copy), most=10)
    assert found.examples == ()
    assert found.why_none.startswith("The data of the run could not be read again: --data: got ")
    assert len(explored(str(tagger), most=10).examples) == 10
