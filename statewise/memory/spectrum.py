"""How strongly two halves of a sequence are entangled: the singular values of a table of Start and End."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from statewise.analysis.ranks import effective_rank
from statewise.errors import NonFiniteError
from statewise.layers.recurrent import RAC
from statewise.memory.grid_tensor import Network, grid_tensor, matricize, on_words
from statewise.memory.scaled import can_be_scaled, scaled_scorer, unscaled
from statewise.memory.split import split_of


class RoundedRankWarning(UserWarning):
    """A rank of a deep arithmetic circuit was asked of floats, which cannot tell."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SeparationSpectrum:
    """The singular values of a table of Start and End.

    Args:
        values: in falling order, the largest 1: shares of it. All zero where the table is.
        log_scale: the logarithm of the largest.
        rounding: what is no larger, as a share of the largest, may be rounding: the precision that the scores were
            computed in times the larger side of their table.
    """

    values: NDArray[np.float64]
    log_scale: float
    rounding: float

    @property
    def log_values(self) -> NDArray[np.float64]:
        """The logarithms of the singular values themselves."""
        with np.errstate(divide="ignore"):
            return np.log(self.values) + self.log_scale

    @property
    def distance(self) -> float:
        """The normalised distance to the nearest separable function, ``sqrt(1 - s_1^2 / sum s^2)``; 0 if it is one.

        It is at most ``sqrt(1 - 1 / rank)``: in this sense the rank measures dependence (Levine et al. 2017).
        """
        energies = self.values[1:] ** 2
        return math.sqrt(float(energies.sum() / (1 + energies.sum()))) if self.values.any() else 0.0

    @property
    def entropy(self) -> float:
        """The entropy of entanglement, ``-sum q ln q`` with ``q = s^2 / sum s^2``; 0 where the halves are separate."""
        return math.log(self.effective_rank) if self.values.any() else 0.0

    @property
    def effective_rank(self) -> float:
        """How many values count, ``exp(entropy)``; 0 of a table of zeros."""
        return effective_rank(self.values)

    def rank(self, tolerance: float | None = None) -> int:
        """How many values exceed a tolerance: of rounded numbers nothing more exact can be said.

        Args:
            tolerance: as a share of the largest; None for ``rounding``.
        """
        return int((self.values > (self.rounding if tolerance is None else tolerance)).sum())

    def describe(self) -> str:
        """All of it on one line."""
        return (
            f"rank {self.rank()} above rounding ({self.rounding:.1e}), effective rank {self.effective_rank:.3f}, "
            f"entropy {self.entropy:.3f} nats, distance to separable {self.distance:.3f}"
        )


def table_spectrum(table: Float[Tensor, "rows columns"], *, log_scale: float = 0.0) -> SeparationSpectrum:
    """The singular values of a table that is there, in double precision.

    The scores themselves are as precise as their dtype, and so is the rank: those of a float32 network are rounded long
    before the singular values are.

    Args:
        table: of scores, ``exp(log_scale)`` times as large.
        log_scale: see there.

    >>> found = table_spectrum(torch.diag(torch.tensor([3.0, 1.0])))
    >>> found.values.round(6).tolist(), round(found.distance**2, 6)
    ([1.0, 0.333333], 0.1)
    """
    if not bool(table.isfinite().all()):
        raise NonFiniteError(
            where="table_spectrum.table",
            got="NaN or infinity",
            wanted="finite scores",
            remedy="Deep circuits overflow: ask separation_spectrum(layer, ...), which scales, or network_rank(...).",
        )
    values = torch.linalg.svdvals(table.detach().double().cpu()).numpy()
    return spectrum_of(values, log_scale=log_scale, rounding=max(table.shape) * torch.finfo(table.dtype).eps)


def separation_spectrum(
    network: Network,
    templates: Float[Tensor, "templates features"],
    steps: int,
    *,
    split: int | Sequence[int] | None = None,
    readout: Any = None,
    output: int = 0,
) -> SeparationSpectrum:
    """The singular values of the table of Start and End of any network, in floats.

    Of a deep arithmetic circuit the rank of such a table means little: entries spread over hundreds of orders of
    magnitude, and a warning says so. Ask ``network_rank`` or ``generic_rank`` instead, which are exact.

    Args:
        network: as :func:`statewise.memory.grid_tensor.grid_tensor` takes it.
        templates: the inputs there are.
        steps: T.
        split: steps of the Start, or which steps, counted from 0, are the rows; None for half of an even T.
        readout: of a layer's last state.
        output: which of several scores.

    >>> found = separation_spectrum(lambda x: x[0, :, 0] * x[1, :, 0], torch.tensor([[1.0], [2.0]]), 2)
    >>> found.rank(), found.distance < 1e-7
    (1, True)
    """
    if split is None or not isinstance(split, Sequence):
        split = split_of(steps, split, where="separation_spectrum", name="steps")
    warn_of_rounding(network)
    if can_be_scaled(network, readout):
        told = on_words(scaled_scorer(network, readout=readout, output=output), templates, steps)
        words, log_scale = unscaled(told)
        tensor = words.reshape([len(templates)] * steps)
    else:
        tensor, log_scale = grid_tensor(network, templates, steps, readout=readout, output=output), 0.0
    return table_spectrum(matricize(tensor, split), log_scale=log_scale)


def warn_of_rounding(network: Network) -> None:
    """Warn whoever asks floats for ranks of a deep arithmetic circuit.

    Args:
        network: any; only a deep circuit is warned of.
    """
    if isinstance(network, RAC) and network.num_layers > 1:
        warnings.warn(
            f"A rank from floats of an arithmetic circuit of {network.num_layers} layers is unreliable: its entries "
            "spread over so many orders of magnitude that small singular values are rounding. "
            "network_rank(Circuit.of(...), ...) is exact.",
            RoundedRankWarning,
            stacklevel=3,
        )


def spectrum_of(values: NDArray[np.float64], *, rounding: float, log_scale: float = 0.0) -> SeparationSpectrum:
    """Singular values of any scale, normalised.

    Args:
        values: in any order, each ``exp(log_scale)`` times as large.
        rounding: what is no larger, as a share of the largest, may be rounding.
        log_scale: see there.

    >>> spectrum_of(np.array([1.0, 4.0]), rounding=0.0).values.tolist()
    [1.0, 0.25]
    """
    falling = np.sort(values)[::-1]
    largest = float(falling.max(initial=0.0))
    if largest == 0.0:
        return SeparationSpectrum(values=falling, log_scale=-math.inf, rounding=rounding)
    scale = log_scale + math.log(largest)
    return SeparationSpectrum(values=falling / largest, log_scale=scale, rounding=rounding)
