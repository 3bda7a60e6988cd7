"""Which numbers may serve as the size of a finite field."""

from __future__ import annotations

from collections.abc import Sequence

from statewise.errors import ArgumentError
from statewise.memory.whole import whole

#: A field must be larger, or a rank found by random weights says too little.
LEAST = 2**20
#: Fields of the fast arithmetic are smaller: their residues are halves of 15 and 16 bits.
FAST = 2**31
#: The largest primes below 2^31; each run of a random rank takes the next one.
PRIMES = (2147483647, 2147483629, 2147483587, 2147483579, 2147483563, 2147483549, 2147483543, 2147483497)

#: Strong pseudo-primes to all of these bases exceed 3.3e24 (Sorenson & Webster 2017).
_BASES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)
_PROVED = 3_317_044_064_679_887_385_961_981


def is_prime(number: int) -> bool:
    """Whether a number is prime: the test of Miller and Rabin with bases that leave no doubt below 3.3e24.

    Args:
        number: any whole number below 3.3e24.

    >>> [n for n in range(20) if is_prime(n)], is_prime(2**31 - 1), is_prime(2**61 - 1), is_prime(2**31 + 1)
    ([2, 3, 5, 7, 11, 13, 17, 19], True, True, False)
    """
    if number >= _PROVED:
        raise ArgumentError(where="is_prime.number", got=number, wanted=f"a number below {_PROVED}")
    if number < 2:
        return False
    for base in _BASES:
        if number % base == 0:
            return number == base
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return not any(_is_witness(base, number, odd, twos) for base in _BASES)


def check_prime(prime: int, *, where: str, below: int = _PROVED) -> int:
    """A prime that is large enough to be trusted, and small enough for the arithmetic that is to use it.

    Args:
        prime: the size of the field.
        where: what was asked, for errors.
        below: the first size that is too large.

    >>> check_prime(2**31 - 1, where="here")
    2147483647
    """
    prime = whole(prime, where=where, least=0)
    if not LEAST < prime < below or not is_prime(prime):
        kind = "a number that is not prime" if LEAST < prime < below else "a number out of range"
        raise ArgumentError(
            where=where,
            got=f"{prime}, {kind}",
            wanted=f"a prime above 2^20 and below {'2^31' if below == FAST else below}",
            remedy="Take 2147483647 = 2^31 - 1: an inverse exists modulo a prime only, and a small one misses ranks.",
        )
    return prime


def check_primes(primes: Sequence[int], *, where: str) -> list[int]:
    """At least one prime, all of them fit for the fast arithmetic.

    Args:
        primes: the sizes of the fields.
        where: what was asked, for errors.

    >>> check_primes(PRIMES[:1], where="here")
    [2147483647]
    """
    if isinstance(primes, int):
        raise ArgumentError(where=where, got=primes, wanted="a list of primes", remedy=f"Write [{primes}].")
    if not primes:
        raise ArgumentError(
            where=where, got="none", wanted="at least one prime", remedy="Leave it out: there is a list."
        )
    return [check_prime(prime, where=where, below=FAST) for prime in primes]


def _is_witness(base: int, number: int, odd: int, twos: int) -> bool:
    """Whether a base proves that the number is composite."""
    power = pow(base, odd, number)
    if power in (1, number - 1):
        return False
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return False
    return True
