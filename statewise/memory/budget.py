"""How many parameters an orthogonal network has, and how wide it can be within a budget."""

from __future__ import annotations

import math

from statewise.errors import ArgumentError
from statewise.memory.whole import whole

#: How the matrices between layers are counted: as they are trained, or as the sizes printed in the thesis have them.
COUNTS = ("true", "thesis")


def orthogonal_parameters(*, inputs: int, classes: int, depth: int, width: int, count: str = "true") -> int:
    """The trainable parameters of a stack of scaled-Cayley layers with a readout.

    ``P = L R(R-1)/2 + R M + (L-1) R² + L R + C R + C``: skew matrices, inputs, matrices between layers, biases of
    modReLU, readout. The sizes printed by Ziv 2019, Table C.1, count a matrix between layers as one more skew matrix:
    ``(2L-1) R(R-1)/2 + R M + L R + C R + C``. (That is read off the rounded sizes; the code published with the thesis
    trains these matrices without a constraint.)

    Args:
        inputs: M, the width of an input.
        classes: C.
        depth: L.
        width: R.
        count: "true", or "thesis" for the sizes as printed.

    >>> [orthogonal_parameters(inputs=1, classes=10, depth=2, width=128, count=count) for count in COUNTS]
    [34314, 26058]
    """
    inputs, classes, depth, width = _checked(count, inputs=inputs, classes=classes, depth=depth, width=width)
    squares, linear = _twice(inputs, classes, depth, count)
    return (squares * width**2 + linear * width) // 2 + classes


def width_within(*, budget: int, inputs: int, classes: int, depth: int, count: str = "true") -> int:
    """The most channels a layer can have within a budget of parameters, exactly.

    ``R = floor((-b + sqrt(b² + 4a(N - C))) / 2a)`` with ``a = 3L/2 - 1`` and ``b = M + C + L/2``, in integers.

    Args:
        budget: N, the most parameters.
        inputs: M, the width of an input.
        classes: C.
        depth: L.
        count: "true", or "thesis" as in :func:`orthogonal_parameters`.

    >>> [width_within(budget=2**13, inputs=34, classes=34, depth=depth) for depth in (1, 2, 3)]
    [76, 48, 39]
    """
    budget, inputs, classes, depth = _checked(count, budget=budget, inputs=inputs, classes=classes, depth=depth)
    squares, linear = _twice(inputs, classes, depth, count)
    left = 2 * (budget - classes)
    width = (math.isqrt(linear**2 + 4 * squares * left) - linear) // (2 * squares) if left > 0 else 0
    if width < 1:
        least = orthogonal_parameters(inputs=inputs, classes=classes, depth=depth, width=1, count=count)
        wanted = f"at least {least} for depth {depth} with one channel"
        raise ArgumentError(where="budget", got=budget, wanted=wanted, remedy="Allow more parameters, or fewer layers.")
    return width


def _twice(inputs: int, classes: int, depth: int, count: str) -> tuple[int, int]:
    """Twice the coefficients of R² and of R, which are whole numbers."""
    if count == "true":
        return 3 * depth - 2, 2 * (inputs + classes) + depth
    return 2 * depth - 1, 2 * (inputs + classes) + 1


def _checked(count: str, **sizes: int) -> list[int]:
    if count not in COUNTS:
        raise ArgumentError(where="count", got=count, wanted=f"one of {', '.join(COUNTS)}")
    return [whole(size, where=name) for name, size in sizes.items()]
