"""Predicting with the noise on: an average of probabilities over many noises."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.errors import ArgumentError, ShapeError
from statewise.objectives.sampling import tile


@dataclass(frozen=True, eq=False)
class Predictive:
    """Log-probabilities of a batch under the noisy model, from K samples.

    Attributes:
        log_prob: ``log mean_k p(x_t | z_t^(k))`` of each token, shape (steps, batch): the prediction of an ensemble.
        sequence: ``log mean_k prod_t p(x_t | z_t^(k))`` of each sequence, which approaches the marginal likelihood
            from below as K grows.
        expected: ``mean_k sum_t log p(x_t | z_t^(k))``, which noisy training maximises; below the other by Jensen.
        samples: K.
    """

    log_prob: Float[Tensor, "steps batch"]
    sequence: Float[Tensor, " batch"]
    expected: Float[Tensor, " batch"]
    samples: int

    @property
    def perplexity(self) -> float:
        """``exp`` of the mean negative log-probability of a token."""
        return math.exp(-float(self.log_prob.mean()))

    @property
    def sentence(self) -> str:
        """What was found, to be quoted."""
        return (
            f"over {self.samples} noises the expected log-likelihood is {float(self.expected.sum()):.6g}, and the "
            f"log-likelihood of the averaged sequences {float(self.sequence.sum()):.6g}; the noisy model's own lies "
            "above both in expectation"
        )


def predictive(
    score: Callable[[Tensor, Tensor], Float[Tensor, "steps rows"]],
    inputs: Tensor,
    targets: Tensor,
    *,
    samples: int,
    chunk: int | None = None,
    batch_dim: int = 1,
) -> Predictive:
    """The Monte-Carlo predictive of a model with noise, and the bounds around it.

    ``E sum_t log p <= E log mean_k prod_t p^(k) <= log p(x_1..x_T)`` (Jensen; Burda et al. 2016), and the middle one
    does not fall as K grows. Unbiased states do not make unbiased predictions: ``E softmax(V^T z)`` is not
    ``softmax(V^T h)``. The model must be in training mode, since noise is off in eval mode.

    Args:
        score: from inputs and targets, with the sequences along ``batch_dim``, to the log-probability of every token,
            shape (steps, rows).
        inputs: one batch.
        targets: of the batch.
        samples: K.
        chunk: how many of the samples are run side by side, as copies of the batch; None for all.
        batch_dim: the dimension of inputs and targets that counts the sequences.

    >>> def score(inputs, targets):
    ...     return -(inputs + 0.1 * torch.randn(inputs.shape) - targets).square()
    >>> found = predictive(score, torch.zeros(5, 2), torch.zeros(5, 2), samples=10, chunk=4)
    >>> bool((found.expected <= found.sequence).all())
    True
    """
    for name, value in (("samples", samples), ("chunk", samples if chunk is None else chunk)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ArgumentError(where=f"predictive.{name}", got=value, wanted="a whole number of at least 1")
    batch, done = inputs.shape[batch_dim], 0
    tokens = sequences = torch.tensor(-math.inf, device=inputs.device)
    total = torch.tensor(0.0, device=inputs.device)
    while done < samples:
        now = min(samples - done, chunk or samples)
        found = score(tile(inputs, now, batch_dim), tile(targets, now, batch_dim))
        if found.ndim != 2 or found.shape[1] != now * batch:
            raise ShapeError(
                where="predictive score", got=tuple(found.shape), wanted=f"(steps, {now * batch}), a number a token"
            )
        each = found.unflatten(1, (now, batch))
        tokens = torch.logaddexp(tokens.to(found), each.logsumexp(1))
        sequences = torch.logaddexp(sequences.to(found), each.sum(0).logsumexp(0))
        total = total.to(found) + each.sum((0, 1))
        done += now
    log_count = math.log(samples)
    return Predictive(tokens - log_count, sequences - log_count, total / samples, samples)
