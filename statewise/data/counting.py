"""How often each word of a text occurs, exactly, in memory that does not grow with the text."""

from __future__ import annotations

import heapq
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from types import TracebackType
from typing import IO

_MOST_TYPES = 250_000  # about 40 MB of words and counts
_MOST_FILES = 64  # a process may open some hundreds


class WordCounts:
    """Counts words; once there are too many different ones, the counts so far are put aside in a sorted file.

    Args:
        most_types: how many different words are kept in memory.

    >>> with WordCounts() as counts:
    ...     counts.add(["to be", "or not to be"])
    ...     counts.most_common(2)
    ['be', 'to']
    """

    def __init__(self, *, most_types: int = _MOST_TYPES) -> None:
        self._most_types = most_types
        self._counts: Counter[str] = Counter()
        self._aside: list[IO[str]] = []

    def add(self, pieces: Iterable[str]) -> None:
        """Count the words of pieces of text that break between words."""
        for piece in pieces:
            self._counts.update(piece.split())
            self._put_aside_if_many()

    def add_counts(self, counts: Mapping[str, int]) -> None:
        """Add what was counted elsewhere."""
        self._counts.update(counts)

    def most_common(self, most: int | None, *, min_count: int = 1, without: Collection[str] = ()) -> list[str]:
        """The most frequent words, falling; those of the same frequency in the order of their code points.

        Args:
            most: how many; None for all.
            min_count: words that occur less often are left out.
            without: words that are left out too.
        """
        frequent = ((-count, word) for word, count in self._merged() if count >= min_count and word not in without)
        ordered = sorted(frequent) if most is None else heapq.nsmallest(most, frequent)
        return [word for _, word in ordered]

    def _put_aside_if_many(self) -> None:
        if len(self._counts) <= self._most_types:
            return
        if len(self._aside) < _MOST_FILES:
            self._aside.append(_put_aside(sorted(self._counts.items())))
        else:
            merged = _put_aside(self._merged())
            self._close()
            self._aside = [merged]
        self._counts = Counter()

    def _merged(self) -> Iterator[tuple[str, int]]:
        """Every word once, with its whole count, in the order of code points where files were put aside."""
        if not self._aside:
            yield from self._counts.items()
            return
        runs = [iter(sorted(self._counts.items())), *map(_read_back, self._aside)]
        for word, found in groupby(heapq.merge(*runs), key=itemgetter(0)):
            yield word, sum(count for _, count in found)

    def __enter__(self) -> WordCounts:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()

    def _close(self) -> None:
        for file in self._aside:
            file.close()


def _put_aside(counts: Iterable[tuple[str, int]]) -> IO[str]:
    # The file has no name: it is gone when it is closed, even by a crash.
    file = tempfile.TemporaryFile("w+", encoding="utf-8", errors="surrogatepass", newline="\n")  # noqa: SIM115
    file.writelines(f"{word} {count}\n" for word, count in counts)
    return file


def _read_back(file: IO[str]) -> Iterator[tuple[str, int]]:
    file.seek(0)
    for line in file:
        word, count = line.split(" ")
        yield word, int(count)
