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
from statewise.memory.grid_tensor import Network, grid_tensor, matricize
from statewise.memory.scaled import scaled_scores
from statewise.memory.split import split_of


class RoundedRankWarning(UserWarning):
    """A rank of a deep arithmetic circuit was asked of floats, which cannot tell."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SeparationSpectrum:
    """The singular values of a table of Start and End.

    Args:
        values: in falling order, the largest 1: shares of it. All zero where the table is.
        log_scale: the logarithm of the largest.
        size: the larger side of the table, for the tolerance of its rank; 0 where no table was written.
    """

    values: NDArray[np.float64]
    log_scale: float
    size: int = 0

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
            tolerance: as a share of the largest; None for the rounding of float64 times the larger side.
        """
        limit = max(self.size, len(self.values)) * np.finfo(np.float64).eps if tolerance is None else tolerance
        return int((self.values > limit).sum())

    def describe(self) -> str:
        """All of it on one line."""
        return (
            f"rank {self.rank()} in float64, effective rank {self.effective_rank:.3f}, "
            f"entropy {self.entropy:.3f} nats, distance to separable {self.distance:.3f}"
        )


def table_spectrum(table: Float[Tensor, "rows columns"], *, log_scale: float = 0.0) -> SeparationSpectrum:
    """The singular values of a table that is there, in double precision.

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
    return spectrum_of(values, log_scale=log_scale, size=max(table.shape))


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
    if isinstance(network, RAC) and network.num_layers > 1:
        warnings.warn(
            f"A rank from floats of an arithmetic circuit of {network.num_layers} layers is unreliable: its entries "
            "spread over so many orders of magnitude that small singular values are rounding. "
            "network_rank(Circuit.of(...), ...) is exact.",
            RoundedRankWarning,
            stacklevel=2,
        )
    if isinstance(network, RAC) and isinstance(readout, Tensor):
        tensor, log_scale = _scaled_grid(network, templates, steps, readout, output)
    else:
        tensor, log_scale = grid_tensor(network, templates, steps, readout=readout, output=output), 0.0
    return table_spectrum(matricize(tensor, split), log_scale=log_scale)


def spectrum_of(values: NDArray[np.float64], *, log_scale: float = 0.0, size: int = 0) -> SeparationSpectrum:
    """Singular values of any scale, normalised.

    Args:
        values: in any order, each ``exp(log_scale)`` times as large.
        log_scale: see there.
        size: the larger side of the table they are of.

    >>> spectrum_of(np.array([1.0, 4.0])).values.tolist()
    [1.0, 0.25]
    """
    falling = np.sort(values)[::-1]
    largest = float(falling.max(initial=0.0))
    if largest == 0.0:
        return SeparationSpectrum(values=falling, log_scale=-math.inf, size=size)
    return SeparationSpectrum(values=falling / largest, log_scale=log_scale + math.log(largest), size=size)


def _scaled_grid(layer: RAC, templates: Tensor, steps: int, readout: Tensor, output: int) -> tuple[Tensor, float]:
    """The grid tensor of a circuit divided by its largest scale, and the logarithm of that."""
    row = readout[output : output + 1] if readout.dim() == 2 else readout.unsqueeze(0)
    parts: list[Tensor] = []

    def score(x: Tensor) -> Tensor:
        found = scaled_scores(layer, x.transpose(0, 1) if layer.batch_first else x, row)
        last = (
            (found.mantissa[:, -1], found.log_scale[:, -1])
            if layer.batch_first
            else (found.mantissa[-1], found.log_scale[-1])
        )
        parts.append(last[1])
        return last[0][:, 0]

    mantissa = grid_tensor(score, templates, steps)
    scale = torch.cat(parts)[-mantissa.numel() :].reshape(mantissa.shape)  # before these, what a check asked
    largest = float(scale.max())
    if largest == -math.inf:
        return mantissa, 0.0
    return mantissa * (scale - largest).exp(), largest
