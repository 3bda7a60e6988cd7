"""The inputs of a run's data that are nearest to what was typed, and those that bear noise worst."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.explorer.disturbance import Setting
from statewise.explorer.numbers import number
from statewise.explorer.subjects import Example, Row, Subject

LISTED = 10
DISTANCES = ("cosine", "euclidean")
BATCH = 128
FRAGILE_DRAWS = 8  # at most, since every example is read so often
MOST_ROWS = 2_048  # examples times draws


@dataclass(frozen=True, kw_only=True, eq=False)
class Neighbours:
    """The examples of a run, each with the state that it leaves behind.

    Args:
        subject: the network.
        examples: of its data; those of like lengths need not stand together.
        summaries: a vector for each.
        answers: what the network predicts for each.
    """

    subject: Subject
    examples: tuple[Example, ...]
    summaries: Float[Tensor, "examples width"]
    answers: tuple[Row, ...]

    @classmethod
    def of(cls, subject: Subject, examples: Sequence[Example]) -> Neighbours:
        """Let a network read all examples once.

        Args:
            subject: the network.
            examples: at least one.
        """
        order = sorted(range(len(examples)), key=lambda place: len(examples[place].tokens))
        vectors: list[Tensor] = [torch.empty(0)] * len(examples)
        answers: list[Row] = [()] * len(examples)
        for places in _batches(order, [len(example.tokens) for example in examples], subject):
            followed = subject.follow([examples[place].tokens for place in places], Setting())
            summary, given = subject.summary(followed), subject.answers(followed)
            for at, place in enumerate(places):
                vectors[place], answers[place] = summary[at].clone(), given[at]
        return cls(subject=subject, examples=tuple(examples), summaries=torch.stack(vectors), answers=tuple(answers))

    def nearest(self, tokens: Row, by: str) -> list[dict[str, Any]]:
        """The examples whose states are nearest to that of an input, both as the network was trained.

        Args:
            tokens: of the input.
            by: "cosine" (1 less the cosine of the angle) or "euclidean".
        """
        own = self.subject.summary(self.subject.follow([tokens], Setting())).double()
        others = self.summaries.double()
        if by == "cosine":
            lengths = (others.norm(dim=1) * own.norm(dim=1)).clamp(min=1e-12)
            distances = 1 - (others @ own[0]) / lengths
        else:
            distances = (others - own).norm(dim=1)
        order = torch.sort(distances, stable=True).indices[:LISTED].tolist()
        return [{**self._told(place), "distance": number(float(distances[place]))} for place in order]

    def fragile(self, setting: Setting) -> dict[str, Any]:
        """The examples whose right answer loses most probability under noise, among as many as a request may cost.

        Args:
            setting: temperature and noise.
        """
        draws = min(setting.draws, FRAGILE_DRAWS)
        longest = max(len(example.tokens) for example in self.examples) + 1
        count = min(len(self.examples), max(1, self.subject.affordable(longest) // draws), MOST_ROWS // draws)
        asked = spread(len(self.examples), count)
        losses, flips = torch.zeros(count, dtype=torch.double), torch.zeros(count, dtype=torch.double)
        sizes = sorted(range(count), key=lambda at: len(self.examples[asked[at]].tokens))
        calm = torch.zeros(count, dtype=torch.double)
        lengths = [len(self.examples[place].tokens) for place in asked]
        for places in _batches(sizes, lengths, self.subject, draws=draws):
            examples = [self.examples[asked[at]] for at in places]
            rows = [example.tokens for example in examples]
            before = self.subject.follow(rows, setting)
            right, plainly = self.subject.quality(before, examples).double(), self.subject.answers(before)
            after = self.subject.follow(rows * draws, setting, noisy=True)
            noisy = self.subject.quality(after, examples * draws).double().view(draws, -1)
            answers = self.subject.answers(after)
            other = [answer != plainly[at % len(rows)] for at, answer in enumerate(answers)]
            calm[places], losses[places] = right, right - noisy.mean(0)
            flips[places] = torch.tensor(other, dtype=torch.double).view(draws, -1).mean(0)
        order = torch.sort(losses, descending=True, stable=True).indices[:LISTED].tolist()
        listed = [
            {
                **self._told(asked[at]),
                "before": number(float(calm[at])),
                "loss": number(float(losses[at])),
                "flips": number(float(flips[at])),
            }
            for at in order
        ]
        return {"asked": count, "of": len(self.examples), "draws": draws, "examples": listed}

    def _told(self, place: int) -> dict[str, Any]:
        example = self.examples[place]
        return {
            "text": self.subject.text(example.tokens),
            "part": example.part,
            "right": list(example.answer),
            "answer": list(self.answers[place]),
        }


def _batches(order: Sequence[int], lengths: Sequence[int], subject: Subject, *, draws: int = 1) -> Iterator[list[int]]:
    """Places in their order, by so many as are read at once; the longest of a batch comes last."""
    batch: list[int] = []
    for place in order:
        if batch and len(batch) >= min(BATCH, subject.fitting(lengths[place] + 1) // draws):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def spread(size: int, count: int) -> list[int]:
    """Places that are spread evenly over a list, the first among them.

    Args:
        size: of the list.
        count: how many, at most ``size``.

    >>> spread(10, 4)
    [0, 2, 5, 7]
    """
    return [place * size // count for place in range(count)]
