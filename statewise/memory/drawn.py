"""Random weights of a circuit over a finite field: almost every circuit of a shape behaves as these do."""

from __future__ import annotations

import numpy as np

from statewise.errors import ArgumentError
from statewise.memory.field import Field, Table
from statewise.memory.grid import Weights
from statewise.memory.whole import whole, wholes

#: Where a circuit may start: at a product of exactly one, or at a state that is drawn like the weights.
STARTS = ("ones", "drawn")
#: Weights that are drawn at most: half a gigabyte.
MOST = 1 << 26


def drawn_weights(field: Field, *, inputs: int, width: int, depth: int, seed: int, start: str = "ones") -> Weights:
    """All weights of a circuit drawn from ``1..p-1``.

    Args:
        field: modulo p.
        inputs: M.
        width: R.
        depth: L.
        seed: of the draw.
        start: "ones" for ``WH h_0 = 1``; "drawn" for an ``h_0`` that is drawn too.

    >>> len(drawn_weights(Field(), inputs=2, width=3, depth=4, seed=0).recurrent)
    4
    """
    inputs, width, depth = check_shape("drawn_weights", inputs=inputs, width=width, depth=depth)
    generator = np.random.default_rng(whole(seed, where="drawn_weights.seed", least=0))
    layers = [field.draw(generator, width, inputs if layer == 0 else width) for layer in range(depth)]
    recurrent = [field.draw(generator, width, width) for _ in range(depth)]
    readout = field.draw(generator, 1, width)
    first: list[Table] = [field.ones(width, 1)] * depth
    if start == "drawn":
        first = [field.matmul(weight, field.draw(generator, width, 1)) for weight in recurrent]
    return Weights(
        arithmetic=field, inputs=tuple(layers), recurrent=tuple(recurrent), readout=readout, first=tuple(first)
    )


def check_shape(where: str, *, inputs: int, width: int, depth: int) -> list[int]:
    """The sizes of a circuit whose weights fit into memory.

    Args:
        where: what was asked, for errors.
        inputs: M.
        width: R.
        depth: L.

    >>> check_shape("here", inputs=2, width=3, depth=4)
    [2, 3, 4]
    """
    inputs, width, depth = wholes(where, inputs=inputs, width=width, depth=depth)
    weights = width * (inputs + (2 * depth - 1) * width + 1)
    if weights > MOST:
        wanted = f"at most {MOST:,} weights in all"
        raise ArgumentError(where=f"{where}.width", got=f"{width:,} channels, {weights:,} weights", wanted=wanted)
    return [inputs, width, depth]
