from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statewise.errors import ArgumentError
from statewise.memory.primes import FAST, PRIMES, check_prime, is_prime


def test_small_primes_are_those_of_the_sieve() -> None:
    composite = {product for a in range(2, 1000) for product in range(2 * a, 2000, a)}
    assert [n for n in range(2000) if is_prime(n)] == [n for n in range(2, 2000) if n not in composite]


@given(a=st.integers(2, 2**20), b=st.integers(2, 2**20))
def test_products_are_not_prime(a: int, b: int) -> None:
    assert not is_prime(a * b)


@pytest.mark.parametrize("pseudo", [3215031751, 3825123056546413051, 318665857834031151167461, 2**61 + 1])
def test_strong_pseudo_primes_are_seen_through(pseudo: int) -> None:
    """The first three pass the test for all prime bases below 11, 29 and 41."""
    assert not is_prime(pseudo)


def test_the_primes_of_the_runs_are_the_largest_below_2_to_the_31() -> None:
    found = [n for n in range(FAST - 1, PRIMES[-1] - 1, -1) if is_prime(n)]
    assert tuple(found) == PRIMES


@pytest.mark.parametrize("wrong", [2**31 - 2, 2**20 - 3, 97, 2**31 + 11, 2147483647 * 2147483629])
def test_what_is_not_a_large_prime_is_refused(wrong: int) -> None:
    with pytest.raises(ArgumentError, match="2147483647"):
        check_prime(wrong, where="here", below=FAST)


def test_what_the_bases_do_not_prove_is_refused() -> None:
    with pytest.raises(ArgumentError, match="below"):
        is_prime(2**89 - 1)
