"""The words of a language model, numbered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from statewise.data.counting import WordCounts
from statewise.errors import ArgumentError, DataError, DtypeError
from statewise.files import read_object, write_atomically

UNKNOWN, END = "<unk>", "<eos>"
_FORMAT = "statewise vocabulary 1"


class Vocabulary:
    """Words in their order, which are the ids 0, 1, 2, ...; it never changes.

    Args:
        words: all words, each once and without white space, ``unknown`` and ``end`` among them.
        unknown: the word that stands for every other one.
        end: the word that ends a sentence.

    >>> vocabulary = Vocabulary(["<unk>", "<eos>", "the", "cat"])
    >>> vocabulary.encode(["the", "dog"])
    [2, 0]
    >>> vocabulary.decode([2, 3, 1])
    ['the', 'cat', '<eos>']
    >>> "dog" in vocabulary, len(vocabulary)
    (False, 4)
    """

    def __init__(self, words: Iterable[str], *, unknown: str = UNKNOWN, end: str = END) -> None:
        self._words = tuple(words)
        self._unknown, self._end = unknown, end
        self._ids = _Ids(zip(self._words, range(len(self._words)), strict=True))
        self._check()
        self._ids.unknown = self._ids[unknown]

    @classmethod
    def build(
        cls,
        source: Iterable[str] | Mapping[str, int],
        *,
        limit: int | None = None,
        min_count: int = 1,
        unknown: str = UNKNOWN,
        end: str = END,
    ) -> Vocabulary:
        """Choose and number the words of some text.

        ``unknown`` is 0, ``end`` is 1; the others follow by falling frequency, and words of the same frequency in the
        order of their code points, so that the same text always gives the same numbers.

        Args:
            source: lines of text, whose words stand between white space, or how often each word occurs.
            limit: the most words there may be, ``unknown`` and ``end`` included; None for all.
            min_count: words that occur less often are left out.
            unknown: the word that stands for every other one.
            end: the word that ends a sentence.

        >>> Vocabulary.build(["b a b", "c a"], limit=4).words
        ('<unk>', '<eos>', 'a', 'b')
        """
        for name, value, least in (("limit", limit, 2), ("min_count", min_count, 1)):
            if value is not None and value < least:
                raise ArgumentError(where=f"Vocabulary.build.{name}", got=value, wanted=f"an integer >= {least}")
        if isinstance(source, str):
            remedy = "Put a single line into a list; for a file use statewise.data.read_corpus."
            raise DtypeError(where="Vocabulary.build.source", got="a string", wanted="lines or counts", remedy=remedy)
        with WordCounts() as counts:
            if isinstance(source, Mapping):
                counts.add_counts(source)
            else:
                counts.add(source)
            most = None if limit is None else limit - 2
            chosen = counts.most_common(most, min_count=min_count, without={unknown, end})
        return cls([unknown, end, *chosen], unknown=unknown, end=end)

    @classmethod
    def load(cls, path: Path | str) -> Vocabulary:
        """Read a vocabulary that was saved.

        Raises:
            DataError: the file is absent, damaged, or something else.
        """
        path = Path(path)
        wanted, remedy = "a vocabulary as Vocabulary.save writes it", "Build it again from its text."
        content = read_object(path, wanted=wanted, remedy=remedy, error=DataError)
        if content.get("format") != _FORMAT:
            raise DataError(where=str(path), got="another file", wanted=wanted, remedy=remedy)
        try:
            read = cls(content["words"], unknown=content["unknown"], end=content["end"])
            if read.fingerprint != content["fingerprint"]:
                raise DataError(where=str(path), got="words that were changed", wanted=wanted, remedy=remedy)
        except DataError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            got = (str(error).splitlines() or [type(error).__name__])[0]
            raise DataError(where=str(path), got=got, wanted=wanted, remedy=remedy) from error
        return read

    def save(self, path: Path | str) -> None:
        """Write it as JSON in UTF-8, one word a line; the file is whole or not there at all."""
        head = {"format": _FORMAT, "fingerprint": self.fingerprint, "unknown": self._unknown, "end": self._end}
        content = json.dumps(head | {"words": self._words}, ensure_ascii=False, indent=0)
        write_atomically(Path(path), content + "\n")

    @property
    def words(self) -> tuple[str, ...]:
        """All words in the order of their ids."""
        return self._words

    @property
    def unknown(self) -> str:
        """The word that stands for every other one."""
        return self._unknown

    @property
    def end(self) -> str:
        """The word that ends a sentence."""
        return self._end

    @property
    def unknown_id(self) -> int:
        """The id of the word that stands for every other one."""
        return self._ids[self._unknown]

    @property
    def end_id(self) -> int:
        """The id of the word that ends a sentence."""
        return self._ids[self._end]

    @cached_property
    def fingerprint(self) -> str:
        """The same for equal vocabularies, in every process and on every machine; another one for others."""
        digest = hashlib.sha256()
        for word in (self._unknown, self._end, *self._words):
            digest.update(word.encode("utf-8", "surrogatepass") + b"\n")
        return digest.hexdigest()

    def encode(self, words: Iterable[str]) -> list[int]:
        """The ids of words; ``unknown_id`` for one that is not here."""
        if isinstance(words, str):
            remedy = "Split it first: encode(text.split())."
            raise DtypeError(where="Vocabulary.encode", got="a string", wanted="words", remedy=remedy)
        return list(map(self._ids.__getitem__, words))

    def decode(self, ids: Iterable[Any]) -> list[str]:
        """The words that belong to ids, which may be a list, an array or a tensor of one dimension.

        Raises:
            ArgumentError: there is no word of that id.
        """
        numbers = [int(number) for number in ids]
        for number in numbers:
            if not 0 <= number < len(self._words):
                raise ArgumentError(where="Vocabulary.decode", got=number, wanted=f"ids under {len(self._words)}")
        return [self._words[number] for number in numbers]

    def encoder(self) -> Mapping[str, int]:
        """A mapping from every word to an id, those that are not here included; for encoding many words fast."""
        return self._ids

    def __len__(self) -> int:
        return len(self._words)

    def __iter__(self) -> Iterator[str]:
        return iter(self._words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return (self._words, self._unknown, self._end) == (other._words, other._unknown, other._end)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} words, {self.fingerprint[:8]})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._words, self._unknown, self._end)

    def _check(self) -> None:
        for position, word in enumerate(self._words):
            if not isinstance(word, str) or word.split() != [word]:
                wanted = "strings that are not empty and hold no white space"
                raise ArgumentError(where=f"Vocabulary.words[{position}]", got=word, wanted=wanted)
        if len(self._ids) < len(self._words):
            repeated = next(word for position, word in enumerate(self._words) if self._ids[word] != position)
            raise ArgumentError(where="Vocabulary.words", got=f"{repeated!r} twice", wanted="each word once")
        if self._unknown == self._end:
            raise ArgumentError(where="Vocabulary.end", got=self._end, wanted="a word other than unknown")
        for name, word in (("unknown", self._unknown), ("end", self._end)):
            if word not in self._ids:
                remedy = "Vocabulary.build puts it there."
                raise ArgumentError(where=f"Vocabulary.{name}", got=word, wanted="one of the words", remedy=remedy)


class _Ids(dict[str, int]):
    """The ids of all words there can be; a dict, since this loop is the one that a long text waits for."""

    unknown = 0

    def __missing__(self, word: str) -> int:
        return self.unknown


def _rebuild(words: Sequence[str], unknown: str, end: str) -> Vocabulary:
    return Vocabulary(words, unknown=unknown, end=end)
