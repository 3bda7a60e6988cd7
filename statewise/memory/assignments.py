"""The weights by which ranks are proved, or suggested: of Appendix B, and of the motivation in section A.4."""

from __future__ import annotations

import numpy as np

from statewise.errors import ArgumentError
from statewise.memory.drawn import drawn_weights
from statewise.memory.field import Field, Table, WideField
from statewise.memory.grid import Weights, check_sizes
from statewise.memory.split import split_of


def proof_weights(
    *, inputs: int, width: int, steps: int, base: int = 3, omega: int | None = None, prime: int = 2**61 - 1
) -> Weights:
    """Two layers whose separation rank is exactly ``ms(min{M, R}, T/2)`` (Ziv 2019, proof of Theorem 1).

    ``WI_1 = Z`` with ``Z[i, j] = z^(Omega^i)`` where ``i = j <= M``, 1 in the other places of the first M rows and 0
    below; ``WI_2[i, j] = [i = 1]``, ``WH = 1``, ``WO[j] = [j = 1]`` and ``h_0 = 1``. Omega must be a whole number above
    ``(T/2)^2`` (the thesis allows any real one, but speaks of polynomials).

    Args:
        inputs: M, one-hot templates.
        width: R.
        steps: T, even.
        base: z, at least 2.
        omega: None for ``(T/2)^2 + 1``.
        prime: of the field, which must be large: these numbers are not drawn at random.

    >>> from statewise.memory.elimination import rank
    >>> from statewise.memory.grid import grid_matrix
    >>> field = WideField()
    >>> rank(grid_matrix(proof_weights(inputs=3, width=3, steps=4), steps=4, split=2), field)
    6
    """
    half = split_of(steps, None, where="proof_weights", name="steps")
    exponent = half**2 + 1 if omega is None else omega
    if exponent <= half**2:
        raise ArgumentError(where="proof_weights.omega", got=exponent, wanted=f"more than (T/2)^2 = {half**2}")
    if min(inputs, width) < 1 or base < 2:
        got = f"M = {inputs}, R = {width}, z = {base}"
        raise ArgumentError(where="proof_weights", got=got, wanted="M and R of at least 1, and z of at least 2")
    field = WideField(prime)
    table = np.zeros((width, inputs), dtype=object)
    table[:inputs] = 1
    for row in range(min(inputs, width)):
        table[row, row] = pow(base, exponent ** (row + 1), prime)
    one, channel = field.of(np.eye(width, dtype=np.int64)), field.of(np.eye(1, width, dtype=np.int64))
    ones = field.ones(width, 1)
    return Weights(
        arithmetic=field,
        inputs=(field.of(table), first_channel(field, width)),
        recurrent=(one, one),
        readout=channel,
        first=(ones, ones),
    )


def proof_matrix(weights: Weights, *, steps: int) -> Table:
    """The matrix B of the proof: ``prod over t > T/2 of sum over r of prod over j <= t of Z[r, d_j]``.

    The table of Start and End is ``diag(a) B``, where a has no zeros, so that both have the same rank
    (Ziv 2019, Appendix B).

    Args:
        weights: of :func:`proof_weights`.
        steps: T.

    >>> proof_matrix(proof_weights(inputs=2, width=2, steps=2), steps=2).tolist()
    [[82, 90], [90, 6562]]
    """
    field, half = weights.arithmetic, split_of(steps, None, where="proof_matrix", name="steps")
    letters = weights.inputs[0]
    check_sizes(letters.shape[1], steps=2 * half, split=half)
    starts = field.ones(len(letters), 1)
    for _ in range(half):
        starts = field.multiply(starts[:, :, None], letters[:, None, :]).reshape(len(letters), -1)
    ends, product = starts[:, :, None], field.ones(starts.shape[1], 1)
    for _ in range(half):
        ends = field.multiply(ends[:, :, :, None], letters[:, None, None, :]).reshape(len(letters), starts.shape[1], -1)
        sums = field.matmul(field.ones(1, len(letters)), ends.reshape(len(letters), -1)).reshape(ends.shape[1:])
        product = field.multiply(np.repeat(product, letters.shape[1], axis=1), sums)
    return product


def motivating_weights(
    field: Field, *, inputs: int, width: int, depth: int, seed: int = 0, generic_recurrence: bool = True
) -> Weights:
    """The weights that suggest the conjecture: matrices of rank 1 between layers (Ziv 2019, section A.4).

    The first layer is drawn. Every higher layer copies the sum of the channels below into its first channel and
    multiplies it through time, so that the output is a product of powers of ``sum over r of h[t, 1]_r``. With
    ``WH_1 = 1``, which the thesis offers as an example, a Start is only known up to the order of its symbols, and the
    rank is at most ``ms(M, T/2)``: take a generic one.

    Args:
        field: modulo p.
        inputs: M.
        width: R.
        depth: L, at least 2.
        seed: of what is drawn.
        generic_recurrence: False sets the recurrent matrix of the first layer to the identity.

    >>> from statewise.memory.elimination import rank
    >>> from statewise.memory.grid import grid_matrix
    >>> weights = motivating_weights(Field(), inputs=2, width=2, depth=3)
    >>> rank(grid_matrix(weights, steps=10, split=5), Field())
    16
    """
    if depth < 2:
        raise ArgumentError(where="motivating_weights.depth", got=depth, wanted="at least two layers")
    drawn = drawn_weights(field, inputs=inputs, width=width, depth=1, seed=seed)
    one = field.of(np.eye(width, dtype=np.int64))
    return Weights(
        arithmetic=field,
        inputs=(drawn.inputs[0], *[first_channel(field, width)] * (depth - 1)),
        recurrent=(drawn.recurrent[0] if generic_recurrence else one, *[one] * (depth - 1)),
        readout=field.of(np.eye(1, width, dtype=np.int64)),
        first=tuple(field.ones(width, 1) for _ in range(depth)),
    )


def first_channel(field: Field | WideField, width: int) -> Table:
    """The matrix of rank 1 that adds all channels into the first: ``W[i, j] = [i = 1]``.

    Args:
        field: any.
        width: R.

    >>> first_channel(Field(), 2).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    table = np.zeros((width, width), dtype=np.int64)
    table[0] = 1
    return field.of(table)
