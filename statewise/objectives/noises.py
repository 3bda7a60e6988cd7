"""The noise that an objective is about: centred, independent of the state, and not fed back."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.errors import ArgumentError, DtypeError, ShapeError
from statewise.heads.likelihoods import widened
from statewise.transforms import Noise
from statewise.transforms.base import choice
from statewise.transforms.laws import law
from statewise.transforms.noise import MODES

NOT_FED_BACK = "the noise enters these states only: it is not fed back, and the states given are free of noise"


@dataclass(frozen=True, eq=False)
class Covariance:
    """Noise of which only the covariance of ``eps`` is known: enough for the second-order penalty, and for no more.

    Args:
        values: a variance for all units (a number), one for each (hidden,), or a matrix (hidden, hidden) for noise that
            is correlated between units.
        mode: "multiplicative" (``z = h * (1 + eps)``) or "additive" (``z = h + eps``).

    >>> Covariance(0.25).values
    tensor(0.2500)
    """

    values: Float[Tensor, "*shape"] | float
    mode: str = "multiplicative"

    def __post_init__(self) -> None:
        values = torch.as_tensor(self.values)
        choice("Covariance.mode", self.mode, MODES)
        square = values.ndim < 2 or values.shape[0] == values.shape[1]
        if values.ndim > 2 or not square or not values.is_floating_point():
            got = f"{values.dtype} of shape {tuple(values.shape)}"
            raise ShapeError(where="Covariance.values", got=got, wanted="a number, (hidden,) or (hidden, hidden)")
        object.__setattr__(self, "values", values)

    def at(self, hidden: int) -> Tensor:
        """The values, checked against the number of units."""
        values = torch.as_tensor(self.values)
        if values.ndim and values.shape[0] != hidden:
            raise ShapeError(where="Covariance.values", got=tuple(values.shape), wanted=f"{hidden} units")
        return values


def checked(noise: object, *, where: str) -> Noise:
    """The noise, refused where it is fed back: then the excess is no function of the clean states.

    >>> checked(Noise("gaussian", 0.5), where="penalty")
    Noise('gaussian', 0.5)
    """
    if not isinstance(noise, Noise):
        raise DtypeError(
            where=f"{where} noise",
            got=type(noise).__name__,
            wanted="a statewise.Noise, such as Noise('gaussian', 0.5, placement='last')",
        )
    if noise.placement == "recurrent":
        raise ArgumentError(
            where=f"{where} noise",
            got="placement='recurrent'",
            wanted="noise that is not fed back, with placement 'last' or 'outputs'",
            remedy="Fed-back noise moves the mean of later states, and its excess depends on the targets: estimate it "
            "by passes of the layer.",
        )
    return noise


def variance(noise: Noise) -> float:
    """``Var eps``.

    >>> variance(Noise("bernoulli", 0.5))
    1.0
    """
    return law(noise.law).variance(noise.gamma, noise.alpha)


def reach(states: Tensor, mode: str) -> Tensor:
    """What multiplies ``eps`` in ``z - h``: the state itself, or one.

    >>> reach(torch.tensor([2.0]), "additive")
    tensor([1.])
    """
    return widened(states) if mode == "multiplicative" else torch.ones_like(widened(states))
