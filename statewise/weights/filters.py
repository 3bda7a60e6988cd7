"""Orthogonal filter banks, and the matrix that a convolution with averaged channels comes to."""

from __future__ import annotations

import math
from typing import TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from statewise.errors import ArgumentError, ShapeError
from statewise.weights.orthogonal_init import haar_orthogonal_
from statewise.weights.signs import well_conditioned_signs
from statewise.weights.skew import cayley_orthogonal, inverse_cayley_orthogonal, skew_entries

ModuleT = TypeVar("ModuleT", bound=nn.Module)


def convolution_matrix(taps: Float[Tensor, "*banks taps"], *, size: int) -> Float[Tensor, "*banks places size"]:
    """The Toeplitz matrix of a valid convolution: ``y_i = sum_j taps_j x_{i+j}`` for ``size - k + 1`` places.

    Nothing is flipped, as in ``torch.nn.functional.conv1d``.

    Args:
        taps: the filter, k numbers.
        size: how many entries x has.

    >>> convolution_matrix(torch.tensor([1.0, 2.0]), size=4)
    tensor([[1., 2., 0., 0.],
            [0., 1., 2., 0.],
            [0., 0., 1., 2.]])
    """
    places = size - taps.shape[-1] + 1
    # Rows one entry too long, cut anew: each begins one entry later than the row above it.
    row = F.pad(taps, (0, places)).unsqueeze(-2)
    flat = row.expand(*row.shape[:-2], places, size + 1).flatten(-2)
    matrix: Tensor = flat[..., : places * size].unflatten(-1, (places, size))
    return matrix


def pool_rows(matrix: Float[Tensor, "*banks places size"], *, outputs: int) -> Float[Tensor, "*banks outputs size"]:
    """Averages of adjacent rows, in blocks that do not overlap and are as equal as can be, the longer ones first.

    >>> pool_rows(torch.arange(5.0).unsqueeze(1), outputs=2).tolist()
    [[1.0], [3.5]]
    """
    return torch.stack([block.mean(-2) for block in matrix.tensor_split(outputs, -2)], -2)


