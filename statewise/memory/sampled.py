"""Lower bounds on the separation rank for inputs from a continuum, however long the sequences are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from statewise.errors import ArgumentError, ShapeError
from statewise.memory.certificate import GenericRank, certify
from statewise.memory.elimination import BACKENDS, rank
from statewise.memory.field import Field, Table
from statewise.memory.grid import LARGEST, Weights
from statewise.memory.primes import PRIMES
from statewise.memory.sharper_bound import proved_bound
from statewise.memory.split import split_of
from statewise.memory.whole import whole, wholes

#: Samples where nothing else is said: as many as the upper bound, and no more than this.
SAMPLES = 1024


def sampled_rank(
    *,
    inputs: int,
    width: int,
    steps: int,
    depth: int,
    split: int | None = None,
    samples: int | None = None,
    seed: int = 0,
    runs: int = 2,
    start: str = "ones",
    backend: str = "auto",
    primes: Sequence[int] = PRIMES,
) -> GenericRank:
    """The separation rank of almost every circuit on continuous inputs, from below: any vectors, not M templates.

    Some Starts and some Ends are drawn from ``GF(p)^M``, and the rank of the table of all their pairs is a lower bound
    (Ziv 2019, Claim 2, for any number of templates). If it is less than the number of samples, it is the rank itself
    unless all runs were misled, by chance or by their primes. The length of the sequences costs time only: there is no
    table of all words.

    Args:
        inputs: M, the width of an input.
        width: R, channels of each layer.
        steps: T.
        depth: L, layers.
        split: s, steps of the Start; None for half of an even T.
        samples: N, of Starts and of Ends; None for the upper bound, or 1024 if that is less.
        seed: of the first run; the next runs take the next seeds, and the next primes.
        runs: at most so many; a proof ends them.
        start: "ones" for ``WH h_0 = 1``; "drawn" for an ``h_0`` drawn like the weights.
        backend: of the elimination.
        primes: of the fields.

    >>> sampled_rank(inputs=2, width=2, steps=20, depth=2).rank
    22
    """
    inputs, width, steps, depth = wholes("sampled_rank", inputs=inputs, width=width, steps=steps, depth=depth)
    place = split_of(steps, split, where="sampled_rank", name="steps")
    if backend not in BACKENDS:
        raise ArgumentError(where="sampled_rank.backend", got=backend, wanted=f"one of {', '.join(BACKENDS)}")
    if samples is None:
        samples = min(proved_bound(M=inputs, R=width, T=steps, L=depth, split=place, continuous=True), SAMPLES)
    count = check_samples(samples, where="sampled_rank.samples")

    def measure(weights: Weights, seed: int) -> int:
        table = drawn_table(weights, steps=steps, split=place, samples=count, seed=seed)
        return rank(table, _field(weights), backend=backend)

    return certify(
        measure,
        where="sampled_rank",
        inputs=inputs,
        width=width,
        steps=steps,
        depth=depth,
        split=place,
        seed=seed,
        runs=runs,
        start=start,
        primes=primes,
        samples=count,
    )


def drawn_table(weights: Weights, *, steps: int, split: int, samples: int, seed: int) -> Table:
    """The last output for random Starts, a row each, and random Ends, a column each.

    Args:
        weights: over a fast field.
        steps: T.
        split: s.
        samples: N, of both.
        seed: of the inputs.

    >>> from statewise.memory.drawn import drawn_weights
    >>> weights = drawn_weights(Field(), inputs=3, width=2, depth=2, seed=0)
    >>> drawn_table(weights, steps=9, split=4, samples=5, seed=0).shape
    (5, 5)
    """
    field, features = _field(weights), weights.inputs[0].shape[1]
    generator = np.random.default_rng((seed, 1))  # not the numbers that the weights were drawn from
    starts = field.draw(generator, split, samples, features)
    return sampled_table(weights, starts, field.draw(generator, steps - split, samples, features))


def sampled_table(weights: Weights, starts: Table, ends: Table) -> Table:
    """The last output for every pair of a Start and an End.

    Args:
        weights: of a circuit.
        starts: (steps of the Start, rows, features), in the arithmetic of the weights.
        ends: (steps of the End, columns, features).
    """
    if starts.ndim != 3 or ends.ndim != 3 or not len(ends):
        shapes = f"{starts.shape} and {ends.shape}"
        raise ShapeError(
            where="sampled_table", got=shapes, wanted="two of (steps, sequences, features), ends not empty"
        )
    rows, columns = starts.shape[1], ends.shape[1]
    multiply = weights.arithmetic.matmul
    products = weights.begin(rows)
    for inputs in starts:
        products = weights.products(weights.step(products, multiply(weights.inputs[0], inputs.T)[:, :, None]))
    terms = [multiply(weights.inputs[0], inputs.T)[:, None, :] for inputs in ends]
    together = weights.rows_together(columns)
    table = np.empty((rows, columns), dtype=weights.readout.dtype)
    for row in range(0, rows, together):
        strip = [product[:, row : row + together] for product in products]
        for term in terms[:-1]:
            strip = weights.products(weights.step(strip, term))
        table[row : row + together] = weights.scores(strip, terms[-1])
    return table


def check_samples(samples: int, *, where: str) -> int:
    """A number of samples whose table can be written down.

    Args:
        samples: N.
        where: what was asked, for errors.

    >>> check_samples(100, where="here")
    100
    """
    return whole(samples, where=where, most=LARGEST)


def _field(weights: Weights) -> Field:
    if not isinstance(weights.arithmetic, Field):
        raise ArgumentError(where="sampled_rank.weights", got=repr(weights.arithmetic), wanted="weights over a Field")
    return weights.arithmetic
