"""The separation rank of one circuit with the weights that it has, which may be less than that of almost all others."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from statewise.errors import ArgumentError, ShapeError
from statewise.memory.circuit import Circuit, check_circuit
from statewise.memory.elimination import BACKENDS, rank
from statewise.memory.field import Arithmetic, Field, Integers, Table, exact_numbers
from statewise.memory.generic import table_rank
from statewise.memory.grid import Weights, grid_matrix
from statewise.memory.partition import Split, partition_bound, partition_of, split_text
from statewise.memory.primes import PRIMES, check_primes
from statewise.memory.row_space import row_space_rank
from statewise.memory.sampled import check_samples, drawn_table
from statewise.memory.split import split_of
from statewise.memory.telling import bound_text, counted
from statewise.memory.whole import whole


@dataclass(frozen=True, kw_only=True)
class NetworkRank:
    """The separation rank of this network, between two proved bounds.

    The weights are taken as the exact numbers that they are, floats among them: fractions with a power of two below. A
    minor that is not 0 modulo a prime is not 0, so that ``rank`` is a lower bound; it is too small only if every prime
    divides all minors of the next size.

    Args:
        rank: the largest that was found modulo a prime.
        upper: no circuit of this shape has more.
        primes: that were used.
        found: the rank modulo each of them.
        steps: T.
        split: s, steps of the Start, or which steps, counted from 0, are set against all others.
        inputs: how many templates, or the width of continuous inputs.
        samples: rows and columns of a table of random inputs; None for all words of the templates.
        seconds: that it took.
    """

    rank: int
    upper: int
    primes: tuple[int, ...]
    found: tuple[int, ...]
    steps: int
    split: Split
    inputs: int
    samples: int | None
    seconds: float

    @property
    def proved(self) -> bool:
        """Whether the bounds meet."""
        return self.rank == self.upper

    @property
    def sentence(self) -> str:
        """What is known, in one sentence."""
        where = f"{self.samples} sampled Starts and Ends" if self.samples else counted(self.inputs, "template")
        cut = f"{self.split} of" if isinstance(self.split, int) else f"{split_text(self.split)}, over"
        shown = f"{self.rank} on {where}, {cut} {counted(self.steps, 'step')}"
        if self.proved:
            return f"This network has separation rank {shown}: proved."
        most = f"at most {bound_text(self.upper)} is possible"
        if self.samples:
            return f"This network has separation rank at least {shown}; {most}."
        doubt = f"unless every larger minor is 0 modulo {' and '.join(map(str, self.primes))}"
        return f"This network has separation rank {shown}, {doubt}; {most}."


def network_rank(
    circuit: Circuit,
    *,
    steps: int,
    split: int | Sequence[int] | None = None,
    templates: Any = None,
    samples: int | None = None,
    seed: int = 0,
    backend: str = "auto",
    primes: Sequence[int] = PRIMES[:2],
) -> NetworkRank:
    """The Start-End separation rank of this network, modulo primes: no tolerance decides what is zero.

    It is exact where it is proved, and else unless every prime divides all minors of the next size. Weights are not
    drawn here, so that no probability of that can be told; more primes leave less doubt.

    One layer needs no table and takes any number of steps, see :func:`statewise.memory.row_space.row_space_rank`.
    Weights with zeros, identity matrices or tied layers may have less than ``generic_rank`` says.

    Args:
        circuit: weights, readout and start.
        steps: T.
        split: s, steps of the Start, or which steps, counted from 0, are set against all others; None for half of an
            even T.
        templates: features of the templates, (templates, features), more than M if you like; None for one-hot ones.
        samples: for continuous inputs, how many random Starts and Ends to pair; the rank is then a lower bound.
        seed: of the samples.
        backend: of the elimination.
        primes: modulo which it is computed; the largest rank counts.

    >>> circuit = Circuit(inputs=([[1, 2], [3, -1]],), recurrent=([[1, 1], [0, 1]],), readout=[1, 2])
    >>> print(network_rank(circuit, steps=1000).sentence)
    This network has separation rank 2 on 2 templates, 500 of 1,000 steps: proved.
    """
    check_circuit(circuit, where="network_rank")
    begun, steps = time.perf_counter(), whole(steps, where="network_rank.steps")
    place = partition_of(steps, split, where="network_rank")
    check_primes(primes, where="network_rank.primes")
    if backend not in BACKENDS:
        raise ArgumentError(where="network_rank.backend", got=backend, wanted=f"one of {', '.join(BACKENDS)}")
    seed = whole(seed, where="network_rank.seed", least=0)
    features = _templates(circuit, templates)
    if samples is not None:
        check_samples(samples, where="network_rank.samples")
        if not isinstance(place, int):
            got = f"samples and {split_text(place)}"
            raise ArgumentError(where="network_rank", got=got, wanted="a Start and an End, or templates")
        if features is not None:
            got = "templates and samples"
            raise ArgumentError(
                where="network_rank", got=got, wanted="one of them: templates are all the inputs there are"
            )
    inputs = circuit.features if features is None else len(features)
    sizes: dict[str, Any] = {"R": circuit.width, "T": steps, "L": circuit.depth, "rows": place}
    # Templates are vectors too: many of few features can tell no more apart than all vectors of that width.
    upper = partition_bound(M=circuit.features, continuous=True, **sizes)
    if samples is None:
        upper = min(upper, partition_bound(M=inputs, **sizes))
    found = []
    for prime in primes:
        field = Field(prime)
        weights = circuit.over(field)
        if samples is not None and isinstance(place, int):
            half = place if place < steps else 0  # one half is empty: it does not matter which
            table = drawn_table(weights, steps=steps, split=half, samples=samples, seed=seed)
            found.append(rank(table, field, backend=backend))
        else:
            own = None if features is None else field.of(features)
            found.append(_on_templates(weights, steps=steps, split=place, templates=own, backend=backend))
    return NetworkRank(
        rank=max(found),
        upper=upper,
        primes=tuple(primes),
        found=tuple(found),
        steps=steps,
        split=place,
        inputs=inputs,
        samples=samples,
        seconds=time.perf_counter() - begun,
    )


def equivalent_shallow_width(
    circuit: Circuit,
    *,
    steps: int,
    split: int | None = None,
    templates: Any = None,
    samples: int | None = None,
    seed: int = 0,
) -> int:
    """How many channels a circuit of one layer needs at least to compute the same: the rank that is found of this one.

    A circuit of one layer with R' channels has rank at most R' (Ziv 2019, Theorem 1).

    Args:
        circuit: of any depth.
        steps: T.
        split: s, steps of the Start; None for half of an even T.
        templates: as :func:`network_rank` takes them.
        samples: as :func:`network_rank` takes them.
        seed: of the samples.

    >>> from statewise.memory.circuit import drawn_circuit
    >>> equivalent_shallow_width(drawn_circuit(inputs=3, width=3, depth=2), steps=8)
    45
    """
    return network_rank(circuit, steps=steps, split=split, templates=templates, samples=samples, seed=seed).rank


def exact_table(
    circuit: Circuit,
    *,
    steps: int,
    split: int | None = None,
    arithmetic: Arithmetic | None = None,
    templates: Any = None,
) -> Table:
    """The last output for every Start, down, and every End, across, as Python's whole numbers.

    Args:
        circuit: whose weights are whole numbers, or any over a field.
        steps: T.
        split: s, steps of the Start; None for half of an even T.
        arithmetic: None for whole numbers of any size; of a field the entries are 0..p-1.
        templates: features of the templates; None for one-hot ones.

    >>> circuit = Circuit(inputs=([[1, 2], [3, -1]],), recurrent=([[1, 1], [0, 1]],), readout=[1, 2])
    >>> exact_table(circuit, steps=2).tolist()
    [[22, 2], [-5, 4]]
    """
    check_circuit(circuit, where="exact_table")
    used = Integers() if arithmetic is None else arithmetic
    features = _templates(circuit, templates)
    own = None if features is None else used.of(features)
    place = split_of(steps, split, where="exact_table", name="steps")
    return used.integers(grid_matrix(circuit.over(used), steps=steps, split=place, templates=own))


def _on_templates(weights: Weights, *, steps: int, split: Split, templates: Table | None, backend: str) -> int:
    if len(weights.inputs) == 1 and isinstance(split, int):
        return row_space_rank(weights, steps=steps, split=split, templates=templates)
    if split not in (0, steps):
        return table_rank(weights, steps=steps, split=split, templates=templates, backend=backend)
    # One half is empty: the rank is 1, or 0 of a circuit that is 0 everywhere. The smallest table of all words tells.
    return int(grid_matrix(weights, steps=steps, split=steps // 2, templates=templates).any())


def _templates(circuit: Circuit, templates: Any) -> Table | None:
    if templates is None:
        return None
    array = exact_numbers(templates, where="templates")
    if array.ndim != 2 or array.shape[1] != circuit.features or not len(array):
        raise ShapeError(where="templates", got=array.shape, wanted=f"(templates, {circuit.features} features)")
    return array
