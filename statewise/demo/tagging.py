"""The small task of the demonstration: give every step of a noisy sequence its label."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

CLASSES, FEATURES, LENGTH = 5, 8, 12
STAY, SPREAD = 0.8, 1.5  # how often a label stays as it was; how far inputs scatter around their class


class Tagging(NamedTuple):
    """Sequences whose every step has a label."""

    inputs: Float[Tensor, "length sequences features"]
    labels: Int[Tensor, "length sequences"]


class Score(NamedTuple):
    """How well labels are predicted: negative log-likelihood a label, in nats, and share of right ones."""

    nll: float
    accuracy: float


def tagging(sequences: int, *, seed: int) -> Tagging:
    """Sequences of a hidden label that tends to stay, seen through noise.

    ``y_1`` uniform; ``y_t = y_{t-1}`` with probability 0.8, else uniform; ``x_t = mu_{y_t} + 1.5 N(0, I)``.

    >>> tagging(3, seed=0).inputs.shape
    torch.Size([12, 3, 8])
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=(LENGTH, sequences))
    stays = rng.random((LENGTH, sequences)) < STAY
    for step in range(1, LENGTH):
        labels[step] = np.where(stays[step], labels[step - 1], labels[step])
    inputs = centres()[labels] + SPREAD * rng.standard_normal((LENGTH, sequences, FEATURES))
    return Tagging(torch.from_numpy(inputs).float(), torch.from_numpy(labels))


def centres() -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Where the inputs of each label lie on average; always the same."""
    return np.random.default_rng(123).standard_normal((CLASSES, FEATURES))


def best_possible(data: Tagging) -> Score:
    """The score of the exact probabilities ``p(y_t | x_1 ... x_t)``, which no network can beat but by luck.

    Bayes' rule with the true centres: ``b_t(k) ~ p(x_t | k) (0.8 b_{t-1}(k) + 0.2 / 5)``.
    """
    means = torch.from_numpy(centres())
    log_likelihood = -(data.inputs.double().unsqueeze(2) - means).square().sum(3) / (2 * SPREAD**2)
    belief = torch.full_like(log_likelihood[0], 1 / CLASSES)
    beliefs = []
    for step in log_likelihood:
        belief = torch.softmax(step + (STAY * belief + (1 - STAY) / CLASSES).log(), dim=1)
        beliefs.append(belief.log())
    return score_of(torch.stack(beliefs), data.labels)


def score_of(logits: Float[Tensor, "length sequences classes"], labels: Int[Tensor, "length sequences"]) -> Score:
    """How well logits predict labels.

    Args:
        logits: of every step.
        labels: of every step.
    """
    nll = cross_entropy(logits.flatten(0, 1), labels.flatten())
    return Score(nll.item(), (logits.argmax(2) == labels).double().mean().item())
