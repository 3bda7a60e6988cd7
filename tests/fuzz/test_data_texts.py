"""Readers of text, labelled rows and tagged sentences, given every kind of bad file."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from contracts.damage import altered, altered_lines, damaged, table
from contracts.readers import ReaderContract
from statewise.data import LabelledFile, Text, TokenStream, Vocabulary, read_corpus, read_labelled, read_sentences
from statewise.data.tagged_read import read_tagged

_STORY = "the cat sleeps .\nthe dog\u00a0runs .\n\né\u2028t\n"
_COLUMNS = "-DOCSTART- X O\n\nAda NNP B-PER\nLovelace NNP I-PER\nwrote VBD O\n\nParis NNP B-LOC\n# # O\n"
_UNIVERSAL = "# text\n1-2\tdu\t_\t_\n1\tde\tde\tADP\n2\tle\tle\tDET\n8.1\tx\tx\tX\n\n1\tchat\tchat\tNOUN\n"
_OBJECTS: list[list[dict[str, Any]]] = [
    [{"tokens": ["Ada", "wrote"], "tags": ["B-PER", "O"]}, {"tokens": "Paris sleeps", "tags": "B-LOC O"}],
    [{"words": ["a"], "ner_tags": ["O"]}],
]
_TOKENS = (
    "sentence",
    "token",
    "tag",
    "tokens",
    "tags",
    "text",
    "1",
    "2",
    "Ada",
    "O",
    "B-PER",
    "I-LOC",
    "",
    " ",
    '"',
    "a b",
)


class TestText(ReaderContract):
    name = "story.txt"

    def right(self) -> Sequence[bytes]:
        return [_STORY.encode(), b"\xef\xbb\xbfone\r\ntwo"]

    def read(self, path: Path) -> object:
        whole = list(Text(path=path, lower=True).lines())
        assert len(whole) == Text(path=path).count_lines()
        return whole, list(Text(path=path, start=1, stop=2).pieces()), Text(path=path).fingerprint()


class ArchiveContract(TestText):
    """A text in an archive, damaged before or after it is compressed."""

    compress: ClassVar[Callable[[bytes], bytes]]

    def right(self) -> Sequence[bytes]:
        return [type(self).compress(content) for content in super().right()]

    def nearly_right(self, chance: Random) -> bytes:
        return type(self).compress(damaged(chance, super().right()))


class TestGzip(ArchiveContract):
    name, compress = "story.txt.gz", gzip.compress


class TestXz(ArchiveContract):
    name, compress = "story.txt.xz", lzma.compress


class TestBzip2(ArchiveContract):
    name, compress = "story.txt.bz2", bz2.compress


del ArchiveContract  # no reader of its own


class TestCorpus(ReaderContract):
    name = "story.txt"

    def right(self) -> Sequence[bytes]:
        return [_STORY.encode() * 8]

    def read(self, path: Path) -> object:
        with tempfile.TemporaryDirectory() as cache:
            corpus = read_corpus(path, limit=5, cache=cache)
            return corpus, corpus.test[:], corpus.vocabulary.words


class TestVocabulary(ReaderContract):
    name = "vocabulary.txt"

    def right(self) -> Sequence[bytes]:
        with tempfile.TemporaryDirectory() as folder:
            Vocabulary(["<unk>", "<eos>", "the", "café"]).save(Path(folder) / "v")
            return [(Path(folder) / "v").read_bytes()]

    def nearly_right(self, chance: Random) -> bytes:
        return altered(chance, [json.loads(content) for content in self.files])

    def read(self, path: Path) -> object:
        vocabulary = Vocabulary.load(path)
        return vocabulary.encode(["the", "sea"]), repr(vocabulary)


class TestTokenStream(ReaderContract):
    name = "ids.npy"

    def right(self) -> Sequence[bytes]:
        with tempfile.TemporaryDirectory() as folder:
            TokenStream.write(Path(folder) / "ids", ["the cat", "the"], Vocabulary(["<unk>", "<eos>", "the"]))
            return [(Path(folder) / "ids").read_bytes()]

    def read(self, path: Path) -> object:
        return TokenStream.open(path)[:]


class TestLabelledTsv(ReaderContract):
    name = "reviews.tsv"

    def right(self) -> Sequence[bytes]:
        return [b"label\ttext\n1\tA joy.\n0\tA bore.\n", b"yes\tabba\nno\tab\nno\tba\n"]

    def nearly_right(self, chance: Random) -> bytes:
        return table(chance, ("label", "text", "Review", "y", "1", "0", "A joy.", "", " ", "10" * 30, "-0"), "\t")

    def read(self, path: Path) -> object:
        found = read_labelled({"train": LabelledFile(path=path), "test": path}, limit=4, truncate=("last", 2))
        return found.parts["test"].texts(), found.parts["train"].report()


class TestLabelledCsv(TestLabelledTsv):
    name = "reviews.csv"

    def right(self) -> Sequence[bytes]:
        return [b'label,text\n1,"A joy, ""really"".\nYes."\n0,A bore.\n', b"yes,abba\nno,ab\nno,ba\n"]

    def nearly_right(self, chance: Random) -> bytes:
        return table(chance, ("label", "text", '"', '""', '"a\n"', "1", "0", "A joy.", "", " ", '"a"b'), ",")


class TestLabelledJsonl(TestLabelledTsv):
    name = "reviews.jsonl"

    def right(self) -> Sequence[bytes]:
        return [b'{"label": 1, "text": "A joy."}\n\n{"label": "0", "text": "A bore."}\n']

    def nearly_right(self, chance: Random) -> bytes:
        return altered_lines(chance, [[{"label": 1, "text": "A joy."}, {"label": "0", "text": "A bore.", "id": None}]])


class TestTaggedColumns(ReaderContract):
    name = "names.conll"

    def right(self) -> Sequence[bytes]:
        return [_COLUMNS.encode(), b"Ada\tB-PER\nx\tL-PER\n\ny\tU-LOC\n"]

    def nearly_right(self, chance: Random) -> bytes:
        words = (
            "Ada",
            "NNP",
            "B-PER",
            "I-PER",
            "O",
            "E-X",
            "S-X",
            "U-X",
            "-DOCSTART-",
            "#",
            "B-",
            "-",
            "",
            "\u2028",
            "\r",
        )
        return table(chance, words, chance.choice((" ", "\t")))

    def read(self, path: Path) -> object:
        found = read_tagged(path, malformed="repair", documents="keep")
        return repr(found), found.converted("bioes" if found.scheme != "none" else "none"), read_tagged(path)


class TestTaggedUniversal(TestTaggedColumns):
    name = "tree.conllu"

    def right(self) -> Sequence[bytes]:
        return [_UNIVERSAL.encode()]

    def nearly_right(self, chance: Random) -> bytes:
        return table(chance, ("1", "1-2", "8.1", "chat", "NOUN", "# text", "_", "", "B-X"), "\t")


class TestTaggedObjects(TestTaggedColumns):
    name = "names.jsonl"

    def right(self) -> Sequence[bytes]:
        return ["".join(json.dumps(each) + "\n" for each in file).encode() for file in _OBJECTS]

    def nearly_right(self, chance: Random) -> bytes:
        return altered_lines(chance, _OBJECTS)


class TestTaggedCsv(TestTaggedColumns):
    name = "names.csv"

    def right(self) -> Sequence[bytes]:
        return [b"sentence,token,tag\n1,Ada,B-PER\n,wrote,O\n2,Paris,B-LOC\n", b"tokens,tags\nAda wrote,B-PER O\n"]

    def nearly_right(self, chance: Random) -> bytes:
        return chance.choice((b"sentence,token,tag\n", b"tokens,tags\n", b"")) + table(chance, _TOKENS, ",")


class TestTaggedTsv(TestTaggedColumns):
    name = "names.tsv"

    def right(self) -> Sequence[bytes]:
        return [b"sentence\ttoken\ttag\n1\tAda\tB-PER\n\twrote\tO\n", b"Ada\tB-PER\nwrote\tO\n"]

    def nearly_right(self, chance: Random) -> bytes:
        return chance.choice((b"sentence\ttoken\ttag\n", b"")) + table(chance, _TOKENS, "\t")


class TestSentences(ReaderContract):
    name = "new.txt"

    def right(self) -> Sequence[bytes]:
        return [b"Ada wrote .\nParis sleeps .\n"]

    def read(self, path: Path) -> object:
        return [read_sentences(path, kind=kind) for kind in ("text", "columns")]


class TestSentencesInObjects(TestSentences):
    name = "new.jsonl"

    def right(self) -> Sequence[bytes]:
        return [b'{"tokens": ["Ada", "wrote"]}\n{"tokens": "Paris"}\n']

    def nearly_right(self, chance: Random) -> bytes:
        return altered_lines(chance, [[{"tokens": ["Ada", "wrote"]}, {"tokens": "Paris"}]])

    def read(self, path: Path) -> object:
        return read_sentences(path)
