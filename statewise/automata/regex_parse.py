"""Regular expressions read into trees; errors point at the place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from statewise.errors import ArgumentError

_DEEPEST = 40
_LARGEST_COUNT = 1000
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}


@dataclass(frozen=True)
class OneOf:
    """One symbol of a set, given by its symbols."""

    symbols: frozenset[str]


@dataclass(frozen=True)
class Chain:
    """Parts one after the other; none is the empty word."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True)
class Choice:
    """One of several parts."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True)
class Repeat:
    """A part at least so many times and at most so many; None is any number."""

    part: Tree
    least: int
    most: int | None


Tree = OneOf | Chain | Choice | Repeat


class Parser:
    """A pattern and a place in it.

    Args:
        pattern: the expression.
        alphabet: the symbols; None if they are to be those the pattern spells.

    >>> Parser("a|b?", None).parse()
    Choice(parts=(OneOf(symbols=frozenset({'a'})), Repeat(part=OneOf(symbols=frozenset({'b'})), least=0, most=1)))
    """

    def __init__(self, pattern: str, alphabet: Sequence[str] | None) -> None:
        self.pattern, self.given = pattern, alphabet is not None
        self.place = self.depth = 0
        self.alphabet = frozenset(alphabet or ())
        self.spelt: set[str] = set()

    def parse(self) -> Tree:
        """The tree of the whole pattern."""
        tree = self._choice()
        if self.place < len(self.pattern):
            self._fail("a ')' that closes nothing")
        return tree

    def _peek(self) -> str:
        return self.pattern[self.place : self.place + 1]

    def _take(self, text: str) -> bool:
        found = self.pattern.startswith(text, self.place)
        self.place += len(text) if found else 0
        return found

    def _fail(self, got: str, *, at: int | None = None, remedy: str = "") -> NoReturn:
        at = self.place if at is None else at
        shown = re.sub(r"\s", " ", self.pattern)
        raise ArgumentError(
            where=f"from_regex.pattern, position {at}",
            got=got,
            wanted="a regular expression",
            remedy=f"{remedy}\n    {shown}\n    {' ' * at}^".lstrip(" "),
        )

    def _choice(self) -> Tree:
        parts = [self._chain()]
        while self._take("|"):
            parts.append(self._chain())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _chain(self) -> Tree:
        parts: list[Tree] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated())
        return parts[0] if len(parts) == 1 else Chain(tuple(parts))

    def _repeated(self) -> Tree:
        part = self._atom()
        counts = self._counts()
        if counts is None:
            return part
        if self._peek() in ("*", "+", "?", "{"):
            self._fail("a repeat of a repeat", remedy="Put the first into parentheses.")
        return Repeat(part, *counts)

    def _counts(self) -> tuple[int, int | None] | None:
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return counts
        at = self.place
        if not self._take("{"):
            return None
        found = re.compile(r"(\d*)(,?)(\d*)\}").match(self.pattern, self.place)
        if found is None or found.group(0) in ("}", ",}"):
            self._fail("a '{' that begins no count", at=at, remedy=r"Write {2}, {2,}, {,3} or {2,3}, or \{ for itself.")
        self.place = found.end()
        least = int(found.group(1) or 0)
        most = least if not found.group(2) else int(found.group(3)) if found.group(3) else None
        if most is not None and most < least:
            self._fail(f"at least {least} and at most {most} times", at=at)
        if max(least, most or 0) > _LARGEST_COUNT:
            self._fail(f"a count over {_LARGEST_COUNT}", at=at)
        return least, most

    def _atom(self) -> Tree:
        at, sign = self.place, self._peek()
        if sign in "*+?{":
            self._fail(f"{sign!r} with nothing before it to repeat", remedy=f"Write \\{sign} for itself.")
        if sign in "^$":
            self._fail(f"the anchor {sign!r}", remedy=f"A pattern is always the whole word; write \\{sign} for itself.")
        if sign == "(":
            return self._group()
        if self._take("["):
            return self._set(at)
        if self._take("."):
            self._require_alphabet("'.'", at)
            return OneOf(self.alphabet)
        return OneOf(self._one())

    def _group(self) -> Tree:
        at = self.place
        self.place += 1
        if not self._take("?:") and self._peek() == "?":
            self._fail("an extension '(?'", at=at, remedy="Of these only '(?:...)' is known, which is '(...)'.")
        self.depth += 1
        if self.depth > _DEEPEST:
            self._fail(f"parentheses deeper than {_DEEPEST}", at=at)
        tree = self._choice()
        if not self._take(")"):
            self._fail("a '(' that is never closed", at=at)
        self.depth -= 1
        return tree

    def _set(self, at: int) -> Tree:
        negated = self._take("^")
        if negated:
            self._require_alphabet("'[^'", at)
        found: frozenset[str] = frozenset()
        first = self.place
        # As in Python, a bracket that comes first is itself.
        while self._peek() != "]" or self.place == first:
            if not self._peek():
                self._fail("a '[' that is never closed", at=at)
            found |= self._range()
        self.place += 1
        return OneOf(self.alphabet - found if negated else found)

    def _range(self) -> frozenset[str]:
        at = self.place
        # A range may run over characters that are no symbols; a lone character may not.
        low = self._one(lone=False)
        if self._peek() != "-" or self.pattern[self.place + 1 : self.place + 2] in ("]", ""):
            return self._lone(low, at)
        self.place += 1
        high = self._one(lone=False)
        if len(low) != 1 or len(high) != 1 or min(low) > min(high):
            self._fail("a range that is none", at=at, remedy="Write it as low-high, and a minus itself last.")
        between = frozenset(map(chr, range(ord(min(low)), ord(min(high)) + 1)))
        self.spelt |= set() if self.given else between
        return between & self.alphabet if self.given else between

    def _one(self, *, lone: bool = True) -> frozenset[str]:
        """The symbols of one character or of one escape."""
        at, sign = self.place, self._peek()
        self.place += 1
        found = self._escape(at) if sign == "\\" else frozenset(sign)
        return self._lone(found, at) if lone else found

    def _escape(self, at: int) -> frozenset[str]:
        sign = self._peek()
        if not sign:
            self._fail("a backslash at the end", at=at, remedy=r"Write \\ for itself.")
        self.place += 1
        if sign in "dDwWsS":
            self._require_alphabet(f"'\\{sign}'", at)
            return frozenset(symbol for symbol in self.alphabet if re.fullmatch(f"\\{sign}", symbol))
        if sign.isalnum() and sign not in _CONTROLS:
            self._fail(f"the escape '\\{sign}'", at=at, remedy=r"Known are \d \w \s \D \W \S \n \t \r and signs.")
        return frozenset(_CONTROLS.get(sign, sign))

    def _lone(self, found: frozenset[str], at: int) -> frozenset[str]:
        if self.given and not found <= self.alphabet:
            self._fail(f"{min(found)!r}, which is not in the alphabet", at=at)
        self.spelt |= found
        return found

    def _require_alphabet(self, what: str, at: int) -> None:
        if not self.given:
            self._fail(f"{what} without an alphabet", at=at, remedy="Say which symbols there are: alphabet=.")
