"""``statewise predict``, and ``evaluate`` of a tagger, as a user types them."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from commands.tagging import SMALL, names, write_columns
from commands.typing_commands import Typed
from statewise.commands.predict_tags import tag
from statewise.data import (
    copying,
    read_tagged,
    score_spans,
    write_context_vectors,
)
from statewise.data.tag_schemes import convert_tags
from statewise.models import StepConfig
from statewise.models.encoded import Encoded
from statewise.train import ClassifierSettings, RunFolder, load_tagger, train_steps


def test_a_file_is_scored_by_type_and_by_two_conventions(typed: Typed, refused: Typed, tagger: Path) -> None:
    said = typed("evaluate", str(tagger), "--data", str(tagger.parent / "test.conll"))
    assert re.search(r"^all +\d", said, re.MULTILINE)
    assert all(name in said for name in ("LOC", "ORG", "PER", "strict F1", "calibration error"))
    kept = RunFolder(tagger).metrics()[-1]["tests"]["test"]
    assert f"{100 * kept['f1']:.2f}" in said
    assert f"loss {kept['loss']:.4f}" in said
    assert typed("evaluate", str(tagger)).splitlines()[1:] == said.splitlines()[1:], "its own test file"
    assert "15 sentences" in typed("evaluate", str(tagger), "--split", "valid")
    assert "without a vector" in typed("evaluate", str(tagger), "--data", "sample", "--split", "test")
    for option in (["--text", "x"], ["--samples", "3"], ["--dynamic", "new"]):
        assert "no such option for a tagger's run" in refused("evaluate", str(tagger), *option)


def test_what_a_refusal_advises_can_be_typed(typed: Typed, refused: Typed, tmp_path: Path, tagger: Path) -> None:
    (tmp_path / "bad.conll").write_text("Ada I-PER\nin O\nParis E-LOC\n", encoding="utf-8")
    typing = ["evaluate", str(tagger), "--data", "bad.conll"]
    assert "say --scheme none" in " ".join(refused(*typing).split()), "the run was trained on IOB1"
    said = " ".join(refused(*typing, "--scheme", "bioes").split())
    assert "bad.conll, line 1, field 1: got 'I-PER' before 'O', wanted 'S-PER' there. Say --repair" in said
    assert re.search(r"^LOC .* 1 ", typed(*typing, "--scheme", "bioes", "--repair"), re.MULTILINE)
    assert "--repair: got True, wanted a file for it" in refused("evaluate", str(tagger), "--repair")


def test_sentences_are_tagged_in_the_scheme_of_the_training_file(typed: Typed, tmp_path: Path, tagger: Path) -> None:
    test = names(30, seed=1)
    (tmp_path / "new.txt").write_text("\n".join(" ".join(words) for words in test.sentences) + "\n", encoding="utf-8")
    write_columns(tmp_path / "new.conll", test)
    said = typed("predict", str(tagger), "new.txt")
    (tmp_path / "tagged.conll").write_text(said, encoding="utf-8")
    read = read_tagged(tmp_path / "tagged.conll")
    assert read.sentences == test.sentences
    assert read.scheme == "iob1"
    assert score_spans(test.converted("iob1"), read).f1 > 0.3
    assert (
        typed("predict", str(tagger), "new.txt", "--out", "made/new.tsv").strip().endswith("made/new.tsv, 30 sentences")
    )
    assert (tmp_path / "made" / "new.tsv").read_text(encoding="utf-8") == said
    objects = typed("predict", str(tagger), "new.conll", "--format", "jsonl", "--probabilities").splitlines()
    assert json.loads(objects[0])["tokens"] == ["-DOCSTART-"], "as many sentences as the file has"
    assert json.loads(objects[0])["tags"] == ["O"], "which is no sentence"
    assert [tuple(json.loads(line)["tags"]) for line in objects[1:]] == list(read.tags)
    shares = [share for line in objects for share in json.loads(line)["probabilities"]]
    assert all(0 < share <= 1 for share in shares)
    assert re.match(r"\S+\t\S+\t[01]\.\d{4}\n", typed("predict", str(tagger), "new.txt", "--probabilities"))


def test_what_begins_a_document_has_its_place_and_no_vector(typed: Typed, tmp_path: Path) -> None:
    data = names(40)
    write_columns(tmp_path / "names.conll", data)
    vectors = [np.ones((len(words), 2), dtype=np.float32) * len(words) for words in data.sentences]
    write_context_vectors(tmp_path / "names.npz", vectors)
    typed("train", "tag", "--data", "names.conll", "--context", "names.npz", "--out", "run", *SMALL, "--quiet")
    rows = (tmp_path / "names.conll").read_text(encoding="utf-8")
    (tmp_path / "named.conll").write_text("-DOCSTART-\n" + rows.partition("\n")[2], encoding="utf-8")
    for name in ("names.conll", "named.conll"):
        said = typed("predict", "run", name, "--context", "names.npz")
        assert said.startswith("-DOCSTART-\tO\n\n")
        assert said.count("\n\n") == 41
        assert "40 sentences" in typed("evaluate", "run", "--data", name, "--context", "names.npz")


def test_files_that_changed_since_the_training_are_not_taken_for_its_own(
    typed: Typed, refused: Typed, tmp_path: Path
) -> None:
    write_columns(tmp_path / "names.conll", names())
    typed("train", "tag", "--data", "names.conll", "--out", "run", *SMALL, "--quiet")
    assert "4 sentences" in typed("evaluate", "run")
    write_columns(tmp_path / "names.conll", names(20))
    assert "other sentences than the run was trained with: train, valid" in " ".join(refused("evaluate", "run").split())
    assert "20 sentences" in typed("evaluate", "run", "--data", "names.conll")


def test_what_predict_cannot_read_or_write_is_named(typed: Typed, refused: Typed, tmp_path: Path, tagger: Path) -> None:
    def said(*typing: str) -> str:
        return " ".join(refused("predict", *typing).split())

    (tmp_path / "sentence").write_text("Anna Smith met Otto .\n", encoding="utf-8")
    assert "got one line with blanks, wanted a word a line" in said(str(tagger), "sentence")
    assert typed("predict", str(tagger), "sentence", "--kind", "text").count("\n") == 6
    assert typed("predict", str(tagger), "sentence", "--kind", "columns").count("\n") == 2
    (tmp_path / "new.txt").write_text("Anna left .\n", encoding="utf-8")
    assert "--token: got 5, wanted no such option for a text" in said(str(tagger), "new.txt", "--token", "5")
    assert "which is a folder" in said(str(tagger), "new.txt", "--out", str(tmp_path))
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "config.json").write_bytes((tagger / "config.json").read_bytes())
    (tmp_path / "begun" / "lexicon.json").write_bytes((tagger / "lexicon.json").read_bytes())
    assert "has not ended an epoch: --resume" in said("begun", "new.txt")
    (tmp_path / "several" / "input").mkdir(parents=True)
    for place in ("compared.json", "input/config.json"):
        (tmp_path / "several" / place).write_text("{}", encoding="utf-8")
    assert "a comparison of several runs, wanted one of them. Name it: several/input." in said("several", "new.txt")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        assert "standard input, line 1: got an empty file" in said(str(tagger), "-")
    assert "--batch: got 0" in " ".join(refused("evaluate", str(tagger), "--batch", "0").split())


def test_tags_that_the_training_lacks_are_named_with_their_place(refused: Typed, tmp_path: Path, tagger: Path) -> None:
    (tmp_path / "new.conll").write_text("Ada I-PER\n\nin O\nMay I-ERA\nJune B-ERA\n", encoding="utf-8")
    said = " ".join(refused("evaluate", str(tagger), "--data", "new.conll").split())
    assert "S-ERA (2 times); the first in sentence 2, at the word 'May'" in said


def test_a_probability_is_that_of_all_tags_that_are_written_so(tagger: Path) -> None:
    model, _ = load_tagger(tagger)
    sentences = names(6, seed=2).sentences
    encoded = Encoded(model.lexicon, sentences)
    shares = model.probabilities(model.batch(encoded, np.arange(6)))
    for place, (learnt, given) in enumerate(
        zip(model.tag(sentences), tag(model, encoded, scheme="iob1", probabilities=True), strict=True)
    ):
        assert given.tags == convert_tags(learnt, "bioes", "iob1")
        for at, name in enumerate(given.tags):
            whole = [[*learnt[:at], other, *learnt[at + 1 :]] for other in model.lexicon.tags]
            alike = torch.tensor([convert_tags(tags, "bioes", "iob1")[at] == name for tags in whole])
            assert given.probabilities[at] == pytest.approx(float(shares[at, place][alike].sum()), abs=1e-5)


def test_files_are_read_as_those_of_the_run(typed: Typed, refused: Typed, tmp_path: Path) -> None:
    rows = "\n\n".join(
        "\n".join(f"{at} {word} {given}" for at, (word, given) in enumerate(zip(*row, strict=True))) for row in names()
    )
    (tmp_path / "names.conll").write_text(rows + "\n", encoding="utf-8")
    typed("train", "tag", "--data", "names.conll", "--token", "1", "--out", "run", *SMALL, "--quiet")
    assert typed("predict", "run", "names.conll").startswith(f"{names().sentences[0][0]}\t")
    (tmp_path / "new.text").write_text("0 Ada wrote\n0 Paris is in France\n", encoding="utf-8")
    assert "say --kind text" in " ".join(refused("predict", "run", "new.text").split())
    assert "which is read" in refused("predict", "run", "new.text", "--kind", "text", "--out", "./new.text")
    (tmp_path / "new.jsonl").write_text('{"id": 7, "tokens": ["Ada"], "probabilities": [2]}\n', encoding="utf-8")
    found = json.loads(typed("predict", "run", "new.jsonl", "--format", "jsonl"))
    assert (found["id"], found["tokens"], sorted(found)) == (7, ["Ada"], ["id", "tags", "tokens"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Ada wrote\n\nParis\n")))
        said = [json.loads(line)["tokens"] for line in typed("predict", "run", "-", "--format", "jsonl").splitlines()]
    assert said == [["Ada", "wrote"], [], ["Paris"]], "a blank line is a sentence without words"


def test_words_that_the_run_lacks_get_their_vectors_from_a_file(
    typed: Typed, refused: Typed, tmp_path: Path, tagger: Path
) -> None:
    (tmp_path / "new.txt").write_text("in Rotterdam ☃ Ωmega\n", encoding="utf-8")
    vectors = tagger.parent / "vectors.txt"
    plain, told = (
        typed("predict", str(tagger), "new.txt", "--probabilities", *more) for more in ([], ["--vectors", str(vectors)])
    )
    assert [line.split("\t")[0] for line in told.split("\n")[:4]] == ["in", "Rotterdam", "☃", "Ωmega"]
    assert plain != told
    narrow = tmp_path / "narrow.txt"
    narrow.write_text("rotterdam 1 2 3\n", encoding="utf-8")
    said = refused("predict", str(tagger), "new.txt", "--vectors", str(narrow))
    assert "got vectors of width 3, wanted 12" in said
    write_columns(tmp_path / "names.conll", names())
    typed("train", "tag", "--data", "names.conll", "--out", "own", *SMALL, "--quiet")
    assert "a run that has learnt its own" in refused("predict", "own", "new.txt", "--vectors", str(vectors))


def test_a_classifier_names_the_class_of_each_text(typed: Typed, refused: Typed, tmp_path: Path) -> None:
    rows = [f"{'good' if number % 2 else 'bad'}\t{'fine joy' if number % 2 else 'a dull bore'}" for number in range(40)]
    (tmp_path / "reviews.tsv").write_text("\n".join(["label\ttext", *rows, ""]), encoding="utf-8")
    options = ["--hidden", "8", "--centroids", "0", "--cell", "gru", "--lr", "0.05", "--epochs", "6", "--quiet"]
    typed("train", "classify", "--data", "reviews.tsv", "--out", "run", *options, "--device", "cpu")
    (tmp_path / "new.txt").write_text("What JOY!\na dull bore\n", encoding="utf-8")
    said = [line.split("\t") for line in typed("predict", "run", "new.txt").splitlines()]
    assert [row[0] for row in said] == ["good", "bad"]
    assert said[0][2] == "What JOY!"
    assert 0.5 < float(said[0][1]) <= 1
    (tmp_path / "new.csv").write_text('id,review\n1,"fine, joy"\n', encoding="utf-8")
    found = json.loads(typed("predict", "run", "new.csv", "--format", "jsonl", "--probabilities"))
    assert (found["text"], found["class"]) == ("fine, joy", "good")
    assert sum(found["probabilities"].values()) == pytest.approx(1.0, abs=1e-3)
    (tmp_path / "new.jsonl").write_text('{"title": "fine joy"}\n', encoding="utf-8")
    assert "line 1: got 'title', wanted a text called text" in " ".join(refused("predict", "run", "new.jsonl").split())
    assert typed("predict", "run", "new.jsonl", "--text", "title").startswith("good\t")
    assert "no such option for a run" in refused("predict", "run", "new.txt", "--vectors", "x")


def test_a_strange_symbol_is_named_with_its_line(typed: Typed, refused: Typed, tmp_path: Path) -> None:
    typed("train", "classify", "--data", "tomita:1", "--out", "run", "--hidden", "6", "--epochs", "1", "--quiet")
    (tmp_path / "words.txt").write_text("111\n\n1x1\n", encoding="utf-8")
    assert "words.txt, line 3: got the symbol 'x', wanted one of '0', '1'" in refused("predict", "run", "words.txt")
    (tmp_path / "words.txt").write_text("111\n\n", encoding="utf-8")
    assert typed("predict", "run", "words.txt").count("\n") == 2, "the empty word is a word"


def test_a_run_that_no_file_can_be_asked_of_is_refused(refused: Typed, tmp_path: Path) -> None:
    data = copying(2, n=2, count=8, seed=0)
    train_steps(StepConfig(hidden=4), ClassifierSettings(epochs=1), data, data, {}, tmp_path / "steps")
    said = refused("predict", "steps", "new.txt")
    assert "a run of the task 'step classifier'" in said
    assert "a tagger, a classifier, a language model or a forecaster" in " ".join(said.split())
