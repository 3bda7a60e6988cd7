"""What reads a word off a state: a softmax, a mixture of softmaxes, or an adaptive softmax."""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from statewise.errors import ArgumentError, DtypeError, ShapeError
from statewise.heads.cross_entropy import at_least_single, cross_entropy
from statewise.heads.outside import apply_outside
from statewise.transforms import LockedDropout

Features = Float[Tensor, "steps batch width"]
Targets = Int[Tensor, "steps batch"]
PerToken = Float[Tensor, "steps batch"]


class Head(nn.Module):
    """A distribution over words for each step of a sequence.

    Args:
        width: size of the states that it reads.
        words: size of the vocabulary.
    """

    def __init__(self, width: int, words: int) -> None:
        super().__init__()
        self.width, self.words = width, words

    @abstractmethod
    def nll(self, features: Features, targets: Targets, *, generator: torch.Generator | None = None) -> PerToken:
        """``-log p(target | state)`` of every step, in nats and at least single precision."""

    @abstractmethod
    def log_prob(self, features: Features) -> Float[Tensor, "steps batch words"]:
        """The logarithms of all probabilities."""

    def initialise(self, generator: torch.Generator | None = None) -> None:
        """Fill the weights anew."""

    def extra_repr(self) -> str:
        return f"{self.width}, {self.words}"


def _decoder(width: int, words: int, tied: Tensor | None, where: str) -> nn.Parameter:
    if tied is None:
        return nn.Parameter(torch.empty(words, width))
    if not isinstance(tied, nn.Parameter):
        raise DtypeError(where=f"{where}.tied", got=type(tied).__name__, wanted="the weight of an nn.Embedding")
    if tied.shape != (words, width):
        raise ShapeError(
            where=f"{where}.tied",
            got=f"an embedding of shape {tuple(tied.shape)}",
            wanted=f"({words}, {width}), a row a word as wide as what the softmax reads",
            remedy="Make the embedding as wide as the top layer, or give tied=False.",
        )
    return tied


class Softmax(Head):
    """One softmax over the vocabulary; its matrix may be the embedding's.

    ``p(x | h) = softmax(V h + b)_x``; tied: ``V`` is the embedding (Inan et al. 2017; Press & Wolf 2017).

    Args:
        width: size of the states that it reads.
        words: size of the vocabulary.
        tied: the weight of the embedding, (words, width), to use as ``V``; None for a matrix of its own.

    >>> Softmax(3, 5).log_prob(torch.zeros(2, 1, 3)).exp()[0, 0]
    tensor([0.2000, 0.2000, 0.2000, 0.2000, 0.2000], grad_fn=<SelectBackward0>)
    """

    def __init__(self, width: int, words: int, *, tied: Tensor | None = None) -> None:
        super().__init__(width, words)
        self.weight = _decoder(width, words, tied, "Softmax")
        self.bias = nn.Parameter(torch.zeros(words))
        self._own = tied is None
        self.initialise()

    def initialise(self, generator: torch.Generator | None = None) -> None:
        with torch.no_grad():
            self.bias.zero_()
            if self._own:
                bound = 1 / math.sqrt(self.width)
                self.weight.uniform_(-bound, bound, generator=generator)

    def logits(self, features: Features) -> Float[Tensor, "steps batch words"]:
        """``V h + b``: the natural parameters of a categorical likelihood."""
        return F.linear(features, self.weight, self.bias)

    def nll(self, features: Features, targets: Targets, *, generator: torch.Generator | None = None) -> PerToken:
        return cross_entropy(self.logits(features), targets)

    def log_prob(self, features: Features) -> Float[Tensor, "steps batch words"]:
        return at_least_single(self.logits(features)).log_softmax(-1)


