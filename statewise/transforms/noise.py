"""Noisin: unbiased noise on the hidden state."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from statewise.errors import StatewiseError
from statewise.transforms.base import Place, SequenceTransform, Sizes, StateChange, StateTransform, choice
from statewise.transforms.base import finite as _finite
from statewise.transforms.laws import law as find_law
from statewise.transforms.recipes import Recipe
from statewise.transforms.streams import Stream

MODES = ("multiplicative", "additive")
PLACEMENTS = ("recurrent", "outputs", "last")


@dataclass(frozen=True, repr=False)
class Noise(StateTransform, SequenceTransform):
    """Unbiased noise that multiplies, or is added to, the hidden state while training.

    ``z_t = h_t * (1 + eps_t)`` or ``z_t = h_t + eps_t`` with ``E eps = 0`` (Dieng et al. 2018, eqs. 15-16, Table 2).
    Multipliers may be negative: nothing is clamped, since clamping would bias the mean. Off in eval mode.

    Args:
        law: "gaussian", "logistic", "laplace", "gamma", "bernoulli", "gumbel", "beta" or "chi-square".
        gamma: the law's spread: the standard deviation of the noise, except for "beta" and "chi-square", where it is
            the variance, and "bernoulli", where it is the probability of keeping a unit.
        alpha: the first shape of "gamma" and "beta".
        mode: "multiplicative" or "additive".
        placement: "recurrent" (every layer's state; what goes up is also fed back), "outputs" (every layer's output,
            not fed back) or "last" (the top layer's output, not fed back: the theory's strong unbiasedness). None
            means "recurrent", but "outputs" for cells that pass their state on linearly (GRU, MGU, RAC, modReLU),
            where fed-back noise compounds.

    >>> Noise("gaussian", 0.5).std
    0.5
    >>> Noise.from_std("bernoulli", 1.0).gamma
    0.5
    """

    law: str
    gamma: float
    alpha: float = 2.0
    mode: str = field(default="multiplicative", kw_only=True)
    placement: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        _finite("Noise.gamma", self.gamma)
        try:
            find_law(self.law).check(self.gamma, self.alpha)
        except StatewiseError as error:  # a law does not know whose argument it checks
            where = f"Noise.{error.where.rpartition('.')[2]}"
            raise type(error)(where=where, got=error.got, wanted=error.wanted, remedy=error.remedy) from None
        choice("Noise.mode", self.mode, MODES)
        if self.placement is not None:
            choice("Noise.placement", self.placement, PLACEMENTS)
        self._work_out()

    def _work_out(self) -> None:
        """The recipe, once for all passes: to torch's compiler a strength may be a symbol, which math refuses."""
        law, mean = find_law(self.law), 1.0 if self.mode == "multiplicative" else 0.0
        recipe = None if law.is_silent(self.gamma) else law.recipe(self.gamma, self.alpha, mean=mean)
        vars(self)["_recipe"] = recipe  # no field, since it follows from the others

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._work_out()

    @classmethod
    def from_std(cls, law: str, std: float, **options: Any) -> Noise:
        """The noise of a law with a given standard deviation: one unit of strength for all eight laws."""
        return cls(law, find_law(law).gamma_from_std(_finite("Noise.std", std)), **options)

    @property
    def std(self) -> float:
        """The standard deviation of the centred noise."""
        return float(find_law(self.law).variance(self.gamma, self.alpha) ** 0.5)

    @property
    def place(self) -> Place:
        return Place.STATE if self.placement in (None, "recurrent") else Place.OUTPUT

    def placed_for(self, *, linear_path: bool) -> Noise:
        """This noise with its placement settled for a cell."""
        if self.placement is not None:
            return self
        return replace(self, placement="outputs" if linear_path else "recurrent")

    def acts_on(self, layer: int, num_layers: int) -> bool:
        return super().acts_on(layer, num_layers) and (self.placement != "last" or layer == num_layers - 1)

    def draw(self, sizes: Sizes, stream: Stream, *, training: bool) -> tuple[Tensor, ...] | None:
        """The multipliers ``1 + eps`` or the shifts ``eps``, shape (steps, batch, hidden)."""
        recipe: Recipe | None = vars(self)["_recipe"]
        if not training or recipe is None:
            return None
        # Low-precision multipliers would carry rounding errors into the mean.
        dtype = torch.float64 if sizes.dtype == torch.float64 else torch.float32
        eps = torch.empty(sizes.steps, sizes.batch, sizes.hidden, dtype=dtype, device=sizes.device)
        return (stream.draw(eps, recipe),)

    def apply(self, sequence: Tensor, draws: tuple[Tensor, ...]) -> Tensor:
        disturbed = sequence * draws[0] if self.mode == "multiplicative" else sequence + draws[0]
        return disturbed.to(sequence.dtype)

    def forward(
        self,
        state: Tensor,
        memory: Tensor | None,
        previous: tuple[Tensor, Tensor | None],
        draws: tuple[Tensor, ...],
        parameters: tuple[Tensor, ...],
    ) -> StateChange:
        return StateChange(self.apply(state, draws), memory)
