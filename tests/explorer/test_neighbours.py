"""Nearest and most fragile examples against plain computation."""

from __future__ import annotations

import numpy as np
import pytest

from statewise.errors import ArgumentError
from statewise.explorer import Explored, Explorer, Setting
from statewise.explorer.neighbours import Neighbours, spread

TEXTS = {"automaton": "1100", "texts": "the film was awful", "speaker": "the cat", "tagger": "Anna saw Otto"}
EVERY_KIND = pytest.mark.parametrize("name", TEXTS)


@EVERY_KIND
@pytest.mark.parametrize("by", ["cosine", "euclidean"])
def test_the_nearest_examples_are_the_nearest(explorers: dict[str, Explorer], name: str, by: str) -> None:
    run = explorers[name].runs[0]
    subject = run.subject

    def summary(tokens: tuple[str, ...]) -> np.ndarray:
        followed = subject.follow([tokens], Setting())
        top = followed.top[0].double().numpy()
        return np.asarray(top.mean(0) if name == "tagger" else top[-1])

    own = summary(subject.read(TEXTS[name]))
    others = [summary(example.tokens) for example in run.examples]
    if by == "cosine":
        truth = [1 - own @ other / np.linalg.norm(own) / np.linalg.norm(other) for other in others]
    else:
        truth = [float(np.linalg.norm(own - other)) for other in others]
    told = explorers[name].nearest(0, TEXTS[name], by=by)
    assert told["of"] == len(run.examples)
    assert [each["distance"] for each in told["examples"]] == pytest.approx(sorted(truth)[:10], abs=2e-4)
    best = run.examples[int(np.argmin(truth))]
    assert told["examples"][0]["distance"] == pytest.approx(min(truth), abs=2e-4)
    assert subject.text(best.tokens) in [each["text"] for each in told["examples"]]


def test_an_example_is_nearest_to_itself(explorers: dict[str, Explorer]) -> None:
    for name, explorer in explorers.items():
        run = explorer.runs[0]
        text = run.subject.text(run.examples[5].tokens)
        told = explorer.nearest(0, text, by="euclidean")
        assert told["examples"][0]["distance"] == pytest.approx(0, abs=1e-4), name
        assert text in [each["text"] for each in told["examples"] if each["distance"] < 1e-3]


@EVERY_KIND
def test_what_bears_noise_worst_loses_most(explorers: dict[str, Explorer], name: str) -> None:
    """All examples have one length here, so that they are read in one batch, as the draws of plain computation are."""
    run = explorers[name].runs[0]
    lengths = [len(example.tokens) for example in run.examples]
    usual = max(set(lengths), key=lengths.count)
    examples = [example for example in run.examples if len(example.tokens) == usual]
    setting = Setting(gamma=0.7, draws=3, seed=2)
    found = Neighbours.of(run.subject, examples).fragile(setting)
    rows = [example.tokens for example in examples]
    calm = run.subject.quality(run.subject.follow(rows, setting), examples)
    noisy = run.subject.quality(run.subject.follow(rows * 3, setting, noisy=True), examples * 3).view(3, -1)
    losses = (calm - noisy.mean(0)).double().numpy()
    assert (found["asked"], found["of"], found["draws"]) == (len(examples), len(examples), 3)
    listed = [each["loss"] for each in found["examples"]]
    assert listed == pytest.approx(sorted(losses, reverse=True)[:10], abs=1e-4)
    worst = examples[int(losses.argmax())]
    assert found["examples"][0]["text"] == run.subject.text(worst.tokens)
    assert all(0 <= each["flips"] <= 1 for each in found["examples"])


def test_answers_that_cost_much_are_remembered(explorers: dict[str, Explorer]) -> None:
    setting = Setting(gamma=0.3)
    assert explorers["texts"].fragile(0, setting) is explorers["texts"].fragile(0, setting)


def test_without_noise_or_data_it_is_said_why(explorers: dict[str, Explorer]) -> None:
    with pytest.raises(ArgumentError, match=r"gamma.*above 0"):
        explorers["texts"].fragile(0, Setting())
    bare = Explorer([Explored(subject=explorers["lstm"].runs[0].subject, why_none="The file has gone.")])
    with pytest.raises(ArgumentError, match="The file has gone"):
        bare.nearest(0, "01", by="cosine")
    with pytest.raises(ArgumentError, match="The file has gone"):
        bare.fragile(0, Setting(gamma=1.0))


def test_places_are_spread_evenly() -> None:
    assert spread(5, 5) == [0, 1, 2, 3, 4]
    assert spread(0, 0) == []
    assert spread(7, 2) == [0, 3]


def test_one_or_two_runs(explorers: dict[str, Explorer]) -> None:
    with pytest.raises(ArgumentError, match="one, or two"):
        Explorer([])
