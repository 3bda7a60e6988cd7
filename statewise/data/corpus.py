"""A corpus: a vocabulary, and three streams to train, choose and report on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from statewise.data.cache import cached_stream, cached_vocabulary
from statewise.data.stream import TokenStream
from statewise.data.text import ENDINGS, Text
from statewise.data.vocabulary import Vocabulary
from statewise.errors import DataError

SPLITS = ("train", "valid", "test")

#: How the files of a corpus are called, ``{}`` being the split; each may be compressed.
LAYOUTS = ("ptb.{}.txt", "wiki.{}.tokens", "{}.txt", "{}.tokens")

_SHARES = (90, 95, 100)


@dataclass(frozen=True)
class Corpus:
    """A vocabulary and the three parts of a corpus, encoded by it.

    Args:
        name: what to call it.
        vocabulary: the words of the training part.
        train: what a model is trained on.
        valid: what its settings are chosen by.
        test: what is reported.
    """

    name: str
    vocabulary: Vocabulary
    train: TokenStream
    valid: TokenStream
    test: TokenStream


def read_corpus(
    folder: Path | str,
    *,
    limit: int | None = None,
    min_count: int = 1,
    cache: Path | str | None = None,
    lower: bool = False,
) -> Corpus:
    """Read a corpus of plain text, one sentence a line; what was read before comes from the cache.

    Args:
        folder: has ``ptb.train.txt``, ``wiki.train.tokens``, ``train.txt`` or ``train.tokens`` and the same with
            ``valid`` and ``test``, each perhaps with ``.gz``, ``.xz`` or ``.bz2`` behind. Or a single text file: its
            first 90 % of lines become train, the next 5 % valid, the rest test.
        limit: the most words the vocabulary may have, ``<unk>`` and ``<eos>`` included; None for all.
        min_count: words that train has less often become ``<unk>``. With 1 and no limit no word of train does, so that
            a model learns nothing about ``<unk>``, unless the text has it.
        cache: where what is prepared is kept; None for the usual place, see `statewise.data.cache`.
        lower: whether letters are made lower case.

    Raises:
        DataError: a part is missing, or a file is malformed.
    """
    place = Path(folder)
    texts = _split(place, lower) if place.is_file() else _texts(place, lower)
    kept = None if cache is None else Path(cache)
    vocabulary = cached_vocabulary(texts["train"], limit=limit, min_count=min_count, cache=kept)
    streams = {split: cached_stream(text, vocabulary, cache=kept) for split, text in texts.items()}
    return Corpus(_name(place, texts["train"].path), vocabulary, **streams)


def read_part(
    folder: Path | str, split: str, vocabulary: Vocabulary, *, cache: Path | str | None = None, lower: bool = False
) -> tuple[str, TokenStream]:
    r"""The name of a corpus, and one part of it in given words, such as those of a model; the others may be missing.

    Args:
        folder: as for `read_corpus`.
        split: ``"train"``, ``"valid"`` or ``"test"``.
        vocabulary: the words and their ids; others become ``<unk>``.
        cache: as for `read_corpus`.
        lower: whether letters are made lower case.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     path = Path(place, "story.txt")
    ...     _ = path.write_text("the cat\n" * 20)
    ...     name, part = read_part(path, "test", Vocabulary(["<unk>", "<eos>", "the"]), cache=Path(place))
    ...     name, part[:].tolist()
    ('story', [2, 0, 1])

    Raises:
        DataError: the part is missing, or its file is malformed.
    """
    place = Path(folder)
    text = (_split(place, lower) if place.is_file() else _texts(place, lower, wanted=(split,)))[split]
    return _name(place, text.path), cached_stream(text, vocabulary, cache=None if cache is None else Path(cache))


def find_parts(folder: Path) -> dict[str, Path]:
    """The files of the parts that a folder has, by the layout that it has most of; empty if none.

    >>> find_parts(Path("no such folder"))
    {}
    """
    found = ({split: file for split in SPLITS for file in _files(folder, layout, split)} for layout in LAYOUTS)
    return max(found, key=len)


def _files(folder: Path, layout: str, split: str) -> Iterator[Path]:
    # The uncompressed file is the last one, hence the one that is taken.
    candidates = (folder / (layout.format(split) + ending) for ending in reversed(ENDINGS))
    return (file for file in candidates if file.is_file())


def _texts(folder: Path, lower: bool, wanted: tuple[str, ...] = SPLITS) -> dict[str, Text]:
    parts = find_parts(folder)
    missing = [split for split in wanted if split not in parts]
    if missing:
        entries = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else None
        if entries is None:
            got = "no such file or folder"
        else:
            got = f"no file for {' and '.join(missing)} among {', '.join(entries[:20]) or 'no files at all'}"
        names = ", ".join(layout.format("train") for layout in LAYOUTS)
        called = f"called like one of {names}, perhaps compressed ({', '.join(ENDINGS[1:])})"
        raise DataError(
            where=str(folder),
            got=got,
            wanted=f"train, valid and test, {called}",
            remedy="Rename them, or name a single text file.",
        )
    return {split: Text(path=path, lower=lower) for split, path in parts.items()}


def _split(path: Path, lower: bool) -> dict[str, Text]:
    lines = Text(path=path).count_lines()
    ends = [0, *(lines * share // 100 for share in _SHARES)]
    if lines < 20:
        remedy = "Put it into train.txt, valid.txt and test.txt, and name their folder."
        raise DataError(where=str(path), got=f"{lines} lines", wanted="20 lines to be split", remedy=remedy)
    return {
        split: Text(path=path, start=ends[index], stop=ends[index + 1], lower=lower)
        for index, split in enumerate(SPLITS)
    }


def _name(place: Path, part: Path) -> str:
    if part.name.startswith("ptb."):
        return "ptb"
    return place.resolve().name.lstrip(".").partition(".")[0] or "text"
