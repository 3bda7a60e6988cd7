"""Balanced parentheses among letters, with depth and length under control (Wang & Niepert 2019, Table 1)."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_lowercase

import numpy as np
import numpy.typing as npt

from statewise.data import edits
from statewise.data.dyck import draw_paths
from statewise.data.examples import Sequences
from statewise.data.languages import Language
from statewise.data.task import TaskSets
from statewise.errors import ArgumentError, DataError

LETTERS, OPEN, CLOSE = 26, 26, 27
SYMBOLS = (*ascii_lowercase, "(", ")")

#: All strings and those accepted, to train and to choose on: Table 9 of the paper.
_SIZES: Mapping[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "large": ((22286, 13025), (6704, 3582)),
    "small": ((1008, 601), (268, 142)),
}
#: The six test sets of Table 1: depths and the greatest length.
_TESTS: Mapping[str, tuple[tuple[int, int], int]] = {
    "d 1-10, l 100": ((1, 10), 100),
    "d 10-20, l 100": ((10, 20), 100),
    "d 10-20, l 200": ((10, 20), 200),
    "d 5, l 200": ((5, 5), 200),
    "d 10, l 200": ((10, 10), 200),
    "d 20, l 1000": ((20, 20), 1000),
}
_MOST_ROUNDS = 300  # without a new word, before the demand is called impossible
_ROWS = 4096  # drawn at once, so that tables of long words stay small


def balanced(word: str) -> bool:
    """Whether no parenthesis closes before one opens, and none stays open; letters do not count.

    >>> balanced("a(b()c)"), balanced(")("), balanced("")
    (True, False, True)
    """
    height = 0
    for sign in word:
        height += (sign == "(") - (sign == ")")
        if height < 0:
            return False
    return height == 0


def parentheses_language() -> Language:
    """The balanced words over a to z and two parentheses; no finite automaton has it."""
    return Language.predicate(balanced, SYMBOLS, name="balanced parentheses")


def parentheses(
    count: int,
    *,
    depth: tuple[int, int] = (1, 5),
    max_length: int = 100,
    accepted: int | None = None,
    seed: int = 0,
    apart_from: Sequences | None = None,
) -> Sequences:
    """Different words, balanced ones of given depth and near misses, the lengths of both after the same law.

    A balanced word has a depth D, uniform in the range; a length, uniform from 2 D to the greatest; a number of pairs,
    uniform from D to 3 D as far as there is room; a Dyck path of height exactly D, uniform among those; letters around
    it. A near miss has the depth and the length of a balanced word of the set before one edit: a parenthesis deleted,
    inserted, turned round, replaced by a letter, or an opening one exchanged with a closing one.

    Args:
        count: how many words.
        depth: the least and the greatest nesting of balanced words.
        max_length: of every word; at least twice the greatest depth.
        accepted: how many words are balanced; None for half of them.
        seed: what the draw depends on.
        apart_from: words that must not occur.

    >>> words = parentheses(6, depth=(1, 2), max_length=8, seed=1)
    >>> words.counts.tolist(), all(balanced(words.text(i)) == bool(words.labels[i]) for i in range(6))
    ([3, 3], True)
    """
    low, high = depth
    if not 1 <= low <= high or max_length < 2 * high:
        got, wanted = f"depth {low} to {high}, length {max_length}", "1 <= least <= greatest depth <= length / 2"
        raise ArgumentError(where="parentheses", got=got, wanted=wanted)
    good = (count + 1) // 2 if accepted is None else accepted
    if not 1 <= good <= count:
        raise ArgumentError(where="parentheses.accepted", got=good, wanted=f"1 to {count}, the number of words")
    maker = _Maker(seed, max_length, set() if apart_from is None else set(apart_from.keys()))
    depths, lengths = maker.positives(good, low, high)
    # More near misses than balanced words take the shapes of these again.
    rounds = [maker.generator.permutation(good) for _ in range(-(-count // good))]
    chosen = np.concatenate(rounds)[: count - good]
    maker.negatives(depths[chosen], lengths[chosen])
    return maker.shuffled()


def parentheses_sets(size: str = "large", *, seed: int, max_length: int = 100) -> TaskSets[Sequences]:
    """The sets of Table 1 of Wang & Niepert (2019): depth 1 to 5 to train, 6 to 10 to choose, six sets to report.

    No word occurs in two of train, valid and tests; two tests may share some. Each test has 500 balanced words of 1000.

    Args:
        size: ``"large"`` for 22286 words, of which 13025 are balanced; ``"small"`` for 1008 (601).
        seed: what the draw depends on.
        max_length: of the words to train and choose on, which the paper does not tell.
    """
    if size not in _SIZES:
        raise ArgumentError(where="parentheses_sets.size", got=size, wanted="'large' or 'small'")
    seeds = np.random.SeedSequence(seed).generate_state(2 + len(_TESTS)).tolist()
    (train, good), (valid, valid_good) = _SIZES[size]
    first = parentheses(train, accepted=good, depth=(1, 5), max_length=max_length, seed=seeds[0])
    second = parentheses(
        valid, accepted=valid_good, depth=(6, 10), max_length=max_length, seed=seeds[1], apart_from=first
    )
    seen = Sequences.join([first, second])
    tests = {
        name: parentheses(1000, depth=depth, max_length=length, seed=part, apart_from=seen)
        for (name, (depth, length)), part in zip(_TESTS.items(), seeds[2:], strict=True)
    }
    return TaskSets(first, second, tests)


class _Maker:
    """Draws words round after round, and keeps those that are new."""

    def __init__(self, seed: int, max_length: int, seen: set[bytes]) -> None:
        self.generator = np.random.Generator(np.random.PCG64(seed))
        self._max_length, self._seen = max_length, seen
        self._kept: list[Sequences] = []

    def positives(self, count: int, low: int, high: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Keep so many balanced words; returns their depths and lengths."""
        shapes, missing, idle = [], count, 0
        while missing:
            depths = self.generator.integers(low, high, size=min(missing, _ROWS), endpoint=True)
            lengths = self.generator.integers(2 * depths, self._max_length, endpoint=True)
            new = self._keep(_draw(depths, lengths, self.generator), lengths, label=1)
            shapes.append(np.stack([depths[new], lengths[new]]))
            missing -= len(new)
            idle = 0 if len(new) else idle + 1
            self._give_up(idle, "balanced words", count)
        depths, lengths = np.concatenate(shapes, axis=1)
        return depths, lengths

    def negatives(self, depths: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> None:
        """Keep a near miss for each of these shapes."""
        missing, idle = np.arange(len(depths)), 0
        while len(missing):
            now = missing[:_ROWS]
            tokens = _near_misses(depths[now], lengths[now], self.generator)
            wrong = np.flatnonzero(~_balanced(tokens, lengths[now]))
            new = wrong[self._keep(tokens[wrong], lengths[now][wrong], label=0)]
            missing = np.concatenate([missing[len(now) :], np.delete(now, new)])
            idle = 0 if len(new) else idle + 1
            self._give_up(idle, "near misses", len(depths))

    def shuffled(self) -> Sequences:
        whole = Sequences.join(self._kept)
        return whole.select(self.generator.permutation(len(whole)))

    def _keep(self, tokens: edits.Table, lengths: npt.NDArray[np.int64], *, label: int) -> npt.NDArray[np.int64]:
        """Keep the words that were not seen before; returns their places."""
        words = Sequences.from_padded(tokens, lengths, np.full(len(lengths), label), symbols=SYMBOLS)
        keys, new = words.keys(), []
        for place, key in enumerate(keys):
            if key not in self._seen:
                self._seen.add(key)
                new.append(place)
        places = np.array(new, dtype=np.int64)
        self._kept.append(words.select(places))
        return places

    def _give_up(self, idle: int, what: str, count: int) -> None:
        if idle > _MOST_ROUNDS:
            remedy = "Ask for fewer words, or for longer ones."
            wanted = f"{count} different {what} of length {self._max_length} or less"
            raise DataError(where="parentheses", got="too few that there are", wanted=wanted, remedy=remedy)


def _draw(depths: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], generator: np.random.Generator) -> edits.Table:
    """Balanced words of given depths and lengths, with letters behind their ends."""
    columns = int(lengths.max(initial=0))
    tokens = generator.integers(LETTERS, size=(len(depths), columns))
    pairs = generator.integers(depths, np.minimum(lengths // 2, 3 * depths), endpoint=True)
    # Of the places of a word those with the least of some random numbers hold its parentheses.
    keys = np.where(np.arange(columns) < lengths[:, None], generator.random(tokens.shape), 2.0)
    ranks = np.argsort(np.argsort(keys, axis=1), axis=1)
    held = ranks < 2 * pairs[:, None]
    for depth in np.unique(depths):
        rows = np.flatnonzero(depths == depth)
        steps = draw_paths(pairs[rows], int(depth), generator)
        part = tokens[rows]
        part[held[rows]] = np.where(steps[steps != 0] > 0, OPEN, CLOSE)
        tokens[rows] = part
    return tokens


def _near_misses(
    depths: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], generator: np.random.Generator
) -> edits.Table:
    """Balanced words after one edit, of given lengths then; a few of them are still balanced."""
    kinds = generator.integers(5, size=len(depths))
    # A word cannot be made longer than it must be for its depth: such a one is turned, replaced or swapped.
    kinds = np.where((kinds == 1) & (lengths - 1 < 2 * depths), generator.integers(2, 5, size=len(depths)), kinds)
    before = lengths + (kinds == 0) - (kinds == 1)
    tokens = np.pad(_draw(depths, before, generator), ((0, 0), (0, 1)))
    inside = np.arange(tokens.shape[1]) < before[:, None]
    opens, closes = inside & (tokens == OPEN), inside & (tokens == CLOSE)
    at, opening, closing = (edits.choose(mask, generator) for mask in (opens | closes, opens, closes))
    anywhere = generator.integers(before, endpoint=True)
    letters, signs = generator.integers(LETTERS, size=len(at)), generator.integers(OPEN, CLOSE + 1, size=len(at))
    turned = OPEN + CLOSE - tokens[np.arange(len(at)), at]
    edited = [
        edits.delete(tokens, at),
        edits.insert(tokens, anywhere, signs),
        edits.put(tokens, at, turned),
        edits.put(tokens, at, letters),
        edits.swap(tokens, opening, closing),
    ]
    return np.stack(edited)[kinds, np.arange(len(at))]


def _balanced(tokens: edits.Table, lengths: npt.NDArray[np.int64]) -> edits.Mask:
    inside = np.arange(tokens.shape[1]) < lengths[:, None]
    heights = np.cumsum(inside * ((tokens == OPEN).astype(np.int64) - (tokens == CLOSE)), axis=1)
    found: edits.Mask = (heights.min(axis=1, initial=0) >= 0) & (heights[:, -1] == 0)
    return found
