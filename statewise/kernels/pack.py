"""Moving tensors into the kernels' padded buffers and out of them, each in one launch."""

import triton
import triton.language as tl


@triton.jit
def _move(
    SOURCE, TARGET, inner, from_outer, from_inner, from_row, from_column, to_outer, to_inner, to_row,
    rows, columns, all_rows, all_columns, BR: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(2).to(tl.int64)
    r = tl.program_id(0).to(tl.int64) * BR + tl.arange(0, BR)
    c = tl.program_id(1).to(tl.int64) * BC + tl.arange(0, BC)
    source = SOURCE + (batch // inner) * from_outer + (batch % inner) * from_inner
    target = TARGET + (batch // inner) * to_outer + (batch % inner) * to_inner
    inside = (r < rows)[:, None] & (c < columns)[None, :]
    tile = tl.load(source + r[:, None] * from_row + c[None, :] * from_column, mask=inside, other=0.0)
    room = (r < all_rows)[:, None] & (c < all_columns)[None, :]
    tl.store(target + r[:, None] * to_row + c[None, :], tile.to(TARGET.dtype.element_ty), mask=room)


@triton.jit(do_not_specialize=["rows", "batch", "running", "start", "origin"])
def begin(
    H0, C0, MASK, HS, MS, HC, CC, V, rows, batch, start, running, origin, H: tl.constexpr, Hp: tl.constexpr,
    MEMORY: tl.constexpr, COPY: tl.constexpr, MASKED: tl.constexpr, CONSTANT: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Initial states and memories to where the first turn looks for them; one program for a sequence."""
    b = tl.program_id(0)
    rep = tl.program_id(1).to(tl.int64)
    unit = tl.program_id(2) * TILE + tl.arange(0, TILE)
    known = unit < H
    room = unit < Hp
    long = rep * (rows + batch) + origin + b
    h = tl.load(H0 + (rep * batch + b) * H + unit, mask=known, other=0.0)
    tl.store(HS + long * Hp + unit, h.to(HS.dtype.element_ty), mask=room)
    tl.store(HC + (rep * batch + b) * Hp + unit, h.to(HC.dtype.element_ty), mask=room)
    if MEMORY:
        c = tl.load(C0 + (rep * batch + b) * H + unit, mask=known, other=0.0)
        tl.store(MS + long * Hp + unit, c.to(MS.dtype.element_ty), mask=room)
        tl.store(CC + (rep * batch + b) * Hp + unit, c.to(CC.dtype.element_ty), mask=room)
    if COPY:
        x = h.to(HC.dtype.element_ty)
        row = rep * rows + start + b
        if MASKED:
            at = rep * batch + b if CONSTANT else row
            x = x * tl.load(MASK + at * H + unit, mask=known, other=0.0).to(x.dtype)
        tl.store(V + row * Hp + unit, x.to(V.dtype.element_ty), mask=unit < tl.where(b < running, Hp, 0))


@triton.jit(do_not_specialize=["rows", "batch", "running", "start", "members"])
def finish(
    GH, GC, CAME, MASK, DH, DC, rows, batch, start, running, members, H: tl.constexpr, Hp: tl.constexpr,
    MEMORY: tl.constexpr, KIND: tl.constexpr, MASKED: tl.constexpr, CONSTANT: tl.constexpr, BN: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    """The gradients of initial states and memories from what was carried and what came through the first product.

    ``KIND`` is 0 if nothing is to be added, 1 if it lies as (sequences, units), 2 if the members of teams have left
    their parts as (groups, members, units, sequences of a group).
    """
    n = tl.arange(0, BN)
    b = tl.program_id(0) * BN + n
    rep = tl.program_id(1).to(tl.int64)
    unit = tl.program_id(2) * TILE + tl.arange(0, TILE)
    known = (unit < H)[:, None] & (b < batch)[None, :]
    now = (rep * batch + b)[None, :]
    dh = tl.load(GH + now * Hp + unit[:, None], mask=known, other=0.0)
    if KIND > 0:
        came = tl.zeros_like(dh)
        ran = known & (b < running)[None, :]
        if KIND == 1:
            came = tl.load(CAME + (rep * running + b)[None, :] * Hp + unit[:, None], mask=ran, other=0.0)
        else:
            first = CAME + (rep * tl.num_programs(0) + tl.program_id(0)) * members * Hp * BN
            for member in range(members):
                came += tl.load(first + (member * Hp + unit[:, None]) * BN + n[None, :], mask=ran, other=0.0)
        if MASKED:
            at = now if CONSTANT else (rep * rows + start + b)[None, :]
            came = came * tl.load(MASK + at * H + unit[:, None], mask=ran, other=0.0).to(dh.dtype)
        dh += came
    tl.store(DH + now * H + unit[:, None], dh.to(DH.dtype.element_ty), mask=known)
    if MEMORY:
        dc = tl.load(GC + now * Hp + unit[:, None], mask=known, other=0.0)
        tl.store(DC + now * H + unit[:, None], dc.to(DC.dtype.element_ty), mask=known)


@triton.jit(do_not_specialize=["rows", "piece"])
def _signed_sums(GRADS, SIGNS, SUMS, rows, piece, width: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr):
    rep = tl.program_id(2).to(tl.int64)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    ACC: tl.constexpr = SUMS.dtype.element_ty
    first = tl.program_id(0) * piece
    total = tl.zeros((BR, BC), ACC)
    for start in range(first, tl.minimum(first + piece, rows), BR):
        r = start + tl.arange(0, BR)
        inside = (r < tl.minimum(first + piece, rows))[:, None] & (c < width)[None, :]
        at = (rep * rows + r)[:, None] * width + c[None, :]
        grad = tl.load(GRADS + at, mask=inside, other=0.0).to(ACC)
        value = tl.load(SIGNS + at, mask=inside, other=0.0).to(ACC)
        total += tl.where(value > 0, grad, tl.where(value < 0, -grad, 0.0))
    out = (rep * tl.num_programs(0) + tl.program_id(0)) * width + c
    tl.store(SUMS + out, tl.sum(total, 0), mask=c < width)


def signed_sums(grads, values, dtype):
    """``sum over rows of grads * sign(values)``, of each replica: (replicas, rows, width) to (replicas, width).

    One pass, where torch's operators would make three; pieces of the rows are summed side by side.
    """
    import torch

    replicas, rows, width = grads.shape
    piece = max(256, triton.next_power_of_2(triton.cdiv(rows, 64)))
    pieces, wide = triton.cdiv(rows, piece), min(64, triton.next_power_of_2(width))
    sums = torch.empty(replicas, pieces, width, dtype=dtype, device=grads.device)
    grid = (pieces, triton.cdiv(width, wide), replicas)
    _signed_sums[grid](grads, values, sums, rows, piece, width, 32, wide, num_warps=4)
    return sums.sum(1)


def move(source, target) -> None:
    """Copy (a, b, rows, columns) into a target that may be larger or smaller in its last two dimensions.

    What is larger is filled with zeros, what is smaller is cut. The target's columns lie side by side.
    """
    outer, inner, all_rows, all_columns = target.shape
    rows, columns = min(source.shape[2], all_rows), min(source.shape[3], all_columns)
    wide, high = min(64, triton.next_power_of_2(all_columns)), min(64, triton.next_power_of_2(all_rows))
    grid = (triton.cdiv(all_rows, high), triton.cdiv(all_columns, wide), outer * inner)
    _move[grid](
        *(source, target, inner, *source.stride(), *target.stride()[:3], rows, columns, all_rows, all_columns),
        *(high, wide),
        num_warps=4,
        enable_fp_fusion=True,
    )
