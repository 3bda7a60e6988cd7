"""A linear readout of the state with an exponential-family likelihood: what the theory of noise is about."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float, Shaped
from torch import Tensor, nn

from statewise.errors import DtypeError, ShapeError
from statewise.heads.likelihoods import Categorical, Likelihood
from statewise.heads.softmax import Softmax

_NO_PENALTY = (
    "A mixture of softmaxes, or another head that is no exponential family in the state, has no explicit penalty: "
    "average its loss over noisy passes with k_sample_loss."
)


@dataclass(frozen=True, eq=False)
class Readout:
    """Scores ``s = V^T h + b`` and the likelihood that reads them (Dieng et al. 2018, eq. 4).

    It holds the tensors that it is given, so gradients reach the parameters of a model.

    Args:
        likelihood: the exponential family.
        weight: ``V``, shape (hidden, outputs); the transpose of a ``torch.nn.Linear``'s.
        bias: ``b``, shape (outputs,), or None.

    >>> import torch
    >>> from statewise.heads import Categorical
    >>> Readout.of(nn.Linear(3, 5), Categorical()).scores(torch.zeros(2, 3)).shape
    torch.Size([2, 5])
    """

    likelihood: Likelihood
    weight: Float[Tensor, "hidden outputs"]
    bias: Float[Tensor, " outputs"] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.likelihood, Likelihood):
            raise DtypeError(
                where="Readout.likelihood",
                got=type(self.likelihood).__name__,
                wanted="a Likelihood: Bernoulli(), Gaussian(variance=...), Poisson() or Categorical()",
                remedy=_NO_PENALTY,
            )
        if not isinstance(self.weight, Tensor) or self.weight.ndim != 2 or not self.weight.is_floating_point():
            got = tuple(self.weight.shape) if isinstance(self.weight, Tensor) else type(self.weight).__name__
            raise ShapeError(where="Readout.weight", got=got, wanted="a real matrix (hidden, outputs)")
        if self.bias is not None and self.bias.shape != self.weight.shape[1:]:
            raise ShapeError(
                where="Readout.bias", got=tuple(self.bias.shape), wanted=f"({self.weight.shape[1]},), one per output"
            )

    @classmethod
    def of(cls, head: nn.Module, likelihood: Likelihood) -> Readout:
        """The readout that a ``torch.nn.Linear`` or a :class:`~statewise.heads.Softmax` is, with its parameters."""
        if not isinstance(head, nn.Linear | Softmax) or (
            isinstance(head, Softmax) and not isinstance(likelihood, Categorical)
        ):
            raise DtypeError(
                where="Readout.of head",
                got=f"a {type(head).__name__} with {likelihood!r}",
                wanted="a torch.nn.Linear with a Likelihood, or a Softmax with Categorical()",
                remedy=_NO_PENALTY,
            )
        return cls(likelihood, head.weight.T, head.bias)

    @property
    def hidden_size(self) -> int:
        """The number of units that are read."""
        return self.weight.shape[0]

    @property
    def outputs(self) -> int:
        """The number of outputs or classes."""
        return self.weight.shape[1]

    def scores(self, states: Float[Tensor, "*rows hidden"]) -> Float[Tensor, "*rows outputs"]:
        """``V^T h + b`` for each row."""
        if states.shape[-1] != self.hidden_size:
            raise ShapeError(
                where="Readout states",
                got=tuple(states.shape),
                wanted=f"(..., {self.hidden_size}), for a weight of shape {tuple(self.weight.shape)}",
                remedy="The weight of a torch.nn.Linear has to be transposed; Readout.of does it.",
            )
        found = states @ self.weight
        return found if self.bias is None else found + self.bias

    def log_prob(
        self, states: Float[Tensor, "*rows hidden"], observed: Shaped[Tensor, "..."]
    ) -> Float[Tensor, "*rows"]:
        """``log p(x | h)`` for each row."""
        return self.likelihood.log_prob(self.scores(states), observed)
