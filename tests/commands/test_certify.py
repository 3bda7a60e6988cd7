"""``statewise certify`` as a user types it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from commands.typing_commands import Typed
from statewise.cli import main


@pytest.fixture(scope="session")
def automaton(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a network without a memory, on a file of words that end in b or not."""
    place = tmp_path_factory.mktemp("certify")
    drawn = random.Random(0)
    for name, count in (("train", 400), ("fresh", 300)):
        words = ["".join(drawn.choice("ab") for _ in range(drawn.randint(1, 8))) for _ in range(count)]
        rows = [f"{'yes' if word.endswith('b') else 'no'}\t{word}" for word in words]
        (place / f"{name}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    options = ["--cell", "gru", "--hidden", "8", "--centroids", "3", "--epochs", "8", "--device", "cpu", "--quiet"]
    main(["train", "classify", "--data", str(place / "train.tsv"), *options, "--out", str(place / "run")])
    return place


def test_a_run_is_certified_printed_and_written(typed: Typed, automaton: Path) -> None:
    said = typed("certify", str(automaton / "run"), "--iid")
    assert "With probability at least 95 %" in said
    assert "Rests on:" in said
    kept = json.loads((automaton / "run" / "certificate.json").read_text(encoding="utf-8"))
    assert kept["sentence"] in said
    assert kept["other"]["name"] == "automaton"
    assert kept["other"]["about"] == "the network at argmax"  # of the soft network there is no proof
    assert kept["sequences"] == 360  # the tenth that chose the best epoch is not among them


def test_other_data_of_the_same_words_and_fresh_data_can_be_named(typed: Typed, automaton: Path) -> None:
    options = ["--data", str(automaton / "train.tsv"), "--fresh", str(automaton / "fresh.tsv"), "--delta", "0.01"]
    said = typed("certify", str(automaton / "run"), "--iid", *options, "--format", "json", "--out", "elsewhere/it.json")
    told = json.loads(said)
    assert told == json.loads(Path("elsewhere/it.json").read_text(encoding="utf-8"))
    assert told["sequences"] == 400
    assert told["delta"] == 0.01
    assert "held-out" in {claim["name"] for claim in told["claims"]}


def test_only_the_methods_that_are_named_are_tried(typed: Typed, automaton: Path) -> None:
    said = typed("certify", str(automaton / "run"), "--iid", "--methods", "bits,automaton", "--format", "json")
    assert {claim["name"] for claim in json.loads(said)["claims"]} == {"bits", "automaton"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "--iid: got None"),
        (("--iid", "--delta", "2"), "--delta: got 2.0"),
        (("--iid", "--methods", "magic"), "--methods: got magic"),
        (("--iid", "--methods", "kl"), "Centroids"),
        (("--iid", "--longest", "2"), "--longest: got a sequence of"),
        (("--iid", "--promise", "U"), "--promise: got U"),
        (("--iid", "--input-bound", "much"), "--input-bound: got much"),
        (("--iid", "--data", "nowhere.tsv"), "--data"),
        (("--iid", "--data", "tomita:4"), "other symbols"),
        (("--iid", "--fresh", "nowhere.tsv"), "--fresh: got nowhere.tsv"),
        (("--iid", "--data", "parentheses-small"), "--data: got parentheses-small, wanted independent draws"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(refused: Typed, automaton: Path, options: tuple[str, ...], told: str) -> None:
    assert told in refused("certify", str(automaton / "run"), *options)


def test_what_the_run_was_trained_by_is_not_fresh(refused: Typed, automaton: Path) -> None:
    said = refused("certify", str(automaton / "run"), "--iid", "--fresh", str(automaton / "train.tsv"))
    assert "neither trained nor chosen by" in said


def test_words_of_a_language_are_drawn_anew_and_independent(typed: Typed, tmp_path: Path) -> None:
    options = ["--cell", "gru", "--hidden", "4", "--centroids", "2", "--epochs", "1", "--device", "cpu", "--quiet"]
    typed("train", "classify", "--data", "tomita:1", *options, "--out", str(tmp_path / "run"))
    told = json.loads(typed("certify", str(tmp_path / "run"), "--iid", "--fresh", "tomita:1", "--format", "json"))
    # Most short words of the run's own set are there once; among independent draws there are copies.
    assert "copies of others" in json.dumps(told["assumptions"])
    assert "held-out" in {claim["name"] for claim in told["claims"]}


def test_a_strange_label_is_named_with_its_line(refused: Typed, automaton: Path, tmp_path: Path) -> None:
    (tmp_path / "odd.tsv").write_text("yes\tab\nmaybe\ta\n", encoding="utf-8")
    said = refused("certify", str(automaton / "run"), "--iid", "--data", str(tmp_path / "odd.tsv"))
    assert "line 2" in said
    assert "maybe" in said


def test_what_is_no_run_is_refused(refused: Typed) -> None:
    assert "the folder of a run" in refused("certify", "nowhere", "--iid")
