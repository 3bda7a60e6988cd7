"""Arithmetic on tables of numbers without rounding: of a finite field, fast or of any size, and of whole numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from statewise.errors import ArgumentError, DtypeError, NonFiniteError, ShapeError
from statewise.memory.primes import FAST, PRIMES, check_prime

#: A table of numbers, in whatever form its arithmetic keeps them.
Table = NDArray[Any]

_HALF = 2.0**15  # where a residue is cut in two
_TERMS = 128  # |a| <= 2^30, |half of b| <= 2^15: the sum of so many products is at most 2^52, which float64 holds
_STRIP = 1 << 15  # numbers that are worked on together; some of their copies fit into a core's cache


class Arithmetic(ABC):
    """How tables of numbers are multiplied without rounding.

    Attributes:
        prime: the size of the field; 0 for whole numbers.
    """

    prime: int

    @abstractmethod
    def of(self, numbers: Any) -> Table:
        """Whole numbers, or floats as the exact fractions that they are, in the form of this arithmetic."""

    @abstractmethod
    def integers(self, table: Table) -> Table:
        """The numbers as Python would print them: whole, and of a field in 0..p-1."""

    @abstractmethod
    def multiply(self, left: Table, right: Table) -> Table:
        """The elementwise product, with broadcasting."""

    @abstractmethod
    def matmul(self, left: Table, right: Table) -> Table:
        """The product of two matrices."""

    def ones(self, *shape: int) -> Table:
        """A table of ones."""
        return self.of(np.ones(shape, dtype=np.int64))


class Field(Arithmetic):
    """The integers modulo a prime below 2^31, as float64 numbers in -p/2..p/2: no sum here exceeds 2^53.

    A product of two such numbers does not fit, but one of a number and a half of 16 bits does, and so does the sum of
    128 of them; hence a product of matrices is two products of the processor's own, and a reduction.

    Args:
        prime: p, above 2^20 and below 2^31.

    >>> field = Field(2**31 - 1)
    >>> field.integers(field.multiply(field.of([2**30]), field.of([6]))).tolist()
    [3]
    """

    def __init__(self, prime: int = PRIMES[0]) -> None:
        self.prime = check_prime(prime, where="Field.prime", below=FAST)

    def __repr__(self) -> str:
        return f"Field({self.prime})"

    def of(self, numbers: Any) -> Table:
        table = exact_numbers(numbers, where="Field.of")
        if table.dtype.kind == "f":
            return self._of_floats(table)
        if table.dtype.kind == "O":
            table = (table % self.prime).astype(np.int64)
        return self.reduce((table % self.prime).astype(np.float64))

    def integers(self, table: Table) -> Table:
        found: Table = table.astype(np.int64) % self.prime
        return found

    def draw(self, generator: np.random.Generator, *shape: int) -> Table:
        """Numbers of 1..p-1, all alike."""
        return self.of(generator.integers(1, self.prime, size=shape, dtype=np.int64))

    def inverse(self, number: float) -> float:
        """The number that gives 1 with another, which is not 0."""
        return self._balanced(pow(int(number) % self.prime, -1, self.prime))

    def reduce(self, table: Table) -> Table:
        """Bring whole numbers of at most 2^52 back into -p/2..p/2, in place."""
        quotient = table * (1.0 / self.prime)
        np.rint(quotient, out=quotient)
        quotient *= self.prime
        table -= quotient
        return table

    def multiply(self, left: Table, right: Table) -> Table:
        if right.size > left.size:
            left, right = right, left
        high, low = _halves(right)
        product = self.reduce(left * high)
        product *= _HALF
        product += left * low
        return self.reduce(product)

    def matmul(self, left: Table, right: Table) -> Table:
        total = self._matmul(left[:, :_TERMS], right[:_TERMS])
        for first in range(_TERMS, left.shape[1], _TERMS):
            total += self._matmul(left[:, first : first + _TERMS], right[first : first + _TERMS])
            self.reduce(total)
        return total

    def _matmul(self, left: Table, right: Table) -> Table:
        """The product where few enough terms are summed; the smaller factor is the one that is cut in halves."""
        if left.size <= right.size:
            high, low = (half @ right for half in _halves(left))
        else:
            high, low = (left @ half for half in _halves(right))
        self.reduce(high)
        high *= _HALF
        high += low
        return self.reduce(high)

    def subtract_product(self, table: Table, left: Table, right: Table) -> None:
        """``table -= left right`` in place, strip by strip: of a large table no copy is made."""
        rows = max(1, 8 * _STRIP // max(1, table.shape[1]))
        for first in range(0, table.shape[0], rows):
            strip = slice(first, first + rows)
            table[strip] -= self.matmul(left[strip], right)
            self.reduce(table[strip])

    def _of_floats(self, table: Table) -> Table:
        """Floats are whole numbers times powers of two, and two has an inverse."""
        mantissa, exponent = np.frexp(table)
        whole = self.of(np.ldexp(mantissa, 53).astype(np.int64))
        levels, where = np.unique(exponent.astype(np.int64) - 53, return_inverse=True)
        powers = np.array([pow(2, int(level), self.prime) for level in levels], dtype=np.int64)
        return self.multiply(whole, self.of(powers[where].reshape(table.shape)))

    def _balanced(self, number: int) -> float:
        return float(number - self.prime if number > self.prime // 2 else number)


class WideField(Arithmetic):
    """The integers modulo any large prime, as Python's own numbers: slow, and without limit.

    Args:
        prime: p, above 2^20.

    >>> field = WideField(2**61 - 1)
    >>> field.multiply(field.of([2**60]), field.of([6])).tolist()
    [3]
    """

    def __init__(self, prime: int = 2**61 - 1) -> None:
        self.prime = check_prime(prime, where="WideField.prime")

    def of(self, numbers: Any) -> Table:
        return _whole(numbers, "WideField.of") % self.prime

    def integers(self, table: Table) -> Table:
        return table

    def multiply(self, left: Table, right: Table) -> Table:
        found: Table = left * right % self.prime
        return found

    def matmul(self, left: Table, right: Table) -> Table:
        found: Table = left @ right % self.prime
        return found


class Integers(Arithmetic):
    """Whole numbers of any size.

    >>> Integers().multiply(Integers().of([10**20]), Integers().of([-3])).tolist()
    [-300000000000000000000]
    """

    prime: ClassVar[int] = 0  # type: ignore[misc]  # the same for all, where fields have one each

    def of(self, numbers: Any) -> Table:
        return _whole(numbers, "Integers.of")

    def integers(self, table: Table) -> Table:
        return table

    def multiply(self, left: Table, right: Table) -> Table:
        found: Table = left * right
        return found

    def matmul(self, left: Table, right: Table) -> Table:
        found: Table = left @ right
        return found


def exact_numbers(numbers: Any, *, where: str) -> Table:
    """Numbers as they were given, none of them rounded: int64, float64, or Python's whole numbers where those end.

    Args:
        numbers: an array or nested lists of whole numbers, or of finite floats.
        where: what was asked, for errors.

    >>> exact_numbers([2**63 + 1, -1], where="here").tolist()  # which numpy would make floats
    [9223372036854775809, -1]
    """
    try:
        table = np.asarray(numbers)
    except ValueError as error:
        raise ShapeError(where=where, got="rows of several lengths", wanted="rows of one length") from error
    if table.dtype.kind in "fu" and not isinstance(numbers, np.ndarray):
        given = np.asarray(numbers, dtype=object)
        table = given if all(isinstance(number, int) for number in given.flat) else _unrounded(given, table, where)
    if table.dtype.kind in "ib" or (table.dtype.kind == "u" and table.dtype.itemsize < 8):
        return table.astype(np.int64)
    if table.dtype.kind == "f" and table.dtype.itemsize <= 8:
        if not np.isfinite(table).all():
            remedy = "Look for where they come from: no rank is that of a network with such weights or inputs."
            raise NonFiniteError(where=where, got="NaN or infinity", wanted="finite numbers", remedy=remedy)
        return table.astype(np.float64)
    if table.dtype.kind in "uO" and all(isinstance(number, Integral) for number in table.astype(object).flat):
        return np.array([int(number) for number in table.flat], dtype=object).reshape(table.shape)
    raise DtypeError(where=where, got=str(table.dtype), wanted="whole numbers or floats of at most 64 bits")


def _unrounded(given: Table, table: Table, where: str) -> Table:
    """Whole numbers beside fractions become floats, which have no room for all of them."""
    for number, rounded in zip(given.flat, table.flat, strict=True):
        if isinstance(number, int) and int(rounded) != number:
            wanted = "whole numbers below 2^53 beside fractions"
            raise DtypeError(where=where, got=f"{number} beside fractions", wanted=wanted)
    return table


def _halves(table: Table) -> tuple[Table, Table]:
    """Two tables whose entries are short: ``table = 2^15 high + low``."""
    high = np.rint(table * (1 / _HALF))
    return high, table - high * _HALF


def _whole(numbers: Any, where: str) -> Table:
    table = exact_numbers(numbers, where=where)
    if table.dtype.kind == "f":
        if not np.array_equal(table, np.rint(table)):
            raise ArgumentError(
                where=where, got="fractions", wanted="whole numbers", remedy="Field(p) takes any floats, exactly."
            )
        return np.array([int(value) for value in table.flat], dtype=object).reshape(table.shape)
    return table.astype(object)
