"""One step at a time: the recurrent product by the matrix library, everything else of the step fused."""

import triton
import triton.language as tl

from statewise.kernels.cells import (
    gates_back,
    has_two_products,
    input_blocks,
    plane_count,
    product_blocks,
    sigmoid,
)
from statewise.kernels.chain import gather
from statewise.kernels.walk import (
    advance,
    load_block,
    load_mask,
    load_own,
    load_planes,
    load_tile,
    load_weight,
    look_back,
    old_rows,
    retreat,
    save_planes,
    store_block,
    store_input_grads,
    store_product_grads,
)

_TURN = ["start", "running", "kept", "old", "next_start", "next_running", "rows", "batch"]


@triton.jit
def _place(TILE: tl.constexpr, BN: tl.constexpr):
    """Units and sequences of this program, and its replica."""
    unit = tl.program_id(0) * TILE + tl.arange(0, TILE)
    b = tl.program_id(1) * BN + tl.arange(0, BN)
    return unit, b, tl.program_id(2).to(tl.int64)


@triton.jit
def _product(
    P, PMASK, row, b, live, unit, rep, rows, batch, running, fresh, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
    MASKED: tl.constexpr, SHARED: tl.constexpr, CONSTANT: tl.constexpr, ONE: tl.constexpr, H: tl.constexpr,
    Hp: tl.constexpr, GATES: tl.constexpr, OFFSET: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """One block of the recurrent product, masked if it is to be; where a row begins, one more if it is to be."""
    p = load_block(P, rep * running + b, live, unit, BLOCK, BLOCKS, Hp, dtype)
    if MASKED:
        p = p * _projection_mask(PMASK, row, b, live, unit, rep, rows, batch, BLOCK + OFFSET, SHARED, CONSTANT, H,
                                 GATES, dtype)  # fmt: skip
    if ONE:
        p = p + fresh[None, :].to(dtype)
    return p


@triton.jit
def _projection_mask(
    PMASK, row, b, live, unit, rep, rows, batch, BLOCK: tl.constexpr, SHARED: tl.constexpr, CONSTANT: tl.constexpr,
    H: tl.constexpr, GATES: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    first = rep * batch + b if CONSTANT else rep * rows + row
    inside = live[None, :] & (unit < H)[:, None]
    WIDTH: tl.constexpr = H if SHARED else GATES * H
    SKIP: tl.constexpr = 0 if SHARED else BLOCK * H
    return tl.load(PMASK + first[None, :] * WIDTH + SKIP + unit[:, None], mask=inside, other=0.0).to(dtype)


@triton.jit
def _masked_plane(
    d, mask, PLANE: tl.constexpr, CELL: tl.constexpr, SHARED: tl.constexpr, CONSTANT: tl.constexpr, H: tl.constexpr,
    GATES: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """The gradient of a plane as its product gets it; as it is where the plane has no product."""
    if PLANE < plane_count(CELL):
        if product_blocks(CELL)[PLANE] >= 0:
            d = d * _projection_mask(
                mask[0], mask[1], mask[2], mask[3], mask[4], mask[5], mask[6], mask[7],
                product_blocks(CELL)[PLANE], SHARED, CONSTANT, H, GATES, dtype,
            )  # fmt: skip
    return d


@triton.jit(do_not_specialize=_TURN)
def step_gates(
    P, Z, A, HC, V2, MASK, PMASK, start, running, rows, batch,
    CELL: tl.constexpr, H: tl.constexpr, Hp: tl.constexpr, MASKED: tl.constexpr, MASK_CONSTANT: tl.constexpr,
    PMASKED: tl.constexpr, PSHARED: tl.constexpr, PCONSTANT: tl.constexpr, TILE: tl.constexpr, BN: tl.constexpr,
    ACC: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """Of a cell with two products: its gates, and the gated state that the second product needs."""
    unit, b, rep = _place(TILE, BN)
    live = b < running
    row = (start + b).to(tl.int64)
    wide = rep * rows + row
    COUNT: tl.constexpr = plane_count(CELL)
    h = load_tile(HC, rep * batch + b, live, unit, Hp, ACC)
    fresh = b < 0
    for k in tl.static_range(COUNT - 1):
        a = load_block(Z, wide, live, unit, k, COUNT, Hp, ACC)
        a += _product(
            P, PMASK, row, b, live, unit, rep, rows, batch, running, fresh, k, COUNT - 1, PMASKED, PSHARED, PCONSTANT,
            False, H, Hp, COUNT, 0, ACC,
        )  # fmt: skip
        gate = sigmoid(a, FAST)
        store_block(A, gate, wide, live, unit, k, COUNT, Hp)
        if k == 0:
            gated = tl.where((unit < H)[:, None], gate * h, 0.0)
            if MASKED:
                gated = gated * load_mask(MASK, row, b, live, unit, rep, rows, batch, H, MASK_CONSTANT, ACC)
            store_block(V2, gated, wide, live, unit, 0, 1, Hp)


@triton.jit(do_not_specialize=_TURN)
def step_forward(
    P, Z, Z2, A, A2, HS, MS, V, HC, CC, BIAS, EXTRA, MASK, PMASK, LAMBDA, pointers,
    start, running, kept, next_start, next_running, rows, batch,
    CELL: tl.constexpr, ACTIVATION: tl.constexpr, CHAIN: tl.constexpr, H: tl.constexpr, Hp: tl.constexpr,
    BLOCKS: tl.constexpr, MIX: tl.constexpr, LAMBDA_CONSTANT: tl.constexpr, ONE: tl.constexpr, BIASED: tl.constexpr,
    COPY: tl.constexpr, MASKED: tl.constexpr, MASK_CONSTANT: tl.constexpr, PMASKED: tl.constexpr,
    PSHARED: tl.constexpr, PCONSTANT: tl.constexpr, TILE: tl.constexpr, BN: tl.constexpr, ROW: tl.constexpr,
    ACC: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """From the product of a step to its state; ``COPY`` writes what meets the weights next to a buffer of its own."""
    unit, b, rep = _place(TILE, BN)
    live = b < running
    row = (start + b).to(tl.int64)
    wide = rep * rows + row
    now = rep * batch + b
    COUNT: tl.constexpr = plane_count(CELL)
    TWO: tl.constexpr = has_two_products(CELL)
    MEMORY: tl.constexpr = CELL == "lstm" or CELL == "peephole"
    h = load_tile(HC, now, b < batch, unit, Hp, ACC)
    c = h
    if MEMORY:
        c = load_tile(CC, now, b < batch, unit, Hp, ACC)
    e0, e1, e2 = load_own(EXTRA, unit, rep, CELL, ACTIVATION, H, ACC)
    weight = tl.zeros((1, BN), ACC)
    if MIX:
        weight = load_weight(LAMBDA, row, b, live, rep, rows, batch, LAMBDA_CONSTANT, ACC)
    drawn = gather(pointers, row, b, live, unit, rep, rows, batch, CHAIN, MEMORY, H, ACC)
    a = ()
    other = ()
    for k in tl.static_range(COUNT):
        p = tl.zeros((TILE, BN), ACC)
        if TWO and k < COUNT - 1:
            p = load_block(A, wide, live, unit, k, COUNT, Hp, ACC)
        elif product_blocks(CELL)[k] >= 0:
            p = _product(
                P, PMASK, row, b, live, unit, rep, rows, batch, running, b >= kept,
                0 if TWO else product_blocks(CELL)[k], 1 if TWO else BLOCKS, PMASKED, PSHARED, PCONSTANT, ONE, H, Hp,
                BLOCKS, COUNT - 1 if TWO else 0, ACC,
            )  # fmt: skip
            if BIASED and input_blocks(CELL)[k] < 0:
                p += tl.load(BIAS + rep * Hp + unit, mask=unit < Hp, other=0.0).to(ACC)[:, None]
        q = p
        if input_blocks(CELL)[k] >= 0 and not (TWO and k < COUNT - 1):
            p = p + load_block(Z, wide, live, unit, input_blocks(CELL)[k], BLOCKS, Hp, ACC)
            if MIX:
                q = q + load_block(Z2, wide, live, unit, input_blocks(CELL)[k], BLOCKS, Hp, ACC)
        a = a + (p,)
        other = other + (q,)
    for _ in tl.static_range(4 - COUNT):
        a = a + (a[0],)
        other = other + (other[0],)
    h, c, s0, s1, s2, s3, t0, t1, t2, t3, _ = advance(
        a[0], a[1], a[2], a[3], other[0], other[1], other[2], other[3], h, c, e0, e1, e2, weight, drawn,
        pointers, row, live, unit, rep, rows, A, A, 0, 0, 0,
        CELL, ACTIVATION, CHAIN, MIX, H, Hp, 1, ROW, "ieee", FAST,
    )  # fmt: skip
    save_planes(A, s0, s1, s2, s3, wide, live, unit, CELL, Hp)
    if MIX:
        save_planes(A2, t0, t1, t2, t3, wide, live, unit, CELL, Hp)
    long = rep * (rows + batch) + row
    store_block(HS, h, long, live, unit, 0, 1, Hp)
    store_block(HC, h, now, live, unit, 0, 1, Hp)
    if MEMORY:
        store_block(MS, c, long, live, unit, 0, 1, Hp)
        store_block(CC, c, now, live, unit, 0, 1, Hp)
    if COPY:
        following = (next_start + b).to(tl.int64)
        runs = b < next_running
        if MASKED:
            h = h * load_mask(MASK, following, b, runs, unit, rep, rows, batch, H, MASK_CONSTANT, ACC)
        store_block(V, h, rep * rows + following, runs, unit, 0, 1, Hp)


@triton.jit(do_not_specialize=_TURN)
def step_backward(
    REC, DY, A, A2, HS, MS, GH, GC, DZ, DZ2, DP, DB, DU, EXTRA, MASK, PMASK, LAMBDA, pointers,
    start, running, kept, old, next_start, next_running, rows, batch,
    CELL: tl.constexpr, ACTIVATION: tl.constexpr, CHAIN: tl.constexpr, H: tl.constexpr, Hp: tl.constexpr,
    BLOCKS: tl.constexpr, MIX: tl.constexpr, LAMBDA_CONSTANT: tl.constexpr, AGAIN: tl.constexpr,
    GIVEN: tl.constexpr, SPLIT: tl.constexpr, BIAS: tl.constexpr, DENSE: tl.constexpr, MASKED: tl.constexpr,
    MASK_CONSTANT: tl.constexpr,
    PMASKED: tl.constexpr, PSHARED: tl.constexpr, PCONSTANT: tl.constexpr, TILE: tl.constexpr, BN: tl.constexpr,
    ROW: tl.constexpr, ACC: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """From the gradient of a step's state to those of its input term and product.

    ``next_running`` sequences ran at the turn after this one, whose product has left its gradient in REC.
    """
    unit, b, rep = _place(TILE, BN)
    live = b < running
    row = (start + b).to(tl.int64)
    wide = rep * rows + row
    now = rep * batch + b
    TWO: tl.constexpr = has_two_products(CELL)
    MEMORY: tl.constexpr = CELL == "lstm" or CELL == "peephole"
    dh = load_tile(GH, now, b < batch, unit, Hp, ACC)
    came = load_tile(REC, rep * next_running + b, b < next_running, unit, Hp, ACC)
    if MASKED:
        following = (next_start + b).to(tl.int64)
        came = came * load_mask(MASK, following, b, b < next_running, unit, rep, rows, batch, H, MASK_CONSTANT, ACC)
    dh += came
    dc = dh
    if MEMORY:
        dc = load_tile(GC, now, b < batch, unit, Hp, ACC)
    e0, e1, e2 = load_own(EXTRA, unit, rep, CELL, ACTIVATION, H, ACC)
    before = old_rows(b, old, kept, rows, DENSE)
    seen = look_back(A, A2, HS, MS, DY, LAMBDA, row, b, before, live, unit, rep, rows, batch, CELL, MIX,
                     LAMBDA_CONSTANT, AGAIN, GIVEN, H, Hp, ACC)  # fmt: skip
    drawn = gather(pointers, row, b, live, unit, rep, rows, batch, CHAIN, MEMORY, H, ACC)
    d0, d1, d2, d3, f0, f1, f2, f3, du, past, dc, _ = retreat(
        dh, dc, seen, drawn, e0, e1, e2, pointers, row, live, unit, rep, rows, A, A, 0, 0, 0,
        CELL, ACTIVATION, CHAIN, MIX, AGAIN, GIVEN, H, Hp, 1, ROW, "ieee", FAST,
    )  # fmt: skip
    store_block(GH, past, now, b < batch, unit, 0, 1, Hp)
    if MEMORY:
        store_block(GC, dc, now, b < batch, unit, 0, 1, Hp)
    if TWO:
        store_block(DU, du, now, live, unit, 0, 1, Hp)
        last = d1 if CELL == "mgu" else d2
        store_block(DZ, last, wide, live, unit, BLOCKS - 1, BLOCKS, Hp)
        if SPLIT:
            last = last * _projection_mask(PMASK, row, b, live, unit, rep, rows, batch, BLOCKS - 1, PSHARED, PCONSTANT,
                                           H, BLOCKS, ACC)  # fmt: skip
            store_block(DP, last, wide, live, unit, BLOCKS - 1, BLOCKS, Hp)
    else:
        store_input_grads(DZ, d0, d1, d2, d3, wide, live, unit, CELL, BLOCKS, Hp)
        if MIX:
            store_input_grads(DZ2, f0, f1, f2, f3, wide, live, unit, CELL, BLOCKS, Hp)
            d0 += f0
            d1 += f1
            d2 += f2
            d3 += f3
        if BIAS:
            store_block(DB, d1 if CELL == "rac" else d3, wide, live, unit, 0, 1, Hp)
        if SPLIT:
            if PMASKED:
                mask = (PMASK, row, b, live, unit, rep, rows, batch)
                d0 = _masked_plane(d0, mask, 0, CELL, PSHARED, PCONSTANT, H, BLOCKS, ACC)
                d1 = _masked_plane(d1, mask, 1, CELL, PSHARED, PCONSTANT, H, BLOCKS, ACC)
                d2 = _masked_plane(d2, mask, 2, CELL, PSHARED, PCONSTANT, H, BLOCKS, ACC)
                d3 = _masked_plane(d3, mask, 3, CELL, PSHARED, PCONSTANT, H, BLOCKS, ACC)
            store_product_grads(DP, d0, d1, d2, d3, wide, live, unit, CELL, BLOCKS, Hp)


@triton.jit(do_not_specialize=_TURN)
def step_gates_back(
    GATED, DU, A, HS, GH, DZ, DP, MASK, PMASK, start, running, kept, old, rows, batch,
    CELL: tl.constexpr, H: tl.constexpr, Hp: tl.constexpr, BLOCKS: tl.constexpr, SPLIT: tl.constexpr,
    DENSE: tl.constexpr, MASKED: tl.constexpr, MASK_CONSTANT: tl.constexpr, PSHARED: tl.constexpr,
    PCONSTANT: tl.constexpr,
    TILE: tl.constexpr, BN: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Of a cell with two products: from the gradient of the gated state to those of the gates."""
    unit, b, rep = _place(TILE, BN)
    live = b < running
    row = (start + b).to(tl.int64)
    wide = rep * rows + row
    now = rep * batch + b
    gated = load_tile(GATED, rep * running + b, live, unit, Hp, ACC)
    if MASKED:
        gated = gated * load_mask(MASK, row, b, live, unit, rep, rows, batch, H, MASK_CONSTANT, ACC)
    du = load_tile(DU, now, live, unit, Hp, ACC)
    h = load_tile(HS, old_rows(b, old, kept, rows, DENSE) + rep * (rows + batch), live, unit, Hp, ACC)
    s0, s1, s2, _ = load_planes(A, wide, live, unit, CELL, Hp)
    d0, d1, dh = gates_back(du, gated, s0.to(ACC), s1.to(ACC), s2.to(ACC), h, CELL)
    runs = live[None, :] & (unit < H)[:, None]
    d0 = tl.where(runs, d0, 0.0)
    d1 = tl.where(runs, d1, 0.0)
    dh = tl.where(runs, dh, 0.0) + load_tile(GH, now, b < batch, unit, Hp, ACC)
    store_block(GH, dh, now, live, unit, 0, 1, Hp)
    store_block(DZ, d0, wide, live, unit, 0, BLOCKS, Hp)
    if BLOCKS > 2:
        store_block(DZ, d1, wide, live, unit, 1, BLOCKS, Hp)
    if SPLIT:
        d0 *= _projection_mask(PMASK, row, b, live, unit, rep, rows, batch, 0, PSHARED, PCONSTANT, H, BLOCKS, ACC)
        store_block(DP, d0, wide, live, unit, 0, BLOCKS, Hp)
        if BLOCKS > 2:
            d1 *= _projection_mask(PMASK, row, b, live, unit, rep, rows, batch, 1, PSHARED, PCONSTANT, H, BLOCKS, ACC)
            store_block(DP, d1, wide, live, unit, 1, BLOCKS, Hp)
