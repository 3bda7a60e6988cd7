"""Where a network forgets: its separation rank, or its whole spectrum, at every split of the sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from statewise.errors import ArgumentError, ShapeError
from statewise.memory.circuit import Circuit, check_circuit
from statewise.memory.drawn import drawn_weights
from statewise.memory.elimination import rank
from statewise.memory.field import Field
from statewise.memory.grid import Weights, grid_matrix
from statewise.memory.grid_tensor import Network, refuse_chance, scorer
from statewise.memory.partition import MOST
from statewise.memory.primes import PRIMES, check_primes
from statewise.memory.row_space import row_space_profile
from statewise.memory.scaled import can_be_scaled, scaled_scorer, unscaled
from statewise.memory.shallow_spectrum import shallow_spectra
from statewise.memory.sharper_bound import proved_bound
from statewise.memory.spectrum import SeparationSpectrum, table_spectrum, warn_of_rounding
from statewise.memory.whole import exceeds, whole, wholes


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryProfile:
    """What is remembered across every split of a sequence.

    Args:
        whose: "generic" (almost every circuit), "this network" (its exact weights, modulo primes), "spectrum" or
            "samples" (in floats).
        steps: T.
        splits: the steps of the Start, one for each entry of the rest.
        ranks: the separation rank at each split, proved where it is that of ``upper``; of floats, how many singular
            values are not rounding.
        upper: no circuit of the shape has more; empty where nothing is known.
        spectra: the singular values at each split; empty where only ranks were asked.
    """

    whose: str
    steps: int
    splits: tuple[int, ...]
    ranks: tuple[int, ...]
    upper: tuple[int, ...] = ()
    spectra: tuple[SeparationSpectrum, ...] = ()

    @property
    def narrowest(self) -> int:
        """The split that the least is remembered across; the first of several."""
        measured = [found.effective_rank for found in self.spectra] or list(map(float, self.ranks))
        return self.splits[int(np.argmin(measured))]

    def describe(self) -> str:
        """A line for each split."""
        lines = [f"separation ranks over {self.steps} steps ({self.whose})"]
        for place, split in enumerate(self.splits):
            line = f"  {split:>4} | {self.steps - split:<4} rank {self.ranks[place]}"
            if self.upper:
                line += f" of at most {self.upper[place]}"
            if self.spectra:
                found = self.spectra[place]
                line += f", effective {found.effective_rank:.3f}, distance to separable {found.distance:.3f}"
            lines.append(line)
        return "\n".join(lines)


def generic_profile(
    *, inputs: int, width: int, steps: int, depth: int, seed: int = 0, runs: int = 2, primes: Sequence[int] = PRIMES
) -> MemoryProfile:
    """The separation rank of almost every circuit at every split ``s = 1..T-1``, on one-hot inputs.

    Args:
        inputs: M.
        width: R.
        steps: T; any number for one layer, and ``M^T`` at most 2^24 for more.
        depth: L.
        seed: of the first run's weights.
        runs: over so many fields; at each split the largest rank counts.
        primes: of the fields.

    >>> generic_profile(inputs=2, width=2, steps=10, depth=2).ranks
    (2, 4, 8, 14, 12, 10, 8, 4, 2)
    """
    inputs, width, steps, depth, runs = wholes(
        "generic_profile", inputs=inputs, width=width, steps=steps, depth=depth, runs=runs
    )
    seed = whole(seed, where="generic_profile.seed", least=0)
    check_primes(primes, where="generic_profile.primes")
    drawn = []
    for run in range(runs):
        field = Field(primes[run % len(primes)])
        drawn.append(drawn_weights(field, inputs=inputs, width=width, depth=depth, seed=seed + run))
    return _exact("generic", drawn, steps, where="generic_profile")


def network_profile(circuit: Circuit, *, steps: int, primes: Sequence[int] = PRIMES[:2]) -> MemoryProfile:
    """The separation rank of this network at every split, exactly, on one-hot inputs.

    Args:
        circuit: weights, readout and start.
        steps: T; any number for one layer, and ``M^T`` at most 2^24 for more.
        primes: modulo which it is computed; the largest rank counts.

    >>> from statewise.memory.circuit import drawn_circuit
    >>> network_profile(drawn_circuit(inputs=2, width=2, depth=3), steps=8).ranks
    (2, 4, 8, 16, 8, 4, 2)
    """
    check_circuit(circuit, where="network_profile")
    check_primes(primes, where="network_profile.primes")
    return _exact("this network", [circuit.over(Field(prime)) for prime in primes], steps, where="network_profile")


def spectral_profile(circuit: Circuit, *, steps: int, templates: Any = None) -> MemoryProfile:
    """The singular values of a circuit of one layer at every split, for any number of steps.

    Args:
        circuit: of one layer.
        steps: T.
        templates: features of the templates; None for one-hot ones.

    >>> from statewise.memory.circuit import drawn_circuit
    >>> len(spectral_profile(drawn_circuit(inputs=2, width=4, depth=1), steps=100).spectra)
    99
    """
    check_circuit(circuit, where="spectral_profile")
    steps = _two_steps(steps, "spectral_profile")
    spectra = shallow_spectra(circuit, steps=steps, templates=templates)
    inputs = circuit.features if templates is None else len(templates)
    upper = _upper(inputs, circuit.width, steps, 1)
    ranks = tuple(found.rank() for found in spectra)
    return MemoryProfile(
        whose="spectrum", steps=steps, splits=tuple(range(1, steps)), ranks=ranks, upper=upper, spectra=tuple(spectra)
    )


def empirical_profile(
    network: Network,
    starts: Float[Tensor, "steps rows features"],
    ends: Float[Tensor, "steps columns features"],
    *,
    splits: Sequence[int] | None = None,
    readout: Any = None,
    output: int = 0,
    chunk: int = 4096,
) -> MemoryProfile:
    """What any network remembers across each split: the spectrum of its scores on pairs of samples.

    At a split s every first s steps of ``starts`` are followed by every last ``T - s`` steps of ``ends``; the singular
    values of the table of scores say how many functions of the Start the End can still tell apart, and how evenly.

    Args:
        network: as :func:`statewise.memory.grid_tensor.grid_tensor` takes it: an LSTM, an orthogonal network, a model.
        starts: sequences of T steps, a row of every table each.
        ends: sequences of T steps, a column each; may be the same.
        splits: steps of the Start; None for all, ``1..T-1``.
        readout: of a layer's last state.
        output: which of several scores.
        chunk: sequences that are computed together.

    >>> x = torch.randn(4, 5, 2, generator=torch.Generator().manual_seed(0))
    >>> empirical_profile(lambda x: x[:2].sum((0, 2)) + x[2:].sum((0, 2)), x, x).ranks
    (2, 2, 2)
    """
    steps = len(starts)
    _two_steps(steps, "empirical_profile")
    chunk = whole(chunk, where="empirical_profile.chunk")
    if starts.shape[0] != ends.shape[0] or starts.shape[2] != ends.shape[2]:
        shapes = f"{tuple(starts.shape)} and {tuple(ends.shape)}"
        raise ShapeError(where="empirical_profile", got=shapes, wanted="sequences of the same steps and features")
    chosen = tuple(range(1, steps)) if splits is None else tuple(splits)
    if not all(0 < split < steps for split in chosen) or not chosen:
        raise ArgumentError(
            where="empirical_profile.splits", got=chosen, wanted=f"steps of the Start, 1 to {steps - 1}"
        )
    warn_of_rounding(network)
    if scaled := can_be_scaled(network, readout):
        score = scaled_scorer(network, readout=readout, output=output)
    else:
        score = scorer(network, readout=readout, output=output)
    rows, columns = starts.shape[1], ends.shape[1]
    places = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).to(starts.device)
    spectra = []
    with torch.no_grad():
        refuse_chance(score, starts[:, :2])
        for split in chosen:
            pairs = ((starts[:split, part[:, 0]], ends[split:, part[:, 1]]) for part in places.split(chunk))
            told = torch.cat([score(torch.cat(pair)) for pair in pairs])
            scores, log_scale = unscaled(told) if scaled else (told, 0.0)
            spectra.append(table_spectrum(scores.reshape(rows, columns), log_scale=log_scale))
    ranks = tuple(found.rank() for found in spectra)
    return MemoryProfile(whose="samples", steps=steps, splits=chosen, ranks=ranks, spectra=tuple(spectra))


def _exact(whose: str, drawn: Sequence[Weights], steps: int, *, where: str) -> MemoryProfile:
    """The largest rank over some fields at every split."""
    steps = _two_steps(steps, where)
    inputs, width, depth = drawn[0].inputs[0].shape[1], len(drawn[0].inputs[0]), len(drawn[0].inputs)
    found = [row_space_profile(weights, steps=steps) if depth == 1 else _deep(weights, steps) for weights in drawn]
    return MemoryProfile(
        whose=whose,
        steps=steps,
        splits=tuple(range(1, steps)),
        ranks=tuple(max(at) for at in zip(*found, strict=True)),
        upper=_upper(inputs, width, steps, depth),
    )


def _deep(weights: Weights, steps: int) -> list[int]:
    """The ranks of one table of all words, cut at every place."""
    symbols, field = weights.inputs[0].shape[1], weights.arithmetic
    if exceeds(symbols, steps, MOST):
        raise ArgumentError(
            where="the profile of a deep circuit",
            got=f"{symbols}^{steps} words",
            wanted=f"at most {MOST}",
            remedy="generic_rank(split=...) takes one split of a longer one. sampled_rank(split=...) takes any length, "
            "but answers another question: a lower bound on the rank on continuous inputs.",
        )
    assert isinstance(field, Field)
    table = grid_matrix(weights, steps=steps, split=steps // 2)
    return [rank(table.reshape(symbols**split, -1), field) for split in range(1, steps)]


def _upper(inputs: int, width: int, steps: int, depth: int) -> tuple[int, ...]:
    return tuple(proved_bound(M=inputs, R=width, T=steps, L=depth, split=split) for split in range(1, steps))


def _two_steps(steps: int, where: str) -> int:
    return whole(steps, where=f"{where}.steps", least=2)  # or there is no split
