"""Laws of sequences and labels whose error is known exactly, and predictors that are chosen by a sample of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional as F

from statewise.automata import MooreMachine, all_words, from_regex
from statewise.bounds import bound_automaton, certify, kl_inverse
from statewise.errors import ArgumentError
from statewise.recipes.bounds_task import PlainClassifier

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
#: What trained networks are certified by; others are far above all of these on small networks, and slower.
METHODS = ("kl", "low-rank", "bits", "massart", "dudley", "theorem-2")
TIE = -1  # the answer of a network that has none: wrong, whatever the label


@dataclass(frozen=True, kw_only=True)
class LawSettings:
    """How often a predictor is chosen by a sample, and from what.

    Args:
        kind: of predictors, one of :data:`KINDS`.
        noise: the probability that a label is the other one; at 0.5 there is nothing to learn.
        sequences: m, of each sample.
        repetitions: how many samples.
        steps: of training, where there is any.
        seed: of all samples.
    """

    kind: str = "machines"
    noise: float = 0.2
    sequences: int = 30
    repetitions: int = 200
    steps: int = 40
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ArgumentError(where="LawSettings.kind", got=self.kind, wanted=f"one of {', '.join(KINDS)}")
        if not 0 <= self.noise <= 0.5:
            raise ArgumentError(where="LawSettings.noise", got=self.noise, wanted="a number from 0 to 0.5")
        for name in ("sequences", "repetitions", "steps"):
            if getattr(self, name) < 2:
                raise ArgumentError(where=f"LawSettings.{name}", got=getattr(self, name), wanted="at least 2")


@dataclass(frozen=True, kw_only=True)
class Law:
    """A finite set of sequences, the probability of each, and the class that each has but for noise.

    Args:
        shares: the probabilities.
        truth: the classes, 0 and 1.
        noise: the probability that a label is the other class.
    """

    shares: Floats
    truth: Ints
    noise: float

    def sample(self, count: int, generator: np.random.Generator) -> tuple[Ints, Ints]:
        """Independent draws: the places of the sequences, and their labels.

        Args:
            count: how many.
            generator: where they come from.
        """
        at = generator.choice(len(self.shares), count, p=self.shares)
        return at, self.truth[at] ^ (generator.random(count) < self.noise)

    def error(self, answers: Ints) -> Floats:
        """The exact probability that answers, the last dimension over all sequences, are not the label.

        Args:
            answers: 0, 1, or :data:`TIE`.

        >>> law = Law(shares=np.array([0.5, 0.5]), truth=np.array([0, 1]), noise=0.1)
        >>> law.error(np.array([[0, 1], [0, 0], [0, TIE]])).round(9).tolist()
        [0.1, 0.5, 0.55]
        """
        wrong = np.where(answers == self.truth, self.noise, 1 - self.noise)
        return np.asarray(np.where(answers == TIE, 1.0, wrong) @ self.shares)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What came of one sample.

    Args:
        error: of the predictor that was chosen, exactly.
        rate: its share of errors in the sample.
        bounds: what is certified, by δ.
    """

    error: float
    rate: float
    bounds: Mapping[float, float]


def machines(settings: LawSettings, deltas: tuple[float, ...]) -> Iterator[Trial]:
    """The machine of at most two states that errs least on a sample of words, with its automaton certificate.

    Args:
        settings: the law.
        deltas: of the certificates.
    """
    words = tuple(all_words("01", 5))
    shares = np.array([1 / (6 * 2 ** len(word)) for word in words])
    law = Law(shares=shares, truth=from_regex("(0*10?)*", "01").classify(words), noise=settings.noise)
    known = _small_machines()
    answers = np.stack([machine.classify(words) for machine in known])
    for best, errors, true in _chosen(law, answers, settings):
        bounds = {
            delta: bound_automaton(known[best], sequences=settings.sequences, errors=errors, delta=delta).value
            for delta in deltas
        }
        yield Trial(error=true, rate=errors / settings.sequences, bounds=bounds)


