"""What every kernel does at one step, whatever way the recurrent product came to it.

Tiles are (units, sequences). Buffers of all steps have a row for each step and running sequence, as a PackedSequence
has, and ``Hp`` columns for each block, ``Hp`` being the hidden size rounded up; ``states`` and ``memories`` have the
initial ones in ``batch`` further rows, so that the old state of every row is a row: where all sequences are equally
long they lie where the turn before the first would, else at the end. Replicas, networks of the same shape with weights
of their own, lie one after the other.
"""

import triton
import triton.language as tl

from statewise.kernels.cells import input_blocks, plane_count, reads_state, transition, transition_back
from statewise.kernels.chain import change, change_back


@triton.jit
def turn_at(TABLE, turn, turns, batch, DENSE: tl.constexpr, REVERSE: tl.constexpr):
    """First row of a turn, rows that run, rows that ran before, first row of the turn before."""
    if DENSE:
        step = turns - 1 - turn if REVERSE else turn
        start = step * batch
        running = batch
        kept = tl.where(turn > 0, batch, 0)
        old = start + batch if REVERSE else start - batch
    else:
        place = TABLE + turn * 4
        start = tl.load(place)
        running = tl.load(place + 1)
        kept = tl.load(place + 2)
        old = tl.load(place + 3)
    return start, running, kept, old


@triton.jit
def old_rows(b, old, kept, rows, DENSE: tl.constexpr):
    """The rows of ``states`` in which the old states lie: the turn before's, or the initial ones."""
    if DENSE:
        row = old + b
    else:
        row = tl.where(b < kept, old + b, rows + b)
    return row.to(tl.int64)


@triton.jit
def load_tile(pointer, row, seen, unit, WIDTH: tl.constexpr, dtype: tl.constexpr):
    """A tile of a buffer with ``WIDTH`` columns; zero where there is nothing."""
    inside = seen[None, :] & (unit < WIDTH)[:, None]
    return tl.load(pointer + row[None, :] * WIDTH + unit[:, None], mask=inside, other=0.0).to(dtype)


@triton.jit
def load_block(pointer, row, seen, unit, BLOCK: tl.constexpr, BLOCKS: tl.constexpr, Hp: tl.constexpr,
               dtype: tl.constexpr):  # fmt: skip
    """A tile of one of several blocks of ``Hp`` columns."""
    inside = seen[None, :] & (unit < Hp)[:, None]
    return tl.load(pointer + (row[None, :] * BLOCKS + BLOCK) * Hp + unit[:, None], mask=inside, other=0.0).to(dtype)


@triton.jit
def store_block(pointer, value, row, seen, unit, BLOCK: tl.constexpr, BLOCKS: tl.constexpr, Hp: tl.constexpr):
    """The counterpart of :func:`load_block`."""
    inside = seen[None, :] & (unit < Hp)[:, None]
    tl.store(
        pointer + (row[None, :] * BLOCKS + BLOCK) * Hp + unit[:, None],
        value.to(pointer.dtype.element_ty),
        mask=inside,
    )


@triton.jit
def load_own(EXTRA, unit, rep, CELL: tl.constexpr, ACTIVATION: tl.constexpr, H: tl.constexpr, dtype: tl.constexpr):
    """The cell's own parameters for its units: three peepholes, or the bias of modReLU."""
    e0 = tl.zeros((unit.shape[0], 1), dtype)
    e1 = e0
    e2 = e0
    known = unit < H
    if CELL == "peephole":
        at = EXTRA + rep * 3 * H + unit
        e0 = tl.load(at, mask=known, other=0.0).to(dtype)[:, None]
        e1 = tl.load(at + H, mask=known, other=0.0).to(dtype)[:, None]
        e2 = tl.load(at + 2 * H, mask=known, other=0.0).to(dtype)[:, None]
    if ACTIVATION == "modrelu":
        e0 = tl.load(EXTRA + rep * H + unit, mask=known, other=0.0).to(dtype)[:, None]
    return e0, e1, e2


@triton.jit
def load_mask(MASK, row, b, seen, unit, rep, rows, batch, H: tl.constexpr, CONSTANT: tl.constexpr,
              dtype: tl.constexpr):  # fmt: skip
    """A mask on the state, of recurrent dropout."""
    first = rep * batch + b if CONSTANT else rep * rows + row
    return load_tile(MASK, first, seen, unit, H, dtype)


