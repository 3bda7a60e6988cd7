r"""Tagging tasks drawn from hidden Markov models, for which the best possible tagger is known.

A chain of states :math:`z_1, z_2, \dots` is drawn by :math:`P(z_1)` and :math:`P(z_t \mid z_{t-1})`; each state shows
an observation drawn by :math:`P(x_t \mid z_t)`. Whoever knows these has the posterior of every state exactly, by one
recursion forwards and one backwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int64
from torch import Tensor

from statewise.errors import ArgumentError


@dataclass(frozen=True)
class BestTagging:
    """How well the best possible tagger does, on average over tokens.

    Args:
        accuracy: how many tokens it tags right.
        nll: the negative log-probability, in nats, that it gives to the true tag.
    """

    accuracy: float
    nll: float

    @property
    def error(self) -> float:
        """How many tokens it tags wrong."""
        return 1 - self.accuracy


def state_posteriors(
    start: Float64[np.ndarray, "states"],
    moves: Float64[np.ndarray, "states states"],
    likelihood: Float64[np.ndarray, "steps *batch states"],
    *,
    causal: bool = False,
) -> Float64[np.ndarray, "steps *batch states"]:
    r"""The probability of each state at each step, given what was observed.

    .. math::
        P(z_t \mid x_{1:t}) \propto P(x_t \mid z_t) \sum_{z_{t-1}} P(z_t \mid z_{t-1}) P(z_{t-1} \mid x_{1:t-1}),
        \qquad P(z_t \mid x_{1:T}) \propto P(z_t \mid x_{1:t})\, P(x_{t+1:T} \mid z_t)

    Args:
        start: the probability of each state at the first step.
        moves: from each state (a row) to each (a column).
        likelihood: of each step's observation in each state, up to a factor for each step.
        causal: whether a step knows only what was observed up to it, as a network that reads in one direction.

    >>> sure = np.array([[1.0, 1.0], [1.0, 0.0]])
    >>> stay = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> state_posteriors(np.array([0.5, 0.5]), stay, sure).tolist()
    [[0.8, 0.2], [1.0, 0.0]]
    """
    forward = np.empty_like(likelihood)
    before = start
    for step, seen in enumerate(likelihood):
        joint = before * seen
        # Only ratios matter: without the division long sentences would underflow.
        forward[step] = joint / joint.sum(-1, keepdims=True)
        before = forward[step] @ moves
    if causal:
        return forward
    behind = np.ones_like(likelihood[0])
    for step in range(len(likelihood) - 2, -1, -1):
        behind = (likelihood[step + 1] * behind) @ moves.T
        behind /= behind.sum(-1, keepdims=True)
        forward[step] *= behind
        forward[step] /= forward[step].sum(-1, keepdims=True)
    return forward


def best_states(
    start: Float64[np.ndarray, "states"],
    moves: Float64[np.ndarray, "states states"],
    likelihood: Float64[np.ndarray, "steps states"],
) -> Int64[np.ndarray, "steps"]:
    """The most probable chain of states as a whole, by Viterbi's recursion.

    Args:
        start: the probability of each state at the first step.
        moves: from each state (a row) to each (a column).
        likelihood: of each step's observation in each state.
    """
    with np.errstate(divide="ignore"):  # what cannot be has a logarithm of minus infinity
        score, step_to, seen = np.log(start), np.log(moves), np.log(likelihood)
    score = score + seen[0]
    from_where = np.zeros(likelihood.shape, dtype=np.int64)
    for step in range(1, len(likelihood)):
        paths = score[:, None] + step_to
        from_where[step] = paths.argmax(0)
        score = paths.max(0) + seen[step]
    best = np.empty(len(likelihood), dtype=np.int64)
    best[-1] = score.argmax()
    for step in range(len(likelihood) - 1, 0, -1):
        best[step - 1] = from_where[step, best[step]]
    return best


@dataclass(frozen=True, eq=False, repr=False)
class HiddenMarkovFeatures:
    """Sequences of noisy vectors, each with the class that it came from; see `hidden_markov_features`.

    Args:
        inputs: what is observed.
        targets: the class at each step.
        means: what each class shows without noise.
        stay: the probability to keep the class; else it is drawn anew, from all.
        noise: the standard deviation around the mean.
    """

    inputs: Float32[Tensor, "sentences steps features"]
    targets: Int64[Tensor, "sentences steps"]
    means: Float64[Tensor, "classes features"]
    stay: float
    noise: float

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.means)

    def posteriors(self, *, causal: bool = False) -> Float64[Tensor, "sentences steps classes"]:
        """The probability of each class at each step by whoever knows how the data were drawn: nobody can do better.

        Args:
            causal: whether a step knows only the inputs up to it, as a network that reads in one direction.
        """
        classes, means = self.classes, self.means.numpy()
        inputs = self.inputs.numpy().astype(np.float64).swapaxes(0, 1)
        distances = ((inputs[..., None, :] - means) ** 2).sum(-1)
        # Less the least of each step, which is a factor and changes nothing, but keeps exp from underflow.
        likelihood = np.exp(-(distances - distances.min(-1, keepdims=True)) / (2 * self.noise**2))
        moves = self.stay * np.eye(classes) + (1 - self.stay) / classes
        found = state_posteriors(np.full(classes, 1 / classes), moves, likelihood, causal=causal)
        return torch.from_numpy(found.swapaxes(0, 1).copy())

    def best(self, *, causal: bool = False) -> BestTagging:
        """How well the most probable class of each step does on these data, which is what a tagger can reach.

        Args:
            causal: as for `posteriors`.
        """
        found = self.posteriors(causal=causal)
        true = found.gather(-1, self.targets.unsqueeze(-1)).squeeze(-1)
        right = (found.argmax(-1) == self.targets).double()
        return BestTagging(accuracy=float(right.mean()), nll=float(-true.log().mean()))

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.inputs.shape))
        return f"HiddenMarkovFeatures({size}, {self.classes} classes)"


def hidden_markov_features(
    count: int = 100,
    *,
    seed: int = 0,
    classes: int = 5,
    width: int = 8,
    steps: int = 12,
    stay: float = 0.8,
    noise: float = 1.5,
    means_seed: int = 123,
) -> HiddenMarkovFeatures:
    r"""Draw sequences whose every step has a class, which a tagger is to find from noisy vectors.

    The first class is uniform; :math:`y_t = y_{t-1}` with probability ``stay``, else uniform over all;
    :math:`x_t = \mu_{y_t} + \mathrm{noise} \cdot \mathcal N(0, I)`, with fixed :math:`\mu \sim \mathcal N(0, I)`. A
    tagger is trained on 100 sequences, of seed 0, 1 or 2, and tested on 2,000, of seed 777.

    Args:
        count: how many sequences.
        seed: what the draw of the sequences depends on.
        classes: how many there are.
        width: how many numbers a vector has.
        steps: of every sequence.
        stay: the probability to keep the class.
        noise: the standard deviation around the mean.
        means_seed: what the draw of the means depends on; train and test must share it.

    >>> task = hidden_markov_features(100, seed=0)
    >>> task
    HiddenMarkovFeatures(100 x 12 x 8, 5 classes)
    >>> test = hidden_markov_features(2000, seed=777)
    >>> round(test.best().accuracy, 3), round(test.best(causal=True).accuracy, 3)
    (0.908, 0.845)
    """
    for name, value in (("count", count), ("classes", classes), ("width", width), ("steps", steps)):
        if value < 1:
            raise ArgumentError(where=f"hidden_markov_features.{name}", got=value, wanted="an integer >= 1")
    if not 0 <= stay <= 1 or noise <= 0:
        got = f"stay={stay}, noise={noise}"
        raise ArgumentError(where="hidden_markov_features", got=got, wanted="0 <= stay <= 1 and noise > 0")
    means = np.random.default_rng(means_seed).standard_normal((classes, width))
    generator = np.random.default_rng(seed)
    targets = generator.integers(classes, size=(count, steps))
    kept = generator.random((count, steps)) < stay
    for step in range(1, steps):
        targets[:, step] = np.where(kept[:, step], targets[:, step - 1], targets[:, step])
    inputs = means[targets] + noise * generator.standard_normal((count, steps, width))
    return HiddenMarkovFeatures(
        inputs=torch.from_numpy(inputs.astype(np.float32)),
        targets=torch.from_numpy(targets),
        means=torch.from_numpy(means),
        stay=stay,
        noise=noise,
    )
