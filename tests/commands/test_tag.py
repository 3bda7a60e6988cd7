"""``statewise train tag``, ``predict`` and ``evaluate`` of a tagger, as a user types them."""

from __future__ import annotations

import io
import json
import re
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from commands.typing_commands import Typed
from statewise.cli import main
from statewise.commands.predict_tags import tag
from statewise.commands.tag import models_of, parser
from statewise.commands.tag_compare import Variant, conclusion, gains
from statewise.commands.tagged import read_sets
from statewise.data import (
    TaggedSentences,
    compare_spans,
    hidden_markov_sentences,
    read_tagged,
    score_spans,
    write_context_vectors,
)
from statewise.data.tag_schemes import convert_tags
from statewise.models import TaggerConfig
from statewise.models.encoded import Encoded
from statewise.train import RunFolder, TaggerSettings, TagMeasured, load_tagger

SMALL = ["--hidden", "6", "--characters", "4", "--character-hidden", "3", "--words", "6", "--epochs", "2"]
SMALL += ["--device", "cpu"]


def write_columns(path: Path, data: TaggedSentences) -> Path:
    """As CoNLL-2003 has them: four columns, in IOB1."""
    sentences = (
        "\n".join(f"{word} X X {tag}" for word, tag in zip(*row, strict=True)) for row in data.converted("iob1")
    )
    path.write_text("-DOCSTART- X X O\n\n" + "\n\n".join(sentences) + "\n", encoding="utf-8")
    return path


def write_objects(path: Path, data: TaggedSentences) -> Path:
    rows = (json.dumps({"tokens": words, "tags": tags}) for words, tags in data)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def names(count: int = 40, seed: int = 0) -> TaggedSentences:
    return hidden_markov_sentences(train=count, seed=seed).train


@pytest.fixture(scope="session")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tagger's run with given vectors, whose files are in IOB1."""
    place = tmp_path_factory.mktemp("tagger")
    write_columns(place / "names.conll", names(150))
    write_columns(place / "test.conll", names(30, seed=1))
    words = sorted({word.lower() for sentence in names(150).sentences for word in sentence})
    numbers = np.random.default_rng(0).normal(size=(len(words) + 1, 12))
    lines = (
        f"{word} {' '.join(f'{x:.4f}' for x in row)}" for word, row in zip([*words, "rotterdam"], numbers, strict=True)
    )
    (place / "vectors.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = ["--vectors", str(place / "vectors.txt"), "--test", str(place / "test.conll"), "--quiet", "--lr", "0.02"]
    options += ["--hidden", "16", "--characters", "0", "--dropout", "0.1", "--epochs", "10", "--device", "cpu"]
    main(["train", "tag", "--data", str(place / "names.conll"), *options, "--out", str(place / "run")])
    return place / "run"


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


def test_training_says_how_many_words_have_a_vector(typed: Typed, tagger: Path) -> None:
    files = ["--data", str(tagger.parent / "test.conll"), "--vectors", str(tagger.parent / "vectors.txt")]
    said = typed("train", "tag", *files, *SMALL, "--epochs", "1")
    assert re.search(r"; vectors for \d+ of \d+ words$", said, re.MULTILINE)


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


def test_a_language_model_predicts_by_other_commands(refused: Typed, trained: Path) -> None:
    said = refused("predict", str(trained), "new.txt")
    assert "a run of the task 'language model'" in said
    assert "statewise evaluate" in said
    assert "statewise generate" in said


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
