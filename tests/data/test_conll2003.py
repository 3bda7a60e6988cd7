"""CoNLL-2003 and the vectors that go with it: read from files like theirs, and from theirs where they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from statewise.data import conll2003_sets, glove_vectors
from statewise.recipes.mixup_tagging import TEST, conll_sets
from support import shared_data

DOCUMENT = "-DOCSTART- -X- O O\n\n"


def line(word: str, tag: str) -> str:
    return f"{word} NN I-NP {tag}\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of data: two training sentences, one each to choose by and to test on, and vectors of two words."""
    for name in ("conll2003", "glove"):
        (tmp_path / name).mkdir()
    files = {
        "eng.train": [line("Anna", "I-PER") + line("Smith", "I-PER") + line("left", "O"), line("Rome", "I-LOC")],
        "eng.testa": [line("in", "O") + line("Oslo", "I-LOC") + line("Bern", "B-LOC")],
        "eng.testb": [line("Otto", "I-PER")],
    }
    for name, sentences in files.items():
        (tmp_path / "conll2003" / name).write_text(DOCUMENT + "\n".join(sentences))
    (tmp_path / "glove" / "glove.6B.100d.txt").write_text(f"anna {'1 ' * 99}1\nrome {'2 ' * 99}2\n")
    return tmp_path


def test_the_three_files_are_converted_and_documents_are_left_out(data: Path) -> None:
    sets = conll2003_sets(data=data)
    assert {name: len(each) for name, each in sets.items()} == {"train": 2, "valid": 1, "test": 1}
    assert sets["train"].tags == (("B-PER", "E-PER", "O"), ("S-LOC",))
    assert sets["valid"].tags == (("O", "S-LOC", "S-LOC"),)
    assert sets["test"].sentences == (("Otto",),)
    assert len(conll2003_sets(data=data / "conll2003", documents="keep")["train"]) == 3


def test_recipes_train_on_development_sentences_too_and_never_on_those_of_the_test(data: Path) -> None:
    sets = conll_sets(data)
    assert [" ".join(sentence) for sentence in sets.train.sentences] == ["Anna Smith left", "Rome", "in Oslo Bern"]
    assert sets.valid is None
    assert list(sets.tests) == [TEST]
    assert sets.tests[TEST].sentences == (("Otto",),)
    assert sets.vectors is not None
    assert sets.vectors.words == ("anna", "rome")
    np.testing.assert_array_equal(sets.vectors.vectors[:, 0], [1, 2])


@pytest.mark.slow
def test_the_real_files_have_their_published_numbers_of_sentences() -> None:
    shared_data("conll2003"), shared_data("glove")
    sets = conll2003_sets(data=shared_data("."))
    assert {name: len(each) for name, each in sets.items()} == {"train": 14_041, "valid": 3_250, "test": 3_453}
    assert {len(tag.split("-")) for each in sets.values() for tags in each.tags for tag in tags} == {1, 2}
    assert glove_vectors(data=shared_data(".")).vectors.shape[1] == 100
