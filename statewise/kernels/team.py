"""All steps in one launch, by teams: the programs of a team share sequences, each keeps the weights of some units."""

import triton
import triton.language as tl

from statewise.kernels.cells import plane_count
from statewise.kernels.chain import gather
from statewise.kernels.meeting import arrive, wait
from statewise.kernels.solo import unit_of
from statewise.kernels.tiles import finish_planes, input_tile, load_bias, part, pieces, product_rows, unite, up_to
from statewise.kernels.walk import (
    advance,
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


@triton.jit(do_not_specialize=_RANGE)
def team_forward(
    U, Z, Z2, A, A2, HS, MS, V, HC, CC, BIAS, EXTRA, MASK, LAMBDA, TABLE, PARTIAL, BAR, pointers,
    first, last, turns, rows, batch,
    CELL: tl.constexpr, ACTIVATION: tl.constexpr, CHAIN: tl.constexpr, H: tl.constexpr, Hp: tl.constexpr,
    BLOCKS: tl.constexpr, MIX: tl.constexpr, LAMBDA_CONSTANT: tl.constexpr, ONE: tl.constexpr, BIASED: tl.constexpr,
    COPY: tl.constexpr, MASKED: tl.constexpr, MASK_CONSTANT: tl.constexpr, DENSE: tl.constexpr,
    REVERSE: tl.constexpr, BU: tl.constexpr, BN: tl.constexpr, UNITS: tl.constexpr, ALONE: tl.constexpr,
    ACC: tl.constexpr, PRECISION: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """The turns from ``first`` to ``last``; a program reads at each what its team wrote at the one before.

    ``ALONE`` is for launches of one turn: then the launch itself is the meeting.
    """
    team = tl.program_id(0)
    b = tl.program_id(1) * BN + tl.arange(0, BN)
    rep = tl.program_id(2).to(tl.int64)
    group = tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)
    BAR += group * 32
    unit = team * BU + tl.arange(0, BU)
    now = rep * batch + b
    COUNT: tl.constexpr = plane_count(CELL)
    MEMORY: tl.constexpr = CELL == "lstm" or CELL == "peephole"
    # Four-byte states do not fit beside the weights all at once, so they come piece by piece.
    NARROW: tl.constexpr = U.dtype.element_ty.primitive_bitwidth > 16
    KS: tl.constexpr = pieces(Hp, 128 if NARROW else 512)
    plane = tl.arange(0, COUNT * BU) // BU
    wide_unit = unit_of(plane, unit) + team * BU
    weight_row, known = product_rows(plane, wide_unit, CELL, Hp)
    w = ()
    for j in tl.static_range(len(KS)):
        k = up_to(KS, j) + tl.arange(0, KS[j])
        place = (rep * BLOCKS * Hp + weight_row[:, None]) * Hp + k[None, :]
        w = w + (tl.load(U + place, mask=known[:, None], other=0.0),)
    e0, e1, e2 = load_own(EXTRA, unit, rep, CELL, ACTIVATION, H, ACC)
    bias = load_bias(BIAS, unit, rep, Hp, BIASED, ACC)
    h = load_tile(HC, now, b < batch, unit, Hp, ACC)
    c = h
    if MEMORY:
        c = load_tile(CC, now, b < batch, unit, Hp, ACC)
    target = 0
    for turn in range(first, last):
        start, running, kept, old = turn_at(TABLE, turn, turns, batch, DENSE, REVERSE)
        live = b < running
        row = (start + b).to(tl.int64)
        wide = rep * rows + row
        if MIX:
            acc = tl.zeros((COUNT * BU, BN), ACC)
        else:
            acc = input_tile(Z, wide, live, plane, wide_unit, BLOCKS, Hp).to(ACC)
        drawn = gather(pointers, row, b, live, unit, rep, rows, batch, CHAIN, MEMORY, H, ACC)
        if not ALONE:
            wait(BAR, target)
        if COPY:
            source = V + wide * Hp
        else:
            source = HS + (rep * (rows + batch) + old_rows(b, old, kept, rows, DENSE)) * Hp
        if NARROW:
            for j in tl.static_range(len(KS)):
                spot = source[None, :] + (up_to(KS, j) + tl.arange(0, KS[j]))[:, None]
                piece = tl.load(spot, mask=live[None, :], other=0.0, cache_modifier=".cg")
                acc = tl.dot(w[j], piece, acc, input_precision=PRECISION, out_dtype=ACC)
        else:
            x = ()
            for j in tl.static_range(len(KS)):
                spot = source[None, :] + (up_to(KS, j) + tl.arange(0, KS[j]))[:, None]
                x = x + (tl.load(spot, mask=live[None, :], other=0.0, cache_modifier=".cg"),)
            for j in tl.static_range(len(KS)):
                acc = tl.dot(w[j], x[j], acc, input_precision=PRECISION, out_dtype=ACC)
        a0, a1, a2, a3 = part(acc, COUNT, BU, BN)
        a0, a1, a2, a3, b0, b1, b2, b3, weight = finish_planes(
            a0, a1, a2, a3, bias, b >= kept, Z, Z2, LAMBDA, row, b, live, unit, rep, rows, batch,
            CELL, BLOCKS, Hp, MIX, LAMBDA_CONSTANT, ONE, BIASED, ACC,
        )  # fmt: skip
        h, c, s0, s1, s2, s3, t0, t1, t2, t3, target = advance(
            a0, a1, a2, a3, b0, b1, b2, b3, h, c, e0, e1, e2, weight, drawn, pointers, row, live, unit, rep, rows,
            PARTIAL, BAR, target, group, team, CELL, ACTIVATION, CHAIN, MIX, H, Hp, UNITS, False, PRECISION, FAST,
        )  # fmt: skip
        long = rep * (rows + batch) + row
        if COPY:
            after = tl.minimum(turn + 1, turns - 1)
            next_start, next_running, _, _ = turn_at(TABLE, after, turns, batch, DENSE, REVERSE)
            following = (next_start + b).to(tl.int64)
            runs = b < tl.where(turn + 1 < turns, next_running, 0)
            x_next = h
            if MASKED:
                x_next = h * load_mask(MASK, following, b, runs, unit, rep, rows, batch, H, MASK_CONSTANT, ACC)
            store_block(V, x_next, rep * rows + following, runs, unit, 0, 1, Hp)
        else:
            store_block(HS, h, long, live, unit, 0, 1, Hp)
        if not ALONE:
            arrive(BAR)
            target += UNITS
        # What nobody waits for comes after the meeting.
        if COPY:
            store_block(HS, h, long, live, unit, 0, 1, Hp)
        save_planes(A, s0, s1, s2, s3, wide, live, unit, CELL, Hp)
        if MIX:
            save_planes(A2, t0, t1, t2, t3, wide, live, unit, CELL, Hp)
        if MEMORY:
            store_block(MS, c, long, live, unit, 0, 1, Hp)
    store_block(HC, h, now, b < batch, unit, 0, 1, Hp)
    if MEMORY:
        store_block(CC, c, now, b < batch, unit, 0, 1, Hp)


@triton.jit(do_not_specialize=_RANGE)
def team_backward(
    U, DY, A, A2, HS, MS, GH, GC, DZ, DZ2, DP, CAME, EXTRA, MASK, LAMBDA, TABLE, PARTIAL, BAR, pointers,
    first, last, turns, rows, batch,
    CELL: tl.constexpr, ACTIVATION: tl.constexpr, CHAIN: tl.constexpr, H: tl.constexpr, Hp: tl.constexpr,
    BLOCKS: tl.constexpr, MIX: tl.constexpr, LAMBDA_CONSTANT: tl.constexpr, AGAIN: tl.constexpr,
    GIVEN: tl.constexpr, SPLIT: tl.constexpr, MASKED: tl.constexpr, MASK_CONSTANT: tl.constexpr,
    DENSE: tl.constexpr, REVERSE: tl.constexpr, BU: tl.constexpr, BN: tl.constexpr, UNITS: tl.constexpr,
    ALONE: tl.constexpr, ACC: tl.constexpr, PRECISION: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """The turns from ``last`` back to ``first``.

    Each program turns the gradients of its own planes into a part of the old state's gradient for ALL units, and writes
    it to CAME (2, groups, team, units, sequences); at the next turn it adds up all parts of its own units, in order.
    """
    team = tl.program_id(0)
    n = tl.arange(0, BN)
    b = tl.program_id(1) * BN + n
    rep = tl.program_id(2).to(tl.int64)
    group = tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)
    groups = tl.num_programs(1) * tl.num_programs(2)
    BAR += group * 32
    unit = team * BU + tl.arange(0, BU)
    now = rep * batch + b
    COUNT: tl.constexpr = plane_count(CELL)
    MEMORY: tl.constexpr = CELL == "lstm" or CELL == "peephole"
    MS_: tl.constexpr = pieces(Hp)
    DT: tl.constexpr = U.dtype.element_ty
    SIZE: tl.constexpr = UNITS * Hp * BN
    plane = tl.arange(0, COUNT * BU) // BU
    weight_row, known = product_rows(plane, unit_of(plane, unit) + team * BU, CELL, Hp)
    w = ()
    for j in tl.static_range(len(MS_)):
        k = up_to(MS_, j) + tl.arange(0, MS_[j])
        # U is turned here: (units, blocks * units), so that the inner dimension lies side by side.
        place = (rep * Hp + k[:, None]) * (BLOCKS * Hp) + weight_row[None, :]
        w = w + (tl.load(U + place, mask=known[None, :], other=0.0),)
    e0, e1, e2 = load_own(EXTRA, unit, rep, CELL, ACTIVATION, H, ACC)
    dh = load_tile(GH, now, b < batch, unit, Hp, ACC)
    dc = dh
    if MEMORY:
        dc = load_tile(GC, now, b < batch, unit, Hp, ACC)
    target = 0
    for index in range(first, last):
        turn = last - 1 - (index - first)
        start, running, kept, old = turn_at(TABLE, turn, turns, batch, DENSE, REVERSE)
        live = b < running
        row = (start + b).to(tl.int64)
        wide = rep * rows + row
        before = old_rows(b, old, kept, rows, DENSE)
        seen = look_back(A, A2, HS, MS, DY, LAMBDA, row, b, before, live, unit, rep, rows, batch, CELL, MIX,
                         LAMBDA_CONSTANT, AGAIN, GIVEN, H, Hp, ACC)  # fmt: skip
        drawn = gather(pointers, row, b, live, unit, rep, rows, batch, CHAIN, MEMORY, H, ACC)
        mask = tl.full((1, 1), 1.0, ACC)
        if MASKED:
            after = tl.minimum(turn + 1, turns - 1)
            next_start, next_running, _, _ = turn_at(TABLE, after, turns, batch, DENSE, REVERSE)
            following = (next_start + b).to(tl.int64)
            mask = load_mask(MASK, following, b, b < next_running, unit, rep, rows, batch, H, MASK_CONSTANT, ACC)
        if not ALONE:
            wait(BAR, target)
        if turn < turns - 1:
            source = CAME + (((turn + 1) % 2) * groups + group) * SIZE + unit[:, None] * BN + n[None, :]
            came = tl.zeros((BU, BN), ACC)
            for member in tl.static_range(UNITS):
                came += tl.load(source + member * Hp * BN, mask=(unit < Hp)[:, None], other=0.0, cache_modifier=".cg")
            dh += came * mask
        d0, d1, d2, d3, f0, f1, f2, f3, du, dh, dc, target = retreat(
            dh, dc, seen, drawn, e0, e1, e2, pointers, row, live, unit, rep, rows, PARTIAL, BAR, target, group, team,
            CELL, ACTIVATION, CHAIN, MIX, AGAIN, GIVEN, H, Hp, UNITS, False, PRECISION, FAST,
        )  # fmt: skip
        p0 = d0
        p1 = d1
        p2 = d2
        p3 = d3
        if MIX:
            p0 = d0 + f0
            p1 = d1 + f1
            p2 = d2 + f2
            p3 = d3 + f3
        united = unite(p0, p1, p2, p3, COUNT, BU, BN).to(DT)
        goal = CAME + ((turn % 2) * groups + group) * SIZE + team * Hp * BN
        for j in tl.static_range(len(MS_)):
            k = up_to(MS_, j) + tl.arange(0, MS_[j])
            tl.store(goal + k[:, None] * BN + n[None, :], tl.dot(w[j], united, input_precision=PRECISION))
        if not ALONE:
            arrive(BAR)
            target += UNITS
        store_input_grads(DZ, d0, d1, d2, d3, wide, live, unit, CELL, BLOCKS, Hp)
        if MIX:
            store_input_grads(DZ2, f0, f1, f2, f3, wide, live, unit, CELL, BLOCKS, Hp)
        if SPLIT:
            store_product_grads(DP, p0, p1, p2, p3, wide, live, unit, CELL, BLOCKS, Hp)
    store_block(GH, dh, now, b < batch, unit, 0, 1, Hp)
    if MEMORY:
        store_block(GC, dc, now, b < batch, unit, 0, 1, Hp)