def drawn(settings: LawSettings, deltas: tuple[float, ...]) -> Iterator[Trial]:
    """The best on a sample of 1,000 Elman networks whose weights were drawn beforehand: each costs ln 1000 nats.

    Their weights are so large that they have little to do with each other: the price is nearly what chance asks for.

    Args:
        settings: the law: eight inputs ±1, and the class is the sign of the first.
        deltas: of the certificates.
    """
    law, answers = _law_of_signs(8, settings.noise), _drawn_networks()
    nats, m = math.log(len(answers)), settings.sequences
    for _, errors, true in _chosen(law, answers, settings):
        bounds = {delta: kl_inverse(errors / m, (nats - math.log(delta)) / m) for delta in deltas}
        yield Trial(error=true, rate=errors / m, bounds=bounds)


def trained(settings: LawSettings, deltas: tuple[float, ...]) -> Iterator[Trial]:
    """An Elman network of two units that is trained on a sample, with the best of what ``certify`` can prove of it.

    Args:
        settings: the law: four inputs ±1, and the class is the sign of the first.
        deltas: of the certificates.
    """
    law, everything = _law_of_signs(4, settings.noise), torch.from_numpy(_all_signs(4)).float()
    generator = np.random.default_rng(settings.seed)
    for number in range(settings.repetitions):
        at, labels = law.sample(settings.sequences, generator)
        network = PlainClassifier(2, seed=number, features=1)
        data = everything[torch.from_numpy(at)], torch.from_numpy(labels)
        _train(network, *data, steps=settings.steps)
        with torch.no_grad():
            logits = network(everything).double()
        answers = torch.where(logits[:, 0] == logits[:, 1], TIE, logits.argmax(1)).numpy()
        given: dict[str, Any] = {"iid": True, "input_bound": 1.0, "longest": 4, "methods": METHODS}
        bounds = {delta: certify(network, data, delta=delta, **given).value for delta in deltas}
        yield Trial(error=float(law.error(answers)), rate=float((answers[at] != labels).mean()), bounds=bounds)


#: How predictors are chosen, by name.
KINDS: Mapping[str, Callable[[LawSettings, tuple[float, ...]], Iterator[Trial]]] = {
    "machines": machines,
    "drawn": drawn,
    "trained": trained,
}


def _chosen(law: Law, answers: Ints, settings: LawSettings) -> Iterator[tuple[int, int, float]]:
    """Of each sample the predictor with the fewest errors: its place, its errors, and its true error."""
    generator, true = np.random.default_rng(settings.seed), law.error(answers)
    for _ in range(settings.repetitions):
        at, labels = law.sample(settings.sequences, generator)
        errors = (answers[:, at] != labels).sum(1)
        best = int(errors.argmin())
        yield best, int(errors[best]), float(true[best])


@cache
def _small_machines() -> tuple[MooreMachine, ...]:
    """All machines of one and of two states over two symbols, up to renaming."""
    found = set()
    for n in (1, 2):
        for table in itertools.product(range(n), repeat=2 * n):
            for outputs in itertools.product(range(2), repeat=n):
                transitions = np.array(table).reshape(n, 2)
                machine = MooreMachine(alphabet=("0", "1"), transitions=transitions, outputs=np.array(outputs))
                found.add(machine.minimise())
    return tuple(sorted(found, key=lambda each: (len(each), each.transitions.tolist(), each.outputs.tolist())))


def _all_signs(length: int) -> Floats:
    """All sequences of ±1, (2^length, length, 1)."""
    return np.array(list(itertools.product((-1.0, 1.0), repeat=length)))[..., None]


def _law_of_signs(length: int, noise: float) -> Law:
    """All of them equally likely; the class is the sign of the first input."""
    inputs = _all_signs(length)
    shares = np.full(len(inputs), 1 / len(inputs))
    return Law(shares=shares, truth=(inputs[:, 0, 0] > 0).astype(np.int64), noise=noise)


@cache
def _drawn_networks() -> Ints:
    """What each of 1,000 random Elman networks of eight units says of all sequences of eight, (1000, 256)."""
    inputs, generator = _all_signs(8)[..., 0], np.random.default_rng(0)
    found = []
    for _ in range(1000):
        u, w, v = (generator.standard_normal(shape) for shape in ((8, 8), 8, 8))
        state = np.zeros((len(inputs), 8))
        for step in inputs.T:
            state = np.tanh(2 * state @ u.T + step[:, None] * w)
        found.append((state @ v > 0).astype(np.int64))
    return np.stack(found)


def _train(network: PlainClassifier, inputs: torch.Tensor, labels: torch.Tensor, *, steps: int) -> None:
    optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
    network.train()
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(network(inputs), labels).backward()
        optimizer.step()
    network.eval()