class MixtureOfSoftmaxes(Head):
    """A mixture of softmaxes over one matrix, whose log-probabilities are not bound to the rank of the states.

    ``p(x | h) = sum_m pi_m softmax(E g_m + b)_x``, ``pi = softmax(W h)``, ``g_m = tanh(W_m h + b_m)`` (Yang et al.
    2018). Computed as ``logsumexp_m(log pi_m + log softmax(E g_m + b)_x)``: exact, with no floor under ``p``. While
    training only the target's column of the mixture is made.

    Args:
        width: size of the states that it reads.
        words: size of the vocabulary.
        experts: how many softmaxes.
        latent: width of ``g_m``; None means that of the embedding if tied, else ``width``.
        tied: the weight of the embedding, (words, latent), to use as ``E``; None for a matrix of its own.
        dropout: probability of dropping a unit of ``g``, locked over the sequence.

    >>> head = MixtureOfSoftmaxes(3, 5, experts=2)
    >>> states, words = torch.randn(4, 2, 3), torch.randint(5, (4, 2))
    >>> chosen = head.log_prob(states).gather(-1, words.unsqueeze(-1)).squeeze(-1)
    >>> torch.allclose(head.eval().nll(states, words), -chosen, atol=1e-6)
    True
    """

    def __init__(
        self,
        width: int,
        words: int,
        *,
        experts: int = 15,
        latent: int | None = None,
        tied: Tensor | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(width, words)
        if isinstance(experts, bool) or not isinstance(experts, int) or experts < 1:
            raise ArgumentError(where="MixtureOfSoftmaxes.experts", got=experts, wanted="a whole number of at least 1")
        if latent is None:
            latent = width if tied is None else tied.shape[1]
        self.experts, self.latent_width = experts, latent
        self.weight = _decoder(latent, words, tied, "MixtureOfSoftmaxes")
        self.bias = nn.Parameter(torch.zeros(words))
        self.prior = nn.Linear(width, experts, bias=False)
        self.latent = nn.Linear(width, experts * latent)
        self._locked = LockedDropout(dropout)
        self._own = tied is None
        self.initialise()

    def initialise(self, generator: torch.Generator | None = None) -> None:
        with torch.no_grad():
            self.bias.zero_()
            own = [self.weight] if self._own else []
            for weight in (*own, self.prior.weight, self.latent.weight, self.latent.bias):
                bound = 1 / math.sqrt(self.latent_width if weight is self.weight else self.width)
                weight.uniform_(-bound, bound, generator=generator)

    def nll(self, features: Features, targets: Targets, *, generator: torch.Generator | None = None) -> PerToken:
        latents = self._latents(features, generator)
        repeated = targets.unsqueeze(-1).expand(*targets.shape, self.experts)
        by_expert = cross_entropy(F.linear(latents, self.weight, self.bias), repeated)
        return -(self._log_prior(features) - by_expert).logsumexp(-1)

    def log_prob(self, features: Features) -> Float[Tensor, "steps batch words"]:
        latents, log_prior = self._latents(features, None), self._log_prior(features)
        # Step by step: all experts' logits of a long sequence would not fit into memory.
        return torch.stack([self._mixed(*step) for step in zip(latents, log_prior, strict=True)])

    def _mixed(self, latents: Tensor, log_prior: Tensor) -> Tensor:
        logits = at_least_single(F.linear(latents, self.weight, self.bias))
        return (log_prior.unsqueeze(-1) + logits.log_softmax(-1)).logsumexp(-2)

    def _log_prior(self, features: Tensor) -> Tensor:
        return at_least_single(self.prior(features)).log_softmax(-1)

    def _latents(self, features: Tensor, generator: torch.Generator | None) -> Tensor:
        """The experts' vectors, (steps, batch, experts, latent)."""
        latents: Tensor = self.latent(features).tanh()
        latents = apply_outside((self._locked,), latents, training=self.training, generator=generator)
        return latents.view(*features.shape[:2], self.experts, self.latent_width)

    def extra_repr(self) -> str:
        return f"{self.width}, {self.words}, experts={self.experts}, latent={self.latent_width}"


class AdaptiveSoftmax(Head):
    """Torch's adaptive softmax: frequent words are cheap, rare ones sit in narrower clusters.

    Grave et al. 2017. The words must be ordered by falling frequency, as a vocabulary built here is.

    Args:
        width: size of the states that it reads.
        words: size of the vocabulary.
        cutoffs: where the clusters end; None means a fifth and a half of the vocabulary.
        factor: by how much each further cluster is narrower; None means 4, or less if the states are narrow.

    >>> head = AdaptiveSoftmax(8, 20)
    >>> bool(torch.isclose(head.log_prob(torch.randn(1, 1, 8)).exp().sum(), torch.tensor(1.0)))
    True
    """

    def __init__(
        self, width: int, words: int, *, cutoffs: tuple[int, ...] | None = None, factor: float | None = None
    ) -> None:
        super().__init__(width, words)
        chosen = cutoffs or tuple(sorted({max(1, words // 5), max(1, words // 2)}))
        if not all(0 < cut < words for cut in chosen) or list(chosen) != sorted(set(chosen)):
            raise ArgumentError(
                where="AdaptiveSoftmax.cutoffs",
                got=chosen,
                wanted=f"rising whole numbers between 1 and {words - 1}",
                remedy="A vocabulary this small needs no adaptive softmax." if words < 10 else "",
            )
        if factor is None:
            factor = min(4.0, 0.999 * width ** (1 / len(chosen)))  # rounding must not empty the last
        if width // factor ** len(chosen) < 1:
            raise ArgumentError(
                where="AdaptiveSoftmax.factor",
                got=factor,
                wanted=f"at most {width ** (1 / len(chosen)):.3g}, since {width} is divided by it {len(chosen)} times",
            )
        self.parts = nn.AdaptiveLogSoftmaxWithLoss(width, words, list(chosen), factor)

    def initialise(self, generator: torch.Generator | None = None) -> None:
        with torch.no_grad():
            for parameter in self.parts.parameters():
                bound = 1 / math.sqrt(parameter.shape[-1])
                parameter.uniform_(-bound, bound, generator=generator)

    def nll(self, features: Features, targets: Targets, *, generator: torch.Generator | None = None) -> PerToken:
        with torch.autocast(features.device.type, enabled=False):  # torch's module mixes dtypes under it
            chosen: Tensor = self.parts(at_least_single(features).flatten(0, 1), targets.flatten()).output
            if torch.is_grad_enabled():
                # Clusters without a target have no part in it, but data-parallel training wants all gradients.
                chosen = chosen + 0.0 * torch.stack([each.sum() for each in self.parts.parameters()]).sum()
        return -chosen.view(targets.shape)

    def log_prob(self, features: Features) -> Float[Tensor, "steps batch words"]:
        found: Tensor = self.parts.log_prob(at_least_single(features).flatten(0, 1))
        return found.view(*features.shape[:2], self.words)
