"""A network with many outcomes takes no more memory at once than one with few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from statewise.errors import ArgumentError
from statewise.explorer import Explorer, Setting, Subject
from statewise.explorer.edits import search_edits
from statewise.explorer.neighbours import Neighbours
from statewise.explorer.tracing import trace_of

ROOM = 30_000


@pytest.fixture
def kept(explorers: dict[str, Explorer], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many probabilities each pass of the language model keeps, which may be no more than a few."""
    found = list[int]()
    subject = explorers["speaker"].runs[0].subject
    follow = type(subject).follow

    def followed(self: Subject, rows: Sequence[Any], setting: Setting, *, noisy: bool = False) -> Any:
        found.append(len(rows) * (1 + max(map(len, rows))) * len(self.outcomes))
        return follow(self, rows, setting, noisy=noisy)

    monkeypatch.setattr("statewise.explorer.subjects.ROOM", ROOM)
    monkeypatch.setattr(type(subject), "follow", followed)
    return found


def test_examples_are_read_by_so_many_as_there_is_room_for(explorers: dict[str, Explorer], kept: list[int]) -> None:
    run = explorers["speaker"].runs[0]
    whole = sum(1 + len(example.tokens) for example in run.examples) * len(run.subject.outcomes)
    assert whole > 2 * ROOM, "else the test says nothing"
    neighbours = Neighbours.of(run.subject, run.examples)
    assert len(neighbours.answers) == len(run.examples)
    neighbours.fragile(Setting(gamma=0.5, draws=4))
    search_edits(run.subject, run.examples[0].tokens[:3], Setting())
    assert max(kept) <= ROOM


def test_examples_have_the_same_neighbours_whatever_room_there_is(
    explorers: dict[str, Explorer], kept: list[int]
) -> None:
    explorer = explorers["speaker"]
    run, whole = explorer.runs[0], explorer._neighbours[0]
    assert whole is not None
    assert Neighbours.of(run.subject, run.examples).answers == whole.answers


def test_more_draws_than_there_is_room_for_are_refused(explorers: dict[str, Explorer], kept: list[int]) -> None:
    run = explorers["speaker"].runs[0]
    tokens = max((example.tokens for example in run.examples), key=len)
    with pytest.raises(ArgumentError, match=r"draws: got 32, wanted at most \d+ for \d+ tokens"):
        trace_of(run.subject, tokens, Setting(gamma=0.5, draws=32))
