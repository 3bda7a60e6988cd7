"""Readers of run folders: settings, metrics, weights, vocabulary, lexicon and examples, each damaged in turn."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import torch

from contracts.damage import altered, altered_lines, damaged, packed, unpacked
from contracts.readers import ReaderContract
from statewise.cli import main
from statewise.errors import RunFolderError
from statewise.train import RunFolder, load_classifier, load_language_model, load_tagger
from statewise.train.classify_folder import read_about, sizes_of
from statewise.train.tag_folder import read_given, read_lexicon
from statewise.train.tensor_file import read_document, read_tensors, write_tensors

_TEXTS = "the cat sleeps .\na dog runs .\n" * 12
_LABELLED = "".join(f"{label}\t{word}\n" for label, word in (("yes", "ab"), ("no", "ba"), ("yes", "aab")) * 12)
_TAGGED = "Ada B-PER\nwrote O\n\nParis B-LOC\nsleeps O\n\n" * 12
_NUMBERS = "label,a,b,c\n" + "up,1,2,3\ndown,3,2,1\n" * 12
_KINDS = {
    "lm": (_TEXTS, "text.txt", ["--hidden", "3", "--batch", "2", "--bptt", "4"]),
    "classify": (_LABELLED, "words.tsv", ["--hidden", "3", "--batch", "8", "--centroids", "3"]),
    "series": (_NUMBERS, "numbers.csv", ["--hidden", "3", "--batch", "8"]),
    "tag": (_TAGGED, "names.conll", ["--hidden", "3", "--characters", "2", "--character-hidden", "2", "--words", "3"]),
}


@cache
def run_of(kind: str) -> dict[str, bytes]:
    """The files of a run of one epoch."""
    text, name, options = _KINDS[kind]
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / name).write_text(text)
        folder = Path(place) / "run"
        typed = ["--data", str(Path(place) / name), "--out", str(folder), "--epochs", "1", "--device", "cpu", "--quiet"]
        main(["train", kind, *typed, *options])
        return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.startswith(".")}


class RunContract(ReaderContract):
    """A file of a run whose other files are whole."""

    kind: ClassVar[str]

    @classmethod
    def prepare(cls, folder: Path) -> None:
        for name, content in run_of(cls.kind).items():
            (folder / name).write_bytes(content)

    def right(self) -> Sequence[bytes]:
        return [run_of(self.kind)[self.name]]

    def nearly_right(self, chance: Random) -> bytes:
        return altered(chance, [json.loads(content) for content in self.files])

    def read(self, path: Path) -> object:
        loaders: dict[str, Any] = {"lm": load_language_model, "tag": load_tagger}
        return loaders.get(self.kind, load_classifier)(path.parent)


class TensorContract(RunContract):
    """A file of tensors; damage of its header keeps the header's length right."""

    def nearly_right(self, chance: Random) -> bytes:
        header, body = unpacked(self.files[0])
        if chance.random() < 0.5:
            header["__metadata__"]["statewise"] = altered(
                chance, [json.loads(header["__metadata__"]["statewise"])]
            ).decode("utf-8", "replace")
            return packed(json.dumps(header).encode(), body)
        return packed(altered(chance, [header]), body)


class TestLanguageSettings(RunContract):
    kind, name = "lm", "config.json"


class TestLanguageWords(RunContract):
    kind, name = "lm", "vocabulary.txt"


class TestLanguageWeights(TensorContract):
    kind, name = "lm", "model.safetensors"


class TestLanguageMetrics(RunContract):
    kind, name = "lm", "metrics.jsonl"

    def nearly_right(self, chance: Random) -> bytes:
        return altered_lines(chance, [[json.loads(line) for line in self.files[0].splitlines()]])

    def read(self, path: Path) -> object:
        return RunFolder(path.parent).metrics()

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        """A run that has measured nothing yet has none."""
        self.prepare(tmp_path)
        (tmp_path / self.name).unlink()
        assert RunFolder(tmp_path).metrics() == []


class TestLanguageResume(TensorContract):
    kind, name = "lm", "resume.safetensors"

    def read(self, path: Path) -> object:
        found = RunFolder(path.parent).load_resume()
        return found, read_document(path)

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        """Without it a run begins again, which is no error."""
        self.prepare(tmp_path)
        (tmp_path / self.name).unlink()
        assert RunFolder(tmp_path).load_resume() is None


class TestClassifierSettings(RunContract):
    kind, name = "classify", "config.json"


class TestClassifierExamples(RunContract):
    kind, name = "classify", "examples.json"

    def read(self, path: Path) -> object:
        return sizes_of(read_about(path.parent)), super().read(path)


class TestSeriesExamples(TestClassifierExamples):
    kind = "series"


class TestClassifierWeights(TensorContract):
    kind, name = "classify", "model.safetensors"


class TestTaggerSettings(RunContract):
    kind, name = "tag", "config.json"


class TestTaggerLexicon(RunContract):
    kind, name = "tag", "lexicon.json"

    def read(self, path: Path) -> object:
        return read_lexicon(path.parent), super().read(path)


class TestTaggerWeights(TensorContract):
    kind, name = "tag", "model.safetensors"


class TestGivenTags(ReaderContract):
    name = "tagged-test.txt"

    def right(self) -> Sequence[bytes]:
        return [b"Ada B-PER B-PER\nwrote O O\n\nParis B-LOC O\n"]

    def nearly_right(self, chance: Random) -> bytes:
        return damaged(chance, self.files)

    def read(self, path: Path) -> object:
        return read_given(path)


class TestTensors(ReaderContract):
    name = "tensors.safetensors"

    def right(self) -> Sequence[bytes]:
        with tempfile.TemporaryDirectory() as folder:
            weight = torch.arange(6.0).reshape(2, 3)
            path = Path(folder) / self.name
            write_tensors(path, {"in": weight, "out": weight, "bias": torch.zeros(2)}, {"epoch": 3, "best": [1, None]})
            return [path.read_bytes()]

    def nearly_right(self, chance: Random) -> bytes:
        header, body = unpacked(self.files[0])
        return packed(altered(chance, [header]), body)

    def read(self, path: Path) -> object:
        try:
            return read_tensors(path)
        except OSError as error:  # whoever holds the folder says so
            raise RunFolderError(where=str(path), got=str(error), wanted="a file") from error


def test_a_resume_point_of_other_values_never_ends_in_a_traceback(tmp_path: Path) -> None:
    """Going on with a run whose resume point says other things is refused, or goes on."""
    (tmp_path / "text.txt").write_text(_TEXTS)
    header, body = unpacked(run_of("lm")["resume.safetensors"])
    document = json.loads(header["__metadata__"]["statewise"])
    options = ["--data", str(tmp_path / "text.txt"), "--epochs", "1", "--device", "cpu", "--quiet", *_KINDS["lm"][2]]
    for seed in range(12):
        folder = tmp_path / "run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, content in run_of("lm").items():
            (folder / name).write_bytes(content)
        header["__metadata__"]["statewise"] = altered(Random(seed), [document]).decode("utf-8", "replace")
        (folder / "resume.safetensors").write_bytes(packed(json.dumps(header).encode(), body))
        code: object = 0
        try:
            main(["train", "lm", *options, "--resume", "--out", str(folder)])
        except SystemExit as stopped:
            code = stopped.code
        assert code in (0, 2)


del RunContract, TensorContract  # no readers of their own
