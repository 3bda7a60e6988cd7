"""Sentences whose tokens each have a tag: names in a text, parts of speech."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import overload

import numpy as np
import numpy.typing as npt

from statewise.data.labels import Indices, places
from statewise.data.spans import OUTSIDE, check_scheme, spans
from statewise.data.tag_schemes import convert_tags, find_unknown
from statewise.errors import ArgumentError, DtypeError, LengthError

Rows = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class TaggedSentences:
    """Sentences, and the tag of every token of theirs.

    Args:
        sentences: the tokens of each; none is empty.
        tags: as many for each sentence as it has tokens.
        scheme: how the tags mark spans: ``"iob1"``, ``"iob2"``, ``"bioes"``; ``"none"`` if they mark none.
        name: what to call them.

    >>> data = TaggedSentences.of([["Ada", "Lovelace", "wrote"]], [["B-PER", "I-PER", "O"]], scheme="iob2")
    >>> data
    TaggedSentences(1 sentence, 3 tokens, 1 PER; iob2)
    >>> data.converted("bioes").tags
    (('B-PER', 'E-PER', 'O'),)
    >>> data.tag_names
    ('O', 'B-PER', 'I-PER')
    >>> data[0]
    (('Ada', 'Lovelace', 'wrote'), ('B-PER', 'I-PER', 'O'))

    Raises:
        LengthError: tags and tokens are not as many; names the sentence.
        ArgumentError: a token is empty, or a tag is none of the scheme's; names the sentence and the token.
    """

    sentences: Rows
    tags: Rows
    scheme: str = "none"
    name: str = ""

    def __post_init__(self) -> None:
        check_scheme("TaggedSentences", self.scheme)
        for rows in (self.sentences, self.tags):
            _check_rows(rows)
        if len(self.sentences) != len(self.tags):
            got, wanted = f"tags of {len(self.tags)} sentences", f"those of {len(self.sentences)}"
            raise LengthError(where="TaggedSentences.tags", got=got, wanted=wanted)
        for place, (tokens, tags) in enumerate(zip(self.sentences, self.tags, strict=True)):
            where = f"TaggedSentences, sentence {place}"
            if not tokens:
                raise LengthError(where=where, got="no tokens", wanted="one or more")
            if len(tokens) != len(tags):
                raise LengthError(where=where, got=f"{len(tags)} tags", wanted=f"one for each of {len(tokens)} tokens")
            if "" in tokens:
                raise ArgumentError(where=f"{where}, token {tokens.index('')}", got="nothing", wanted="a token")
        if fault := find_unknown(self.tags, self.scheme):
            where = f"TaggedSentences.tags, sentence {fault.sentence}, token {fault.token}"
            raise ArgumentError(where=where, got=fault.got, wanted=fault.wanted)

    @classmethod
    def of(
        cls,
        sentences: Iterable[Iterable[str]],
        tags: Iterable[Iterable[str]],
        *,
        scheme: str = "none",
        name: str = "",
    ) -> TaggedSentences:
        """The same from lists, or whatever else tokens and tags come in."""
        return cls(tuple(map(tuple, sentences)), tuple(map(tuple, tags)), scheme, name)

    @classmethod
    def join(cls, parts: Iterable[TaggedSentences], *, name: str | None = None) -> TaggedSentences:
        """All sentences of some sets of one scheme, one set behind the other.

        Args:
            parts: the sets.
            name: what to call them; None for their names with a plus between.
        """
        sets = list(parts)
        if len({part.scheme for part in sets}) != 1:
            got = " and ".join(sorted({part.scheme for part in sets})) or "no sets"
            remedy = "Convert them first: .converted(scheme)."
            raise ArgumentError(where="TaggedSentences.join", got=got, wanted="sets of one scheme", remedy=remedy)
        rows, tags = (tuple(row for part in sets for row in getattr(part, field)) for field in ("sentences", "tags"))
        return cls(rows, tags, sets[0].scheme, "+".join(part.name for part in sets) if name is None else name)

    def converted(self, scheme: str) -> TaggedSentences:
        """The same sentences and spans, in tags of another scheme; malformed ones are repaired, see `convert_tags`."""
        return replace(self, tags=tuple(convert_tags(row, self.scheme, scheme) for row in self.tags), scheme=scheme)

    def with_tags(self, tags: Iterable[Iterable[str]]) -> TaggedSentences:
        """The same sentences with other tags of the same scheme, such as a tagger's."""
        return replace(self, tags=tuple(map(tuple, tags)))

    @cached_property
    def tag_names(self) -> tuple[str, ...]:
        """The tags that occur, each once and sorted, but ``O`` first."""
        return tuple(sorted({tag for row in self.tags for tag in row}, key=lambda tag: (tag != OUTSIDE, tag)))

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """How many tokens each sentence has."""
        return np.fromiter(map(len, self.sentences), np.int64, len(self.sentences))

    @property
    def tokens(self) -> int:
        """How many tokens all sentences have together."""
        return int(self.lengths.sum())

    def spans_by_type(self) -> dict[str, int]:
        """How many spans of each type there are, by the rules of conlleval; sorted by name."""
        found = Counter(span.type for row in self.tags for span in spans(row)) if self.scheme != "none" else Counter()
        return dict(sorted(found.items()))

    def word_counts(self) -> Counter[str]:
        """How often each token occurs."""
        return Counter(token for row in self.sentences for token in row)

    def select(self, indices: Indices) -> TaggedSentences:
        """The sentences at some places, in the order of these places; or where a mask of truth values holds."""
        at = places(indices, len(self)).tolist()
        kept, tags = (tuple(rows[place] for place in at) for rows in (self.sentences, self.tags))
        return replace(self, sentences=kept, tags=tags)

    def __len__(self) -> int:
        return len(self.sentences)

    @overload
    def __getitem__(self, index: int) -> tuple[tuple[str, ...], tuple[str, ...]]: ...

    @overload
    def __getitem__(self, index: slice) -> TaggedSentences: ...

    def __getitem__(self, index: int | slice) -> tuple[tuple[str, ...], tuple[str, ...]] | TaggedSentences:
        """The tokens and tags of one sentence, or the sentences of a slice."""
        if isinstance(index, slice):
            return self.select(index)
        return self.sentences[index], self.tags[index]

    def __iter__(self) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        return zip(self.sentences, self.tags, strict=True)

    def __repr__(self) -> str:
        parts = [f"{len(self)} sentence{'s' * (len(self) != 1)}", f"{self.tokens} token{'s' * (self.tokens != 1)}"]
        parts += [f"{count} {name}" for name, count in self.spans_by_type().items()]
        return f"TaggedSentences({self.name + ': ' if self.name else ''}{', '.join(parts)}; {self.scheme})"


def tag_rows(given: TaggedSentences | Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """The tags of each sentence, whether they come with the tokens or not."""
    return given.tags if isinstance(given, TaggedSentences) else given


def _check_rows(rows: Rows) -> None:
    whole = isinstance(rows, tuple) and all(isinstance(row, tuple) for row in rows)
    if not whole or not all(isinstance(entry, str) for row in rows for entry in row):
        remedy = "TaggedSentences.of takes lists too."
        raise DtypeError(where="TaggedSentences", got="others", wanted="tuples of tuples of strings", remedy=remedy)
