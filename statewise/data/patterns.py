"""Regular expressions as automata: positions that may follow each other, then sets of positions, then the least."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from statewise.automata import MooreMachine
from statewise.errors import ArgumentError

_MEANT = set("|*+?()[]{}.\\")
_MOST_STATES = 100_000
_MOST_TIMES = 1000


def compile_pattern(pattern: str, alphabet: Sequence[str]) -> MooreMachine:
    """The least automaton of the words that match a pattern wholly; for the syntax see `Language.regex`.

    Each sign of the pattern becomes a position (Glushkov 1961); a state of the automaton is the set of positions that
    the last symbol read can be at.

    Args:
        pattern: the regular expression.
        alphabet: symbols of one character each.

    >>> len(compile_pattern("(10)*", "01")), compile_pattern("a{2,3}|b", "ab").accepts("aaa")
    (3, True)
    """
    if any(len(symbol) != 1 for symbol in alphabet):
        raise ArgumentError(where="regex.alphabet", got=tuple(alphabet), wanted="symbols of one character each")
    whole = _Parser(pattern, frozenset(alphabet)).parse()
    return _determinised(whole, alphabet).minimise().canonical()


@dataclass(frozen=True)
class _Part:
    """What a part of a pattern matches: whether nothing, where a match begins and ends, what may follow what."""

    empty: bool = True
    first: frozenset[int] = frozenset()
    last: frozenset[int] = frozenset()
    follow: Mapping[int, frozenset[int]] = field(default_factory=dict)
    symbols: Mapping[int, frozenset[str]] = field(default_factory=dict)

    def then(self, other: _Part) -> _Part:
        return _Part(
            self.empty and other.empty,
            self.first | other.first if self.empty else self.first,
            self.last | other.last if other.empty else other.last,
            _merged(self.follow, other.follow, dict.fromkeys(self.last, other.first)),
            {**self.symbols, **other.symbols},
        )

    def otherwise(self, other: _Part) -> _Part:
        return _Part(
            self.empty or other.empty,
            self.first | other.first,
            self.last | other.last,
            _merged(self.follow, other.follow),
            {**self.symbols, **other.symbols},
        )

    def repeated(self) -> _Part:
        """Once or more often."""
        follow = _merged(self.follow, dict.fromkeys(self.last, self.first))
        return _Part(self.empty, self.first, self.last, follow, self.symbols)

    def optional(self) -> _Part:
        return _Part(True, self.first, self.last, self.follow, self.symbols)


#: Matches no word at all: what a class of no symbols is.
_NOTHING = _Part(empty=False)


class _Parser:
    """Reads a pattern sign by sign; a copy of a part is made by reading its signs again."""

    def __init__(self, pattern: str, alphabet: frozenset[str]) -> None:
        self._pattern, self._alphabet = pattern, alphabet
        self._at = self._positions = 0

    def parse(self) -> _Part:
        whole = self._choices()
        if self._at < len(self._pattern):
            self._refuse("an end, or a bracket before")
        return whole

    def _choices(self) -> _Part:
        part = self._row()
        while self._takes("|"):
            part = part.otherwise(self._row())
        return part

    def _row(self) -> _Part:
        part = _Part()
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            part = part.then(self._times())
        return part

    def _times(self) -> _Part:
        begin = self._at
        part = self._one()
        end = self._at
        while self._at < len(self._pattern) and self._pattern[self._at] in "*+?{":
            sign = self._pattern[self._at]
            if sign == "{":
                part = self._bounded(begin, end)
            else:
                self._at += 1
                part = {"*": part.repeated().optional(), "+": part.repeated(), "?": part.optional()}[sign]
            end = self._at
        return part

    def _bounded(self, begin: int, end: int) -> _Part:
        """So many times what the signs from begin to end mean."""
        close = self._pattern.find("}", self._at)
        found = re.fullmatch(r"([0-9]{1,4})(?:(,)([0-9]{0,4}))?", self._pattern[self._at + 1 : max(close, 0)])
        if close < 0 or found is None:
            self._refuse("{2}, {2,} or {2,5}")
        least = int(found[1])
        most = int(found[3]) if found[3] else least
        if not least <= most <= _MOST_TIMES:
            self._refuse(f"numbers that rise, up to {_MOST_TIMES}")
        # (x(x(x)?)?)? rather than x?x?x?, which has many more pairs that follow each other.
        tail = self._again(begin, end).repeated().optional() if found[2] and not found[3] else _Part()
        for _ in range(most - least):
            tail = self._again(begin, end).then(tail).optional()
        part = _Part()
        for _ in range(least):
            part = part.then(self._again(begin, end))
        self._at = close + 1
        return part.then(tail)

    def _again(self, begin: int, end: int) -> _Part:
        other = _Parser(self._pattern[:end], self._alphabet)
        other._at, other._positions = begin, self._positions
        part = other._times()
        self._positions = other._positions
        return part

    def _one(self) -> _Part:
        if self._at >= len(self._pattern):
            self._refuse("a sign")
        sign = self._pattern[self._at]
        if sign == "(":
            self._at += 1
            part = self._choices()
            if not self._takes(")"):
                self._refuse("a bracket that closes")
            return part
        if sign == "[":
            return self._position(self._class())
        if sign == ".":
            self._at += 1
            return self._position(self._alphabet)
        return self._position(frozenset(self._literal(_MEANT)))

    def _class(self) -> frozenset[str]:
        self._at += 1
        inverted, found = self._takes("^"), set[str]()
        while not self._takes("]"):
            low = self._literal(set("["), within=True)
            high = low
            if self._pattern[self._at : self._at + 1] == "-" and self._pattern[self._at + 1 : self._at + 2] != "]":
                self._at += 1
                high = self._literal(set("["), within=True)
            if high < low:
                self._refuse("a range that rises")
            found |= {chr(code) for code in range(ord(low), ord(high) + 1)}
        return self._alphabet - found if inverted else self._alphabet & found

    def _literal(self, meant: set[str], *, within: bool = False) -> str:
        """One character that means itself; outside of a class it must be in the alphabet."""
        escaped = self._takes("\\")
        if self._at >= len(self._pattern):
            self._refuse("a sign")
        sign = self._pattern[self._at]
        if not escaped and sign in meant:
            self._refuse(f"another sign before, or \\{sign}")
        if not within and sign not in self._alphabet:
            self._refuse(f"a symbol of the alphabet ({' '.join(sorted(self._alphabet))})")
        self._at += 1
        return sign

    def _position(self, symbols: frozenset[str]) -> _Part:
        if not symbols:
            return _NOTHING
        self._positions += 1
        here = frozenset([self._positions])
        return _Part(False, here, here, {}, {self._positions: symbols})

    def _takes(self, sign: str) -> bool:
        found = self._pattern.startswith(sign, self._at)
        self._at += found
        return found

    def _refuse(self, wanted: str) -> NoReturn:
        got = repr(self._pattern[self._at]) if self._at < len(self._pattern) else "its end"
        raise ArgumentError(where=f"regex {self._pattern!r}, sign {self._at + 1}", got=got, wanted=wanted)


def _merged(*many: Mapping[int, frozenset[int]]) -> dict[int, frozenset[int]]:
    found: dict[int, frozenset[int]] = {}
    for one in many:
        for position, following in one.items():
            found[position] = found.get(position, frozenset()) | following
    return found


def _determinised(whole: _Part, alphabet: Sequence[str]) -> MooreMachine:
    start = frozenset([0])
    follow = {**whole.follow, 0: whole.first}
    ids, rows = {start: 0}, list[list[int]]()
    order = [start]
    for positions in order:
        after = frozenset[int]().union(*(follow.get(position, frozenset()) for position in positions))
        row = []
        for symbol in alphabet:
            target = frozenset(position for position in after if symbol in whole.symbols[position])
            if target not in ids:
                ids[target] = len(order)
                order.append(target)
            row.append(ids[target])
        rows.append(row)
        if len(order) > _MOST_STATES:
            wanted = f"one whose automaton has at most {_MOST_STATES} states"
            raise ArgumentError(where="regex", got="a pattern of more", wanted=wanted)
    accepting = [bool(state & whole.last) or (whole.empty and state == start) for state in order]
    return MooreMachine(
        alphabet=tuple(alphabet), transitions=np.array(rows), outputs=np.array(accepting, dtype=np.int64)
    )
