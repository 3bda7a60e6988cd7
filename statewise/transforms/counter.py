"""Random numbers that are a function of a seed and a place: the same on every machine, in any order.

Step t of a tensor takes the words ``t * half`` to ``t * half + half`` of a sequence, where ``half`` is half the size
of a step, rounded up; a word's first number goes to the first half of the step, its second to the other. Word i is
SplitMix64 of ``seed + i * golden ratio`` (Steele et al. 2014). So nothing depends on the number of steps, and steps can
be filled in parallel. The formulas use exact integer arithmetic and one rounding at a time; the C++ kernel and the
Triton kernel give the same bits. A seed may be a tensor of one number, which stays where it is.

A function whose name begins with ``pairs_of`` makes the two numbers of each word, stacked: shape (2, ...).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_ONES = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_LOG_SERIES = (
    *(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1),
    *(-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
)
_EXP_SERIES = (
    *(1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3),
    *(4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1),
)


def _signed(value: int) -> int:
    """A 64-bit pattern as torch's int64 writes it."""
    return value - 2**64 if value & 2**63 else value


def _shifted(words: Tensor, bits: int) -> Tensor:
    """A logical shift to the right: torch's keeps the sign."""
    return (words >> bits) & ((1 << (64 - bits)) - 1)


def _scrambled(words: Tensor) -> Tensor:
    words = (words ^ _shifted(words, 30)) * _signed(0xBF58476D1CE4E5B9)
    words = (words ^ _shifted(words, 27)) * _signed(0x94D049BB133111EB)
    return words ^ _shifted(words, 31)


def mixed(root: Tensor, key: tuple[int, ...]) -> Tensor:
    """The parts of a key mixed into a root one after the other, each by a round of SplitMix64.

    >>> hex(mixed(torch.tensor(0), (0, 1)).item() & (2**64 - 1))
    '0xbcd9dbb49673066b'
    """
    for part in key:
        root = _scrambled((root ^ (part + 1)) + _signed(_GOLDEN))
    return root


def seed_of(root: Tensor, key: tuple[int, ...]) -> Tensor:
    """All parts of a key mixed into 63 bits: the seed of a stream.

    >>> bool(seed_of(torch.tensor(3), (2,)) >= 0)
    True
    """
    return _shifted(mixed(root, key), 1)


def mixed_seed(root: int, key: Sequence[int]) -> int:
    """:func:`seed_of` of plain integers.

    >>> mixed_seed(1, (0,)) == mixed_seed(1, (1,))
    False
    """
    mask = 2**64 - 1
    for part in key:
        value = ((root ^ (part + 1)) + 0x9E3779B97F4A7C15) & mask
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
        root = value ^ (value >> 31)
    return root >> 1


def words_at(seed: int | Tensor, index: Tensor) -> Tensor:
    """The 64-bit words of a seed at some places of its sequence.

    >>> hex(words_at(0, torch.tensor(1)).item() & (2**64 - 1))
    '0xe220a8397b1dcdaf'
    """
    start = seed if isinstance(seed, Tensor) else _signed(seed & _ONES)
    return _scrambled(index * _signed(_GOLDEN) + start)


def words(seed: int | Tensor, steps: int, half: int, device: torch.device) -> Tensor:
    """The 64-bit words of all steps, shape (steps, half).

    >>> [hex(word & (2**64 - 1)) for word in words(0, 1, 2, torch.device("cpu"))[0].tolist()]
    ['0x0', '0xe220a8397b1dcdaf']
    """
    return words_at(seed, torch.arange(steps * half, device=device)).view(steps, half)


def joined(pairs: Tensor, size: int) -> Tensor:
    """The two numbers of each word at their places in a step: shape (2, steps, half) to (steps, size).

    >>> joined(torch.tensor([[[1, 2]], [[3, 4]]]), 3)
    tensor([[1, 2, 3]])
    """
    return torch.cat((pairs[0], pairs[1]), dim=1)[:, :size]


def pairs_of_uniforms(word: Tensor) -> Tensor:
    """Uniform numbers of 24 bits in [0, 1).

    >>> pairs_of_uniforms(torch.tensor([1 << 62]))
    tensor([[0.2500],
            [0.0000]])
    """
    return torch.stack((_shifted(word, 40), _shifted(word, 8) & 0xFFFFFF)).float() * 2.0**-24


