from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statewise.errors import ArgumentError, DtypeError, NonFiniteError
from statewise.memory.field import Arithmetic, Field, Integers, WideField
from statewise.memory.primes import PRIMES

SEEDS = st.integers(0, 2**32 - 1)
#: The smallest prime that is allowed, and the largest.
FIELDS = [1048583, PRIMES[0], PRIMES[1]]


@pytest.mark.parametrize("prime", FIELDS)
@given(seed=SEEDS, rows=st.integers(1, 5), inner=st.sampled_from([1, 2, 127, 128, 129, 300]), columns=st.integers(1, 5))
def test_products_are_those_of_pythons_numbers(prime: int, seed: int, rows: int, inner: int, columns: int) -> None:
    fast, wide, generator = Field(prime), WideField(prime), np.random.default_rng(seed)
    left, right = fast.draw(generator, rows, inner), fast.draw(generator, inner, columns)
    slow_left, slow_right = wide.of(fast.integers(left)), wide.of(fast.integers(right))
    assert np.array_equal(fast.integers(fast.matmul(left, right)), wide.matmul(slow_left, slow_right))
    column = slice(None), slice(0, 1)
    for pair, slow in (((left, left), (slow_left, slow_left)), ((left[column], left), (slow_left[column], slow_left))):
        assert np.array_equal(fast.integers(fast.multiply(*pair)), wide.multiply(*slow))


@pytest.mark.parametrize("prime", FIELDS)
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_residues_do_not_overflow(prime: int, sign: int) -> None:
    """All entries at the edge, with the same sign, so that nothing cancels: the worst case of every sum."""
    field, edge = Field(prime), prime // 2
    left, right = field.of(np.full((2, 128), edge)), field.of(np.full((128, 2), sign * edge))
    assert np.abs(left).max() == edge
    assert (field.integers(field.matmul(left, right)) == 128 * sign * edge * edge % prime).all()
    assert (field.integers(field.multiply(left, left)) == edge * edge % prime).all()


@pytest.mark.parametrize("prime", FIELDS)
@pytest.mark.parametrize("terms", [127, 128, 129, 1000, 5000])
def test_long_sums_of_residues_near_the_edge_are_exact(prime: int, terms: int) -> None:
    """Of one sign, so that nothing cancels, and unequal, so that their lower halves are no special numbers."""
    field, generator = Field(prime), np.random.default_rng(terms)
    left, right = (prime // 2 - generator.integers(0, 50_000, shape) for shape in ((3, terms), (terms, 3)))
    expected = left.astype(object) @ right.astype(object) % prime
    assert (field.integers(field.matmul(field.of(left), field.of(right))) == expected).all()


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_floats_are_the_fractions_that_they_are(values: list[float]) -> None:
    field = Field()
    exact = [Fraction(value) for value in values]
    expected = [number.numerator * pow(number.denominator, -1, field.prime) % field.prime for number in exact]
    assert field.integers(field.of(np.array(values))).tolist() == expected


@given(numbers=st.lists(st.integers(-(2**100), 2**100), min_size=1, max_size=5))
def test_whole_numbers_of_any_size_are_reduced(numbers: list[int]) -> None:
    for field in (Field(), WideField()):
        table = field.of(np.array(numbers, dtype=object))
        assert field.integers(table).tolist() == [number % field.prime for number in numbers]
    assert Integers().integers(Integers().of(np.array(numbers, dtype=object))).tolist() == numbers


@pytest.mark.parametrize("wrong", [[1j], ["1"], np.array([0.5, 2**70], dtype=object), np.ones(1, dtype=np.longdouble)])
def test_what_is_no_exact_number_is_refused(wrong: Any) -> None:
    """Neither the imaginary part nor a fraction is dropped in silence."""
    with pytest.raises(DtypeError, match="whole numbers or floats"):
        Field().of(wrong)


@pytest.mark.parametrize("arithmetic", [Field(), WideField(), Integers()])
def test_infinity_is_refused_by_every_arithmetic(arithmetic: Arithmetic) -> None:
    with pytest.raises(NonFiniteError, match="finite"):
        arithmetic.of([np.inf])


def test_an_inverse_gives_one() -> None:
    field = Field()
    for number in (1, 2, -3, field.prime // 2):
        inverse = field.of([int(field.inverse(number))])
        assert field.integers(field.multiply(field.of([number]), inverse)).tolist() == [1]


def test_drawn_numbers_are_never_zero_and_cover_both_signs() -> None:
    table = Field(1048583).draw(np.random.default_rng(0), 100_000)
    assert (table != 0).all()
    assert abs(table.mean()) < 5 * 1048583 / np.sqrt(12 * len(table))


def test_numbers_without_a_value_are_refused() -> None:
    with pytest.raises(NonFiniteError):
        Field().of([0.5, np.inf])
    with pytest.raises(ArgumentError, match="whole"):
        Integers().of([0.5])
    assert Integers().of([2.0]).tolist() == [2]


@pytest.mark.parametrize("kind", [Field, WideField])
def test_a_field_of_a_composite_number_is_refused(kind: type[Field] | type[WideField]) -> None:
    with pytest.raises(ArgumentError, match="not prime"):
        kind(2**31 - 3)


def test_whole_numbers_that_floats_cannot_hold_are_refused_beside_fractions() -> None:
    with pytest.raises(DtypeError, match="9007199254740993 beside fractions"):
        Field().of([2**53 + 1, 0.5])
    assert Field().integers(Field().of([2**53, 0.5])).tolist()[0] == 2**53 % PRIMES[0]