class OrthogonalFilters(nn.Module):
    """The matrix of a convolution with an orthogonal filter bank and averaged channels, as a parametrization.

    ``I = Q / sqrt(k)``, Q orthogonal: k filters of length k, the columns of I. The channels are the k valid
    convolutions; their average is the convolution with the mean filter ``ī = I 1 / k``, of length ``‖ī‖_2 = 1/k``
    exactly, so that the spectral norm of the matrix is at most ``‖ī‖_1 <= 1/sqrt(k)`` (Chen, Li & Zhao 2019, Theorem 6,
    which has 1 for the last). Q is the scaled Cayley map of free numbers, so every optimiser keeps the filters
    orthogonal. The bank has k^2 entries, k (k - 1) / 2 of them free, and only the k of ī are felt.

    The ``size - k + 1`` values of the convolution stand in the middle of ``size`` rows, with ``(k - 1) // 2`` rows of
    zeros before and ``k // 2`` after them; or they are pooled to ``outputs`` rows, and nothing is padded.

    Shapes: ``theta (banks, k (k - 1) / 2)``, ``signs (banks, k)``, the matrix ``(size or outputs, banks * size)``.

    Args:
        size: entries of what is convolved.
        filter_size: k.
        banks: how many vectors of this size come side by side; each has a bank of its own, and the results are added.
        outputs: pool to so many rows, see :func:`pool_rows`; None pads to ``size`` rows.

    >>> matrix = OrthogonalFilters(5, 3)(torch.zeros(1, 3))  # Q = 1, so that ī_j = 3^(-3/2)
    >>> (matrix * 3**1.5).round().int().tolist()
    [[0, 0, 0, 0, 0], [1, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 1, 1], [0, 0, 0, 0, 0]]
    """

    signs: Tensor

    def __init__(self, size: int, filter_size: int, *, banks: int = 1, outputs: int | None = None) -> None:
        super().__init__()
        require_sizes("OrthogonalFilters", size, filter_size, outputs)
        self.size, self.filter_size, self.banks, self.outputs = size, filter_size, banks, outputs
        self.register_buffer("signs", torch.ones(banks, filter_size))

    def forward(self, theta: Float[Tensor, "banks entries"]) -> Float[Tensor, "rows columns"]:
        """The matrix from the free numbers."""
        return self._matrix(self._filters(theta).mean(-1)).to(theta.dtype)

    def filters(self, theta: Float[Tensor, "banks entries"]) -> Float[Tensor, "banks taps channels"]:
        """The banks I themselves, filters as columns."""
        return self._filters(theta).to(theta.dtype)

    def solve_(self, filters: Float[Tensor, "banks taps channels"]) -> Float[Tensor, "banks entries"]:
        """The free numbers of given banks, all of at most 1; the signs become those that suit these banks."""
        orthogonal = filters.detach().double() * math.sqrt(self.filter_size)
        if orthogonal.shape != (*self.signs.shape, self.filter_size):
            wanted = f"{(*self.signs.shape, self.filter_size)}: banks, taps, channels"
            raise ShapeError(where="OrthogonalFilters filters", got=tuple(filters.shape), wanted=wanted)
        # Rounded entries are judged by their own dtype, and then taken for the orthogonal matrix that they are near.
        rounded = orthogonal.to(filters.dtype)
        signs = torch.stack([well_conditioned_signs(bank) for bank in rounded])
        theta = inverse_cayley_orthogonal(rounded, signs, where="OrthogonalFilters filters")
        self.signs.copy_(signs)
        return theta

    def right_inverse(self, weight: Float[Tensor, "rows columns"]) -> Float[Tensor, "banks entries"]:
        """Free numbers that give this matrix; an ArgumentError where it is not one of those described above.

        Many banks have the same mean filter; these turn the present signs to it by the shortest way.
        """
        taps = self._taps(weight.double())
        unit = F.normalize(taps, dim=-1)
        if not weight.is_meta:
            error = (self._matrix(unit / self.filter_size) - weight).abs().max().item()
            if not error <= 100 * self.size * torch.finfo(weight.dtype).eps:
                raise ArgumentError(
                    where="OrthogonalFilters weight",
                    got=f"a matrix that is off by {error:.3g}",
                    wanted=f"the matrix of a convolution with {self.filter_size} taps of length 1/{self.filter_size}",
                )
        start = self.signs.double() / math.sqrt(self.filter_size)
        gap = 1 + (start * unit).sum(-1)
        if not weight.is_meta and gap.min() < math.sqrt(torch.finfo(weight.dtype).eps):
            raise ArgumentError(
                where="OrthogonalFilters weight",
                got="taps opposite to the signs",
                wanted="taps that a rotation by less than a half turn leads to",
                remedy="Give the filters themselves, by set_filters_.",
            )
        # (1 + A)^-1 (1 - A) turns the plane of start and unit so that the one comes to the other.
        turn = start.unsqueeze(-1) * unit.unsqueeze(-2) / gap[:, None, None]
        return skew_entries(turn - turn.mT).to(weight.dtype)

    def extra_repr(self) -> str:
        parts = [f"{self.size}, {self.filter_size}"]
        parts += [f"banks={self.banks}"] if self.banks > 1 else []
        return ", ".join(parts + ([] if self.outputs is None else [f"outputs={self.outputs}"]))

    def _filters(self, theta: Tensor) -> Tensor:
        return cayley_orthogonal(theta.double(), self.signs) / math.sqrt(self.filter_size)

    def _matrix(self, taps: Tensor) -> Tensor:
        """Of one mean filter a bank."""
        matrix, taken = convolution_matrix(taps, size=self.size), self.filter_size - 1
        if self.outputs is None:
            matrix = F.pad(matrix, (0, 0, taken // 2, taken - taken // 2))
        else:
            matrix = pool_rows(matrix, outputs=self.outputs)
        return torch.cat(tuple(matrix.unbind(0)), dim=-1)

    def _taps(self, weight: Tensor) -> Tensor:
        """The mean filters, read off the first row that is not padding."""
        top = 0 if self.outputs is not None else (self.filter_size - 1) // 2
        block = 1 if self.outputs is None else -(-(self.size - self.filter_size + 1) // self.outputs)
        row = block * weight[top].unflatten(0, (self.banks, self.size))
        found: list[Tensor] = []
        for place in range(self.filter_size):
            # An entry of a row that averages a block is a sum of so many neighbouring taps.
            tap = row[:, place] - (row[:, place - 1] if place else 0.0)
            found.append(tap + found[place - block] if place >= block else tap)
        return torch.stack(found, -1)


def orthogonal_filters(
    module: ModuleT, name: str, *, size: int, filter_size: int, outputs: int | None = None
) -> ModuleT:
    """Make a weight the matrix of an orthogonal filter bank, see :class:`OrthogonalFilters`; returns the module.

    All filters of a bank add up to a blur at first; :func:`haar_filters_` draws others.

    Args:
        module: the owner of the weight.
        name: of a weight ``(size, banks * size)``, or ``(outputs, size)``.
        size: entries of what is convolved.
        filter_size: k.
        outputs: pool to so many rows; None pads to ``size`` rows.

    >>> layer = orthogonal_filters(nn.Linear(6, 6, bias=False), "weight", size=6, filter_size=3)
    >>> layer.parametrizations.weight.original.shape  # one bank, 3 * 2 / 2 free numbers
    torch.Size([1, 3])
    """
    weight = module.get_parameter(name)
    bank = OrthogonalFilters(size, filter_size, banks=weight.shape[1] // size, outputs=outputs).to(weight.device)
    entries = filter_size * (filter_size - 1) // 2
    with torch.no_grad():
        weight.copy_(bank(weight.new_zeros(bank.banks, entries)))
        parametrize.register_parametrization(module, name, bank)
    return module


def filters_of(module: nn.Module, name: str) -> Float[Tensor, "banks taps channels"]:
    """The filter banks of a weight under :func:`orthogonal_filters`; gradients flow through them.

    >>> layer = orthogonal_filters(nn.Linear(6, 6, bias=False), "weight", size=6, filter_size=2)
    >>> bank = filters_of(layer, "weight")[0]
    >>> torch.allclose(2 * bank.T @ bank, torch.eye(2), atol=1e-6)
    True
    """
    bank, theta = _found(module, name)
    return bank.filters(theta)


@torch.no_grad()
def set_filters_(module: ModuleT, name: str, filters: Float[Tensor, "banks taps channels"]) -> ModuleT:
    """Give a weight under :func:`orthogonal_filters` these filter banks; returns the module.

    Args:
        module: the owner of the weight.
        name: of the weight.
        filters: ``I`` with ``I^T I = 1/k``, the filters as columns.
    """
    bank, theta = _found(module, name)
    theta.copy_(bank.solve_(filters))
    return module


def haar_filters_(module: ModuleT, name: str, *, generator: torch.Generator | None = None) -> ModuleT:
    """Draw the filter banks of a weight uniformly, hence mean filters uniform on their sphere; returns the module.

    Args:
        module: the owner of the weight.
        name: of the weight.
        generator: source of the numbers, drawn on its device.
    """
    bank, _ = _found(module, name)
    stacked = torch.empty(bank.banks * bank.filter_size, bank.filter_size, dtype=torch.float64)
    haar_orthogonal_(stacked, gates=bank.banks, generator=generator)
    return set_filters_(module, name, stacked.unflatten(0, (bank.banks, -1)) / math.sqrt(bank.filter_size))


def require_sizes(
    where: str, size: int, filter_size: int, outputs: int | None = None, *, called: str = "outputs"
) -> None:
    """Raise an ArgumentError unless the filters fit into what they convolve, and the outputs into what is left."""
    _require_whole(f"{where}.size", size, None)
    _require_whole(f"{where}.filter_size", filter_size, size)
    if outputs is not None:
        _require_whole(f"{where}.{called}", outputs, size - filter_size + 1)


def _require_whole(where: str, value: int, most: int | None) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1 or (most is not None and value > most):
        wanted = "a whole number of at least 1" if most is None else f"a whole number from 1 to {most}"
        raise ArgumentError(where=where, got=value, wanted=wanted)


def _found(module: nn.Module, name: str) -> tuple[OrthogonalFilters, Tensor]:
    if parametrize.is_parametrized(module, name):
        chain = module.get_submodule(f"parametrizations.{name}")
        for bank in chain.children():
            if isinstance(bank, OrthogonalFilters):
                return bank, chain.get_parameter("original")
    raise ArgumentError(
        where=f"{type(module).__name__}.{name}",
        got="a weight without filters",
        wanted="one that orthogonal_filters has been called on",
    )
