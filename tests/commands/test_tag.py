"""``statewise train tag``, as a user types it."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from commands.tagging import SMALL, names, write_columns, write_objects
from commands.typing_commands import Typed
from statewise.commands.tag import models_of, parser
from statewise.commands.tag_compare import Variant, conclusion, gains
from statewise.commands.tagged import read_sets
from statewise.data import (
    TaggedSentences,
    compare_spans,
    write_context_vectors,
)
from statewise.models import TaggerConfig
from statewise.train import RunFolder, TaggerSettings, TagMeasured, load_tagger


def test_a_file_of_columns_becomes_a_run_that_can_be_loaded(typed: Typed, tmp_path: Path) -> None:
    write_columns(tmp_path / "names.conll", names())
    write_columns(tmp_path / "later.conll", names(10, seed=1))
    said = typed("train", "tag", "--data", "names.conll", "--test", "later.conll", *SMALL)
    assert "names: 36 sentences to train on, 4 to choose by;" in said
    assert "(iob1 as bioes)" in said
    assert re.search(r"^valid: F1 [\d.]+ % \(strict [\d.]+\), loss [\d.]+$", said, re.MULTILINE)
    assert re.search(r"^later: F1 .*, calibration error [\d.]+ %$", said, re.MULTILINE)
    assert "statewise predict runs/names FILE" in said
    assert "statewise train tag --resume --out runs/names --epochs 4" in said
    tagger, told = load_tagger(tmp_path / "runs" / "names")
    assert told["lexicon"]["scheme"] == "bioes"
    assert told["source"]["scheme"] == "iob1"
    assert told["source"]["data"] == str(tmp_path / "names.conll")
    assert tagger.config.hidden == 6
    assert "-docstart-" not in tagger.lexicon.words


def test_objects_and_tables_are_read_too_and_tags_without_spans(typed: Typed, tmp_path: Path) -> None:
    write_objects(tmp_path / "names.jsonl", names())
    rows = [
        f"{number},{word},{'N' if word.istitle() else 'W'}"
        for number, (words, _) in enumerate(names())
        for word in words
    ]
    quoted = [re.sub(r",,,", ',",",', row) for row in rows]
    (tmp_path / "parts.csv").write_text("\n".join(["sentence,word,pos", *quoted, ""]), encoding="utf-8")
    said = typed("train", "tag", "--data", "names.jsonl", "--encoding", "iob2", "--head", "softmax", *SMALL)
    assert "7 tags (iob2)" in said
    said = typed("train", "tag", "--data", "parts.csv", "--tag", "pos", *SMALL, "--epochs", "6")
    assert "2 tags (none)" in said
    assert re.search(r"^valid: accuracy [\d.]+ %, loss [\d.]+$", said, re.MULTILINE)
    said = typed("evaluate", "runs/parts", "--data", "parts.csv")
    assert re.search(r"^N +\d+\.\d+ ", said, re.MULTILINE)
    assert "strict" not in said
    assert "of them not seen in training" in said


def test_a_run_goes_on_with_its_own_settings(typed: Typed, tmp_path: Path) -> None:
    write_columns(tmp_path / "names.conll", names())
    options = ["--mixup", "input", "--quiet", *SMALL]
    typed("train", "tag", "--data", "names.conll", "--out", "run", *options)
    typed("train", "tag", "--resume", "--out", "run", "--epochs", "3", "--quiet", "--device", "cpu")
    typed("train", "tag", "--data", "names.conll", "--out", "once", *options, "--epochs", "3")
    found = [RunFolder(tmp_path / name).load_model() for name in ("run", "once")]
    assert found[0][1] == found[1][1]
    assert all((found[0][0][name] == weight).all() for name, weight in found[1][0].items())


def test_mixed_taggers_drop_no_words_unless_that_is_asked() -> None:
    for typing, there, rates in (
        ([], {}, (0.05, 0.0)),
        (["--word-dropout", "0.2"], {}, (0.2, 0.2)),
        ([], {"model": {"word_dropout": 0.1}}, (0.1, 0.1)),  # a run that goes on
        ([], {"model": {"word_dropout": 0.1}, "mixed": {"word_dropout": 0.0}}, (0.1, 0.0)),  # a comparison
    ):
        found = models_of(parser().parse_args(typing), there)
        assert tuple(config.word_dropout for config in found) == rates


def test_every_field_of_model_and_training_is_an_option(typed: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        typed("train", "tag", "--help")
    told = capsys.readouterr().out
    for entry in (*fields(TaggerConfig), *fields(TaggerSettings)):
        assert f"--{entry.name.replace('_', '-')} " in told, entry.name


def test_what_is_held_back_has_no_type_that_is_not_trained_on(tmp_path: Path) -> None:
    data = names(30)
    once = TaggedSentences.of([["Ada"]], [["B-RARE"]], scheme="iob2")
    write_objects(tmp_path / "names.jsonl", TaggedSentences.join([data, once]))
    for seed in range(12):  # in some of them it was drawn
        sets = read_sets({"data": str(tmp_path / "names.jsonl")}, seed=seed, test=True)
        assert "S-RARE" in sets.train.tag_names
        assert sets.valid is not None
        assert sorted(sentence for each in sets.all for sentence in each.sentences) == sorted(
            [*data.sentences, *once.sentences]
        )


def test_vectors_from_outside_go_with_their_sentences(typed: Typed, refused: Typed, tmp_path: Path) -> None:
    data, test = names(), names(8, seed=1)
    write_objects(tmp_path / "names.jsonl", data)
    write_objects(tmp_path / "test.jsonl", test)
    for name, each in (("names", data), ("test", test)):
        # The vector says whether a word begins with a capital, so that a wrong order would show.
        rows = [np.array([[word[0].isupper()] * 3 for word in words], dtype=np.float32) for words in each.sentences]
        write_context_vectors(tmp_path / f"{name}.npz", rows)
    files = ["--data", "names.jsonl", "--test", "test.jsonl"]
    typed("train", "tag", *files, "--context", "names.npz", "test.npz", "--out", "run", *SMALL, "--quiet")
    sets = read_sets(json.loads((tmp_path / "run" / "config.json").read_text())["source"], seed=0)
    assert sets.context is not None
    assert sets.valid is not None
    for name, each in (("train", sets.train), ("valid", sets.valid), ("test", sets.tests["test"])):
        capital = [word[0].isupper() for sentence in each.sentences for word in sentence]
        assert sets.context[name][:, 0].tolist() == capital
    typed("evaluate", "run")
    typed("evaluate", "run", "--data", "test.jsonl", "--context", "test.npz")
    assert typed("predict", "run", "test.jsonl", "--context", "test.npz").count("\n\n") == 8
    assert "--context: got nothing, wanted the run's vectors" in refused("predict", "run", "test.jsonl")
    assert "--context: got nothing, wanted the run's vectors" in refused("evaluate", "run", "--data", "test.jsonl")
    assert "test.npz" in refused("predict", "run", "names.jsonl", "--context", "test.npz")
    assert "--context: got 1 files, wanted 2" in refused("train", "tag", *files, "--context", "names.npz")


def test_a_comparison_tells_what_each_kind_of_mixing_gains(typed: Typed, refused: Typed, tmp_path: Path) -> None:
    write_columns(tmp_path / "names.conll", names(60))
    typing = ["train", "tag", "--data", "names.conll", "--compare", *SMALL, "--quiet"]
    said = typed(*typing)
    for name in ("standard", "input", "pre-output", "through-time"):
        assert re.search(rf"^{name} +\d", said, re.MULTILINE), name
    assert "On test: F1 of spans" in said
    assert "lowest loss" in said or "does not lower the loss" in said
    assert "Word dropout: 0.05 in the standard training, 0 where sentences are mixed" in " ".join(said.split())
    rates = {
        name: RunFolder(tmp_path / "runs" / "names-compared" / name).config()["model"]["word_dropout"]
        for name in ("standard", "input", "pre-output", "through-time")
    }
    assert rates == {"standard": 0.05, "input": 0.0, "pre-output": 0.0, "through-time": 0.0}
    sizes = RunFolder(tmp_path / "runs" / "names-compared" / "input").config()["data"]
    assert [sizes["train"]["sentences"], sizes["valid"]["sentences"], sizes["tests"]["test"]["sentences"]] == [48, 6, 6]
    again = typed("train", "tag", "--compare", "--resume", "--out", "runs/names-compared", "--quiet", "--device", "cpu")
    assert [line.split()[:7] for line in again.splitlines()[2:6]] == [
        line.split()[:7] for line in said.splitlines()[2:6]
    ]
    folder = tmp_path / "runs" / "names-compared"
    assert "| standard |" in (folder / "compared.md").read_text(encoding="utf-8")
    numbers = json.loads((folder / "results.json").read_text(encoding="utf-8"))["test"]
    assert 0 <= numbers["input"]["p"] <= 1
    assert "p" not in numbers["standard"]
    assert "add --compare" in refused("train", "tag", "--resume", "--out", "runs/names-compared")
    assert "runs of standard" in refused(*typing)
    assert "--mixup with it" in refused(*typing, "--mixup", "input", "--out", "other")


def test_the_conclusion_says_whether_chance_would_do() -> None:
    gold = [["B-X", "O"]] * 12
    valid = TagMeasured(1.0, 0.9, 0.8, 0.8, 0.8, 0.8, 10, 20)
    standard = Variant(valid, 0.5, 2.0, 0.1, None, 1, 1.0)
    against = compare_spans(gold, gold, [["O", "O"]] * 10 + gold[:2])
    better = replace(standard, valid=replace(valid, f1=0.9), f1=1.0, loss=1.0, against=against)
    said = conclusion({"standard": standard, "input": better})
    assert "Best by validation is input, whose F1 is +71.43 points from the standard one's, " in said
    assert "more than the draw of test sentences would do." in said
    assert "The lowest loss is that of input, 50 % below the standard one." in said
    chance = replace(better, against=compare_spans(gold, gold, gold), loss=3.0)
    said = conclusion({"standard": standard, "input": chance})
    assert "which the draw of test sentences would do" in said
    assert "Mixing does not lower the loss." in said
    tied = replace(better, valid=replace(valid, loss=0.5))
    assert conclusion({"standard": standard, "input": tied}).startswith("Best by validation is standard.")
    assert (
        "<0.001"
        in gains({"standard": standard, "input": replace(better, against=replace(against, p=1e-4))}, "x", []).rows[1]
    )


def test_training_says_how_many_words_have_a_vector(typed: Typed, tagger: Path) -> None:
    files = ["--data", str(tagger.parent / "test.conll"), "--vectors", str(tagger.parent / "vectors.txt")]
    said = typed("train", "tag", *files, *SMALL, "--epochs", "1")
    assert re.search(r"; vectors for \d+ of \d+ words$", said, re.MULTILINE)


@pytest.mark.parametrize(
    ("content", "more", "told"),
    [
        ("Ada B-PER\nwrote\n", [], "bad.conll, line 2: got 1 columns, wanted 2"),
        (
            "Ada B-PER\nwrote E-PER\nx I-PER\n",
            [],
            "bad.conll, line 3, field 1: got 'I-PER' at the end, wanted 'S-PER' there",
        ),
        ("Ada B-PER\nwrote E-PER\nx I-PER\n", [], "--repair"),
        ("Ada B-PER\nwrote O\n", ["--scheme", "bioes"], "bad.conll, line 1"),
        ("Ada B-PER\nwrote O\n", ["--scheme", "bio"], "--scheme: got bio, wanted one of auto, none, iob1"),
        ("Ada B-PER\nwrote O\n", ["--tag", "7"], "a column 7 for the tag"),
        ("Ada B-PER\nwrote O\n", [], "wanted more, of which some can be held back"),
        ("Ada O\n\nwrote O\n\nx O\n", ["--valid", "bad.conll"], "at least two tags"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(
    refused: Typed, tmp_path: Path, content: str, more: list[str], told: str
) -> None:
    (tmp_path / "bad.conll").write_text(content, encoding="utf-8")
    said = " ".join(refused("train", "tag", "--data", "bad.conll", *more, *SMALL).split())
    assert told in said
    assert "=" not in said.partition("error:")[2], "advice is what can be typed"
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("typing", "told"),
    [
        ([], "--data: got nothing"),
        (["--data", "nowhere.conll"], "nowhere.conll, which is no file"),
        (["--data", "sample", "--scheme", "bioes"], "--scheme with it"),
        (["--data", "sample", "--test", "x.conll"], "--test with it"),
        (["--data", "sample", "--hidden", "none"], "--hidden: got none, wanted a whole number"),
        (["--data", "sample", "--mixup", "cut"], "mixup"),
        (["--data", "sample", "--vectors", "nowhere.txt"], "nowhere.txt"),
        (["--resume"], "--resume: got no --out"),
        (["--resume", "--out", "nowhere"], "nowhere: got no run here"),
        (["--data", "sample", "--alpha", "0.2"], "--alpha: got 0.2, wanted no such option without --mixup"),
        (["--data", "sample", "--mixup", "input", "--head", "softmax", "--crf-mode", "paper"], "with --head softmax"),
        (["--data", "sample", "--finetune", "true"], "--finetune: got true, wanted no such option without --vectors"),
        (["--data", "sample", "--keep", "last", "--patience", "3"], "--patience: got 3"),
        (["--data", "sample", "--compare", "--batch", "1"], "at least 2: a sentence alone has no partner"),
        (["--data", "sample", "--mixup", "input", "--batch", "1"], "got 1 with mixup input, wanted at least 2"),
        (["--data", "sample", "--mixup", "input", "--alpha", "-1"], "alpha: got -1"),
    ],
)
def test_a_slip_is_named(refused: Typed, tmp_path: Path, typing: list[str], told: str) -> None:
    assert told in " ".join(refused("train", "tag", *typing).split())
    assert not (tmp_path / "runs").exists()


def test_folders_of_other_runs_are_left_alone(refused: Typed, trained: Path, tagger: Path) -> None:
    said = refused("train", "tag", "--resume", "--data", "sample", "--out", str(trained))
    assert "a run of the task 'language model'" in said
    assert "a folder with a run" in refused("train", "tag", "--data", "sample", "--out", str(tagger))
    assert "no config.json" in refused("predict", "nowhere", "x.txt")


def test_ctrl_c_says_how_to_go_on(typed: Typed, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    write_columns(tmp_path / "names.conll", names())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("statewise.train.tag._TaggerDriver._tell", interrupt)
        with pytest.raises(SystemExit) as stopped:
            typed("train", "tag", "--data", "names.conll", "--out", "my run", *SMALL, "--quiet")
    assert stopped.value.code == 130
    assert "statewise train tag --resume --out 'my run'" in capsys.readouterr().out
    typed("train", "tag", "--resume", "--out", "my run", "--device", "cpu", "--quiet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("statewise.commands.tag.train_tagger", interrupt)
        with pytest.raises(SystemExit):
            typed("train", "tag", "--data", "names.conll", "--out", "other", *SMALL, "--quiet")
    assert "Stopped before the run began: there is nothing in other" in capsys.readouterr().out
