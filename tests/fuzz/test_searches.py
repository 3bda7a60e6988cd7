"""Readers of what long computations keep: searches, results of runs, tables of ranks, studies of recipes, forms."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

from contracts.damage import altered, altered_lines
from contracts.readers import ReaderContract
from statewise.commands.extract import read_words
from statewise.commands.predict_classes import read_texts
from statewise.engine.device import tuning
from statewise.errors import RunFolderError
from statewise.memory import rank_table, read_rank_table
from statewise.models import SequenceClassifier
from statewise.models.classifier_config import ClassifierConfig
from statewise.recipes.lines import Line
from statewise.recipes.studies import Computed, StudyCase, StudyMaker
from statewise.sweep.capacity import read_search, search_capacity
from statewise.sweep.capacity_search import CapacitySearch, Network
from statewise.sweep.executors import ReplicaExecutor
from statewise.sweep.seat import read_outcome
from statewise.sweep.trial import Outcome
from sweep import standin

HERE = partial(ReplicaExecutor, train=standin.train)


def _search() -> CapacitySearch:
    return CapacitySearch(
        like=standin.like(), values=(0, 10), networks=(Network(depth=1, width=1),), rates=(standin.GOOD,), seeds=1
    )


@cache
def _searched() -> dict[str, bytes]:
    """The files of a search that came to its end, without those of its runs."""
    with tempfile.TemporaryDirectory() as folder:
        search_capacity(_search(), Path(folder) / "s", executor=HERE)
        return {file.name: file.read_bytes() for file in (Path(folder) / "s").iterdir() if file.is_file()}


class SearchContract(ReaderContract):
    """A file of a search whose other files are whole."""

    @classmethod
    def prepare(cls, folder: Path) -> None:
        for name, content in _searched().items():
            if not name.startswith("."):
                (folder / name).write_bytes(content)

    def right(self) -> Sequence[bytes]:
        return [_searched()[self.name]]

    def nearly_right(self, chance: Random) -> bytes:
        return altered(chance, [json.loads(content) for content in self.files])


class TestSearchSettings(SearchContract):
    name = "config.json"

    def read(self, path: Path) -> object:
        found = read_search(path.parent)
        return found.describe(), found.trials(found.networks[0], found.values[0])


class TestSearchState(SearchContract):
    name = "search.json"

    def read(self, path: Path) -> object:
        return search_capacity(_search(), path.parent, executor=HERE, resume=True).text()

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        """What the folders of the runs hold is read again."""
        self.prepare(tmp_path)
        (tmp_path / self.name).unlink()
        assert "1" in str(self.read(tmp_path / self.name))


class TestOutcome(ReaderContract):
    name = "result.json"

    def right(self) -> Sequence[bytes]:
        known = {"accuracy": 0.5, "loss": 1.0, "best_iteration": 3, "iterations": 9, "reason": "solved", "seconds": 1.0}
        documents = (
            {**known, "orthogonality": 0.0, "largest_entry": 1.5},
            {**known, "orthogonality": 1, "loss": "inf"},
        )
        return [json.dumps(each).encode() for each in documents]

    def nearly_right(self, chance: Random) -> bytes:
        return altered(chance, [json.loads(content) for content in self.files])

    def read(self, path: Path) -> object:
        found = read_outcome(path.parent)
        if found is None:  # there is no such run yet
            raise RunFolderError(where=str(path), got="no file", wanted="one")
        assert isinstance(found, Outcome)
        return found.accuracy > 0.5, found.loss < 1, found.describe()


class TestRankTable(ReaderContract):
    name = "ranks.jsonl"

    def right(self) -> Sequence[bytes]:
        with tempfile.TemporaryDirectory() as folder:
            rank_table([(2, 2, 2), (2, 3, 2)], depth=1, path=Path(folder) / "t")
            return [(Path(folder) / "t").read_bytes()]

    def nearly_right(self, chance: Random) -> bytes:
        return altered_lines(chance, [[json.loads(line) for line in self.files[0].splitlines()]])

    def read(self, path: Path) -> object:
        return read_rank_table(path).rows


@dataclass(frozen=True)
class _Settings:
    seed: int = 0
    width: int = 3


_CASE = StudyCase(line=Line(row="plain", size="small"), settings=_Settings())


class TestStudy(ReaderContract):
    name = f"{_CASE.name}/result.json"

    @classmethod
    def prepare(cls, folder: Path) -> None:
        (folder / _CASE.name).mkdir()

    def right(self) -> Sequence[bytes]:
        told = {"settings": {"seed": 0, "width": 3}}
        return [json.dumps({"told": told, "found": {"loss": 0.5}, "parameters": 3, "seconds": 0.1}).encode()]

    def nearly_right(self, chance: Random) -> bytes:
        return altered(chance, [json.loads(content) for content in self.files])

    def read(self, path: Path) -> Any:
        maker = StudyMaker(lambda *_: Computed(found={"loss": 0.25}), path.parent.parent, None)
        before = path.read_bytes() if path.is_file() else None
        try:
            return maker.make(_CASE, "1/1")
        finally:
            if before is not None:
                path.write_bytes(before)  # what does not fit is made again

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        """It is made."""
        self.prepare(tmp_path)
        made, there = self.read(tmp_path / self.name)
        assert (made.found, there) == ({"loss": 0.25}, False)


@cache
def _classifier() -> SequenceClassifier:
    return ClassifierConfig(hidden=2).build(tokens=2, classes=2, symbols=("a", "b"))


class TestWords(ReaderContract):
    name = "words.txt"

    def right(self) -> Sequence[bytes]:
        return [b"yes\tab\nno\tba\n", b"ab\n\nba\n"]

    def read(self, path: Path) -> object:
        return read_words(path, _classifier(), ("no", "yes"))


class TestTexts(ReaderContract):
    name = "texts.csv"

    def right(self) -> Sequence[bytes]:
        return [b"text,stars\nA joy,5\n", b'id,review\n1,"a\nb"\n']

    def read(self, path: Path) -> object:
        return [list(read_texts(path, kind, None)) for kind in ("text", "csv")]


class TestTextsInObjects(TestTexts):
    name = "texts.jsonl"

    def right(self) -> Sequence[bytes]:
        return [b'{"text": "A joy"}\n{"text": "A bore"}\n']

    def nearly_right(self, chance: Random) -> bytes:
        return altered_lines(chance, [[{"text": "A joy", "id": 3}, {"text": "A bore"}]])

    def read(self, path: Path) -> object:
        return list(read_texts(path, None, None))


def test_forms_of_kernels_that_cannot_be_read_are_as_good_as_none(tmp_path: Path) -> None:
    path = tmp_path / "forms-x.json"
    for seed in range(300):
        path.write_bytes(altered(Random(seed), [{"key": {"tile": 1}, "other": {}}]))
        assert isinstance(tuning._read(path), dict)


del SearchContract  # no reader of its own
