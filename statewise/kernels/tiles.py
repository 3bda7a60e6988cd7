"""Weights as tiles that stay with a program for all steps, and the planes of what they are multiplied with."""

import triton
import triton.language as tl

from statewise.kernels.cells import input_blocks, product_blocks
from statewise.kernels.walk import load_weight


@triton.constexpr_function
def pieces(size, most=512):
    """A multiple of 16 as a sum of falling powers of two, none above ``most``: how a dimension of a product is cut."""
    found = []
    for power in (512, 256, 128, 64, 32, 16):
        while size >= power and power <= most:
            found.append(power)
            size -= power
    return tuple(found)


@triton.constexpr_function
def up_to(sizes, index):
    """Where a piece begins."""
    return sum(sizes[:index])


@triton.jit
def product_rows(plane, unit, CELL: tl.constexpr, Hp: tl.constexpr):
    """For each pair of plane and unit the row of the recurrent weights, and whether there is one."""
    block = plane
    if CELL == "gru":
        block = tl.where(plane == 3, 2, tl.where(plane == 2, -1, plane))
    if CELL == "rac":
        block = plane - 1
    return block * Hp + unit, (block >= 0) & (unit < Hp)


@triton.jit
def input_tile(Z, wide, live, plane, unit, BLOCKS: tl.constexpr, Hp: tl.constexpr):
    """The input term of all planes at once, as it lies in memory; zero in the plane that has none."""
    known = (plane < BLOCKS) & (unit < Hp)
    place = (wide[None, :] * BLOCKS + plane[:, None]) * Hp + unit[:, None]
    return tl.load(Z + place, mask=known[:, None] & live[None, :], other=0.0)


@triton.jit
def load_bias(BIAS, unit, rep, Hp: tl.constexpr, BIASED: tl.constexpr, dtype: tl.constexpr):
    """The bias of a product that is kept apart, (units, 1)."""
    bias = tl.zeros((unit.shape[0], 1), dtype)
    if BIASED:
        bias = tl.load(BIAS + rep * Hp + unit, mask=unit < Hp, other=0.0).to(dtype)[:, None]
    return bias


@triton.jit
def part(tile, COUNT: tl.constexpr, BU: tl.constexpr, BN: tl.constexpr):
    """A tile of (planes * units, sequences) as four, one a plane; some of them again where there are fewer."""
    if COUNT == 1:
        a = tile
        b = tile
        c = tile
        d = tile
    elif COUNT == 2:
        a, b = tl.split(tl.permute(tl.reshape(tile, (2, BU, BN)), (1, 2, 0)))
        c = a
        d = b
    else:
        low, high = tl.split(tl.permute(tl.reshape(tile, (2, 2, BU, BN)), (2, 3, 1, 0)))
        a, b = tl.split(low)
        c, d = tl.split(high)
    return a, b, c, d


@triton.jit
def unite(a, b, c, d, COUNT: tl.constexpr, BU: tl.constexpr, BN: tl.constexpr):
    """The counterpart of :func:`part`."""
    if COUNT == 1:
        tile = a
    elif COUNT == 2:
        tile = tl.reshape(tl.permute(tl.join(a, b), (2, 0, 1)), (2 * BU, BN))
    else:
        joined = tl.join(tl.join(a, b), tl.join(c, d))
        tile = tl.reshape(tl.permute(joined, (3, 2, 0, 1)), (4 * BU, BN))
    return tile


@triton.jit
def term_planes(Z, wide, live, unit, CELL: tl.constexpr, BLOCKS: tl.constexpr, Hp: tl.constexpr,
                dtype: tl.constexpr):  # fmt: skip
    """The input term as one tile for each plane, zero where a plane has none."""
    found = ()
    for k in tl.static_range(4):
        tile = tl.zeros((unit.shape[0], wide.shape[0]), dtype)
        if k < len(product_blocks(CELL)):
            if input_blocks(CELL)[k] >= 0 and input_blocks(CELL)[k] < BLOCKS:
                place = (wide[None, :] * BLOCKS + input_blocks(CELL)[k]) * Hp + unit[:, None]
                tile = tl.load(Z + place, mask=live[None, :] & (unit < Hp)[:, None], other=0.0).to(dtype)
        found = found + (tile,)
    return found


@triton.jit
def finish_planes(
    a0, a1, a2, a3, bias, fresh, Z, Z2, LAMBDA, row, b, live, unit, rep, rows, batch,
    CELL: tl.constexpr, BLOCKS: tl.constexpr, Hp: tl.constexpr, MIX: tl.constexpr, LAMBDA_CONSTANT: tl.constexpr,
    ONE: tl.constexpr, BIASED: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """What a product that was taken with the input term still lacks: its own bias, the one of rows that begin.

    With mixing the input terms too, those of both members: then the planes of the two and the coefficients; without it
    the second planes are the first.
    """
    if BIASED:
        if CELL == "rac":
            a1 += bias
        else:
            a3 += bias
    if ONE:
        a1 += fresh[None, :].to(dtype)
    b0 = a0
    b1 = a1
    b2 = a2
    b3 = a3
    weight = tl.zeros((1, 1), dtype)
    if MIX:
        weight = load_weight(LAMBDA, row, b, live, rep, rows, batch, LAMBDA_CONSTANT, dtype)
        z0, z1, z2, z3 = term_planes(Z, rep * rows + row, live, unit, CELL, BLOCKS, Hp, dtype)
        y0, y1, y2, y3 = term_planes(Z2, rep * rows + row, live, unit, CELL, BLOCKS, Hp, dtype)
        b0 = a0 + y0
        a0 = a0 + z0
        b1 = a1 + y1
        a1 = a1 + z1
        b2 = a2 + y2
        a2 = a2 + z2
        b3 = a3 + y3
        a3 = a3 + z3
    return a0, a1, a2, a3, b0, b1, b2, b3, weight
