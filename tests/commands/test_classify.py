"""``statewise train classify`` as a user types it."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from commands.typing_commands import Typed
from statewise.data import tomita_sets
from statewise.models import ClassifierConfig
from statewise.train import ClassifierSettings, RunFolder, load_classifier

SMALL = ["--hidden", "12", "--embedding", "4", "--epochs", "2", "--device", "cpu"]


def write_words(path: Path, words: list[str], labels: list[str]) -> Path:
    lines = [f"{label}\t{word}" for word, label in zip(words, labels, strict=True)]
    path.write_text("\n".join(["label\ttext", *lines, ""]), encoding="utf-8")
    return path


def evens(path: Path, count: int = 80) -> Path:
    words = [format(number, "b") for number in range(count)]
    return write_words(path, words, ["odd" if word.count("1") % 2 else "even" for word in words])


def test_a_file_of_words_becomes_a_run_that_can_be_loaded(typed: Typed, tmp_path: Path) -> None:
    evens(tmp_path / "parity.tsv")
    said = typed("train", "classify", "--data", "parity.tsv", *SMALL)
    assert "72 examples to train on, 8 to choose by; 2 classes, 2 symbols" in said
    assert re.search(
        r"^valid: accuracy [\d.]+ %, loss [\d.]+; with the nearest centroid at each step [\d.]+ %", said, re.MULTILINE
    )
    assert "what was answered" in said
    assert "statewise extract runs/parity" in said
    assert "--resume --out runs/parity --epochs 4" in said
    model, told = load_classifier(tmp_path / "runs" / "parity")
    assert told["examples"]["classes"] == ["even", "odd"]
    assert model.symbols == ("0", "1")
    assert told["source"]["data"] == str(tmp_path / "parity.tsv")
    assert model.config.centroids == (10,)
    assert model.config.transition == "mixture"


def test_texts_with_blanks_are_read_by_words_and_tested_on_other_files(typed: Typed, tmp_path: Path) -> None:
    good, bad = (
        ["a fine film", "what joy", "fine fine joy", "a joy to see"],
        ["a dull film", "what a bore", "dull", "no"],
    )
    for name in ("reviews.jsonl", "later.jsonl"):
        rows = [{"label": label, "text": text} for label, texts in (("+", good), ("-", bad)) for text in 5 * texts]
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    options = ["--valid", "later.jsonl", "--test", "later.jsonl", "--cell", "lstm", "--lr", "0.02", "--quiet"]
    said = typed("train", "classify", "--data", "reviews.jsonl", *options, "--centroids", "0", *SMALL, "--epochs", "12")
    assert "later: accuracy 100.00 %" in said
    assert "nearest centroid" not in said
    assert "extract" not in said
    model, _ = load_classifier(tmp_path / "runs" / "reviews")
    assert model.symbols is not None
    assert "joy" in model.symbols


def test_a_sample_of_a_regular_language_ends_in_an_automaton_that_is_right(typed: Typed, tmp_path: Path) -> None:
    options = ["--epochs", "14", "--lr", "0.02", "--noise-ramp", "0.1", "--quiet", "--device", "cpu"]
    said = typed("train", "classify", "--data", "tomita:1", "--out", "run", *options)
    assert "valid: accuracy 100.00 %" in said
    assert "with the nearest centroid at each step 100.00 %" in said
    model, told = load_classifier(tmp_path / "run")
    _, valid = tomita_sets(1, 0)
    assert (model.with_transition("argmax").classify(valid.texts()) == valid.labels).all()
    assert told["model"]["transition"] == "noisy"


def test_a_regular_expression_is_a_language(typed: Typed, tmp_path: Path) -> None:
    said = typed("train", "classify", "--data", "regex:(ab)*", "--out", "run", *SMALL, "--epochs", "1")
    assert "2 classes, 2 symbols" in said
    model, _ = load_classifier(tmp_path / "run")
    assert model.symbols == ("a", "b")


def test_a_run_goes_on_with_its_own_settings(typed: Typed, tmp_path: Path) -> None:
    evens(tmp_path / "parity.tsv")
    typed("train", "classify", "--data", "parity.tsv", "--out", "run", *SMALL, "--quiet", "--lr", "0.02")
    typed("train", "classify", "--resume", "--out", "run", "--epochs", "3", "--quiet", "--device", "cpu")
    typed(
        "train", "classify", "--data", "parity.tsv", "--out", "once", *SMALL, "--lr", "0.02", "--epochs", "3", "--quiet"
    )
    found = [RunFolder(tmp_path / name).load_model() for name in ("run", "once")]
    assert found[0][1] == found[1][1]
    assert all((found[0][0][name] == weight).all() for name, weight in found[1][0].items())


def test_every_field_of_model_and_training_is_an_option(typed: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        typed("train", "classify", "--help")
    told = capsys.readouterr().out
    for entry in (*fields(ClassifierConfig), *fields(ClassifierSettings)):
        assert f"--{entry.name.replace('_', '-')} " in told, entry.name


def test_a_file_of_one_class_is_refused(refused: Typed, tmp_path: Path) -> None:
    write_words(tmp_path / "one.tsv", ["ab", "b", "a"], ["x"] * 3)
    said = refused("train", "classify", "--data", "one.tsv")
    assert "3 of 'x', wanted examples of two classes or more" in said
    assert not (tmp_path / "runs").exists()


def test_an_empty_sample_is_refused(refused: Typed, tmp_path: Path) -> None:
    (tmp_path / "empty.tsv").write_text("label\ttext\n", encoding="utf-8")
    assert "wanted" in refused("train", "classify", "--data", "empty.tsv")
    assert "0 of 'reject'" in refused("train", "classify", "--data", "regex:[ab]*")


def test_a_symbol_that_the_training_set_has_not_is_named_with_its_line(refused: Typed, tmp_path: Path) -> None:
    evens(tmp_path / "parity.tsv")
    write_words(tmp_path / "strange.tsv", ["01", "02"], ["odd", "odd"])
    said = refused("train", "classify", "--data", "parity.tsv", "--test", "strange.tsv")
    assert "strange.tsv, line 3: got the symbol '2', wanted one of '0', '1'" in said
    write_words(tmp_path / "label.tsv", ["01"], ["neither"])
    said = refused("train", "classify", "--data", "parity.tsv", "--valid", "label.tsv")
    assert "label.tsv, line 2: got the label 'neither', wanted one of even, odd" in said


@pytest.mark.parametrize(
    ("typing", "told"),
    [
        ([], "--data: got nothing"),
        (["--data", "nowhere.tsv"], "nowhere.tsv, which is no file"),
        (["--data", "tomita:8"], "wanted tomita:1 to tomita:7"),
        (["--data", "regex:(ab"], "regex"),
        (["--data", "sample", "--test", "x.tsv"], "--test with it"),
        (["--data", "sample", "--hidden", "none"], "--hidden: got none, wanted a whole number"),
        (["--data", "sample", "--transition", "soft"], "transition"),
        (["--data", "sample", "--curriculum-start", "-2"], "curriculum_start"),
        (["--data", "sample", "--readout", "c"], "a cell with a memory c"),
        (["--resume"], "--resume: got no --out"),
    ],
)
def test_a_slip_is_named(refused: Typed, typing: list[str], told: str) -> None:
    assert told in " ".join(refused("train", "classify", *typing).split())


def test_a_folder_with_a_run_is_not_written_over(typed: Typed, refused: Typed, tmp_path: Path) -> None:
    evens(tmp_path / "parity.tsv")
    typed("train", "classify", "--data", "parity.tsv", "--out", "run", *SMALL, "--quiet")
    assert "a folder with a run" in refused("train", "classify", "--data", "parity.tsv", "--out", "run", *SMALL)


def test_an_automaton_is_learnt_kept_and_compared_with_the_language(typed: Typed, tmp_path: Path) -> None:
    said = typed("train", "classify", "--data", "tomita:1", "--automaton", "--seed", "3", "--quiet")
    assert "A machine of 2 states classifies all" in said
    assert "It is the minimal automaton of tomita 1: they agree on every word." in said
    assert "statewise extract runs/tomita-1-automaton" in said
    model, told = load_classifier(tmp_path / "runs" / "tomita-1-automaton")
    assert told["training"]["exact"]
    assert told["examples"]["symbols"] == ["0", "1"]
    assert model.classify(["", "1" * 50, "1" * 50 + "0"]).tolist() == [1, 1, 0]


def test_a_file_of_words_has_an_automaton_too(typed: Typed, tmp_path: Path) -> None:
    evens(tmp_path / "parity.tsv", count=120)
    said = typed("train", "classify", "--data", "parity.tsv", "--automaton", "--quiet")
    assert "A machine of" in said
    assert "they agree on every word" not in said  # nobody knows the language


@pytest.mark.parametrize(
    ("typing", "told"),
    [
        (["--epochs", "3"], "--automaton: got --epochs with it"),
        (["--resume", "--out", "run"], "--automaton: got --resume with it"),
        (["--cell", "lstm"], "the LSTM carries a memory"),
        (["--centroids", "0"], "centroids"),
    ],
)
def test_what_an_automaton_cannot_be_learnt_with_is_named(refused: Typed, typing: list[str], told: str) -> None:
    assert told in " ".join(refused("train", "classify", "--data", "sample", "--automaton", *typing).split())
