"""The cells' transitions on tiles of (units, sequences), and their derivatives.

A cell reads its gates from planes: for each a tile of what enters an activation. A plane has a block of the input term,
a block of the recurrent product, or both; the GRU's candidate needs the two apart, and so does the circuit.

======================  ==========================================================
cell                    planes
======================  ==========================================================
rnn                     state
lstm, peephole          input, forget, cell, output
gru                     reset, update, candidate's input, candidate's product
rac                     input, product
mgu                     gate, candidate
reset_before            reset, update, candidate
======================  ==========================================================

The last two need a second product, of the gated state, before their last plane: their first planes come activated.
"""

import triton
import triton.language as tl

from statewise.kernels.codes import PLANES


@triton.constexpr_function
def plane_count(cell):
    """The number of a cell's planes, all of which are saved for the way back."""
    return PLANES[cell]


@triton.constexpr_function
def input_blocks(cell):
    """For each plane its block of the input term; -1 where it has none."""
    return {"gru": (0, 1, 2, -1), "rac": (0, -1)}.get(cell, (0, 1, 2, 3))


@triton.constexpr_function
def product_blocks(cell):
    """For each plane its block of the recurrent product; -1 where it has none."""
    return {"gru": (0, 1, -1, 2), "rac": (-1, 0)}.get(cell, (0, 1, 2, 3))


@triton.constexpr_function
def has_two_products(cell):
    """Whether the candidate's product is taken of the gated state."""
    return cell in ("mgu", "reset_before")


@triton.constexpr_function
def reads_state(cell):
    """Whether the way back needs the old state."""
    return cell in ("gru", "mgu", "reset_before")


@triton.jit
def sigmoid(x, FAST: tl.constexpr):
    """``1 / (1 + exp(-x))``."""
    if FAST:
        y = 0.5 * tanh(0.5 * x, FAST) + 0.5
    else:
        shrunk = tl.exp(-tl.abs(x))  # never overflows
        y = tl.where(x < 0, shrunk, 1.0) / (1.0 + shrunk)
    return y


@triton.jit
def tanh(x, FAST: tl.constexpr):
    """The hyperbolic tangent; ``FAST`` is one instruction with 11 bits, more than the 16-bit types hold."""
    if FAST:
        y = tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)
    else:
        shrunk = tl.exp(-2.0 * tl.abs(x))
        y = (1.0 - shrunk) / (1.0 + shrunk)
        y = tl.where(x < 0, -y, y)
        if x.dtype == tl.float32:
            # Near zero the difference above loses digits; the series has lost none where the two meet.
            z = x * x
            series = x + x * z * (-0.33333334 + z * (0.13333334 + z * (-0.053968254 + z * 0.021869488)))
            y = tl.where(tl.abs(x) < 0.25, series, y)
    return y


@triton.jit
def _sign(x):
    return tl.where(x > 0, 1.0, 0.0).to(x.dtype) - tl.where(x < 0, 1.0, 0.0).to(x.dtype)


