"""``statewise train classify`` as a user types it."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from commands.typing_commands import Typed
from statewise.commands.classify import source_of
from statewise.commands.for_certificate import ForCertificate
from statewise.commands.labelled import FILES, MADE, read_examples
from statewise.data import Sequences, tomita_sets
from statewise.models import ClassifierConfig
from statewise.train import (
    ClassifierSettings,
    CoverPenalty,
    RunFolder,
    SpectralProjection,
    callbacks_of,
    load_classifier,
)

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
    assert re.search(r"^valid: .*; balanced [\d.]+ %, Matthews' correlation -?[\d.]+$", said, re.MULTILINE)
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
    for entry in (*fields(ClassifierConfig), *fields(ClassifierSettings), *fields(ForCertificate)):
        assert f"--{entry.name.replace('_', '-')} " in told, entry.name


def test_the_class_accept_is_the_one_that_accepts(typed: Typed, tmp_path: Path) -> None:
    words = [format(number, "b") for number in range(40)]
    write_words(tmp_path / "ends.tsv", words, ["accept" if word.endswith("1") else "reject" for word in words])
    typed("train", "classify", "--data", "ends.tsv", *SMALL, "--quiet")
    assert load_classifier(tmp_path / "runs" / "ends")[1]["examples"]["classes"] == ["reject", "accept"]


def test_columns_of_a_table_are_named_or_counted(typed: Typed, refused: Typed, tmp_path: Path) -> None:
    rows = [f"{number},{format(number, 'b')},{'odd' if number % 2 else 'even'}" for number in range(40)]
    (tmp_path / "plain.csv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    (tmp_path / "named.csv").write_text("\n".join(["id,word,kind", *rows, ""]), encoding="utf-8")
    assert "--label and --text" in refused("train", "classify", "--data", "plain.csv")
    for name, columns in (("plain", ("2", "1")), ("named", ("kind", "word"))):
        options = ["--label", columns[0], "--text", columns[1], *SMALL, "--quiet"]
        typed("train", "classify", "--data", f"{name}.csv", "--test", f"{name}.csv", *options)
        model, told = load_classifier(tmp_path / "runs" / name)
        assert (told["examples"]["classes"], model.symbols) == (["even", "odd"], ("0", "1"))
    typed("train", "classify", "--resume", "--out", "runs/plain", "--epochs", "3", "--quiet")
    assert "--label with it" in refused("train", "classify", "--data", "sample", "--label", "kind")


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
        (["--data", "regex:(ab"], "--data regex, position 0: got a '(' that is never closed"),
        (["--data", "regex:"], "--alphabet: got ()"),
        (["--data", "sample", "--test", "x.tsv"], "--test with it"),
        (["--data", "sample", "--hidden", "none"], "--hidden: got none, wanted a whole number"),
        (["--data", "sample", "--transition", "soft"], "transition"),
        (["--data", "sample", "--curriculum-start", "-2"], "curriculum_start"),
        (["--data", "sample", "--readout", "c"], "a cell with a memory c"),
        (["--resume"], "--resume: got no --out"),
        (["--data", "sample", "--by", "rows"], "--by with it"),
        (["--data", "sample", "--bias-levels", "3"], "--bias-levels: got no --levels"),
        (["--data", "sample", "--cover-margin", "3"], "--cover-margin: got no --cover-penalty"),
        (["--data", "sample", "--levels", "1"], "RoundedWeights.levels: got 1"),
        (["--data", "sample", "--cover-penalty", "1", "--centroids", "5"], "Centroids act on the state"),
        (["--data", "sample", "--limit", "0"], "--limit: got 0, wanted a whole number >= 1"),
        (["--data", "sample", "--truncate", "-3"], "--truncate: got -3, wanted a whole number >= 1"),
        (["--data", r"regex:\d+"], r"--data regex, position 0: got '\d' without an alphabet"),
        (["--data", r"regex:\d+"], "Say which symbols there are: --alphabet abc"),
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
        (["--project-head", "3"], "--automaton: got --project-head with it"),
        (["--resume", "--out", "run"], "--automaton: got --resume with it"),
        (["--device", "cuda"], "--automaton: got --device cuda, wanted a CPU"),
        (["--cell", "lstm"], "the LSTM carries a memory"),
        (["--centroids", "0"], "centroids"),
    ],
)
def test_what_an_automaton_cannot_be_learnt_with_is_named(refused: Typed, typing: list[str], told: str) -> None:
    assert told in " ".join(refused("train", "classify", "--data", "sample", "--automaton", *typing).split())


def test_an_automaton_is_learnt_from_all_rows_of_a_file(typed: Typed, tmp_path: Path) -> None:
    evens(tmp_path / "parity.tsv", count=60)
    said = typed("train", "classify", "--data", "parity.tsv", "--automaton", "--quiet")
    _, told = load_classifier(tmp_path / "runs" / "parity-automaton")
    assert told["data"]["train"]["examples"] == 60
    assert "valid:" not in said, "nothing was held back"


def test_the_folder_of_an_automaton_does_not_go_on_and_nobody_says_that_it_does(
    typed: Typed, refused: Typed, tmp_path: Path
) -> None:
    typed("train", "classify", "--data", "tomita:1", "--automaton", "--seed", "3", "--quiet", "--out", "run")
    for options in (["--resume"], ["--data", "sample"], ["--data", "sample", "--automaton"]):
        said = " ".join(refused("train", "classify", "--out", "run", *options).split())
        assert "Name another folder (--out)" in said, options
        assert "--resume --out" not in said, options


def test_the_folder_of_a_language_model_is_not_gone_on_with(refused: Typed, trained: Path) -> None:
    said = refused("train", "classify", "--resume", "--data", "sample", "--out", str(trained))
    assert "a run of the task 'language model'" in said


@pytest.mark.parametrize("planned", [["--schedule", "cosine"], ["--temperature-end", "0.5"]])
def test_a_longer_run_is_not_advised_where_it_would_be_another(
    typed: Typed, refused: Typed, tmp_path: Path, planned: list[str]
) -> None:
    evens(tmp_path / "parity.tsv")
    said = typed("train", "classify", "--data", "parity.tsv", "--out", "run", *SMALL, *planned, "--quiet")
    assert "--epochs 4" not in said
    assert "A longer run is a new one" in said
    said = refused("train", "classify", "--resume", "--out", "run", "--epochs", "4", "--device", "cpu")
    assert "begin a new run in another folder" in said


def test_ctrl_c_says_how_to_go_on(typed: Typed, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    evens(tmp_path / "parity.tsv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("statewise.train.classify_run.ExampleDriver._tell", interrupt)
        with pytest.raises(SystemExit) as stopped:
            typed("train", "classify", "--data", "parity.tsv", "--out", "my run", *SMALL, "--quiet")
    assert stopped.value.code == 130
    assert "statewise train classify --resume --out 'my run'" in capsys.readouterr().out
    typed("train", "classify", "--resume", "--out", "my run", "--device", "cpu", "--quiet")


def test_test_files_of_one_name_are_told_apart_and_from_the_set_to_choose_by(typed: Typed, tmp_path: Path) -> None:
    for number, name in enumerate(["parity.tsv", "one/test.tsv", "two/test.tsv", "valid.tsv"]):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        evens(tmp_path / name, count=80 - number)
    said = typed("train", "classify", "--data", "parity.tsv", "--test", "one/test.tsv", "two/test.tsv", *SMALL)
    assert {"one/test.tsv:", "two/test.tsv:"} <= set(said.split())
    said = typed("train", "classify", "--data", "parity.tsv", "--test", "valid.tsv", "--out", "run", *SMALL)
    assert {"valid:", "valid.tsv:"} <= set(said.split())
    counts = [RunFolder(tmp_path / "run").metrics()[-1][part] for part in ("valid", "tests")]
    assert (counts[0]["count"], counts[1]["valid.tsv"]["count"]) == (8, 77)


@pytest.mark.parametrize("option", ["--limit", "--truncate"])
def test_what_is_said_of_words_is_refused_for_characters(refused: Typed, tmp_path: Path, option: str) -> None:
    evens(tmp_path / "parity.tsv")
    assert f"got {option} with it" in refused("train", "classify", "--data", "parity.tsv", option, "3")


def test_a_folder_called_as_a_benchmark_is_not_in_its_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tomita:1").mkdir()
    assert read_examples({"data": "tomita:1"}, seed=0).name == "tomita-1"
    asked = Namespace(data="tomita:1", **dict.fromkeys((*FILES, *MADE)))
    assert source_of(asked, {})["data"] == "tomita:1"


@pytest.mark.parametrize(
    ("pattern", "symbols"), [("(ab){2}", "ab"), ("[a-c]{1,3}", "abc"), (r"\(a*\)", "()a"), ("a-b|c?", "-abc")]
)
def test_the_symbols_of_an_expression_are_those_that_it_spells(pattern: str, symbols: str) -> None:
    found = read_examples({"data": f"regex:{pattern}"}, seed=0).train
    assert isinstance(found, Sequences)
    assert "".join(found.symbols) == symbols


def test_the_ending_of_a_file_is_not_asked_for_in_the_words_of_python(refused: Typed, tmp_path: Path) -> None:
    (tmp_path / "words.data").write_text("a\tb\n", encoding="utf-8")
    assert "kind=" not in refused("train", "classify", "--data", "words.data")


FOR_CERTIFICATE = ["--project-recurrent", "1", "--project-input", "3", "--project-head", "2", "--levels", "5"]


def write_pictures(folder: Path) -> None:
    """Pictures of 3 by 4 as MNIST comes: more than the 5,000 that are held back to choose by."""
    folder.mkdir()
    for part, count in (("train", 5040), ("t10k", 20)):
        generator = np.random.default_rng(count)
        labels = generator.integers(10, size=count)
        pixels = (generator.integers(99, size=(count, 3, 4)) + 15 * labels[:, None, None]).clip(max=255)
        for name, array in (("images-idx3", pixels), ("labels-idx1", labels)):
            head = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
            (folder / f"{part}-{name}-ubyte").write_bytes(head + array.astype(np.uint8).tobytes())


def test_pictures_are_read_by_rows_and_trained_for_a_certificate(
    typed: Typed, refused: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pictures(tmp_path / "mnist")
    monkeypatch.setenv("STATEWISE_DATA", str(tmp_path))
    options = ["--data", "mnist", "--by", "rows", "--cell", "lstm", "--hidden", "5", "--device", "cpu"]
    options += ["--cover-penalty", "0.5", *FOR_CERTIFICATE[:6]]
    said = typed("train", "classify", *options, "--epochs", "1")
    assert "mnist-rows: 40 examples to train on, 5,000 to choose by; 10 classes, 3 steps of 4" in said
    assert "penalty" in said
    model, told = load_classifier(tmp_path / "runs" / "mnist-rows")
    assert (model.features, model.config.centroids, model.config.readout) == (4, (), "h")
    assert told["source"] == {"data": "mnist", "by": "rows"}
    wanted = CoverPenalty(strength=0.5, sequences=40, steps=3, input_bound=2.0)
    assert callbacks_of(told) == (SpectralProjection(recurrent=1.0, input=3.0, head=2.0), wanted)
    # Going on, nothing of it need be said again; what is said must be the same.
    typed("train", "classify", "--resume", "--out", "runs/mnist-rows", "--epochs", "2", "--quiet", "--device", "cpu")
    assert load_classifier(tmp_path / "runs" / "mnist-rows")[1]["callbacks"] == told["callbacks"]
    again = ["train", "classify", "--resume", "--out", "runs/mnist-rows", "--device", "cpu", "--epochs", "2"]
    assert "callbacks was" in refused(*again, "--project-head", "2")
    assert "data.by was rows" in refused(*again, "--by", "pixels")
    assert "pixels are permuted" in refused("train", "classify", "--data", "permuted-mnist", "--by", "rows")
    assert "a classifier of pictures" in refused("predict", "runs/mnist-rows", "mnist/t10k-labels-idx1-ubyte")


def test_words_are_rounded_and_go_on_rounded(typed: Typed, tmp_path: Path) -> None:
    evens(tmp_path / "parity.tsv")
    common = ["--data", "parity.tsv", *SMALL, *FOR_CERTIFICATE, "--cell", "rnn", "--quiet"]
    typed("train", "classify", *common, "--out", "run")
    typed("train", "classify", "--resume", "--out", "run", "--epochs", "3", "--quiet", "--device", "cpu")
    typed("train", "classify", *common, "--out", "once", "--epochs", "3")
    found = [RunFolder(tmp_path / name).load_model() for name in ("run", "once")]
    assert all((found[0][0][name] == weight).all() for name, weight in found[1][0].items())
    assert all(len(weight.unique()) <= 5 for weight in found[0][0].values())


def test_sequences_are_mixed_and_every_regularizer_has_an_option(typed: Typed, tmp_path: Path) -> None:
    evens(tmp_path / "parity.tsv")
    options = ["--mixup", "through-time", "--alpha", "0.2", "--zoneout", "0.1", "--weight-drop", "0.2", "--locked"]
    options += ["true", "--dropout", "0.1", "--recurrent-dropout", "0.1", "--state-noise", "gaussian", "--gamma", "0.3"]
    said = typed("train", "classify", "--data", "parity.tsv", *SMALL, *options)
    assert "10 centroids (mixture), through-time mixup" in said
    model, told = load_classifier(tmp_path / "runs" / "parity")
    assert (told["training"]["mixup"], told["training"]["alpha"]) == ("through-time", 0.2)
    assert (model.config.zoneout, model.config.weight_drop, model.config.locked) == (0.1, 0.2, True)
    assert (model.config.recurrent_dropout, model.config.state_noise, model.config.gamma) == (0.1, "gaussian", 0.3)
    assert "goes on" not in typed("train", "classify", "--resume", "--out", "runs/parity", "--epochs", "3")
    assert RunFolder(tmp_path / "runs" / "parity").config()["training"]["mixup"] == "through-time"


@pytest.mark.parametrize("option", ["alpha", "rho", "pairing", "lengths"])
def test_options_of_mixing_do_nothing_without_it_and_are_refused(refused: Typed, tmp_path: Path, option: str) -> None:
    evens(tmp_path / "parity.tsv")
    value = {"alpha": "0.5", "rho": "0", "pairing": "sorted", "lengths": "zero"}[option]
    said = refused("train", "classify", "--data", "parity.tsv", f"--{option}", value)
    assert f"--{option}" in said
    assert "without --mixup" in said


def test_an_automaton_is_learnt_without_regularizers(refused: Typed, tmp_path: Path) -> None:
    evens(tmp_path / "parity.tsv")
    said = refused("train", "classify", "--automaton", "--data", "parity.tsv", "--zoneout", "0.1")
    assert "zoneout" in said
    said = refused("train", "classify", "--automaton", "--data", "parity.tsv", "--mixup", "input")
    assert "--mixup with it" in said
