"""Counted random numbers on the device, from a root that never leaves it: nothing waits, and a graph can replay it.

The numbers are those of ``transforms/counter.py``, bit for bit. So a product is never fused with the sum that follows
it (the launch says so), the square root is the correctly rounded one, and bfloat16 is rounded by hand: Triton's
interpreter cuts it off instead.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

MOST_PARTS = 4  # of a key: (transform, layer, direction, child)
WORDS = 512  # of one program: four for each of its threads
LAUNCH = {"num_warps": 4, "enable_fp_fusion": False}
NARROW = 32  # the columns of a program where a step has few words, so that it takes several steps

_GOLDEN = tl.constexpr(0x9E3779B97F4A7C15)
_ULP_24 = tl.constexpr(2.0**-24)
_ULP_31 = tl.constexpr(2.0**-31)


def fill_counted(
    out: Tensor, root: Tensor, key: tuple[int, ...], *, normal: bool, mean: float = 0.0, std: float = 1.0
) -> Tensor:
    """Fill a tensor (steps, ...) with normal or uniform numbers and return it.

    Args:
        out: float32, float64, bfloat16 or float16, contiguous; each number is made in float32, then cast.
        root: the number to which the parts of the key are mixed; one int64, on the device of ``out``.
        key: up to four whole numbers.
        normal: whether the numbers are normal, else uniform from 0 up to, not including, 1.
        mean: of normal numbers.
        std: of normal numbers.

    >>> from statewise.kernels import load_triton
    >>> root = torch.tensor(7, device=load_triton().device)
    >>> out = fill_counted(torch.empty(3, 5, device=root.device), root, (0, 1), normal=False)
    >>> bool(((out >= 0) & (out < 1)).all())
    True
    """
    steps, size = out.shape[0], out.shape[1:].numel()
    half = (size + 1) // 2
    columns = NARROW if half < WORDS // 2 else WORDS
    rows = WORDS // columns
    programs = triton.cdiv(steps, rows) * triton.cdiv(half, columns)
    parts = [part + 1 for part in key] + [0] * (MOST_PARTS - len(key))
    with torch.cuda.device_of(out):  # Triton launches on the current device, which need not be the tensor's
        _fill[(programs,)](
            *(out, root, *parts, len(key), steps, size, half, float(mean), float(std)),
            NORMAL=normal,
            ROWS=rows,
            COLUMNS=columns,
            **LAUNCH,
        )
    return out


@triton.jit(do_not_specialize=["part_0", "part_1", "part_2", "part_3", "parts", "steps"])
def _fill(
    out,
    root,
    part_0: tl.int64,
    part_1: tl.int64,
    part_2: tl.int64,
    part_3: tl.int64,
    parts,
    steps,
    size,
    half,
    mean,
    std,
    NORMAL: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """One program fills ROWS steps at COLUMNS places of their first half, and as many of their second."""
    value = tl.load(root).to(tl.uint64)
    if parts > 0:
        value = _splitmix(value ^ part_0.to(tl.uint64))
    if parts > 1:
        value = _splitmix(value ^ part_1.to(tl.uint64))
    if parts > 2:
        value = _splitmix(value ^ part_2.to(tl.uint64))
    if parts > 3:
        value = _splitmix(value ^ part_3.to(tl.uint64))
    across = tl.cdiv(half, COLUMNS)
    program = tl.program_id(0)
    step = (program // across).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (program % across).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    word = _scrambled((value >> 1) + (step * half + column).to(tl.uint64) * _GOLDEN)
    if NORMAL:
        first, second = _normals(word)
        first, second = first * std + mean, second * std + mean
    else:
        first = (word >> 40).to(tl.int32).to(tl.float32) * _ULP_24
        second = ((word >> 8) & 0xFFFFFF).to(tl.int32).to(tl.float32) * _ULP_24
    start = out + step * size + column
    tl.store(start, _rounded(first, out.dtype.element_ty), (step < steps) & (column < half))
    tl.store(start + half, _rounded(second, out.dtype.element_ty), (step < steps) & (column < size - half))


@triton.jit
def _splitmix(value):
    """One round of SplitMix64 (Steele et al. 2014)."""
    return _scrambled(value + _GOLDEN)


@triton.jit
def _scrambled(value):
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB
    return value ^ (value >> 31)


@triton.jit
def _normals(word):
    """Two standard normal numbers from each word (Box & Muller 1958): 31 bits for the radius, 26 for the angle."""
    u = ((word >> 33).to(tl.int32).to(tl.float32) + 1.0) * _ULP_31
    radius = tl.sqrt_rn(_log(u) * -2.0)
    low = (word & 0x3FFFFFF).to(tl.int32)
    quadrant = low >> 24
    angle = ((low & 0xFFFFFF).to(tl.float32) - 8388607.5) * 9.36267686e-8  # pi / 2 * 2^-24
    z = angle * angle
    s = (z * -1.9515295891e-4 + 8.3321608736e-3) * z - 1.6666654611e-1
    s = s * z * angle + angle
    c = (z * 2.443315711809948e-5 - 1.388731625493765e-3) * z + 4.166664568298827e-2
    c = (c * z * z - z * 0.5) + 1.0
    odd = (quadrant & 1) == 1
    turned_c, turned_s = tl.where(odd, s, c), tl.where(odd, c, s)
    turned_c = tl.where((quadrant == 1) | (quadrant == 2), -turned_c, turned_c)
    turned_s = tl.where(quadrant >= 2, -turned_s, turned_s)
    return radius * turned_c, radius * turned_s


@triton.jit
def _log(u):
    """``ln u`` for 0 < u <= 1, by the polynomial of the Cephes library."""
    bits = u.to(tl.int32, bitcast=True)
    m = ((bits & 0x007FFFFF) | 0x3F800000).to(tl.float32, bitcast=True)
    large = m > 1.41421356
    e = ((bits >> 23) - 127 + large.to(tl.int32)).to(tl.float32)
    x = tl.where(large, m * 0.5, m) - 1.0
    z = x * x
    y = x * 7.0376836292e-2 - 1.1514610310e-1
    y = y * x + 1.1676998740e-1
    y = y * x - 1.2420140846e-1
    y = y * x + 1.4249322787e-1
    y = y * x - 1.6668057665e-1
    y = y * x + 2.0000714765e-1
    y = y * x - 2.4999993993e-1
    y = y * x + 3.3333331174e-1
    y = y * x * z
    y = y + e * -2.12194440e-4
    y = y - z * 0.5
    return (x + y) + e * 0.693359375


@triton.jit
def _rounded(value, dtype: tl.constexpr):
    """A float32 number in another type, to the nearest, ties to even."""
    if dtype == tl.bfloat16:
        bits = value.to(tl.uint32, bitcast=True)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        value = bits.to(tl.uint16).to(tl.bfloat16, bitcast=True)
    return value.to(dtype)
