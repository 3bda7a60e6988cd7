"""All steps in one launch, by programs that have all units of their sequences: nobody waits for anybody."""

import triton
import triton.language as tl

from statewise.kernels.cells import gates_back, has_two_products, plane_count, sigmoid
from statewise.kernels.chain import gather
from statewise.kernels.tiles import finish_planes, input_tile, load_bias, part, product_rows, unite
from statewise.kernels.walk import (
    advance,
    load_block,
    load_mask,
    load_own,
    load_tile,
    look_back,
    old_rows,
    retreat,
    save_planes,
    store_block,
    store_input_grads,
    store_product_grads,
    turn_at,
)

_RANGE = ["first", "last", "turns", "rows", "batch"]


@triton.jit
def _weights(U, rep, first_block, COUNT: tl.constexpr, CELL: tl.constexpr, BLOCKS: tl.constexpr, H: tl.constexpr,
             BU: tl.constexpr, TURNED: tl.constexpr):  # fmt: skip
    """The recurrent weights of some planes: (planes * units, units), or that turned."""
    r = tl.arange(0, COUNT * BU)
    row, known = product_rows(r // BU + first_block, r % BU, CELL, H)
    k = tl.arange(0, BU)
    base = U + rep * BLOCKS * H * H
    if TURNED:
        tile = tl.load(base + row[None, :] * H + k[:, None], mask=known[None, :] & (k < H)[:, None], other=0.0)
    else:
        tile = tl.load(base + row[:, None] * H + k[None, :], mask=known[:, None] & (k < H)[None, :], other=0.0)
    return tile


@triton.jit
def _ahead(
    Z, pointers, TABLE, turn, turns, rows, batch, b, unit, plane, rep,
    CELL: tl.constexpr, CHAIN: tl.constexpr, BLOCKS: tl.constexpr, H: tl.constexpr, Hp: tl.constexpr,
    MIX: tl.constexpr, DENSE: tl.constexpr, REVERSE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """What a step reads that does not depend on the one before: its input term and what was drawn for it."""
    start, running, kept, old = turn_at(TABLE, turn, turns, batch, DENSE, REVERSE)
    live = b < running
    row = (start + b).to(tl.int64)
    MEMORY: tl.constexpr = CELL == "lstm" or CELL == "peephole"
    drawn = gather(pointers, row, b, live, unit, rep, rows, batch, CHAIN, MEMORY, H, ACC)
    if MIX:
        term = tl.zeros((1, 1), ACC)
    else:
        term = input_tile(Z, rep * rows + row, live, plane, unit_of(plane, unit), BLOCKS, Hp)
    return term, drawn


@triton.jit
def unit_of(plane, unit):
    """The units of a tile of all planes."""
    return tl.arange(0, plane.shape[0]) % unit.shape[0]


@triton.jit(do_not_specialize=_RANGE)
def solo_forward(
    U, Z, Z2, A, A2, HS, MS, V, V2, HC, CC, BIAS, EXTRA, MASK, LAMBDA, TABLE, pointers,
    first, last, turns, rows, batch,
    CELL: tl.constexpr, ACTIVATION: tl.constexpr, CHAIN: tl.constexpr, H: tl.constexpr, Hp: tl.constexpr,
    BLOCKS: tl.constexpr, MIX: tl.constexpr, LAMBDA_CONSTANT: tl.constexpr, ONE: tl.constexpr, BIASED: tl.constexpr,
    COPY: tl.constexpr, MASKED: tl.constexpr, MASK_CONSTANT: tl.constexpr, DENSE: tl.constexpr,
    REVERSE: tl.constexpr, BU: tl.constexpr, BN: tl.constexpr, ACC: tl.constexpr, PRECISION: tl.constexpr,
    FAST: tl.constexpr,
):  # fmt: skip
    """The turns from ``first`` to ``last``; states and memories are carried in HC and CC from launch to launch."""
    b = tl.program_id(0) * BN + tl.arange(0, BN)
    rep = tl.program_id(1).to(tl.int64)
    unit = tl.arange(0, BU)
    now = rep * batch + b
    TWO: tl.constexpr = has_two_products(CELL)
    PLANES: tl.constexpr = plane_count(CELL)
    COUNT: tl.constexpr = PLANES - 1 if TWO else PLANES
    MEMORY: tl.constexpr = CELL == "lstm" or CELL == "peephole"
    DT: tl.constexpr = U.dtype.element_ty
    plane = tl.arange(0, COUNT * BU) // BU
    w = _weights(U, rep, 0, COUNT, CELL, BLOCKS, H, BU, False)
    if TWO:
        w2 = _weights(U, rep, COUNT, 1, CELL, BLOCKS, H, BU, False)
    e0, e1, e2 = load_own(EXTRA, unit, rep, CELL, ACTIVATION, H, ACC)
    h = load_tile(HC, now, b < batch, unit, Hp, ACC)
    c = h
    if MEMORY:
        c = load_tile(CC, now, b < batch, unit, Hp, ACC)
    bias = load_bias(BIAS, unit, rep, Hp, BIASED, ACC)
    term, drawn = _ahead(Z, pointers, TABLE, first, turns, rows, batch, b, unit, plane, rep, CELL, CHAIN, BLOCKS, H, Hp,
                         MIX, DENSE, REVERSE, ACC)  # fmt: skip
    for turn in range(first, last):
        next_term, next_drawn = _ahead(
            Z, pointers, TABLE, tl.minimum(turn + 1, last - 1), turns, rows, batch, b, unit, plane, rep,
            CELL, CHAIN, BLOCKS, H, Hp, MIX, DENSE, REVERSE, ACC,
        )  # fmt: skip
        start, running, kept, old = turn_at(TABLE, turn, turns, batch, DENSE, REVERSE)
        live = b < running
        row = (start + b).to(tl.int64)
        wide = rep * rows + row
        x = h
        if MASKED:
            mask = load_mask(MASK, row, b, live, unit, rep, rows, batch, H, MASK_CONSTANT, ACC)
            x = h * mask
        if COPY:
            store_block(V, x, wide, live, unit, 0, 1, Hp)
        if MIX:
            acc = tl.dot(w, x.to(DT), input_precision=PRECISION).to(ACC)
        else:
            acc = tl.dot(w, x.to(DT), term.to(ACC), input_precision=PRECISION, out_dtype=ACC)
        a0, a1, a2, a3 = part(acc, COUNT, BU, BN)
        if TWO:
            a0 = sigmoid(a0, FAST)
            last_plane = load_block(Z, wide, live, unit, COUNT, BLOCKS, Hp, ACC)
            x = tl.where((unit < H)[:, None], a0 * h, 0.0)
            if MASKED:
                x = x * mask
            store_block(V2, x, wide, live, unit, 0, 1, Hp)
            last_plane = tl.dot(w2, x.to(DT), last_plane, input_precision=PRECISION, out_dtype=ACC)
            if CELL == "mgu":
                a1 = last_plane
            else:
                a1 = sigmoid(a1, FAST)
                a2 = last_plane
        a0, a1, a2, a3, b0, b1, b2, b3, weight = finish_planes(
            a0, a1, a2, a3, bias, b >= kept, Z, Z2, LAMBDA, row, b, live, unit, rep, rows, batch,
            CELL, BLOCKS, Hp, MIX, LAMBDA_CONSTANT, ONE, BIASED, ACC,
        )  # fmt: skip
        h, c, s0, s1, s2, s3, t0, t1, t2, t3, _ = advance(
            a0, a1, a2, a3, b0, b1, b2, b3, h, c, e0, e1, e2, weight, drawn, pointers, row, live, unit, rep, rows,
            A, A, 0, 0, 0, CELL, ACTIVATION, CHAIN, MIX, H, Hp, 1, False, PRECISION, FAST,
        )  # fmt: skip
        save_planes(A, s0, s1, s2, s3, wide, live, unit, CELL, Hp)
        if MIX:
            save_planes(A2, t0, t1, t2, t3, wide, live, unit, CELL, Hp)
        long = rep * (rows + batch) + row
        store_block(HS, h, long, live, unit, 0, 1, Hp)
        if MEMORY:
            store_block(MS, c, long, live, unit, 0, 1, Hp)
        term = next_term
        drawn = next_drawn
    store_block(HC, h, now, b < batch, unit, 0, 1, Hp)
    if MEMORY:
        store_block(CC, c, now, b < batch, unit, 0, 1, Hp)


@triton.jit
def _behind(
    A, A2, HS, MS, DY, LAMBDA, pointers, TABLE, turn, turns, rows, batch, b, unit, rep,
    CELL: tl.constexpr, CHAIN: tl.constexpr, MIX: tl.constexpr, LAMBDA_CONSTANT: tl.constexpr, AGAIN: tl.constexpr,
    GIVEN: tl.constexpr, H: tl.constexpr, Hp: tl.constexpr, DENSE: tl.constexpr, REVERSE: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    """What a step of the way back reads that does not depend on the one after."""
    start, running, kept, old = turn_at(TABLE, turn, turns, batch, DENSE, REVERSE)
    live = b < running
    row = (start + b).to(tl.int64)
    before = old_rows(b, old, kept, rows, DENSE)
    seen = look_back(A, A2, HS, MS, DY, LAMBDA, row, b, before, live, unit, rep, rows, batch, CELL, MIX,
                     LAMBDA_CONSTANT, AGAIN, GIVEN, H, Hp, ACC)  # fmt: skip
    MEMORY: tl.constexpr = CELL == "lstm" or CELL == "peephole"
    return seen, gather(pointers, row, b, live, unit, rep, rows, batch, CHAIN, MEMORY, H, ACC)


@triton.jit(do_not_specialize=_RANGE)
def solo_backward(
    U, DY, A, A2, HS, MS, GH, GC, DZ, DZ2, DP, EXTRA, MASK, LAMBDA, TABLE, pointers, first, last, turns, rows, batch,
    CELL: tl.constexpr, ACTIVATION: tl.constexpr, CHAIN: tl.constexpr, H: tl.constexpr, Hp: tl.constexpr,
    BLOCKS: tl.constexpr, MIX: tl.constexpr, LAMBDA_CONSTANT: tl.constexpr, AGAIN: tl.constexpr,
    GIVEN: tl.constexpr, SPLIT: tl.constexpr, MASKED: tl.constexpr, MASK_CONSTANT: tl.constexpr,
    DENSE: tl.constexpr, REVERSE: tl.constexpr, BU: tl.constexpr, BN: tl.constexpr, ACC: tl.constexpr,
    PRECISION: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """The turns from ``last`` back to ``first``; gradients are carried in GH and GC from launch to launch."""
    b = tl.program_id(0) * BN + tl.arange(0, BN)
    rep = tl.program_id(1).to(tl.int64)
    unit = tl.arange(0, BU)
    now = rep * batch + b
    TWO: tl.constexpr = has_two_products(CELL)
    PLANES: tl.constexpr = plane_count(CELL)
    COUNT: tl.constexpr = PLANES - 1 if TWO else PLANES
    MEMORY: tl.constexpr = CELL == "lstm" or CELL == "peephole"
    DT: tl.constexpr = U.dtype.element_ty
    w = _weights(U, rep, 0, COUNT, CELL, BLOCKS, H, BU, True)
    if TWO:
        w2 = _weights(U, rep, COUNT, 1, CELL, BLOCKS, H, BU, True)
    e0, e1, e2 = load_own(EXTRA, unit, rep, CELL, ACTIVATION, H, ACC)
    dh = load_tile(GH, now, b < batch, unit, Hp, ACC)
    dc = dh
    if MEMORY:
        dc = load_tile(GC, now, b < batch, unit, Hp, ACC)
    seen, drawn = _behind(A, A2, HS, MS, DY, LAMBDA, pointers, TABLE, last - 1, turns, rows, batch, b, unit, rep, CELL,
                          CHAIN, MIX, LAMBDA_CONSTANT, AGAIN, GIVEN, H, Hp, DENSE, REVERSE, ACC)  # fmt: skip
    for index in range(first, last):
        turn = last - 1 - (index - first)
        next_seen, next_drawn = _behind(
            A, A2, HS, MS, DY, LAMBDA, pointers, TABLE, tl.maximum(turn - 1, first), turns, rows, batch, b, unit, rep,
            CELL, CHAIN, MIX, LAMBDA_CONSTANT, AGAIN, GIVEN, H, Hp, DENSE, REVERSE, ACC,
        )  # fmt: skip
        start, running, kept, old = turn_at(TABLE, turn, turns, batch, DENSE, REVERSE)
        live = b < running
        row = (start + b).to(tl.int64)
        wide = rep * rows + row
        d0, d1, d2, d3, f0, f1, f2, f3, du, dh, dc, _ = retreat(
            dh, dc, seen, drawn, e0, e1, e2, pointers, row, live, unit, rep, rows, A, A, 0, 0, 0,
            CELL, ACTIVATION, CHAIN, MIX, AGAIN, GIVEN, H, Hp, 1, False, PRECISION, FAST,
        )  # fmt: skip
        if MASKED:
            mask = load_mask(MASK, row, b, live, unit, rep, rows, batch, H, MASK_CONSTANT, ACC)
        if TWO:
            last_plane = d1 if CELL == "mgu" else d2
            store_block(DZ, last_plane, wide, live, unit, BLOCKS - 1, BLOCKS, Hp)
            gated = tl.dot(w2, last_plane.to(DT), input_precision=PRECISION).to(ACC)
            if MASKED:
                gated = gated * mask
            d0, d1, past = gates_back(
                du, gated, seen[0].to(ACC), seen[1].to(ACC), seen[2].to(ACC), seen[8].to(ACC), CELL
            )
            runs = live[None, :] & (unit < H)[:, None]
            d0 = tl.where(runs, d0, 0.0)
            d1 = tl.where(runs, d1, 0.0)
            dh = dh + tl.where(runs, past, 0.0)
            store_block(DZ, d0, wide, live, unit, 0, BLOCKS, Hp)
            if BLOCKS > 2:
                store_block(DZ, d1, wide, live, unit, 1, BLOCKS, Hp)
        else:
            store_input_grads(DZ, d0, d1, d2, d3, wide, live, unit, CELL, BLOCKS, Hp)
            if MIX:
                store_input_grads(DZ2, f0, f1, f2, f3, wide, live, unit, CELL, BLOCKS, Hp)
                d0 += f0
                d1 += f1
                d2 += f2
                d3 += f3
            if SPLIT:
                store_product_grads(DP, d0, d1, d2, d3, wide, live, unit, CELL, BLOCKS, Hp)
        came = tl.dot(w, unite(d0, d1, d2, d3, COUNT, BU, BN).to(DT), input_precision=PRECISION).to(ACC)
        if MASKED:
            came = came * mask
        dh += came
        seen = next_seen
        drawn = next_drawn
    store_block(GH, dh, now, b < batch, unit, 0, 1, Hp)
    if MEMORY:
        store_block(GC, dc, now, b < batch, unit, 0, 1, Hp)
