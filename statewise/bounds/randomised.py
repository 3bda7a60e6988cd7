"""A network whose weights are random: drawn anew for each call from a Gaussian around trained means."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call

from statewise.bounds.grid import NORMS, nats
from statewise.errors import ArgumentError


class RandomisedNetwork(nn.Module):
    """A network whose parameters are drawn anew for each call: ``w = μ + σ ε``, one μ and one σ for each number.

    The prior is ``N(μ0, s² I)`` for each tensor. Its s was fixed beforehand; or it lies on the grid ``2^(j/8)`` and is
    chosen for the trained μ and σ, and the grid's law pays for that.

    Args:
        network: gives the means to start from and the computation; it is copied. Everything of it that is no
            parameter (buffers among it) has to be fixed before the data is seen.
        centre: μ0: ``"zero"``; ``"start"``, the parameters that the network has now, valid where they are random; or
            parameters by name, of a network trained on *other* sequences than those that the certificate counts.
        deviation: σ at the start.
        prior_deviation: s of all tensors, fixed before the data is seen; None chooses one for each.

    >>> network = RandomisedNetwork(nn.Linear(3, 2), centre="start", deviation=0.1)
    >>> generator = torch.Generator().manual_seed(0)
    >>> one, two = (network(torch.ones(1, 3), generator=generator) for _ in range(2))
    >>> torch.equal(one, two), round(network.divergence().item(), 6)
    (False, 0.0)
    """

    def __init__(
        self,
        network: nn.Module,
        *,
        centre: Literal["zero", "start"] | Mapping[str, Tensor] = "zero",
        deviation: float = 0.03,
        prior_deviation: float | None = None,
    ) -> None:
        super().__init__()
        if prior_deviation is not None and not 0 < prior_deviation < math.inf:
            wanted = "a finite number > 0, or None"
            raise ArgumentError(where="RandomisedNetwork.prior_deviation", got=prior_deviation, wanted=wanted)
        self.prior_deviation = prior_deviation
        if not 0 < deviation < math.inf:
            raise ArgumentError(where="RandomisedNetwork.deviation", got=deviation, wanted="a finite number > 0")
        self.network = copy.deepcopy(network).requires_grad_(False)
        start = {name: value.detach().clone() for name, value in self.network.named_parameters()}
        if not start or not all(value.is_floating_point() for value in start.values()):
            raise ArgumentError(where="RandomisedNetwork.network", got="its parameters", wanted="floating parameters")
        self._names = tuple(start)
        self.means = nn.ParameterList(start.values())
        self.log_deviations = nn.ParameterList(torch.full_like(value, math.log(deviation)) for value in start.values())
        for index, value in enumerate(_centre(start, centre)):
            self.register_buffer(f"centre_{index}", value)

    @property
    def centres(self) -> list[Tensor]:
        """μ0 of each parameter."""
        return [self.get_buffer(f"centre_{index}") for index in range(len(self._names))]

    def draw(self, *, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """One network: parameters by name, differentiable in μ and σ.

        Args:
            generator: of the noise, on the parameters' device.
        """
        drawn = {}
        for name, mean, log_deviation in zip(self._names, self.means, self.log_deviations, strict=True):
            noise = torch.randn(mean.shape, generator=generator, dtype=mean.dtype, device=mean.device)
            drawn[name] = mean + log_deviation.exp() * noise
        return drawn

    def forward(self, *inputs: Any, generator: torch.Generator | None = None, **named: Any) -> Any:
        """The answer of a freshly drawn network.

        Args:
            inputs: of the network.
            generator: of the noise.
            named: inputs by name.
        """
        return functional_call(self.network, self.draw(generator=generator), inputs, named)

    def divergence(self) -> Tensor:
        """``KL(posterior ‖ prior)``, where s is chosen with the best one, off the grid: smooth, for training."""
        return torch.stack([_gaussian_kl(*parts, self.prior_deviation) for parts in self._parts()]).sum()

    def priced_divergence(self) -> tuple[float, float]:
        """The same for the certificate: with s on the grid, and the nats that the choice of s costs."""
        if self.prior_deviation is not None:
            return self.divergence().item(), 0.0
        found, price = 0.0, 0.0
        with torch.no_grad():
            for mean, log_deviation, centre in self._parts():
                index = round(NORMS * math.log2(_best_scale(mean, log_deviation, centre).item()))
                found += _gaussian_kl(mean, log_deviation, centre, 2.0 ** (index / NORMS)).item()
                price += nats(index)
        return found, price

    def _parts(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        parts = zip(self.means, self.log_deviations, self.centres, strict=True)
        return [(mean.double(), log_deviation.double(), centre.double()) for mean, log_deviation, centre in parts]


def _centre(start: Mapping[str, Tensor], centre: str | Mapping[str, Tensor]) -> list[Tensor]:
    if isinstance(centre, str):
        if centre not in ("zero", "start"):
            raise ArgumentError(where="RandomisedNetwork.centre", got=centre, wanted="zero, start, or parameters")
        return [torch.zeros_like(value) if centre == "zero" else value.clone() for value in start.values()]
    if any(name not in centre or centre[name].shape != value.shape for name, value in start.items()):
        wanted = f"a tensor for each of {', '.join(start)}, in its shape"
        raise ArgumentError(where="RandomisedNetwork.centre", got=sorted(centre), wanted=wanted)
    return [centre[name].detach().to(value, copy=True) for name, value in start.items()]


def _best_scale(mean: Tensor, log_deviation: Tensor, centre: Tensor) -> Tensor:
    """The s of least KL: ``s² = mean of (μ - μ0)² + σ²``."""
    return ((mean - centre).square() + (2 * log_deviation).exp()).mean().sqrt()


def _gaussian_kl(mean: Tensor, log_deviation: Tensor, centre: Tensor, scale: float | None) -> Tensor:
    s = _best_scale(mean, log_deviation, centre) if scale is None else mean.new_tensor(scale)
    squares = ((mean - centre).square() + (2 * log_deviation).exp()) / s.square()
    return (0.5 * (squares - 1) + s.log() - log_deviation).sum()
