"""Single edits of an input, and which of them disturb a network most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from statewise.explorer.disturbance import Setting
from statewise.explorer.numbers import number
from statewise.explorer.subjects import Followed, Row, Subject
from statewise.explorer.tagging import TaggerSubject

MOST_EDITS = 2_000
LISTED = 12
ORDERS = ("prediction", "state")


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One change of one token.

    Args:
        kind: "substitute", "delete" or "insert".
        at: the place, counted from 0; of an insertion the place that the new token gets.
        token: the new one; empty for a deletion.

    >>> Edit(kind="insert", at=1, token="b").applied(("a", "c"))
    ('a', 'b', 'c')
    """

    kind: str
    at: int
    token: str = ""

    def applied(self, tokens: Row) -> Row:
        """The tokens after the edit.

        Args:
            tokens: before it.
        """
        new = () if self.kind == "delete" else (self.token,)
        return (*tokens[: self.at], *new, *tokens[self.at + (self.kind != "insert") :])

    def kept(self, length: int) -> tuple[list[int], list[int]]:
        """The places of the tokens that stay what they are, before the edit and after it.

        Args:
            length: of the input before the edit.

        >>> Edit(kind="delete", at=0).kept(3)
        ([1, 2], [0, 1])
        """
        before = [place for place in range(length) if self.kind == "insert" or place != self.at]
        shift = {"insert": 1, "delete": -1, "substitute": 0}[self.kind]
        return before, [place + (shift if place >= self.at else 0) for place in before]


@dataclass(frozen=True, kw_only=True, eq=False)
class Searched:
    """What a search for edits found.

    Args:
        edits: that were tried.
        possible: how many there are.
        shifts: how far the prediction moved, in total variation: 0 for not at all, 1 for entirely.
        moves: how far the state moved, in euclidean distance.
        changed: whether the likeliest answer is another.
        answers: after each edit.
        rows: the tokens after each edit.
    """

    edits: tuple[Edit, ...]
    possible: int
    shifts: Tensor
    moves: Tensor
    changed: tuple[bool, ...]
    answers: tuple[Row, ...]
    rows: tuple[Row, ...]

    def ranked(self, subject: Subject, by: str) -> list[dict[str, Any]]:
        """The edits that disturb most, for the page.

        Args:
            subject: the network.
            by: "prediction" (those that change the answer first) or "state".
        """
        key = self.shifts + torch.tensor(self.changed, dtype=torch.double) if by == "prediction" else self.moves
        order = torch.sort(key, descending=True, stable=True).indices[:LISTED].tolist()
        return [
            {
                "kind": self.edits[place].kind,
                "at": self.edits[place].at,
                "token": self.edits[place].token,
                "text": subject.text(self.rows[place]),
                "answer": list(self.answers[place]),
                "changed": self.changed[place],
                "shift": number(float(self.shifts[place])),
                "moved": number(float(self.moves[place])),
            }
            for place in order
        ]


def single_edits(tokens: Row, candidates: Row, *, most_tokens: int) -> Iterator[Edit]:
    """All edits of one token: deletions first, then place by place substitutions and insertions.

    Args:
        tokens: of the input.
        candidates: that may come in.
        most_tokens: that an input may have.
    """
    # Of equal tokens in a row it does not matter which one goes.
    yield from (Edit(kind="delete", at=at) for at in range(len(tokens)) if at == 0 or tokens[at] != tokens[at - 1])
    for at in range(len(tokens) + 1):
        for token in candidates:
            if at < len(tokens) and token != tokens[at]:
                yield Edit(kind="substitute", at=at, token=token)
            # Before an equal token a new one gives the same input as after it.
            if len(tokens) < most_tokens and (at == len(tokens) or token != tokens[at]):
                yield Edit(kind="insert", at=at, token=token)


def count_edits(tokens: Row, alphabet: Row, *, most_tokens: int) -> int:
    """How many edits :func:`single_edits` would give for a whole alphabet.

    Args:
        tokens: of the input.
        alphabet: that may come in.
        most_tokens: that an input may have.

    >>> count_edits(("a", "a"), ("a", "b"), most_tokens=9), len([*single_edits(("a", "a"), ("a", "b"), most_tokens=9)])
    (7, 7)
    """
    known = set(alphabet)
    there = sum(token in known for token in tokens)
    deletions = sum(1 for edit in single_edits(tokens, (), most_tokens=most_tokens))
    insertions = (len(tokens) + 1) * len(alphabet) - there if len(tokens) < most_tokens else 0
    return deletions + len(tokens) * len(alphabet) - there + insertions


def candidates_of(subject: Subject, length: int, budget: int) -> Row:
    """The tokens that a search tries: all, or of a large vocabulary its most frequent ones and a spread of the rest.

    Args:
        subject: the network; vocabularies begin with what is frequent.
        length: of the input.
        budget: how many edits may be tried.
    """
    room = max(2, (budget - length) // (2 * length + 1))
    known = subject.alphabet
    if len(known) <= room:
        return known
    first = room // 2
    rest = np.linspace(first, len(known) - 1, room - first).round().astype(int)
    return known[:first] + tuple(known[place] for place in dict.fromkeys(rest.tolist()))


def search_edits(subject: Subject, tokens: Row, setting: Setting) -> Searched:
    """Try single edits, as many as a request may cost.

    Args:
        subject: the network.
        tokens: of the input.
        setting: temperature; noise is left out.
    """
    budget = min(MOST_EDITS, subject.affordable(len(tokens) + 2))
    candidates = candidates_of(subject, len(tokens), budget)
    limits = {"most_tokens": subject.most_tokens}
    found = ((edit, edit.applied(tokens)) for edit in single_edits(tokens, candidates, **limits))
    legal = ((edit, row) for edit, row in found if row or subject.start is not None)
    tried = tuple(islice(legal, budget))
    before = subject.follow([tokens], setting)
    if not tried:
        empty = torch.zeros(0, dtype=torch.double)
        return Searched(edits=(), possible=0, shifts=empty, moves=empty, changed=(), answers=(), rows=())
    rows = [row for _, row in tried]
    after = subject.follow(rows, setting)
    edits = tuple(edit for edit, _ in tried)
    shifts, changed = _shifts(subject, before, after, edits, len(tokens))
    return Searched(
        edits=edits,
        possible=count_edits(tokens, subject.alphabet, **limits),
        shifts=shifts,
        moves=(subject.summary(after) - subject.summary(before)).double().norm(dim=1),
        changed=changed,
        answers=tuple(subject.answers(after)),
        rows=tuple(rows),
    )


def _shifts(
    subject: Subject, before: Followed, after: Followed, edits: tuple[Edit, ...], length: int
) -> tuple[Tensor, tuple[bool, ...]]:
    """How far each edit moves the prediction; of a tagger that of the word whose tag moves most, of those that stay."""
    if not isinstance(subject, TaggerSubject):
        old, new = before.at_the_end(before.shares), after.at_the_end(after.shares)
        answer = subject.answers(before)[0]
        return (new - old).abs().sum(1) / 2, tuple(other != answer for other in subject.answers(after))
    shifts, flags = torch.zeros(len(edits), dtype=torch.double), list[bool]()
    for place, edit in enumerate(edits):
        mine, theirs = edit.kept(length)
        old, new = before.shares[0, mine], after.shares[place, theirs]
        shifts[place] = ((new - old).abs().sum(1) / 2).max() if mine else 0.0
        flags.append(not torch.equal(before.best[0, mine], after.best[place, theirs]))
    return shifts, tuple(flags)
