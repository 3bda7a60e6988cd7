"""Machines from regular expressions, by Glushkov's construction: one state for each place of the expression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from statewise.automata.checks import checked_names
from statewise.automata.moore import MooreMachine
from statewise.automata.regex_parse import Chain, Choice, OneOf, Parser, Repeat, Tree
from statewise.automata.subsets import Nondeterministic, members
from statewise.errors import ArgumentError

_MOST_PLACES = 20_000


def from_regex(pattern: str, alphabet: Sequence[str] | None = None) -> MooreMachine:
    r"""The minimal machine that accepts the words which match the whole pattern, as ``re.fullmatch`` does.

    Known are literals, ``\`` escapes, ``.`` (any symbol), ``[abc]``, ``[^abc]``, ``[a-f]``, ``|``, ``*``, ``+``,
    ``?``, ``{m}``, ``{m,}``, ``{,n}``, ``{m,n}``, parentheses, ``(?:...)``, and ``\d \w \s \D \W \S``. The empty
    pattern is the empty word.

    Args:
        pattern: the expression.
        alphabet: single characters, in the order of the machine; the default is what the pattern spells, sorted, and
            then ``.``, ``[^...]`` and ``\d`` are errors, as nobody said what else there is.

    >>> from_regex("(10)*").classify(["", "10", "1010", "01"]).tolist()
    [1, 1, 1, 0]
    >>> try:
    ...     from_regex("a(b")
    ... except ArgumentError as error:
    ...     print(error)
    from_regex.pattern, position 1: got a '(' that is never closed, wanted a regular expression.
        a(b
         ^
    """
    if alphabet is not None:
        checked_names(alphabet, "from_regex.alphabet", distinct=True)
        if any(len(symbol) > 1 for symbol in alphabet):
            raise ArgumentError(
                where="from_regex.alphabet", got=tuple(alphabet), wanted="symbols of one character each"
            )
    parser = Parser(pattern, alphabet)
    tree = parser.parse()
    symbols = tuple(sorted(parser.spelt) if alphabet is None else alphabet)
    return _Places(symbols).nondeterministic(tree).determinise()


@dataclass(frozen=True)
class _Part:
    """What Glushkov's construction knows of a part: has it the empty word, where it can begin, where it can end."""

    empty: bool
    first: int
    last: int


_NOTHING = _Part(True, 0, 0)


@dataclass
class _Places:
    """The places of an expression; place 0 is before its beginning, and a set of places is written as bits."""

    symbols: tuple[str, ...]
    readers: dict[str, int] = field(default_factory=dict)
    follow: list[int] = field(default_factory=lambda: [0])

    def nondeterministic(self, tree: Tree) -> Nondeterministic:
        whole = self.part(tree)
        self.follow[0] = whole.first
        moves = [[after & self.readers.get(symbol, 0) for after in self.follow] for symbol in self.symbols]
        return Nondeterministic(
            alphabet=self.symbols, moves=moves, start=1, accepting=whole.last | (1 if whole.empty else 0)
        )

    def part(self, tree: Tree) -> _Part:
        match tree:
            case OneOf(symbols):
                return self._place(symbols)
            case Chain(parts):
                whole = _NOTHING
                for part in parts:
                    whole = self._joined(whole, self.part(part))
                return whole
            case Choice(parts):
                found = [self.part(part) for part in parts]
                first, last = 0, 0
                for one in found:
                    first, last = first | one.first, last | one.last
                return _Part(any(one.empty for one in found), first, last)
            case Repeat(part, least, most):
                return self._repeated(part, least, most)

    def _place(self, symbols: frozenset[str]) -> _Part:
        if len(self.follow) > _MOST_PLACES:
            raise ArgumentError(
                where="from_regex.pattern",
                got=f"more than {_MOST_PLACES} places once its counts are written out",
                wanted="smaller counts",
            )
        place = 1 << len(self.follow)
        self.follow.append(0)
        for symbol in symbols:
            self.readers[symbol] = self.readers.get(symbol, 0) | place
        return _Part(False, place, place)

    def _joined(self, left: _Part, right: _Part) -> _Part:
        self._lead(left.last, right.first)
        return _Part(
            left.empty and right.empty,
            left.first | (right.first if left.empty else 0),
            right.last | (left.last if right.empty else 0),
        )

    def _lead(self, ends: int, begins: int) -> None:
        for place in members(ends):
            self.follow[place] |= begins

    def _repeated(self, tree: Tree, least: int, most: int | None) -> _Part:
        # a{2,4} is aa(a(a)?)?, and a{2,} is aa+: each copy has places of its own.
        whole = _NOTHING
        for _ in range(least - 1 if most is None and least else least):
            copy = self.part(tree)
            if not copy.first:
                return _NOTHING  # The empty word, however often.
            whole = self._joined(whole, copy)
        if most is None:
            looped = self.part(tree)
            self._lead(looped.last, looped.first)
            return self._joined(whole, _Part(looped.empty or least == 0, looped.first, looped.last))
        optional = _NOTHING
        for _ in range(most - least):
            inner = self._joined(self.part(tree), optional)
            if not inner.first:
                return _NOTHING
            optional = _Part(True, inner.first, inner.last)
        return self._joined(whole, optional)
