"""The tagged sentences that ``--data`` names: files of the user's, a benchmark, or a synthetic sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from jsonargparse import ArgumentParser

from statewise.commands.labelled import file_name, named_apart
from statewise.commands.shared import column
from statewise.data import (
    TaggedSentences,
    WordVectors,
    conll2003_sets,
    glove_vectors,
    hidden_markov_sentences,
    read_context_vectors,
    read_tagged,
    read_vectors,
)
from statewise.data.tagged_read import READ_SCHEMES, kind_of
from statewise.errors import ArgumentError, DataError
from statewise.train.tag_folder import Tags

#: What may be said of files of the user's, besides their names.
READING = ("token", "tag", "sentence", "scheme", "repair", "comments")
FILES = ("valid", "test", "context", *READING)
ENCODING = "bioes"  # of tags that mark spans, while they are learnt
HELD = 0.1  # of the sentences, where no file is named to choose or to test by
GLOVE = "glove"
Context = npt.NDArray[np.floating[Any]]

#: What the readers advise, in the words of the command line.
_SAID = {
    "malformed='repair'": "--repair",
    "scheme='none'": "--scheme none",
    "comments=True": "--comments",
    "token=...": "--token",
    "tag=...": "--tag",
    "sentence=...": "--sentence",
    "say tag_names=..., in order": "write their names",
}


@dataclass(frozen=True)
class Tagged:
    """Sets of tagged sentences, in the scheme in which they are learnt.

    Attributes:
        name: what to call them.
        scheme: that the files have.
        train: to train on.
        valid: to choose the best model by; None where nothing is chosen.
        tests: to report, by name.
        context: further vectors of all tokens, by "train", "valid" and the names of the tests; None for none.
    """

    name: str
    scheme: str
    train: TaggedSentences
    valid: TaggedSentences | None
    tests: dict[str, TaggedSentences] = field(default_factory=dict)
    context: dict[str, Context] | None = None

    @property
    def all(self) -> Iterator[TaggedSentences]:
        """All sets."""
        yield from (self.train, *([] if self.valid is None else [self.valid]), *self.tests.values())


def add_reading(made: ArgumentParser, of: str = "") -> None:
    """Add the options of :data:`READING`.

    Args:
        made: gets them.
        of: what to say first in the help of each.
    """
    add = made.add_argument
    add("--token", type=str, help=f"{of}the column of the words in these files: its place from 0, or its name; else "
        "the first, or the one called token, word, tokens or words")  # fmt: skip
    add("--tag", type=str, help=f"{of}the column of the tags, likewise, from the end if negative; else the last, or "
        "the one called tag, label, tags, labels or ner_tags")  # fmt: skip
    add("--sentence", type=str, help=f"{of}the column that numbers the sentences of a table with a word a row")
    add("--scheme", type=str, help=f"{of}how tags mark spans: iob1, iob2, bioes, bilou (which becomes bioes), or none "
        "if they mark none; auto finds it out (default: auto)")  # fmt: skip
    add("--repair", action="store_true", help=f"{of}read tags that cannot stand where they do as conlleval does")
    add("--comments", action="store_true", help=f"{of}leave out lines that begin with #")


def read_sets(source: Mapping[str, Any], *, seed: int, valid: bool = True, test: bool = False) -> Tagged:
    """The sets that a source names.

    Args:
        source: ``data``, ``encoding``, and for files of the user's the names of :data:`FILES`.
        seed: of what is drawn: synthetic sentences, and those that are held back.
        valid: whether a tenth of a file is held back where no other is named to choose by.
        test: whether another tenth is held back where no other is named to test on.
    """
    data, encoding = str(source["data"]), source.get("encoding") or ENCODING
    place = Path(data).expanduser()
    if not place.is_file() and data in ("conll2003", "sample"):
        scheme = "iob1" if data == "conll2003" else "iob2"
        _refuse_idle({**source, "scheme": source.get("scheme") not in (None, scheme)}, data)
        found = conll2003_sets(scheme=encoding) if data == "conll2003" else _sample(seed, encoding)
        return Tagged(data, scheme, found["train"], found["valid"], {"test": found["test"]})
    if not place.is_file():
        raise DataError(
            where="--data",
            got=f"{data}, which is no file",
            wanted="a file of tagged words (.conll, .jsonl, .csv, .tsv), conll2003, or sample",
            remedy="Look at the spelling; statewise train tag --data sample needs no file.",
        )
    return _read_files(source, encoding, _Held(seed, valid=valid, test=test))


def read_file(path: Path, source: Mapping[str, Any], *, scheme: str | None = None) -> TaggedSentences:
    """A file of tagged sentences; what is wrong with it is told in the words of the command line.

    Args:
        path: of the file.
        source: how it is read: the names of :data:`READING`.
        scheme: of its tags, where it is known.
    """
    asked = source.get("scheme") or "auto"
    if asked not in READ_SCHEMES:
        raise ArgumentError(where="--scheme", got=asked, wanted=f"one of {', '.join(READ_SCHEMES)}")
    options: dict[str, Any] = {
        "scheme": scheme or asked,
        "malformed": "repair" if source.get("repair") else "refuse",
        "comments": bool(source.get("comments")),
    }
    options |= {name: column(source.get(name)) for name in ("token", "tag", "sentence")}
    with typed_advice():
        return read_tagged(path, **options)


def reading_like(source: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """How the files of a run were read, as far as that fits a file of some kind: its columns only if theirs are alike.

    Args:
        source: where the sentences of the run came from.
        kind: of the file, see :func:`statewise.data.tagged_read.kind_of`.

    >>> reading_like({"data": "a.csv", "token": "form", "comments": True}, "csv")
    {'comments': True, 'token': 'form'}
    >>> reading_like({"data": "a.csv", "token": "form", "comments": True}, "columns")
    {'comments': True}
    """
    alike = kind == kind_of(Path(str(source.get("data", ""))))
    known = ("scheme", "repair", "comments", *(("token", "tag", "sentence") if alike else ()))
    return {name: source[name] for name in known if name in source}


def encoded(sentences: TaggedSentences, encoding: str) -> TaggedSentences:
    """Sentences in the scheme in which they are learnt; tags that mark no spans stay as they are.

    Args:
        sentences: as a file has them.
        encoding: the scheme that is wanted.
    """
    return sentences if sentences.scheme == "none" else sentences.converted(encoding)


def alone(tags: Tags) -> Tags:
    """Tags that mark no spans as spans of one word each, whose F1 is the accuracy.

    Args:
        tags: of each sentence.

    >>> alone((("NN", "VB"),))
    (('S-NN', 'S-VB'),)
    """
    return tuple(tuple(f"S-{tag}" for tag in row) for row in tags)


def find_vectors(name: str | None, sentences: Iterable[Sequence[str]]) -> WordVectors | None:
    """The word vectors that ``--vectors`` names: a file, or those of the benchmark.

    Args:
        name: what was typed; None for none.
        sentences: whose words will be looked up; others are not kept.
    """
    if name is None:
        return None
    if name == GLOVE and not Path(name).is_file():
        return glove_vectors()
    return read_vectors(Path(name).expanduser(), vocabulary=(word for sentence in sentences for word in sentence))


def find_context(path: str, sentences: TaggedSentences | Sequence[Sequence[str]]) -> Context:
    """The vectors from outside in a file, one for each token of some sentences.

    Args:
        path: of the file.
        sentences: to which it belongs.
    """
    return read_context_vectors(Path(path).expanduser(), sentences).vectors


@contextmanager
def typed_advice() -> Iterator[None]:
    """A region in which errors advise what can be typed, not what can be called."""
    try:
        yield
    except DataError as error:
        remedy = error.remedy
        for called, typed in _SAID.items():
            remedy = remedy.replace(called, typed)
        raise error.told(remedy=remedy) from None


@dataclass(frozen=True)
class _Held:
    """What is held back of a file to train on."""

    seed: int
    valid: bool
    test: bool

    def parts(self, sentences: TaggedSentences, *, valid: bool, test: bool) -> dict[str, npt.NDArray[np.int64]]:
        """Which sentences go where; those with a tag that no other has are trained on."""
        wanted = [name for name, there in (("valid", valid and self.valid), ("test", test and self.test)) if there]
        order = np.random.default_rng(self.seed).permutation(len(sentences))
        each = max(1, round(HELD * len(sentences)))
        if len(wanted) * each >= len(sentences):
            where, got = sentences.name, f"{len(sentences)} sentences"
            raise DataError(where=where, got=got, wanted="more, of which some can be held back")
        cuts = {name: order[at * each : (at + 1) * each] for at, name in enumerate(wanted)}
        train = order[len(wanted) * each :]
        seen = {tag for place in train for tag in sentences.tags[place]}
        for name, some in cuts.items():
            lost = np.array([not seen.issuperset(sentences.tags[place]) for place in some])
            cuts[name], train = np.sort(some[~lost]), np.concatenate((train, some[lost]))
            if not len(cuts[name]):
                got = f"no sentence for {name} whose tags others have too"
                raise DataError(where=sentences.name, got=got, wanted="more sentences", remedy=f"Name some: --{name}.")
        return {"train": np.sort(train), **cuts}


def _read_files(source: Mapping[str, Any], encoding: str, held: _Held) -> Tagged:
    path = Path(source["data"]).expanduser()
    whole = read_file(path, source)
    tests = named_apart([Path(each).expanduser() for each in source.get("test") or ()])
    others = {**({"valid": Path(source["valid"]).expanduser()} if source.get("valid") else {}), **tests}
    sets = {name: read_file(other, source, scheme=whole.scheme) for name, other in others.items()}
    context = _contexts(source, {"train": whole, **sets})
    places = held.parts(encoded(whole, encoding), valid="valid" not in sets, test=not tests)
    if context is not None:
        rows = context.pop("train")
        context |= {name: rows[_tokens(whole, some)] for name, some in places.items()}
    sets |= {name: whole.select(some) for name, some in places.items()}
    sets = {name: encoded(each, encoding) for name, each in sets.items()}
    train, valid = sets.pop("train"), sets.pop("valid", None)
    return Tagged(file_name(path), whole.scheme, train, valid, sets, context)


def _contexts(source: Mapping[str, Any], sets: Mapping[str, TaggedSentences]) -> dict[str, Context] | None:
    named = source.get("context")
    if not named:
        return None
    if len(named) != len(sets):
        wanted = f"{len(sets)}: one for each of --data, --valid and --test, in this order"
        raise ArgumentError(where="--context", got=f"{len(named)} files", wanted=wanted)
    return {name: find_context(path, each) for path, (name, each) in zip(named, sets.items(), strict=True)}


def _tokens(sentences: TaggedSentences, some: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where the tokens of some sentences stand among those of all."""
    starts = np.concatenate(([0], np.cumsum(sentences.lengths)))
    return np.concatenate([np.arange(starts[place], starts[place + 1]) for place in some])


def _sample(seed: int, encoding: str) -> dict[str, TaggedSentences]:
    made = hidden_markov_sentences(seed=seed)
    return {name: getattr(made, name).converted(encoding) for name in ("train", "valid", "test")}


def _refuse_idle(source: Mapping[str, Any], data: str) -> None:
    idle = [f"--{name}" for name in FILES if source.get(name)]
    if idle:
        raise ArgumentError(
            where=f"--data {data}",
            got=f"{' and '.join(idle)} with it",
            wanted="its sentences as they are",
            remedy=f"Leave {'it' if len(idle) == 1 else 'them'} out.",
        )
