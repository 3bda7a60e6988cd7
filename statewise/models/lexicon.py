"""What a tagger knows of words: their vectors' rows, their characters, and the tags it gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from statewise.errors import ArgumentError
from statewise.transforms.base import choice

#: The row of words that have no vector, and the number of characters that were never seen.
UNKNOWN = 0
SCHEMES = ("none", "iob1", "iob2", "bioes")
_ZEROS = str.maketrans("0123456789", "0" * 10)


def spellings(word: str) -> tuple[str, ...]:
    """The forms under which a word may have a vector: as it is, in lower case, with digits as 0, and both.

    >>> spellings("Room101")
    ('Room101', 'room101', 'Room000', 'room000')
    """
    lower = word.lower()
    return word, lower, word.translate(_ZEROS), lower.translate(_ZEROS)


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """The words, characters and tags of a tagger.

    Args:
        tags: the names of the tags, in the order of their numbers.
        words: those that have a vector; word i has row i + 1, and row 0 is every other word's.
        characters: those that are told apart; number 0 is every other character.
        scheme: of tags that mark spans: "iob1", "iob2" or "bioes"; "none" for others.

    >>> lexicon = Lexicon(tags=("O", "B-PER"), words=("anna", "saw"), characters=("A", "a"))
    >>> [lexicon.row(word) for word in ("Anna", "saw", "Otto")]
    [1, 2, 0]
    """

    tags: tuple[str, ...]
    words: tuple[str, ...] = ()
    characters: tuple[str, ...] = ()
    scheme: str = "none"

    def __post_init__(self) -> None:
        for name in ("tags", "words", "characters"):
            entries = getattr(self, name)
            if not isinstance(entries, tuple) or not all(isinstance(entry, str) and entry for entry in entries):
                raise ArgumentError(where=f"Lexicon.{name}", got=entries, wanted="a tuple of texts that are not empty")
            if len(set(entries)) != len(entries):
                twice = Counter(entries).most_common(1)[0][0]
                raise ArgumentError(where=f"Lexicon.{name}", got=f"{twice!r} more than once", wanted="each once")
        choice("Lexicon.scheme", self.scheme, SCHEMES)
        if len(self.tags) < 2:
            raise ArgumentError(where="Lexicon.tags", got=self.tags, wanted="at least two tags")

    @classmethod
    def of(
        cls,
        sentences: Iterable[Sequence[str]],
        *,
        tags: Iterable[str],
        vectors: Iterable[str] | None = None,
        also: Iterable[Sequence[str]] = (),
        scheme: str = "none",
    ) -> Lexicon:
        """The lexicon of the sentences that a tagger learns from.

        Args:
            sentences: all of whose characters are told apart.
            tags: the names of the tags.
            vectors: words that have a vector; only those that occur, in whatever spelling, are kept. None gives every
                word of the sentences, in lower case, a vector of its own.
            also: further sentences, whose words keep their vectors too: what the tagger will be asked.
            scheme: of the tags.

        >>> Lexicon.of([["Anna", "saw"]], tags=("O", "B-PER"), vectors=("saw", "anna", "sees")).words
        ('saw', 'anna')
        """
        types = sorted({word for sentence in sentences for word in sentence})
        characters = tuple(sorted({character for word in types for character in word}))
        if vectors is None:
            kept = tuple(sorted({word.lower() for word in types}))
        else:
            asked = {word for sentence in also for word in sentence}
            wanted = {form for word in asked.union(types) for form in spellings(word)}
            kept = tuple(word for word in vectors if word in wanted)
        return cls(tags=tuple(tags), words=kept, characters=characters, scheme=scheme)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words, start=UNKNOWN + 1)}

    @cached_property
    def _characters(self) -> dict[str, int]:
        return {character: number for number, character in enumerate(self.characters, start=UNKNOWN + 1)}

    @cached_property
    def _tags(self) -> dict[str, int]:
        return {tag: number for number, tag in enumerate(self.tags)}

    def row(self, word: str) -> int:
        """The row of a word's vector; 0 if none of its spellings has one.

        Args:
            word: as it stands in a text.
        """
        return next((self._rows[form] for form in spellings(word) if form in self._rows), UNKNOWN)

    def spelt(self, word: str) -> list[int]:
        """The numbers of a word's characters.

        Args:
            word: as it stands in a text.
        """
        return [self._characters.get(character, UNKNOWN) for character in word]

    def numbers(self, tags: Sequence[str], *, where: str = "tags") -> list[int]:
        """The numbers of tags.

        Args:
            tags: their names.
            where: what they belong to, for the error.
        """
        missing = next((tag for tag in tags if tag not in self._tags), None)
        if missing is not None:
            raise ArgumentError(
                where=where,
                got=f"the tag {missing!r}",
                wanted=f"one of {', '.join(self.tags)}",
                remedy="The training set must have every tag, and all sets one scheme: convert them alike.",
            )
        return [self._tags[tag] for tag in tags]
