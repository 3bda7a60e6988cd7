"""A network with random weights, and the PAC-Bayes-kl certificate of its error.

Each answer comes from weights of its own, drawn from a Gaussian around trained means (Gibbs). For a prior that was
fixed before the m sequences were seen, with probability at least ``1 - delta``, for all posteriors at once
(Seeger 2002; Maurer 2004),

    kl(error on the m sequences ‖ P(error)) <= (KL(posterior ‖ prior) + ln(2 √m / delta)) / m,

where both errors are averages over the weights. The one on the sequences is itself estimated from draws, and bounded
(Langford & Caruana 2002). What is certified is the *randomised* network, not the one with the mean weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from statewise.bounds.kl import kl_inverse
from statewise.bounds.margins import margins
from statewise.bounds.randomised import RandomisedNetwork
from statewise.errors import ArgumentError, AssumptionError, DtypeError, NonFiniteError

#: Maurer's inequality needs that many sequences.
FEWEST = 8


@dataclass(frozen=True, kw_only=True)
class GibbsCertificate:
    """What can be said of a randomised network, and all that it was computed from.

    Args:
        bound: on the probability that a freshly drawn network errs on a fresh sequence.
        delta: the probability that the statement fails, of draws and of sequences together.
        m: sequences that were counted; none of them may have had a part in the prior.
        observed: share of wrong answers over all draws.
        draws: how many networks were drawn.
        batch: on how many sequences each was tried.
        empirical: bound on the error on the m sequences, averaged over all networks.
        divergence: KL of posterior and prior.
        nats: paid for choices: of the prior's scales, and what else was declared.
        vacuous: whether guessing among the classes is certified as well.
    """

    bound: float
    delta: float
    m: int
    observed: float
    draws: int
    batch: int
    empirical: float
    divergence: float
    nats: float
    vacuous: bool

    def __str__(self) -> str:
        return (
            f"With probability {1 - self.delta:g}, the randomised network (weights drawn anew for each answer) errs on "
            f"at most {self.bound:.2%} of new sequences: {self.observed:.2%} wrong in {self.draws} draws, at most "
            f"{self.empirical:.2%} on the {self.m} sequences, KL {self.divergence:.1f} and {self.nats:.1f} nats "
            f"of choices."
        )


def certify_gibbs(
    network: RandomisedNetwork,
    inputs: Tensor,
    labels: Tensor,
    *,
    generator: torch.Generator,
    draws: int = 10_000,
    batch: int = 100,
    delta: float = 0.05,
    nats: float = 0.0,
) -> GibbsCertificate:
    """Certify a randomised classifier.

    ``kl_inverse(empirical, (KL + nats + ln(2 √m / (0.8 delta))) / m)``, where ``empirical`` bounds the average error on
    the m sequences, from draws, with probability ``1 - 0.2 delta``.

    Args:
        network: trained; its logits are ``(sequences, classes)``.
        inputs: the m sequences, independent, first axis; none of them had a part in the prior.
        labels: their classes.
        generator: of the weights and of which sequences are tried, on the CPU.
        draws: networks to draw. More of them bring ``empirical`` nearer to the truth.
        batch: sequences that each of them is tried on, chosen anew.
        delta: probability of failure.
        nats: for choices made by looking at these sequences, such as one of several architectures.

    >>> generator = torch.Generator().manual_seed(0)
    >>> inputs = torch.randn(2000, 2, generator=generator)
    >>> linear = torch.nn.Linear(2, 2)
    >>> _ = linear.load_state_dict({"weight": torch.tensor([[2.0, 0.0], [-2.0, 0.0]]), "bias": torch.zeros(2)})
    >>> network = RandomisedNetwork(linear, centre="zero", deviation=0.2)
    >>> found = certify_gibbs(network, inputs, (inputs[:, 0] < 0).long(), generator=generator, draws=1000)
    >>> found.observed < 0.05 < found.bound < 0.1, found.vacuous
    (True, False)
    """
    if not isinstance(network, RandomisedNetwork):
        raise DtypeError(where="certify_gibbs.network", got=type(network).__name__, wanted="a RandomisedNetwork")
    m = _check(inputs, labels, draws=draws, batch=batch, delta=delta, price=nats)
    shares, classes = _try_out(network, inputs, labels, draws=draws, batch=batch, generator=generator)
    empirical = mean_bound(shares, delta=0.2 * delta)
    divergence, price = network.priced_divergence()
    if not math.isfinite(divergence):
        raise NonFiniteError(where="certify_gibbs", got="KL", wanted="finite means and deviations")
    bound = gibbs_bound(empirical, divergence=divergence + price + nats, m=m, delta=0.8 * delta)
    return GibbsCertificate(
        bound=bound,
        delta=delta,
        m=m,
        observed=shares.mean().item(),
        draws=draws,
        batch=batch,
        empirical=empirical,
        divergence=divergence,
        nats=price + nats,
        vacuous=bound >= 1 - 1 / classes,
    )


def gibbs_bound(empirical: float, *, divergence: float, m: int, delta: float) -> float:
    """``kl_inverse(empirical, (KL + ln(2 √m / delta)) / m)`` (Maurer 2004, Theorem 5).

    Args:
        empirical: error on the m sequences, averaged over the posterior.
        divergence: KL, with all nats that were paid.
        m: at least 8.
        delta: probability of failure.

    >>> round(gibbs_bound(0.02, divergence=50.0, m=30_000, delta=0.04), 4)
    0.0301
    """
    if m < FEWEST:
        raise AssumptionError(where="gibbs_bound.m", got=m, wanted=f"at least {FEWEST} sequences")
    return kl_inverse(empirical, (divergence + math.log(2 * math.sqrt(m) / delta)) / m)


def mean_bound(values: Tensor, *, delta: float) -> float:
    """An upper bound on the mean of independent values between 0 and 1: the better of two, half of delta each.

    Chernoff's, ``kl_inverse(mean, ln(2 / delta) / n)``, and the empirical Bernstein bound,
    ``mean + √(2 v ln(4 / delta) / n) + 7 ln(4 / delta) / (3 (n-1))`` with the sample variance v (Maurer & Pontil 2009,
    Theorem 4), which wins where the values differ little.

    Args:
        values: n >= 2 of them.
        delta: probability of failure.

    >>> round(mean_bound(torch.full((10_000,), 0.02), delta=0.01), 4)
    0.0214
    """
    if values.ndim != 1 or len(values) < 2 or not bool(((values >= 0) & (values <= 1)).all()):
        raise ArgumentError(where="mean_bound", got=tuple(values.shape), wanted="at least 2 values between 0 and 1")
    n, mean = len(values), float(values.double().mean())
    chernoff = kl_inverse(min(1.0, mean), math.log(2 / delta) / n)
    log = math.log(4 / delta)
    spread = math.sqrt(2 * float(values.double().var()) * log / n)
    return min(chernoff, mean + spread + 7 * log / (3 * (n - 1)))


def quadratic_objective(loss: Tensor, divergence: Tensor, *, m: int, delta: float = 0.05) -> Tensor:
    """A smooth bound to train a randomised network with: ``(√(L + c) + √c)²``, ``c = (KL + ln(2 √m / delta)) / 2m``.

    It is above the kl bound for every loss L in [0, 1] (Rivasplata, Tankasali & Szepesvari 2019).

    Args:
        loss: of one draw on a batch; a bounded one such as ``1 - p(label)``, or a cross entropy.
        divergence: :meth:`RandomisedNetwork.divergence`.
        m: sequences, of the whole set.
        delta: probability of failure.

    >>> float(quadratic_objective(torch.tensor(0.0), torch.tensor(0.0), m=1000)) > gibbs_bound(
    ...     0.0, divergence=0.0, m=1000, delta=0.05
    ... )
    True
    """
    c = (divergence + math.log(2 * math.sqrt(m) / delta)) / (2 * m)
    return ((loss + c).sqrt() + c.sqrt()).square()


@torch.no_grad()
def _try_out(
    network: RandomisedNetwork, inputs: Tensor, labels: Tensor, *, draws: int, batch: int, generator: torch.Generator
) -> tuple[Tensor, int]:
    """The share of wrong answers of each drawn network on sequences of its own, and the number of classes."""
    shares, classes = torch.empty(draws, dtype=torch.float64), 0
    mode = network.training
    network.eval()
    try:
        for index in range(draws):
            chosen = torch.randint(len(inputs), (batch,), generator=generator)
            logits = network(inputs[chosen.to(inputs.device)], generator=_on(network, generator))
            # Not "margin <= 0", which a margin that is no number would pass.
            right = margins(logits.double(), labels[chosen.to(labels.device)].to(logits.device)) > 0
            shares[index], classes = 1 - right.double().mean().item(), logits.shape[-1]
    finally:
        network.train(mode)
    return shares, classes


def _on(network: RandomisedNetwork, generator: torch.Generator) -> torch.Generator:
    device = network.means[0].device
    if device == generator.device:
        return generator
    seed = int(torch.randint(2**62, (), generator=generator))
    return torch.Generator(device=device).manual_seed(seed)


def _check(inputs: Tensor, labels: Tensor, *, draws: int, batch: int, delta: float, price: float) -> int:
    if len(inputs) != len(labels) or labels.ndim != 1:
        got = f"inputs {tuple(inputs.shape)} and labels {tuple(labels.shape)}"
        raise ArgumentError(where="certify_gibbs", got=got, wanted="one label for each sequence")
    if draws < 2 or batch < 1:
        raise ArgumentError(where="certify_gibbs", got=(draws, batch), wanted="at least 2 draws, on 1 sequence each")
    if not 0 < delta < 1 or not price >= 0:
        raise ArgumentError(where="certify_gibbs", got=(delta, price), wanted="0 < delta < 1 and nats >= 0")
    if len(inputs) < FEWEST:
        raise AssumptionError(where="certify_gibbs", got=len(inputs), wanted=f"at least {FEWEST} sequences")
    return len(inputs)