def pairs_of_halves(word: Tensor) -> Tensor:
    """The upper and the lower 32 bits of each word: the raw material of every law that needs one number.

    >>> pairs_of_halves(torch.tensor([5 + (7 << 32)])).flatten().tolist()
    [7, 5]
    """
    return torch.stack((_shifted(word, 32), word & 0xFFFFFFFF))


def pairs_of_normals(word: Tensor) -> Tensor:
    """``r cos a, r sin a`` with ``r = sqrt(-2 ln u)`` (Box & Muller 1958): 31 bits for u, 26 for the angle.

    >>> pairs_of_normals(torch.tensor([1 << 62])).shape
    torch.Size([2, 1])
    """
    squared = log((_shifted(word, 33).float() + 1.0) * 2.0**-31) * -2.0
    radius = squared.double().sqrt().float()  # correctly rounded, which torch's float32 square root is not everywhere
    low = word & 0x3FFFFFF
    quadrant = low >> 24
    angle = ((low & 0xFFFFFF).float() - 8388607.5) * 9.36267686e-8  # pi / 2 * 2^-24
    z = angle * angle
    s = (z * -1.9515295891e-4 + 8.3321608736e-3) * z - 1.6666654611e-1
    s = s * z * angle + angle
    c = (z * 2.443315711809948e-5 - 1.388731625493765e-3) * z + 4.166664568298827e-2
    c = (c * z * z - z * 0.5) + 1.0
    odd = (quadrant & 1) == 1
    s, c = torch.where(odd, c, s), torch.where(odd, s, c)
    c = torch.where((quadrant == 1) | (quadrant == 2), -c, c)
    s = torch.where(quadrant >= 2, -s, s)
    return torch.stack((radius * c, radius * s))


def signed_shares(halves: Tensor) -> tuple[Tensor, Tensor]:
    """A random sign (True is minus) and a uniform number of 31 bits in (0, 1] from the halves of words.

    >>> minus, share = signed_shares(torch.tensor([3, 2**32 - 2]))
    >>> minus.tolist(), share.tolist() == [2.0**-30, 1.0]
    ([True, False], True)
    """
    return (halves & 1) == 1, ((halves >> 1).float() + 1.0) * 2.0**-31


def exponentials(halves: Tensor) -> Tensor:
    """Unit exponential numbers, from 2^-32 to 22.2, with all their digits at both ends.

    ``-ln p`` or ``-ln(1 - p)`` with p in (0, 1/2], so that neither p nor 1 - p is rounded to 0.

    >>> exponentials(torch.tensor([0, 1]))
    tensor([2.2181e+01, 2.3283e-10])
    """
    small, share = signed_shares(halves)
    p = share * 0.5
    rest = 1.0 - p
    lost = (1.0 - rest) - p
    zero = torch.zeros_like(p)
    return -(log(torch.where(small, rest, p)) + torch.where(small, lost, zero))


def log(u: Tensor) -> Tensor:
    """``ln u`` of positive normal numbers, by the polynomial of the Cephes library.

    >>> log(torch.tensor([1.0, 0.5]))
    tensor([ 0.0000, -0.6931])
    """
    bits = u.view(torch.int32)
    exponent = (bits >> 23) - 127
    m = ((bits & 0x007FFFFF) | 0x3F800000).view(torch.float32)
    large = m > 1.41421356
    exponent, m = exponent + large.int(), torch.where(large, m * 0.5, m)
    x = m - 1.0
    z, e = x * x, exponent.float()
    y = torch.full_like(x, _LOG_SERIES[0])
    for coefficient in _LOG_SERIES[1:]:
        y = y * x + coefficient
    y = y * x * z
    y = y + e * -2.12194440e-4
    y = y - z * 0.5
    return (x + y) + e * 0.693359375


def exp(x: Tensor) -> Tensor:
    """``e^x`` of numbers up to 0, by the polynomial of the Cephes library; 0 below -88.

    >>> exp(torch.tensor([0.0, -1.0, -1e30]))
    tensor([1.0000, 0.3679, 0.0000])
    """
    x = x.clamp(min=-88.0)
    n = (x * 1.44269504 - 0.5).int()  # to the nearest, since conversion cuts towards 0
    r = x - n.float() * 0.693359375
    r = r - n.float() * -2.12194440e-4
    y = torch.full_like(r, _EXP_SERIES[0])
    for coefficient in _EXP_SERIES[1:]:
        y = y * r + coefficient
    y = (y * (r * r) + r) + 1.0
    return y * ((n + 127) << 23).view(torch.float32)  # 2^n, and 0 for the lowest n
