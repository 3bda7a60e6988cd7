"""The exact separation rank of a circuit of one layer in O(T M R^3): no table of M^T words is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from statewise.errors import ArgumentError
from statewise.memory.certificate import GenericRank, certify
from statewise.memory.elimination import rank, row_basis
from statewise.memory.field import Field, Table
from statewise.memory.grid import Weights, input_terms
from statewise.memory.primes import PRIMES
from statewise.memory.split import split_of
from statewise.memory.whole import wholes


def shallow_rank(
    *,
    inputs: int,
    width: int,
    steps: int,
    split: int | None = None,
    seed: int = 0,
    runs: int = 2,
    start: str = "ones",
    primes: Sequence[int] = PRIMES,
) -> GenericRank:
    """The separation rank of almost every circuit of one layer, for any number of steps.

    It is ``min{R, M^(T/2)}`` (Ziv 2019, Theorem 1); here it is found and certified for this shape.

    Args:
        inputs: M, templates.
        width: R, channels.
        steps: T; thousands take no longer than tens.
        split: s, steps of the Start; None for half of an even T.
        seed: of the first run's weights.
        runs: at most so many; a proof ends them.
        start: "ones" for ``WH h_0 = 1``; "drawn" for an ``h_0`` drawn like the weights.
        primes: of the fields.

    >>> shallow_rank(inputs=2, width=16, steps=1000).rank
    16
    """
    inputs, width, steps = wholes("shallow_rank", inputs=inputs, width=width, steps=steps)
    place = split_of(steps, split, where="shallow_rank", name="steps")
    return certify(
        lambda weights, _: row_space_rank(weights, steps=steps, split=place),
        where="shallow_rank",
        inputs=inputs,
        width=width,
        steps=steps,
        depth=1,
        split=place,
        seed=seed,
        runs=runs,
        start=start,
        primes=primes,
    )


def row_space_rank(weights: Weights, *, steps: int, split: int, templates: Table | None = None) -> int:
    """The rank of the table of Start and End, from the spaces that the states of each half span.

    The table is ``P Q``; with ``P = X B`` and ``Q^T = Y C``, X and Y of full column rank, its rank is that of
    ``B C^T``.

    Args:
        weights: of one layer, over a fast field.
        steps: T.
        split: s.
        templates: their features, (templates, features); None for one-hot ones.

    >>> from statewise.memory.drawn import drawn_weights
    >>> row_space_rank(drawn_weights(Field(), inputs=2, width=3, depth=1, seed=0), steps=101, split=50)
    3
    """
    split = split_of(steps, split, where="row_space_rank", name="steps")
    # Before the first step there is a product and no state to meet; one column says as much as one row.
    split = steps if split == 0 else split
    starts, ends = _start_side(weights, templates), _end_side(weights, templates)
    return _meeting(starts.field, _walk(starts, split).at(split), _walk(ends, steps - split).at(steps - split))


def row_space_profile(weights: Weights, *, steps: int, templates: Table | None = None) -> list[int]:
    """The rank for every split ``s = 1..T-1``, in one pass from either side.

    Args:
        weights: of one layer, over a fast field.
        steps: T.
        templates: their features; None for one-hot ones.

    >>> from statewise.memory.drawn import drawn_weights
    >>> row_space_profile(drawn_weights(Field(), inputs=2, width=8, depth=1, seed=0), steps=10)
    [2, 4, 8, 8, 8, 8, 8, 4, 2]
    """
    side = _start_side(weights, templates)
    starts, ends = _walk(side, steps - 1), _walk(_end_side(weights, templates), steps - 1)
    known: dict[tuple[int, int], int] = {}
    ranks = []
    for split in range(1, steps):
        pair = starts.place(split), ends.place(steps - split)
        if pair not in known:
            known[pair] = _meeting(side.field, starts.spaces[pair[0]], ends.spaces[pair[1]])
        ranks.append(known[pair])
    return ranks


@dataclass(frozen=True, kw_only=True)
class _Side:
    """One half of a sequence: where it begins, and what every step does to the rows of a space.

    ``meet`` makes the space after a step, ``onward`` what the next step begins from.
    """

    field: Field
    begin: Table
    meet: Callable[[Table], Table]
    onward: Callable[[Table], Table]


@dataclass(frozen=True, kw_only=True)
class _Walk:
    """Reduced bases of the spaces after 0, 1, 2, ... steps, up to where one comes back."""

    spaces: list[Table]
    back: int

    def place(self, step: int) -> int:
        if step < len(self.spaces):
            return step
        return self.back + (step - self.back) % (len(self.spaces) - self.back)

    def at(self, step: int) -> Table:
        return self.spaces[self.place(step)]


def _walk(side: _Side, steps: int) -> _Walk:
    """The spaces after every step; a reduced basis is the same for the same space, so that a return is seen."""
    spaces, space = [side.begin], side.begin
    seen: dict[bytes, int] = {}
    for step in range(1, steps + 1):
        basis = row_basis(side.meet(space), side.field)
        key = (basis + 0.0).tobytes()  # of one zero there are two, -0.0 among them
        if key in seen:
            return _Walk(spaces=spaces, back=seen[key])
        seen[key] = step
        spaces.append(basis)
        space = side.onward(basis)
    return _Walk(spaces=spaces, back=0)


def _start_side(weights: Weights, templates: Table | None) -> _Side:
    """From the first products: ``a -> a * w_d`` is a state, and ``WH`` times it the next product."""
    field, terms = _field(weights), input_terms(weights, templates).T
    return _Side(
        field=field,
        begin=weights.first[0].T,
        meet=lambda products: _times_each(field, products, terms),
        onward=lambda states: field.matmul(states, weights.recurrent[0].T),
    )


def _end_side(weights: Weights, templates: Table | None) -> _Side:
    """From the readout back: ``q -> (q * w_d) WH``."""
    field, terms = _field(weights), input_terms(weights, templates).T
    return _Side(
        field=field,
        begin=weights.readout,
        meet=lambda rows: field.matmul(_times_each(field, rows, terms), weights.recurrent[0]),
        onward=lambda rows: rows,
    )


def _times_each(field: Field, rows: Table, terms: Table) -> Table:
    return field.multiply(rows[None], terms[:, None]).reshape(-1, terms.shape[1])


def _meeting(field: Field, starts: Table, ends: Table) -> int:
    # Products of Gram matrices would not do: over a field a vector may be orthogonal to itself.
    return rank(field.matmul(starts, ends.T), field)


def _field(weights: Weights) -> Field:
    if len(weights.inputs) != 1 or not isinstance(weights.arithmetic, Field):
        got = f"{len(weights.inputs)} layers over {weights.arithmetic!r}"
        raise ArgumentError(where="row_space_rank.weights", got=got, wanted="one layer over a Field")
    return weights.arithmetic