@triton.jit
def advance(
    a0, a1, a2, a3, b0, b1, b2, b3, h, c, e0, e1, e2, weight, drawn, pointers, row, live, unit, rep, rows,
    PARTIAL, BAR, target, group, team,
    CELL: tl.constexpr, ACTIVATION: tl.constexpr, CHAIN: tl.constexpr, MIX: tl.constexpr, H: tl.constexpr,
    Hp: tl.constexpr, UNITS: tl.constexpr, ROW: tl.constexpr, PRECISION: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """One step from the planes on: cell (or two of them, mixed), then transforms. Rows that do not run stay."""
    MEMORY: tl.constexpr = CELL == "lstm" or CELL == "peephole"
    u, new_c, s0, s1, s2, s3 = transition(a0, a1, a2, a3, h, c, e0, e1, e2, CELL, ACTIVATION, FAST)
    t0 = s0
    t1 = s1
    t2 = s2
    t3 = s3
    if MIX:
        other, other_c, t0, t1, t2, t3 = transition(b0, b1, b2, b3, h, c, e0, e1, e2, CELL, ACTIVATION, FAST)
        u = weight * u + (1.0 - weight) * other
        new_c = weight * new_c + (1.0 - weight) * other_c
    u, new_c, target = change(
        u, new_c, h, c, drawn, pointers, row, live, unit, rep, rows, PARTIAL, BAR, target, group, team,
        CHAIN, MEMORY, H, Hp, UNITS, ROW, PRECISION,
    )  # fmt: skip
    runs = live[None, :] & (unit < H)[:, None]
    return tl.where(runs, u, h), tl.where(runs, new_c, c), s0, s1, s2, s3, t0, t1, t2, t3, target


@triton.jit
def save_planes(A, s0, s1, s2, s3, row, live, unit, CELL: tl.constexpr, Hp: tl.constexpr):
    """Write the planes of a cell for the way back."""
    COUNT: tl.constexpr = plane_count(CELL)
    store_block(A, s0, row, live, unit, 0, COUNT, Hp)
    if COUNT > 1:
        store_block(A, s1, row, live, unit, 1, COUNT, Hp)
    if COUNT > 2:
        store_block(A, s2, row, live, unit, 2, COUNT, Hp)
    if COUNT > 3:
        store_block(A, s3, row, live, unit, 3, COUNT, Hp)


@triton.jit
def load_planes(A, row, live, unit, CELL: tl.constexpr, Hp: tl.constexpr):
    """The counterpart of :func:`save_planes`; the tiles are as they lie in memory."""
    COUNT: tl.constexpr = plane_count(CELL)
    dtype: tl.constexpr = A.dtype.element_ty
    s0 = load_block(A, row, live, unit, 0, COUNT, Hp, dtype)
    s1 = tl.zeros((1, 1), dtype)
    s2 = s1
    s3 = s1
    if COUNT > 1:
        s1 = load_block(A, row, live, unit, 1, COUNT, Hp, dtype)
    if COUNT > 2:
        s2 = load_block(A, row, live, unit, 2, COUNT, Hp, dtype)
    if COUNT > 3:
        s3 = load_block(A, row, live, unit, 3, COUNT, Hp, dtype)
    return s0, s1, s2, s3


@triton.jit
def look_back(
    A, A2, HS, MS, DY, LAMBDA, row, b, before, live, unit, rep, rows, batch,
    CELL: tl.constexpr, MIX: tl.constexpr, LAMBDA_CONSTANT: tl.constexpr, AGAIN: tl.constexpr, GIVEN: tl.constexpr,
    H: tl.constexpr, Hp: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """All that the way back reads of a step: planes, those of the second member, h, c, new c, dy, weight.

    ``GIVEN`` is the number of columns of DY, 0 where there is none. The tiles are as they lie in memory: to convert
    them would be to wait for them.
    """
    wide = rep * rows + row
    long = rep * (rows + batch)
    nothing = tl.zeros((1, 1), dtype)
    found = load_planes(A, wide, live, unit, CELL, Hp)
    if MIX:
        found = found + load_planes(A2, wide, live, unit, CELL, Hp)
    else:
        found = found + (nothing, nothing, nothing, nothing)
    h = nothing
    c = nothing
    new_c = nothing
    dy = nothing
    weight = nothing
    if reads_state(CELL):
        h = load_tile(HS, long + before, live, unit, Hp, HS.dtype.element_ty)
    if CELL == "lstm" or CELL == "peephole":
        c = load_tile(MS, long + before, live, unit, Hp, MS.dtype.element_ty)
        if not AGAIN:
            new_c = load_tile(MS, long + row, live, unit, Hp, MS.dtype.element_ty)
    if GIVEN > 0:
        inside = live[None, :] & (unit < H)[:, None]
        dy = tl.load(DY + wide[None, :] * GIVEN + unit[:, None], mask=inside, other=0.0)
    if MIX:
        weight = load_weight(LAMBDA, row, b, live, rep, rows, batch, LAMBDA_CONSTANT, dtype)
    return found + (h, c, new_c, dy, weight)


@triton.jit
def load_weight(LAMBDA, row, b, live, rep, rows, batch, CONSTANT: tl.constexpr, dtype: tl.constexpr):
    """The coefficients of through-time mixing, (1, sequences)."""
    first = rep * batch + b if CONSTANT else rep * rows + row
    return tl.load(LAMBDA + first, mask=live, other=0.0).to(dtype)[None, :]


@triton.jit
def _member_back(
    du, dc, s0, s1, s2, s3, h, c, new_c, e0, e1, e2,
    CELL: tl.constexpr, ACTIVATION: tl.constexpr, AGAIN: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """The derivative of one cell application; ``AGAIN`` computes its new memory anew from what was saved."""
    if AGAIN:
        new_c = s1 * c + s0 * s2
    return transition_back(du, dc, s0, s1, s2, s3, h, c, new_c, e0, e1, e2, CELL, ACTIVATION, FAST)


@triton.jit
def retreat(
    dh, dc, seen, drawn, e0, e1, e2, pointers, row, live, unit, rep, rows, PARTIAL, BAR, target, group, team,
    CELL: tl.constexpr, ACTIVATION: tl.constexpr, CHAIN: tl.constexpr, MIX: tl.constexpr, AGAIN: tl.constexpr,
    GIVEN: tl.constexpr, H: tl.constexpr, Hp: tl.constexpr, UNITS: tl.constexpr, ROW: tl.constexpr,
    PRECISION: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """The derivative of :func:`advance`, given what :func:`look_back` has seen.

    Gives the gradients of the planes (of the second member's as well), of the state that entered the transforms, of the
    old state past the products, and of the old memory. Rows that do not run keep what they carry.
    """
    MEMORY: tl.constexpr = CELL == "lstm" or CELL == "peephole"
    s0 = seen[0].to(dh.dtype)
    s1 = seen[1].to(dh.dtype)
    s2 = seen[2].to(dh.dtype)
    s3 = seen[3].to(dh.dtype)
    t0 = seen[4].to(dh.dtype)
    t1 = seen[5].to(dh.dtype)
    t2 = seen[6].to(dh.dtype)
    t3 = seen[7].to(dh.dtype)
    h = seen[8].to(dh.dtype)
    c = seen[9].to(dh.dtype)
    new_c = seen[10].to(dh.dtype)
    dy = seen[11].to(dh.dtype)
    weight = seen[12]
    du = dh
    if GIVEN > 0:
        du = dh + dy
    du, dn, to_h, to_c, target = change_back(
        du, dc, drawn, pointers, row, live, unit, rep, rows, PARTIAL, BAR, target, group, team,
        CHAIN, MEMORY, H, Hp, UNITS, ROW, PRECISION,
    )  # fmt: skip
    runs = live[None, :] & (unit < H)[:, None]
    du = tl.where(runs, du, 0.0)
    f0 = du
    f1 = du
    f2 = du
    f3 = du
    if MIX:
        d0, d1, d2, d3, past, to_memory = _member_back(
            weight * du, weight * dn, s0, s1, s2, s3, h, c, new_c, e0, e1, e2, CELL, ACTIVATION, AGAIN, FAST
        )
        f0, f1, f2, f3, more, more_memory = _member_back(
            (1.0 - weight) * du, (1.0 - weight) * dn, t0, t1, t2, t3, h, c, new_c, e0, e1, e2,
            CELL, ACTIVATION, AGAIN, FAST,
        )  # fmt: skip
        past = past + more
        to_memory = to_memory + more_memory
    else:
        d0, d1, d2, d3, past, to_memory = _member_back(
            du, dn, s0, s1, s2, s3, h, c, new_c, e0, e1, e2, CELL, ACTIVATION, AGAIN, FAST
        )
    # With du at zero the other gradients vanish with it, but for the memory's.
    d0 = tl.where(runs, d0, 0.0)
    d1 = tl.where(runs, d1, 0.0)
    d2 = tl.where(runs, d2, 0.0)
    if MIX:
        f0 = tl.where(runs, f0, 0.0)
        f1 = tl.where(runs, f1, 0.0)
        f2 = tl.where(runs, f2, 0.0)
    past = tl.where(runs, past + to_h, dh)
    to_memory = tl.where(runs, to_memory + to_c, dc)
    return d0, d1, d2, d3, f0, f1, f2, f3, du, past, to_memory, target


@triton.jit
def store_input_grads(D, d0, d1, d2, d3, row, live, unit, CELL: tl.constexpr, BLOCKS: tl.constexpr, Hp: tl.constexpr):
    """Write the gradients of the planes that have a block of the input term, in the order of the blocks."""
    AT: tl.constexpr = input_blocks(CELL)
    if AT[0] >= 0:
        store_block(D, d0, row, live, unit, AT[0], BLOCKS, Hp)
    if BLOCKS > 1:
        store_block(D, d1, row, live, unit, AT[1], BLOCKS, Hp)
    if BLOCKS > 2:
        store_block(D, d2, row, live, unit, AT[2], BLOCKS, Hp)
    if BLOCKS > 3:
        store_block(D, d3, row, live, unit, AT[3], BLOCKS, Hp)


@triton.jit
def store_product_grads(
    D, d0, d1, d2, d3, row, live, unit, CELL: tl.constexpr, BLOCKS: tl.constexpr, Hp: tl.constexpr
):  # fmt: skip
    """The same for the blocks of the recurrent product."""
    if CELL == "rac":
        store_block(D, d1, row, live, unit, 0, BLOCKS, Hp)
    elif CELL == "gru":
        store_block(D, d0, row, live, unit, 0, BLOCKS, Hp)
        store_block(D, d1, row, live, unit, 1, BLOCKS, Hp)
        store_block(D, d3, row, live, unit, 2, BLOCKS, Hp)
    else:
        store_input_grads(D, d0, d1, d2, d3, row, live, unit, CELL, BLOCKS, Hp)
