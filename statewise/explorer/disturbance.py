"""What a person changes while a network reads: the temperature of its centroids, and noise on its states."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from statewise.errors import ArgumentError
from statewise.layers import RecurrentLayer
from statewise.transforms import Centroids, Sizes, StateChange, StateTransform, Stream
from statewise.transforms.base import choice, finite
from statewise.transforms.recipes import Kind, Recipe

MODES = ("additive", "multiplicative")
COLDEST, HOTTEST = 1e-3, 1e3  # temperatures beyond these differ from their limits by rounding only
NOISIEST, MOST_DRAWS, LARGEST_SEED = 10.0, 32, 2**31 - 1


@dataclass(frozen=True, repr=False)
class Disturbance(StateTransform):
    """Gaussian noise on the state before it is fed back, in eval mode too.

    ``h = u + gamma eps`` or ``h = u (1 + gamma eps)`` with ``eps ~ N(0, 1)``. Unlike :class:`~statewise.Noise` it is no
    regularizer: it asks how much a trained network bears.

    Args:
        gamma: the standard deviation.
        mode: "additive" or "multiplicative".

    >>> Disturbance(0.1).parameter_shapes(hidden=8)
    {}
    """

    gamma: float
    mode: str = field(default="additive", kw_only=True)

    def parameter_shapes(self, hidden: int) -> dict[str, tuple[int, ...]]:
        return {}

    def draw(self, sizes: Sizes, stream: Stream, *, training: bool) -> tuple[Tensor, ...] | None:
        """The shifts or the factors, (steps, batch, hidden)."""
        dtype = torch.float64 if sizes.dtype == torch.float64 else torch.float32
        drawn = torch.empty(sizes.steps, sizes.batch, sizes.hidden, dtype=dtype, device=sizes.device)
        mean = 0.0 if self.mode == "additive" else 1.0
        return (stream.draw(drawn, Recipe.of(Kind.NORMAL, scale=self.gamma, shift=mean)),)

    def forward(
        self,
        state: Tensor,
        memory: Tensor | None,
        previous: tuple[Tensor, Tensor | None],
        draws: tuple[Tensor, ...],
        parameters: tuple[Tensor, ...],
    ) -> StateChange:
        moved = state + draws[0] if self.mode == "additive" else state * draws[0]
        return StateChange(moved.to(state.dtype), memory)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How a network is asked to read.

    Args:
        temperature: of all centroids; None for those of training.
        gamma: the standard deviation of the noise on the states; 0 for none.
        mode: "additive" or "multiplicative" noise.
        draws: how often the noise is drawn.
        seed: of the draws.

    >>> Setting(gamma=0.5).noisy
    True
    >>> Setting(temperature=0.0)
    Traceback (most recent call last):
    statewise.errors.ArgumentError: temperature: got 0.0, wanted a number from 0.001 to 1000.
    """

    temperature: float | None = None
    gamma: float = 0.0
    mode: str = "additive"
    draws: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        choice("mode", self.mode, MODES)
        within("gamma", finite("gamma", self.gamma), 0, NOISIEST)
        if self.temperature is not None:
            within("temperature", finite("temperature", self.temperature), COLDEST, HOTTEST)
        for name, low, high in (("draws", 1, MOST_DRAWS), ("seed", 0, LARGEST_SEED)):
            value = getattr(self, name)
            if type(value) is not int:
                raise ArgumentError(where=name, got=value, wanted=f"a whole number from {low} to {high}")
            within(name, value, low, high)

    @property
    def noisy(self) -> bool:
        """Whether there is noise at all."""
        return self.gamma > 0

    def generator(self) -> torch.Generator:
        """A fresh source of everything that is drawn."""
        return torch.Generator().manual_seed(self.seed)

    def tune(self, layer: RecurrentLayer, *, noisy: bool) -> None:
        """Change a layer, which should be that of a view, to this setting.

        Args:
            layer: whose centroids get the temperature, and whose states the noise before they are drawn to centroids.
            noisy: whether noise is wanted, where the setting has some.
        """
        if self.temperature is not None and any(isinstance(each, Centroids) for each in layer.transforms):
            layer.retune(Centroids, temperature=float(self.temperature))
        if noisy and self.noisy:
            layer.add_first(Disturbance(float(self.gamma), mode=self.mode))


def within(where: str, value: float, low: float, high: float) -> None:
    """Refuse a number outside an interval.

    Args:
        where: its name.
        value: the number.
        low: the least.
        high: the most.

    >>> within("step", 2, 0, 5)
    """
    if not low <= value <= high:
        raise ArgumentError(where=where, got=value, wanted=f"a number from {low:g} to {high:g}")
