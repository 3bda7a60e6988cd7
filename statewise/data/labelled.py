"""Text classification: labelled files as sequences of words, numbered by the words of the training part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from statewise.data.class_names import class_names
from statewise.data.examples import Sequences
from statewise.data.rows import LabelledFile
from statewise.data.sets import files_of_set, find_data_set
from statewise.data.task import TaskSets
from statewise.data.vocabulary import Vocabulary
from statewise.errors import ArgumentError, DataError
from statewise.models.cutting import split_words

Truncation = tuple[Literal["first", "last"], int]
Tokenizer = Callable[[str], list[str]]


@dataclass(frozen=True)
class LabelledText:
    """Parts of labelled text in the same words.

    Args:
        vocabulary: the words of the training part.
        parts: by name; their symbols are the words of the vocabulary.
    """

    vocabulary: Vocabulary
    parts: Mapping[str, Sequences]


def read_labelled(
    files: Mapping[str, LabelledFile | Path | str],
    *,
    limit: int | None = 30_000,
    min_count: int = 1,
    truncate: Truncation | None = None,
    classes: Sequence[str] | None = None,
    tokenize: Tokenizer = split_words,
) -> LabelledText:
    """Read parts of labelled text; words and classes are those of the part ``"train"``.

    Args:
        files: the file of each part; ``"train"`` must be among them.
        limit: the most words of the vocabulary, ``<unk>`` and ``<eos>`` included; None for all.
        min_count: words that train has less often become ``<unk>``.
        truncate: ``("first", 400)`` keeps the first 400 words of each text, ``("last", 400)`` the last; None keeps all.
        classes: the labels in their order; None for those of train, sorted, with ``accept`` after ``reject``.
        tokenize: what finds the words of a text.

    Raises:
        DataError: a file is absent or malformed, or a label is not among the classes; names the line and the field.
    """
    if "train" not in files:
        raise ArgumentError(where="read_labelled.files", got=list(files), wanted="a file for 'train'")
    if truncate is not None and (truncate[0] not in ("first", "last") or truncate[1] < 1):
        raise ArgumentError(where="read_labelled.truncate", got=truncate, wanted="'first' or 'last', and a number > 0")
    sources = {
        name: file if isinstance(file, LabelledFile) else LabelledFile(path=Path(file)) for name, file in files.items()
    }
    train = _Encoded.read(sources["train"], tokenize, truncate)
    names = class_names(train.labels, where=str(sources["train"].path)) if classes is None else tuple(classes)
    vocabulary = Vocabulary.build(train.counts(), limit=limit, min_count=min_count)
    encoded = {
        name: train if name == "train" else _Encoded.read(file, tokenize, truncate) for name, file in sources.items()
    }
    parts = {name: part.sequences(sources[name], vocabulary, names) for name, part in encoded.items()}
    return LabelledText(vocabulary, parts)


def imdb_sets(
    *,
    data: Path | str | None = None,
    limit: int = 30_000,
    truncate: Truncation | None = ("last", 400),
    test_truncate: Mapping[str, Truncation | None] | None = None,
    valid: float = 0.1,
    seed: int = 0,
) -> TaskSets[Sequences]:
    """The movie reviews of Maas et al. (2011), 25,000 to train and as many to test (Wang & Niepert 2019, Tables 4, 5).

    Args:
        data: where the set is; see `find_data_set`.
        limit: the most words.
        truncate: what is kept of each review; see `read_labelled`.
        test_truncate: test sets by name and what each keeps; None for one, ``"test"``, that keeps what train does.
        valid: which part of the reviews to train on is kept to choose by, drawn at random; 0 for none.
        seed: what that draw depends on.
    """
    paths = files_of_set("imdb", find_data_set("imdb", data=data))
    # Four columns without a header: label, stars, id, text; 27 texts have tabs.
    files = {
        part: LabelledFile(path=path, label=0, text=3, columns=4, header=False)
        for part, path in zip(("train", "test"), paths, strict=True)
    }
    whole = read_labelled(files, limit=limit, classes=("0", "1"))
    named = {
        name: Sequences(
            tokens=part.tokens,
            starts=part.starts,
            labels=part.labels,
            symbols=part.symbols,
            classes=("negative", "positive"),
        )
        for name, part in whole.parts.items()
    }
    train = truncated(named["train"], truncate)
    kept, held = train.split(1 - valid, seed=seed) if valid else (train, None)
    wanted = {"test": truncate} if test_truncate is None else test_truncate
    return TaskSets(kept, held, {name: truncated(named["test"], cut) for name, cut in wanted.items()})


def truncated(sequences: Sequences, cut: Truncation | None) -> Sequences:
    """The first or the last symbols of each sequence.

    >>> truncated(Sequences.from_words(["abc", "b"], [0, 1]), ("last", 2)).texts()
    ['bc', 'b']
    """
    if cut is None:
        return sequences
    lengths = np.minimum(sequences.lengths, cut[1])
    begins = sequences.starts[:-1] if cut[0] == "first" else sequences.starts[1:] - lengths
    starts = np.concatenate(([0], np.cumsum(lengths)))
    inside = np.arange(starts[-1]) - np.repeat(starts[:-1] - begins, lengths)
    return Sequences(
        tokens=sequences.tokens[inside],
        starts=starts,
        labels=sequences.labels,
        symbols=sequences.symbols,
        classes=sequences.classes,
    )


@dataclass(frozen=True)
class _Encoded:
    """A part whose words have numbers in the order in which they came first."""

    ids: Mapping[str, int]
    tokens: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int64]
    labels: Sequence[str]
    lines: Sequence[int]

    @classmethod
    def read(cls, file: LabelledFile, tokenize: Tokenizer, cut: Truncation | None) -> _Encoded:
        ids = _Growing()
        tokens, labels, lines = list[npt.NDArray[np.int32]](), list[str](), list[int]()
        for row in file.rows():
            words = _cut(tokenize(row.text), cut)
            tokens.append(np.fromiter(map(ids.__getitem__, words), np.int32, len(words)))
            labels.append(row.label)
            lines.append(row.line)
        if not labels:
            raise DataError(where=str(file.path), got="no texts", wanted="a label and a text in each row")
        lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
        return cls(ids, np.concatenate(tokens), lengths, labels, lines)

    def counts(self) -> dict[str, int]:
        numbers = np.bincount(self.tokens, minlength=len(self.ids)).tolist()
        return dict(zip(self.ids, numbers, strict=True))

    def sequences(self, file: LabelledFile, vocabulary: Vocabulary, classes: tuple[str, ...]) -> Sequences:
        places = {name: place for place, name in enumerate(classes)}
        labels = [places.get(label, -1) for label in self.labels]
        if -1 in labels:
            at = labels.index(-1)
            field = "label" if file.label is None else file.label
            file.refuse(self.lines[at], repr(self.labels[at]), f"one of {', '.join(classes)}", field=field)
        table = np.array(vocabulary.encode(self.ids), dtype=np.int32)
        return Sequences(
            tokens=table[self.tokens] if len(table) else self.tokens,
            starts=np.concatenate(([0], np.cumsum(self.lengths))),
            labels=np.array(labels, dtype=np.int64),
            symbols=vocabulary.words,
            classes=classes,
        )


class _Growing(dict[str, int]):
    """Numbers every word that is asked for, so that a long text is read once and its words are held once."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


def _cut(words: list[str], cut: Truncation | None) -> list[str]:
    if cut is None:
        return words
    return words[: cut[1]] if cut[0] == "first" else words[-cut[1] :]
