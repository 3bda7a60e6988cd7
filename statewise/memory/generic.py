"""The separation rank of almost every circuit of some shape: an integer with a certificate, not with a tolerance."""

from __future__ import annotations

from collections.abc import Sequence

from statewise.errors import ArgumentError
from statewise.memory.certificate import GenericRank, certify
from statewise.memory.drawn import STARTS, drawn_weights
from statewise.memory.elimination import BACKENDS, rank
from statewise.memory.field import Field, Table
from statewise.memory.grid import Weights, check_sizes, grid_matrix
from statewise.memory.partition import Split, partition_of, partition_table
from statewise.memory.primes import PRIMES
from statewise.memory.whole import wholes

__all__ = ["STARTS", "GenericRank", "drawn_weights", "generic_rank", "table_rank"]


def generic_rank(
    *,
    inputs: int,
    width: int,
    steps: int,
    depth: int,
    split: int | Sequence[int] | None = None,
    seed: int = 0,
    runs: int = 2,
    start: str = "ones",
    backend: str = "auto",
    primes: Sequence[int] = PRIMES,
) -> GenericRank:
    """The Start-End separation rank of almost every recurrent arithmetic circuit of a shape, on one-hot inputs.

    All weights are drawn from ``1..p-1``, the table of all words is computed modulo p, and its rank is exact: no
    tolerance decides what is zero. Error is one-sided: a run finds less than almost all weights of its field have with
    probability at most ``r D / (p - 1)``, D the degree of the output in all weights.

    Args:
        inputs: M, templates.
        width: R, channels of each layer.
        steps: T.
        depth: L, layers.
        split: s, steps of the Start, or which steps, counted from 0, are set against all others; None for half of an
            even T.
        seed: of the first run's weights; the next runs take the next seeds, and the next primes.
        runs: at most so many; when a run has met the upper bound there is nothing left to find.
        start: "ones" for a first product ``WH h_0 = 1``; "drawn" for an ``h_0`` that is drawn like the weights.
        backend: of the elimination, see :func:`statewise.memory.elimination.rank`.
        primes: of the fields, above 2^20 and below 2^31; runs go through them in turn.

    >>> found = generic_rank(inputs=6, width=5, steps=4, depth=3)
    >>> print(found.sentence)
    Almost every circuit with M = 6, R = 5, T = 4, L = 3, Start of 2 steps has separation rank 30: proved.
    >>> generic_rank(inputs=2, width=2, steps=8, depth=2, split=[0, 2, 4, 6]).rank  # the even steps, and the odd ones
    16
    """
    if backend not in BACKENDS:
        raise ArgumentError(where="generic_rank.backend", got=backend, wanted=f"one of {', '.join(BACKENDS)}")
    inputs, width, steps, depth = wholes("generic_rank", inputs=inputs, width=width, steps=steps, depth=depth)
    place = partition_of(steps, split, where="generic_rank")

    def measure(weights: Weights, seed: int) -> int:
        return table_rank(weights, steps=steps, split=place, backend=backend)

    if isinstance(place, int) and 0 < place < steps:
        check_sizes(inputs, steps=steps, split=place)
    return certify(
        measure,
        where="generic_rank",
        inputs=inputs,
        width=width,
        steps=steps,
        depth=depth,
        split=place,
        seed=seed,
        runs=runs,
        start=start,
        primes=primes,
    )


def table_rank(
    weights: Weights, *, steps: int, split: Split, templates: Table | None = None, backend: str = "auto"
) -> int:
    """The rank of a circuit's table of Start and End, or of other steps and the rest, over a field.

    Args:
        weights: over a fast field.
        steps: T.
        split: as :func:`statewise.memory.partition.partition_of` gives it.
        templates: their features, (templates, features); None for one-hot ones.
        backend: of the elimination.

    >>> table_rank(drawn_weights(Field(), inputs=2, width=2, depth=2, seed=0), steps=10, split=5)
    12
    """
    if not isinstance(weights.arithmetic, Field):
        raise ArgumentError(where="table_rank.weights", got=repr(weights.arithmetic), wanted="weights over a Field")
    if isinstance(split, int):
        table = grid_matrix(weights, steps=steps, split=split, templates=templates)
    else:
        table = partition_table(weights, steps=steps, rows=split, templates=templates)
    return rank(table, weights.arithmetic, backend=backend)
