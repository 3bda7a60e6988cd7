"""Weights as tiles that stay with a program for all steps, and the planes of what they are multiplied with."""

import triton
import triton.language as tl

from statewise.kernels.cells import input_blocks, product_blocks


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
def partner_planes(Z, wide, live, unit, CELL: tl.constexpr, BLOCKS: tl.constexpr, Hp: tl.constexpr,
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
