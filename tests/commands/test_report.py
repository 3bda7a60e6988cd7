"""``statewise report``: where the page is, what is refused, and what machines read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands.typing_commands import Typed


def test_the_page_goes_into_the_folder_of_the_run(typed: Typed, trained: Path) -> None:
    said = typed("report", str(trained))
    assert f"Written: {trained / 'report.html'}" in said
    assert "test perplexity" in (trained / "report.html").read_text(encoding="utf-8")
    typed("report", str(trained), "--quick")  # a page of ours is replaced


def test_several_runs_go_into_a_file_here_unless_one_is_named(typed: Typed, trained: Path, lowered: Path) -> None:
    typed("report", str(trained), str(lowered), "--quick")
    assert "The runs beside each other" in Path("report.html").read_text(encoding="utf-8")
    typed("report", str(trained), "--out", "new/folder/page.html", "--title", "My <run>")
    assert "<h1>My &lt;run&gt;</h1>" in Path("new/folder/page.html").read_text(encoding="utf-8")


def test_machines_get_json(typed: Typed, trained: Path) -> None:
    told = json.loads(typed("report", str(trained), "--out", "page.html", "--json"))
    assert told["path"] == "page.html"
    assert told["runs"] == ["small"]
    assert told["failed"] == {}
    assert "Scores" in told["seconds"]["small"]


def test_a_file_of_the_users_is_kept(typed: Typed, refused: Typed, trained: Path) -> None:
    Path("notes.html").write_text("mine", encoding="utf-8")
    assert "not a page of statewise" in refused("report", str(trained), "--out", "notes.html")
    assert Path("notes.html").read_text(encoding="utf-8") == "mine"
    typed("report", str(trained), "--out", "notes.html", "--force", "--quick")
    assert "statewise-report" in Path("notes.html").read_text(encoding="utf-8")


def test_what_is_no_run_is_refused(refused: Typed, tmp_path: Path) -> None:
    assert "no such folder" in refused("report", "runs/nothing")
    (tmp_path / "empty").mkdir()
    said = refused("report", str(tmp_path / "empty"))
    assert "no config.json" in said
    assert "statewise train" in said


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lineup.json", "{"),
        ("lineup.json", '{"result": {"lines": 3}}'),
        ("lineup.json", '{"result": {"lines": [{"scores": {"accuracy": "x"}}], "metrics": [{"name": "accuracy"}]}}'),
        ("compared.json", "{"),
    ],
)
def test_a_damaged_comparison_is_a_message(refused: Typed, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "several").mkdir()
    (tmp_path / "several" / name).write_text(text)
    assert "several" in refused("report", "several", "--out", "page.html")
    assert not (tmp_path / "page.html").exists()
