"""State regularization: the hidden state moves among k learnable centroids."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from statewise.errors import ArgumentError, DtypeError
from statewise.transforms.base import Sizes, StateChange, StateTransform, choice, finite
from statewise.transforms.recipes import Kind, Recipe
from statewise.transforms.streams import Stream

SIMILARITIES = ("dot", "euclidean", "sqeuclidean")
TRANSITIONS = ("mixture", "sample", "argmax", "st_argmax", "gumbel_hard", "noisy")


@dataclass(frozen=True, repr=False)
class Centroids(StateTransform):
    """Draws the state to k learnable centroids, softly or by choosing one.

    ``alpha_i = softmax_i(similarity(u, s_i) / tau)`` and ``h = sum_i alpha_i s_i`` for the mixture
    (Wang & Niepert 2019, eqs. 3-6). Acts in eval mode too. The transitions:

    ============= ======================================== =====================================================
    transition    forward                                  gradient
    ============= ======================================== =====================================================
    mixture       ``h = S alpha`` (eq. 6, the default)     exact
    sample        ``h = s_j``, ``j ~ alpha`` (eq. 5)       reaches only ``s_j``
    argmax        ``h = s_argmax``                         reaches only ``s_argmax``; the automaton itself
    st_argmax     argmax                                   straight-through: as if ``alpha`` had been used
    gumbel_hard   argmax of ``z + g``, g ~ Gumbel          straight-through ``softmax((z + g) / relaxation)``
    noisy         ``h = S softmax(z + noise g)``           exact; with noise growing, the best way to an automaton
    ============= ======================================== =====================================================

    In eval mode "noisy" and "gumbel_hard" run without noise. "sample" draws in eval mode too: give a generator.

    Args:
        k: number of centroids of a layer.
        temperature: ``tau > 0``; small means nearly one-hot.
        similarity: "dot" (eq. 3), "euclidean" (eq. 4, the distance itself) or "sqeuclidean".
        transition: one of the table.
        noise: the factor of the Gumbel noise for "noisy".
        relaxation: the temperature of the straight-through gradient of "gumbel_hard".

    >>> Centroids(10, temperature=0.5).parameter_shapes(hidden=64)
    {'centroids': (10, 64)}
    """

    k: int
    temperature: float = field(default=1.0, kw_only=True)
    similarity: str = field(default="dot", kw_only=True)
    transition: str = field(default="mixture", kw_only=True)
    noise: float = field(default=1.0, kw_only=True)
    relaxation: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.k, bool) or not isinstance(self.k, int):
            raise DtypeError(where="Centroids.k", got=type(self.k).__name__, wanted="a whole number of centroids")
        if self.k < 1:
            raise ArgumentError(where="Centroids.k", got=self.k, wanted="at least 1 centroid")
        if finite("Centroids.temperature", self.temperature) <= 0:
            raise ArgumentError(
                where="Centroids.temperature",
                got=self.temperature,
                wanted="a number above 0",
                remedy="For the limit 0 use transition='argmax'.",
            )
        choice("Centroids.similarity", self.similarity, SIMILARITIES)
        choice("Centroids.transition", self.transition, TRANSITIONS)
        if finite("Centroids.noise", self.noise) < 0:
            raise ArgumentError(where="Centroids.noise", got=self.noise, wanted="a number >= 0")
        if finite("Centroids.relaxation", self.relaxation) <= 0:
            raise ArgumentError(where="Centroids.relaxation", got=self.relaxation, wanted="a number above 0")

    @property
    def hard(self) -> bool:
        """Whether exactly one centroid is chosen at each step."""
        return self.transition in ("sample", "argmax", "st_argmax", "gumbel_hard")

    @property
    def soft_gradient(self) -> bool:
        """Whether the gradient reaches the transition probabilities."""
        return self.transition not in ("sample", "argmax")

    @property
    def sharpness(self) -> float:
        """The derivative of the backward softmax's argument: 1, or 1 / relaxation for "gumbel_hard"."""
        return 1 / self.relaxation if self.transition == "gumbel_hard" else 1.0

    def parameter_shapes(self, hidden: int) -> dict[str, tuple[int, ...]]:
        return {"centroids": (self.k, hidden)}

    def initialise(self, name: str, parameter: Tensor, generator: torch.Generator | None) -> None:
        """Uniform in (-0.5, 0.5), the one setting that the paper tuned."""
        with torch.no_grad():
            parameter.uniform_(-0.5, 0.5, generator=generator)

    def draw(self, sizes: Sizes, stream: Stream, *, training: bool) -> tuple[Tensor, ...] | None:
        """Gumbel noise already scaled by its factor, shape (steps, batch, k); empty where none is needed."""
        factors = {"sample": 1.0, "gumbel_hard": float(training), "noisy": self.noise * training}
        factor = factors.get(self.transition, 0.0)
        if factor == 0.0:
            return ()
        dtype = torch.float64 if sizes.dtype == torch.float64 else torch.float32
        unit = torch.empty(sizes.steps, sizes.batch, self.k, dtype=dtype, device=sizes.device)
        return (stream.draw(unit, Recipe.of(Kind.GUMBEL, scale=factor)),)

    def logits(self, state: Tensor, centroids: Tensor) -> Tensor:
        """Similarity of every row to every centroid, over the temperature: shape (rows, k), float32 at least.

        Args:
            state: (rows, hidden), behind any further dimensions.
            centroids: (k, hidden), behind the same.
        """
        wide = torch.promote_types(state.dtype, torch.float32)
        state, centroids = state.to(wide), centroids.to(wide)
        if self.similarity == "dot":
            return state @ centroids.mT / self.temperature
        # The direct form: products of squares would lose digits near zero.
        difference = state.unsqueeze(-2) - centroids.unsqueeze(-3)
        distance: Tensor = difference.square().sum(-1)
        if self.similarity == "euclidean":
            distance = torch.linalg.vector_norm(difference, dim=-1)
        return distance / -self.temperature

    def forward(
        self,
        state: Tensor,
        memory: Tensor | None,
        previous: tuple[Tensor, Tensor | None],
        draws: tuple[Tensor, ...],
        parameters: tuple[Tensor, ...],
    ) -> StateChange:
        # Further dimensions before the rows are replicas, each with centroids of its own.
        (centroids,) = parameters
        z = self.logits(state, centroids)
        alpha = torch.softmax(z, dim=-1)
        disturbed = z + draws[0].to(z.dtype) if draws else z
        soft = torch.softmax(disturbed * self.sharpness, dim=-1) if self.soft_gradient else alpha.detach()
        weights = soft
        if self.hard:
            chosen = torch.zeros_like(soft).scatter(-1, disturbed.argmax(-1, keepdim=True), 1.0)
            # Straight through: exactly the chosen one-hot, with the gradient of the probabilities.
            weights = chosen + (soft - soft.detach()) if self.soft_gradient else chosen
        moved = (weights @ centroids.to(weights.dtype)).to(state.dtype)
        return StateChange(moved, memory, alpha)

    def learnt_gradient(
        self, centroids: Tensor, before: Tensor, weights: Tensor, after: Tensor, slope: Tensor
    ) -> Tensor:
        """The gradient of the centroids over all rows, from what the engines with kernels keep of each.

        Args:
            centroids: (k, hidden), as all others behind any further dimensions.
            before: the states before, (rows, hidden).
            weights: the weights of the centroids, (rows, k).
            after: the gradient of the states after, (rows, hidden).
            slope: the gradient of the similarities, divided by the distance if that is the similarity, (rows, k).
        """
        parts = (centroids, before, weights, after, slope)
        return centroids_gradient(*parts, soft=self.soft_gradient, similarity=self.similarity)


def centroids_gradient(
    centroids: Tensor, before: Tensor, weights: Tensor, after: Tensor, slope: Tensor, *, soft: bool, similarity: str
) -> Tensor:
    """What :meth:`Centroids.learnt_gradient` gives, for those who have no transform at hand but its settings."""
    grad = weights.mT @ after
    if not soft:
        return grad
    grad = grad + slope.mT @ before
    return grad if similarity == "dot" else grad - slope.sum(-2).unsqueeze(-1) * centroids