@triton.jit
def transition(
    a0, a1, a2, a3, h, c, e0, e1, e2, CELL: tl.constexpr, ACTIVATION: tl.constexpr, FAST: tl.constexpr
):  # fmt: skip
    """The new state and memory, then the planes to save; what a cell does not have is some other tile."""
    s0 = a0
    s1 = a1
    s2 = a2
    s3 = a3
    if CELL == "rnn":
        if ACTIVATION == "tanh":
            s0 = tanh(a0, FAST)
        elif ACTIVATION == "relu":
            s0 = tl.maximum(a0, 0.0)
        elif ACTIVATION == "sigmoid":
            s0 = sigmoid(a0, FAST)
        u = s0
        if ACTIVATION == "modrelu":
            u = _sign(a0) * tl.maximum(tl.abs(a0) + e0, 0.0)
    elif CELL == "lstm" or CELL == "peephole":
        if CELL == "peephole":
            a0 = a0 + e0 * c
            a1 = a1 + e1 * c
        s0 = sigmoid(a0, FAST)
        s1 = sigmoid(a1, FAST)
        s2 = tanh(a2, FAST)
        c = s1 * c + s0 * s2
        if CELL == "peephole":
            a3 = a3 + e2 * c
        s3 = sigmoid(a3, FAST)
        u = s3 * tanh(c, FAST)
    elif CELL == "gru":
        s0 = sigmoid(a0, FAST)
        s1 = sigmoid(a1, FAST)
        s2 = tanh(a2 + s0 * a3, FAST)
        u = s2 + s1 * (h - s2)
    elif CELL == "rac":
        u = a0 * a1
    elif CELL == "mgu":
        s1 = tanh(a1, FAST)
        u = h + s0 * (s1 - h)
    else:  # reset_before
        s2 = tanh(a2, FAST)
        u = s2 + s1 * (h - s2)
    return u, c, s0, s1, s2, s3


@triton.jit
def transition_back(
    du, dc, s0, s1, s2, s3, h, c, new_c, e0, e1, e2, CELL: tl.constexpr, ACTIVATION: tl.constexpr, FAST: tl.constexpr
):  # fmt: skip
    """The gradients of the planes, of the old state where it does not pass through a product, of the old memory.

    Of the cells with two products it gives the candidate's alone; :func:`gates_back` does the rest.
    """
    d0 = du
    d1 = du
    d2 = du
    d3 = du
    dh = tl.zeros_like(du)
    if CELL == "rnn":
        if ACTIVATION == "tanh":
            d0 = du * (1.0 - s0 * s0)
        elif ACTIVATION == "relu":
            d0 = tl.where(s0 > 0, du, 0.0)
        elif ACTIVATION == "sigmoid":
            d0 = du * s0 * (1.0 - s0)
        elif ACTIVATION == "modrelu":
            d0 = tl.where((tl.abs(s0) + e0 > 0) & (s0 != 0), du, 0.0)
    elif CELL == "lstm" or CELL == "peephole":
        squashed = tanh(new_c, FAST)
        d3 = du * squashed * s3 * (1.0 - s3)
        dc = dc + du * s3 * (1.0 - squashed * squashed)
        if CELL == "peephole":
            dc = dc + d3 * e2
        d0 = dc * s2 * s0 * (1.0 - s0)
        d1 = dc * c * s1 * (1.0 - s1)
        d2 = dc * s0 * (1.0 - s2 * s2)
        dc = dc * s1
        if CELL == "peephole":
            dc = dc + d0 * e0 + d1 * e1
    elif CELL == "gru":
        d2 = du * (1.0 - s1) * (1.0 - s2 * s2)
        d1 = du * (h - s2) * s1 * (1.0 - s1)
        d0 = d2 * s3 * s0 * (1.0 - s0)
        d3 = d2 * s0
        dh = du * s1
    elif CELL == "rac":
        d0 = du * s1
        d1 = du * s0
    elif CELL == "mgu":
        d1 = du * s0 * (1.0 - s1 * s1)
    else:  # reset_before
        d2 = du * (1.0 - s1) * (1.0 - s2 * s2)
    return d0, d1, d2, d3, dh, dc


@triton.jit
def gates_back(du, gated, s0, s1, s2, h, CELL: tl.constexpr):
    """Of a cell with two products: the gradients of its first planes and of the old state.

    ``gated`` is the gradient of the gated state, which came through the second product.
    """
    if CELL == "mgu":
        d0 = (du * (s1 - h) + gated * h) * s0 * (1.0 - s0)
        d1 = d0
        dh = du * (1.0 - s0) + gated * s0
    else:
        d0 = gated * h * s0 * (1.0 - s0)
        d1 = du * (h - s2) * s1 * (1.0 - s1)
        dh = du * s1 + gated * s0
    return d0, d1, dh
