"""Rounded weights as a callback: the model that is kept lies on a few levels, and is short to describe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor, nn

from statewise.bounds.quantised import rounded
from statewise.errors import ArgumentError
from statewise.train.callbacks import Callback
from statewise.train.settings import check_number

#: How far the levels reach by default: on pictures read row by row the fewest errors, with few nats.
REACH = 10 / 3
TINY = 1e-18


@dataclass(frozen=True, kw_only=True)
class RoundedWeights(Callback):
    """Weights are rounded to a few levels in every pass, while the optimiser moves numbers that are not.

    ``w -> s clamp(round(w / s), -K, K)`` for ``2K + 1`` levels, each parameter with a step s on the grid ``2^(j/8)``
    that goes with its size (:func:`step_of`). Gradients pass the rounding as if it were not there (Bengio, Leonard &
    Courville 2013). The rounded network is the one that is validated, tested and kept, so that
    :func:`~statewise.bounds.quantised.describe` finds it on its levels: at most about ``ln(levels)`` nats a weight, and
    no norm and no margin enters its certificate.

    Args:
        levels: of each parameter; ``2^k`` are k bits, 3 is ternary.
        bias_levels: of vectors, such as biases; None for the same.
        levels_of: of some parameters, by name.
        reach: how far the levels reach, as a multiple of the root mean square of the weights.

    >>> with torch.no_grad():
    ...     found = RoundedWeights(levels=3).weights(nn.Linear(8, 4))
    >>> len(found["weight"].unique()) <= 3
    True
    """

    kind: ClassVar[str] = "rounded weights"
    levels: int = 3
    bias_levels: int | None = None
    levels_of: Mapping[str, int] = field(default_factory=dict)
    reach: float = REACH

    def __post_init__(self) -> None:
        given = {"levels": self.levels, **({} if self.bias_levels is None else {"bias_levels": self.bias_levels})}
        for name, count in {**given, **{f"levels_of[{name!r}]": each for name, each in self.levels_of.items()}}.items():
            if type(count) is not int or count < 2:
                raise ArgumentError(where=f"RoundedWeights.{name}", got=count, wanted="a whole number of at least 2")
        check_number("RoundedWeights.reach", self.reach)

    def check(self, model: nn.Module) -> None:
        known = {name for name, _ in model.named_parameters()}
        if unknown := sorted(self.levels_of.keys() - known):
            wanted = f"names among {', '.join(sorted(known))}"
            raise ArgumentError(where="RoundedWeights.levels_of", got=unknown[0], wanted=wanted)

    def weights(self, model: nn.Module) -> dict[str, Tensor]:
        return {name: self._rounded(name, parameter) for name, parameter in model.named_parameters()}

    def _rounded(self, name: str, parameter: Tensor) -> Tensor:
        usual = self.levels if parameter.ndim > 1 or self.bias_levels is None else self.bias_levels
        levels = self.levels_of.get(name, usual)
        return rounded(parameter, levels=levels, scale=step_of(parameter, levels=levels, reach=self.reach))


def step_of(weight: Tensor, *, levels: int, reach: float = REACH) -> Tensor:
    """The step from level to level: ``s = reach · rms(w) / (K + 5/4)`` for ``2K + 1`` levels.

    It depends on the weights alone, so that nothing else has to be learned and kept. For Gaussian weights and a reach
    of 2.8 it is about the step of least square error (Max 1960). A longer one leaves more weights at 0, which makes the
    network shorter to describe, and trained better.

    Args:
        weight: w, the free weights.
        levels: how many there are.
        reach: how far the levels reach, as a multiple of the root mean square of the weights.

    >>> step_of(torch.tensor([3.0, -3.0]), levels=3, reach=2.25).item()
    3.0
    """
    squares = weight.double().square().mean() if weight.numel() else weight.new_zeros((), dtype=torch.float64)
    # Weights that are all 0, as biases are at first, have some step too.
    return reach / ((levels - 1) / 2 + 1.25) * (squares + TINY).sqrt()
