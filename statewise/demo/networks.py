"""The networks of the demonstration, and how each is trained."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from statewise.demo.tagging import CLASSES, FEATURES, LENGTH, Score, Tagging, score_of
from statewise.engine import Plan
from statewise.layers import LSTM
from statewise.mixup import InputMixup, Mixup
from statewise.transforms import Centroids, Noise, Transform, Zoneout

STEPS = 400
HIDDEN = 32
LOOKS = 40  # how often the test sequences are looked at while a network trains


@dataclass(frozen=True)
class Recipe:
    """What is done to a network while it trains.

    Args:
        transforms: of the state.
        mixup: of pairs of sequences; None for none.
    """

    transforms: tuple[Transform, ...] = ()
    mixup: Mixup | None = None


#: The strengths were set by hand, by the scores on held-out sequences of another seed than those that are shown.
NETWORKS: Mapping[str, Recipe] = {
    "LSTM": Recipe(),
    "LSTM + noise": Recipe((Noise("gaussian", 2.0),)),
    "LSTM + mixup": Recipe(mixup=InputMixup(alpha=1.0)),
    "LSTM + zoneout": Recipe((Zoneout(0.5, memory=0.7),)),
    "LSTM + noise + centroids": Recipe((Noise("gaussian", 2.0), Centroids(5))),
}


class Look(NamedTuple):
    """The test NLL of a network that is still training."""

    step: int
    nll: float


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A trained network's scores, its test NLL along the way, and what it cost."""

    name: str
    train: Score
    test: Score
    curve: tuple[Look, ...]
    plan: Plan
    seconds: float = field(compare=False)

    @property
    def best(self) -> Look:
        """The look at the lowest test NLL: where someone who knew the test sequences would have stopped."""
        return min(self.curve, key=lambda look: look.nll)


def train(
    name: str, training: Tagging, test: Tagging, *, seed: int, steps: int, show: Callable[[int, float], None]
) -> Outcome:
    """Train one of the networks on all sequences at once.

    Args:
        name: a key of ``NETWORKS``.
        training: what it learns from.
        test: what it is scored on; nothing is chosen by this score.
        seed: of the weights and the noise.
        steps: of Adam, at rate 0.01.
        show: is told the step and the test NLL at every look.
    """
    generator = torch.Generator().manual_seed(seed)
    head = nn.utils.skip_init(nn.Linear, HIDDEN, CLASSES)  # else it would draw from torch's global generator
    for parameter in head.parameters():
        nn.init.uniform_(parameter, -(HIDDEN**-0.5), HIDDEN**-0.5, generator=generator)
    lstm = LSTM(FEATURES, HIDDEN, transforms=NETWORKS[name].transforms, generator=generator)
    optimiser = torch.optim.Adam([*lstm.parameters(), *head.parameters()], lr=0.01)
    curve: list[Look] = []
    seconds = 0.0
    for step in range(1, steps + 1):
        started = time.perf_counter()
        optimiser.zero_grad()
        _loss(lstm, head, NETWORKS[name].mixup, training, generator).backward()
        optimiser.step()
        seconds += time.perf_counter() - started
        if step * LOOKS // steps > (step - 1) * LOOKS // steps:
            curve.append(Look(step, _evaluate(lstm, head, test).nll))
            show(*curve[-1])
    return Outcome(
        name=name,
        train=_evaluate(lstm, head, training),
        test=_evaluate(lstm, head, test),
        curve=tuple(curve),
        plan=lstm.plan(training.inputs),
        seconds=seconds,
    )


def _loss(
    lstm: LSTM, head: nn.Module, mixup: Mixup | None, data: Tagging, generator: torch.Generator
) -> Float[Tensor, ""]:
    """The mean loss of a label; of pairs of sequences, of their mixed labels."""
    if mixup is None:
        states, _ = lstm(data.inputs, generator=generator)
        return cross_entropy(head(states).flatten(0, 1), data.labels.flatten())
    lengths = torch.full((data.labels.shape[1],), LENGTH)
    states, pairs = mixup(lstm, data.inputs, lengths=lengths, generator=generator)
    return pairs.cross_entropy(head(states), data.labels, reduction="token")


@torch.no_grad()
def _evaluate(lstm: LSTM, head: nn.Module, data: Tagging) -> Score:
    lstm.eval()
    score = score_of(head(lstm(data.inputs)[0]), data.labels)
    lstm.train()
    return score
