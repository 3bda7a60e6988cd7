"""The search for edits against plain computation, and its bounds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from statewise.explorer import Explorer, Setting
from statewise.explorer.classifying import ClassifierSubject
from statewise.explorer.edits import MOST_EDITS, Edit, candidates_of, count_edits, search_edits, single_edits
from statewise.explorer.tagging import TaggerSubject


def neighbours(word: str, alphabet: str) -> set[str]:
    """All words at one edit from another, by the definition."""
    cuts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    found = {left + right[1:] for left, right in cuts if right}
    found |= {left + sign + right[1:] for left, right in cuts if right for sign in alphabet}
    found |= {left + sign + right for left, right in cuts for sign in alphabet}
    return found - {word}


@pytest.mark.parametrize("word", ["", "0", "1100", "0101101"])
def test_every_word_at_one_edit_is_tried_once(word: str) -> None:
    rows = ["".join(edit.applied(tuple(word))) for edit in single_edits(tuple(word), ("0", "1"), most_tokens=99)]
    assert set(rows) == neighbours(word, "01")
    assert len(rows) == len(set(rows)) == count_edits(tuple(word), ("0", "1"), most_tokens=99)


def test_no_edit_makes_an_input_too_long() -> None:
    rows = [edit.applied(("0", "1")) for edit in single_edits(("0", "1"), ("0", "1"), most_tokens=2)]
    assert max(map(len, rows)) == 2
    assert len(rows) == count_edits(("0", "1"), ("0", "1"), most_tokens=2)


@pytest.mark.parametrize("name", ["automaton", "lstm"])
def test_the_ranking_is_that_of_plain_computation(explorers: dict[str, Explorer], name: str) -> None:
    subject = explorers[name].runs[0].subject
    assert isinstance(subject, ClassifierSubject)
    word = "1100100"
    told = explorers[name].disturb(0, word, Setting(), by="prediction")
    others = sorted(neighbours(word, "01"))
    shares = subject.model.probabilities([word, *others])
    shifts = dict(zip(others, np.abs(shares[1:] - shares[0]).sum(1) / 2, strict=True))
    changed = {other for other, row in zip(others, shares[1:], strict=True) if row.argmax() != shares[0].argmax()}
    assert told["tried"] == told["possible"] == len(others)
    assert told["changing"] == len(changed)
    for edit in told["edits"]:
        assert edit["shift"] == pytest.approx(shifts[edit["text"]], abs=2e-4)
        assert edit["changed"] == (edit["text"] in changed)
    listed = [shifts[edit["text"]] + edit["changed"] for edit in told["edits"]]
    truth = sorted((shift + (other in changed) for other, shift in shifts.items()), reverse=True)
    assert listed == pytest.approx(truth[: len(listed)], abs=1e-4)


def test_edits_ranked_by_the_state_move_it_most(explorers: dict[str, Explorer]) -> None:
    subject = explorers["lstm"].runs[0].subject
    assert isinstance(subject, ClassifierSubject)
    told = explorers["lstm"].disturb(0, "0110", Setting(), by="state")

    def end(word: str) -> torch.Tensor:
        ids = torch.tensor([[int(sign) for sign in word]])
        return subject.model.states(ids, collect=("states",)).states[-1][0, -1]

    truth = sorted((float((end(other) - end("0110")).norm()) for other in neighbours("0110", "01")), reverse=True)
    assert [edit["moved"] for edit in told["edits"]] == pytest.approx(truth[: len(told["edits"])], abs=2e-4)


def test_a_tagger_is_compared_word_by_word(explorers: dict[str, Explorer]) -> None:
    subject, example = explorers["tagger"].runs[0].subject, explorers["tagger"].runs[0].examples[0]
    assert isinstance(subject, TaggerSubject)
    found = search_edits(subject, example.tokens, Setting())
    words = list(example.tokens)
    with torch.no_grad():
        before = subject.tagger.probabilities(subject.tagger.read([words]))[:, 0]
    for place in range(0, len(found.edits), max(1, len(found.edits) // 7)):
        edit, row = found.edits[place], list(found.rows[place])
        with torch.no_grad():
            after = subject.tagger.probabilities(subject.tagger.read([row]))[:, 0]
        mine, theirs = edit.kept(len(words))
        assert [words[at] for at in mine] == [row[at] for at in theirs]
        truth = float((after[theirs] - before[mine]).abs().sum(1).max() / 2) if mine else 0.0
        assert float(found.shifts[place]) == pytest.approx(truth, abs=1e-4)


def test_a_large_vocabulary_is_searched_within_bounds(explorers: dict[str, Explorer]) -> None:
    for name in ("texts", "speaker", "tagger"):
        subject, tokens = explorers[name].runs[0].subject, explorers[name].runs[0].examples[0].tokens
        found = search_edits(subject, tokens, Setting())
        assert 0 < len(found.edits) <= min(MOST_EDITS, found.possible)
        assert len(found.edits) == len(found.changed) == len(found.rows) == len(found.shifts)
    few = candidates_of(subject, 10, 200)
    assert len(few) == (200 - 10) // 21
    assert few[0] == subject.alphabet[0]
    assert few[-1] == subject.alphabet[-1]


def test_what_an_edit_keeps() -> None:
    assert Edit(kind="insert", at=1, token="x").kept(2) == ([0, 1], [0, 2])
    assert Edit(kind="substitute", at=1, token="x").kept(3) == ([0, 2], [0, 2])
    assert Edit(kind="delete", at=1).applied(("a", "b", "c")) == ("a", "c")


def test_the_empty_word_has_edits_too(explorers: dict[str, Explorer]) -> None:
    told = explorers["automaton"].disturb(0, "", Setting(), by="prediction")
    assert {edit["text"] for edit in told["edits"]} == {"0", "1"}
