"""An axis: where a value stands, and which values are named along it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from statewise.errors import ArgumentError
from statewise.report.html.numbers import shown


@dataclass(frozen=True, kw_only=True)
class Axis:
    """Values from ``low`` to ``high``, drawn from ``start`` to ``end`` in pixels.

    Args:
        low: the smallest value.
        high: the largest, above it.
        start: where the smallest stands.
        end: where the largest stands; it may be left of or above ``start``.
        log: equal ratios are equally far apart.
        whole: only whole numbers are named along it.

    >>> axis = Axis(low=0, high=10, start=100, end=200)
    >>> axis.place(5), axis.ticks(), Axis(low=1, high=100, start=0, end=2, log=True).place(100)
    (150.0, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0], 2.0)
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ArgumentError(where="Axis", got=f"{self.low} to {self.high}", wanted="two finite numbers, rising")
        if self.log and self.low <= 0:
            raise ArgumentError(where="Axis.low", got=self.low, wanted="a number above 0 on a logarithmic axis")

    def place(self, value: float) -> float:
        """Where a value stands, in pixels.

        Args:
            value: of the axis.
        """
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return self.start + (self.end - self.start) * (at - low) / (high - low)

    def ticks(self, most: int = 6) -> list[float]:
        """Round values along the axis.

        Args:
            most: about how many.
        """
        if self.log:
            found = _powers(self.low, self.high, most)
            if len(found) >= 3:
                return found
        step = nice((self.high - self.low) / max(1, most - 1))
        if self.whole:
            step = max(1.0, math.ceil(step))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(number * step, 12) + 0.0 for number in range(first, last + 1)]


def covering(
    values: Iterable[float], *, start: float, end: float, log: bool = False, zero: bool = False, tight: bool = False
) -> Axis:
    """An axis on which all values find a place, with a little room around them.

    Args:
        values: those that are not finite are left out, and on a logarithmic axis those that are not above 0.
        start: where the smallest stands.
        end: where the largest stands.
        log: equal ratios are equally far apart.
        zero: begin or end at 0.
        tight: no room around them, for what is counted.

    >>> axis = covering([1.0, 9.0], start=0, end=100, zero=True)
    >>> axis.low, axis.high
    (0.0, 10.0)
    """
    held = [float(value) for value in values if math.isfinite(value) and (value > 0 or not log)]
    if not held:
        held = [1.0, 10.0] if log else [0.0, 1.0]
    low, high = min(held), max(held)
    whole = tight and all(value.is_integer() for value in held)
    if zero and not log:
        low, high = min(low, 0.0), max(high, 0.0)
    if log:
        return _log_axis(low, high, start, end)
    if low == high:
        room = 0.5 if tight else abs(low) * 0.1 or 1.0
        return Axis(low=low - room, high=high + room, start=start, end=end, whole=whole)
    if tight:
        return Axis(low=low, high=high, start=start, end=end, whole=whole)
    step = nice((high - low) / 5)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return Axis(low=round(low, 12) + 0.0, high=round(high, 12) + 0.0, start=start, end=end)


def nice(step: float) -> float:
    """The smallest of 1, 2, 2.5, 5 and 10 times a power of ten that is not below a step.

    Args:
        step: above 0.

    >>> [nice(step) for step in (0.3, 1.0, 1.7, 23.0, 70.0)]
    [0.5, 1.0, 2.0, 25.0, 100.0]
    """
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= step * (1 - 1e-9))


def tick_texts(ticks: list[float]) -> list[str]:
    """Names of ticks, all with as many digits as tell them apart.

    Args:
        ticks: rising.

    >>> tick_texts([0.0, 0.5, 1.0]), tick_texts([0.0, 20000.0]), tick_texts([0.001, 0.1, 10.0])
    (['0', '0.5', '1'], ['0', '20,000'], ['0.001', '0.1', '10'])
    """
    return [shown(tick, digits=6 if max(map(abs, ticks)) < 1e6 else 3) for tick in ticks]


def _log_axis(low: float, high: float, start: float, end: float) -> Axis:
    if low == high:
        return Axis(low=low / 2, high=high * 2, start=start, end=end, log=True)
    room = (high / low) ** 0.05
    return Axis(low=low / room, high=high * room, start=start, end=end, log=True)


def _powers(low: float, high: float, most: int) -> list[float]:
    """Powers of ten between two values, with 2 and 5 times them where there is room."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
        found = [round(value, 12 - power_of(value)) for value in found if low <= value <= high]
        if len(found) <= most + 1:
            return found
    return found[:: math.ceil(len(found) / most)]


def power_of(value: float) -> int:
    """The power of ten that a value above 0 begins with.

    Args:
        value: above 0.

    >>> power_of(250.0), power_of(0.02)
    (2, -2)
    """
    return math.floor(math.log10(value) + 1e-12)
