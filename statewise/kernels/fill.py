"""Counted random numbers on the device, from a root that never leaves it: nothing waits, and a graph can replay it.

The numbers are those of ``transforms/recipes.py``, bit for bit. So a product is never fused with the sum that follows
it (the launch says so), square roots and quotients are the correctly rounded ones, and bfloat16 is rounded by hand:
Triton's interpreter cuts it off instead.
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
REJECTED = (6, 7)  # the laws whose numbers may be rejected
# There a program waits for its slowest number: with a single warp for few, and without a meeting of warps.
WORDS_REJECTED = 128
LAUNCH_REJECTED = {"num_warps": 1, "enable_fp_fusion": False}

_GOLDEN = tl.constexpr(0x9E3779B97F4A7C15)
_ULP_24 = tl.constexpr(2.0**-24)
_ULP_31 = tl.constexpr(2.0**-31)
_THIRD = tl.constexpr(1 / 3)
_ROUNDS = tl.constexpr(16)

# The laws, numbered as in transforms/recipes.py.
_UNIFORM, _NORMAL, _BERNOULLI, _LAPLACE = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)
_LOGISTIC, _GUMBEL, _GAMMA, _BETA = tl.constexpr(4), tl.constexpr(5), tl.constexpr(6), tl.constexpr(7)


def fill_counted(
    out: Tensor,
    root: Tensor,
    key: tuple[int, ...],
    *,
    kind: int,
    scale: float = 1.0,
    shift: float = 0.0,
    bound: int = 0,
    shapes: tuple[float, ...] = (),
) -> Tensor:
    """Fill a tensor (steps, ...) with numbers of a law, ``scale * raw + shift``, and return it.

    Args:
        out: float32, float64, bfloat16 or float16, contiguous; each number is made in float32, then cast.
        root: the number to which the parts of the key are mixed; one int64, on the device of ``out``.
        key: up to four whole numbers.
        kind: the law, as transforms/recipes.py numbers them; what follows is explained there too.
        scale: of the law in its standard form.
        shift: added to all.
        bound: of a Bernoulli law.
        shapes: of gamma and beta laws.

    >>> from statewise.kernels import load_triton
    >>> root = torch.tensor(7, device=load_triton().device)
    >>> out = fill_counted(torch.empty(3, 5, device=root.device), root, (0, 1), kind=0)
    >>> bool(((out >= 0) & (out < 1)).all())
    True
    """
    steps, size = out.shape[0], out.shape[1:].numel()
    half = (size + 1) // 2
    words, launch = (WORDS_REJECTED, LAUNCH_REJECTED) if kind in REJECTED else (WORDS, LAUNCH)
    columns = NARROW if half < words // 2 else words
    rows = words // columns
    programs = triton.cdiv(steps, rows) * triton.cdiv(half, columns)
    parts = [part + 1 for part in key] + [0] * (MOST_PARTS - len(key))
    numbers = (*map(float, (scale, shift, *shapes)), *[0.0] * (6 - len(shapes)))
    with torch.cuda.device_of(out):  # Triton launches on the current device, which need not be the tensor's
        _fill[(programs,)](
            *(out, root, *parts, len(key), steps, size, half, bound, *numbers),
            LAW=int(kind),
            ROWS=rows,
            COLUMNS=columns,
            **launch,
        )
    return out


@triton.jit(do_not_specialize=["part_0", "part_1", "part_2", "part_3", "parts", "steps", "bound"])
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
    bound: tl.int64,
    scale,
    shift,
    d,
    c,
    inverse,
    other_d,
    other_c,
    other_inverse,
    LAW: tl.constexpr,
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
    seed, offset = value >> 1, (step * half + column).to(tl.uint64) * _GOLDEN
    if LAW == _GAMMA:
        first, second = _gammas(_part(seed, 0), offset, d, c, inverse)
    elif LAW == _BETA:
        first, second = _betas(_part(seed, 0), _part(seed, 1), offset, d, c, inverse, other_d, other_c, other_inverse)
    else:
        first, second = _one_word(_scrambled(seed + offset), bound, LAW)
    first, second = first * scale + shift, second * scale + shift
    start = out + step * size + column
    tl.store(start, _rounded(first, out.dtype.element_ty), (step < steps) & (column < half))
    tl.store(start + half, _rounded(second, out.dtype.element_ty), (step < steps) & (column < size - half))


@triton.jit
def _one_word(word, bound, LAW: tl.constexpr):
    """Two numbers of a law in its standard form from each word."""
    if LAW == _NORMAL:
        first, second = _normals(word)
    elif LAW == _UNIFORM:
        first = (word >> 40).to(tl.int32).to(tl.float32) * _ULP_24
        second = ((word >> 8) & 0xFFFFFF).to(tl.int32).to(tl.float32) * _ULP_24
    elif LAW == _BERNOULLI:
        first = ((word >> 32).to(tl.int64) < bound).to(tl.float32)
        second = ((word & 0xFFFFFFFF).to(tl.int64) < bound).to(tl.float32)
    else:
        first = _one_share((word >> 32) & 1 == 1, _share(word >> 33), LAW)
        second = _one_share(word & 1 == 1, _share((word & 0xFFFFFFFF) >> 1), LAW)
    return first, second


@triton.jit
def _one_share(minus, share, LAW: tl.constexpr):
    """A number of a law from a random sign and a uniform number in (0, 1]."""
    if LAW == _LAPLACE:
        value = _log(share)
        value = tl.where(minus, value, -value)
    elif LAW == _LOGISTIC:
        value = _log(tl.div_rn(share, 2.0 - share))
        value = tl.where(minus, value, -value)
    else:
        value = -_log(_exponential(minus, share))
    return value


@triton.jit
def _share(bits):
    """A uniform number in (0, 1] from 31 bits."""
    return (bits.to(tl.int32).to(tl.float32) + 1.0) * _ULP_31


@triton.jit
def _exponential(small, share):
    """A unit exponential number with all its digits at both ends."""
    p = share * 0.5
    rest = 1.0 - p
    lost = (1.0 - rest) - p
    return -(_log(tl.where(small, rest, p)) + tl.where(small, lost, 0.0))


@triton.jit
def _gammas(seed, offset, d, c, inverse):
    """Standard gamma numbers, less their shape where that is 1 or more."""
    first, second = _steps_from_one(seed, offset, d, c)
    if inverse == 0.0:
        first, second = _grown(first) * d - _THIRD, _grown(second) * d - _THIRD
    else:
        weight, other = _weights(seed, offset, inverse)
        first, second = _unboosted(first, d) * _exp(-weight), _unboosted(second, d) * _exp(-other)
    return first, second


@triton.jit
def _betas(seed, other_seed, offset, d, c, inverse, other_d, other_c, other_inverse):
    """``G1 / (G1 + G2)`` of two gamma variables, of which only the smaller is multiplied by a small number."""
    weight_1, weight_2 = _weights(seed, offset, inverse)
    other_1, other_2 = _weights(other_seed, offset, other_inverse)
    g_1, g_2 = _steps_from_one(seed, offset, d, c)
    h_1, h_2 = _steps_from_one(other_seed, offset, other_d, other_c)
    first = _share_of(_unboosted(g_1, d), _unboosted(h_1, other_d), other_1 - weight_1)
    second = _share_of(_unboosted(g_2, d), _unboosted(h_2, other_d), other_2 - weight_2)
    return first, second


@triton.jit
def _share_of(g, h, ahead):
    factor = _exp(-tl.abs(ahead))
    g, h = tl.where(ahead > 0, g, g * factor), tl.where(ahead > 0, h * factor, h)
    return tl.div_rn(g, g + h)


@triton.jit
def _weights(seed, offset, inverse):
    """Minus the logarithms of what a variable of shape + 1 is multiplied by; 0 from shape 1 on."""
    word = _scrambled(_part(seed, 0) + offset)
    first = _exponential((word >> 32) & 1 == 1, _share(word >> 33)) * inverse
    second = _exponential(word & 1 == 1, _share((word & 0xFFFFFFFF) >> 1)) * inverse
    return first, second


@triton.jit
def _steps_from_one(seed, offset, d, c):
    """The first ``t = c x`` of each place that is accepted (Marsaglia & Tsang 2000)."""
    first, second = tl.zeros(offset.shape, tl.float32), tl.zeros(offset.shape, tl.float32)
    # 1 where a number is still wanted.
    wanted, other_wanted = tl.full(offset.shape, 1, tl.int32), tl.full(offset.shape, 1, tl.int32)
    turn, waiting = 0, 1
    while (turn < _ROUNDS) & (waiting > 0):
        x, y = _normals(_scrambled(_part(seed, 2 * turn + 1) + offset))
        word = _scrambled(_part(seed, 2 * turn + 2) + offset)
        taken = _accepted(x, c, d, _share(word >> 33)) & (wanted == 1)
        other_taken = _accepted(y, c, d, _share((word & 0xFFFFFFFF) >> 1)) & (other_wanted == 1)
        first, second = tl.where(taken, x * c, first), tl.where(other_taken, y * c, second)
        wanted, other_wanted = tl.where(taken, 0, wanted), tl.where(other_taken, 0, other_wanted)
        waiting = tl.max(wanted | other_wanted)
        turn += 1
    return first, second


@triton.jit
def _accepted(x, c, d, share):
    t = x * c
    s = t + 1.0
    log_s = _log(s) + (t - (s - 1.0))
    limit = (x * x) * 0.5 - (_grown(t) - log_s * 3.0) * d
    return (s > 0.0) & (_log(share) < limit)


@triton.jit
def _grown(t):
    """``(1 + t)^3 - 1``."""
    return t * ((t + 3.0) * t + 3.0)


@triton.jit
def _unboosted(t, d):
    s = t + 1.0
    return (s * s * s) * d


@triton.jit
def _part(seed, part):
    """The seed of a part of what a seed stands for."""
    return _splitmix(seed ^ (seed * 0 + part + 1)) >> 1  # the product gives the part the type of the seed


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
    """``ln u`` of positive normal numbers, by the polynomial of the Cephes library."""
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
def _exp(x):
    """``e^x`` of numbers up to 0, by the polynomial of the Cephes library; 0 below -88."""
    x = tl.maximum(x, -88.0)
    n = (x * 1.44269504 - 0.5).to(tl.int32)
    r = x - n.to(tl.float32) * 0.693359375
    r = r - n.to(tl.float32) * -2.12194440e-4
    y = r * 1.9875691500e-4 + 1.3981999507e-3
    y = y * r + 8.3334519073e-3
    y = y * r + 4.1665795894e-2
    y = y * r + 1.6666665459e-1
    y = y * r + 5.0000001201e-1
    y = (y * (r * r) + r) + 1.0
    return y * ((n + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def _rounded(value, dtype: tl.constexpr):
    """A float32 number in another type, to the nearest, ties to even."""
    if dtype == tl.bfloat16:
        bits = value.to(tl.uint32, bitcast=True)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        value = bits.to(tl.uint16).to(tl.bfloat16, bitcast=True)
    return value.to(dtype)
