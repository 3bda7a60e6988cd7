"""Constants that were looked up in a trained network are rounded up to a grid, and the choice is paid for in nats."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from statewise.errors import ArgumentError, AssumptionError

#: Steps of the grids in an octave: of norms, and of margins.
NORMS, MARGINS = 8, 2
#: An upper bound on a computed norm: how far float64 arithmetic may be off.
SLACK = 1 + 1e-9


def weight(index: int) -> float:
    """The share of the failure probability that belongs to a point of a grid: ``(2/3) / ((|j|+1)(|j|+2))``, in all 1.

    Args:
        index: j, any whole number.

    >>> round(1 / weight(0)), round(1 / weight(5)), round(sum(map(weight, range(-9999, 10000))), 3)
    (3, 63, 1.0)
    """
    return (2 / 3) / ((abs(index) + 1) * (abs(index) + 2))


def nats(index: int) -> float:
    """What the choice of a point of a grid costs: ``ln(1 / weight)``.

    >>> round(nats(5), 9)
    4.143134726
    """
    return -math.log(weight(index))


def prefix_nats(number: int) -> float:
    """What a whole number of at least 1 costs with the law ``1 / (n(n+1))``.

    >>> round(prefix_nats(1), 9)
    0.693147181
    """
    if number < 1:
        raise ArgumentError(where="prefix_nats", got=number, wanted="a whole number of at least 1")
    return math.log(number) + math.log(number + 1)


@dataclass(frozen=True)
class Rounded:
    """A constant on a grid ``2^(j / per_octave)``, and what its choice costs.

    Args:
        value: the constant.
        nats: the price of having looked at the network before choosing it; 0 for one that was fixed beforehand.
    """

    value: float
    nats: float


def round_up(value: float, *, per_octave: int = NORMS) -> Rounded:
    """The next point of the grid that is not below a measured value.

    Args:
        value: what was measured, finite and >= 0.
        per_octave: points from one power of two to the next.

    >>> round_up(0.9).value, round(round_up(0.9).nats, 6), round_up(1.0).value
    (0.9170040432046712, 2.197225, 1.0)
    """
    if not 0 <= value < math.inf:
        raise ArgumentError(where="round_up", got=value, wanted="a finite number >= 0")
    if value == 0:
        # A point of its own for zero would cost all others something. One far below every norm that matters is as good.
        return Rounded(2.0 ** (-64), nats(-64 * per_octave))
    index = math.ceil(per_octave * math.log2(value))
    while 2.0 ** (index / per_octave) < value:  # the logarithm was rounded
        index += 1
    while 2.0 ** ((index - 1) / per_octave) >= value:
        index -= 1
    return Rounded(2.0 ** (index / per_octave), nats(index))


def margin_levels(most: float, *, octaves: int = 24) -> Iterator[Rounded]:
    """The margins to try: grid points downward from the largest that is of use.

    The law of the grid pays for the choice, so any range may be searched, also one that was chosen from the margins.

    Args:
        most: the largest margin that occurs; larger levels count every sequence as wrong.
        octaves: how far down to go.

    >>> [level.value for level in margin_levels(1.5, octaves=1)]
    [1.4142135623730951, 1.0, 0.7071067811865476]
    """
    if not most > 0:
        return
    top = math.floor(MARGINS * math.log2(most))
    for index in range(top, top - MARGINS * octaves - 1, -1):
        yield Rounded(2.0 ** (index / MARGINS), nats(index))


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """The constants of a class of networks: each fixed beforehand, or looked up and then paid for.

    Args:
        promised: constants that were fixed before the data was seen, by name, such as those of a projection. A network
            beyond one of them is refused.
        per_octave: points of the grid, as for :func:`round_up`.

    >>> ledger = Ledger(promised={"U": 1.0})
    >>> [round(bound, 6) for bound in (ledger.up("U", 0.93), ledger.up("W", 0.93), ledger.signed("bias", -0.3))]
    [1.0, 1.0, -0.25]
    >>> {name: round(nats, 3) for name, nats in ledger.nats.items()}
    {'U': 0.0, 'W': 1.099, 'bias': 2.89}
    """

    promised: Mapping[str, float] = field(default_factory=dict)
    per_octave: int = NORMS
    nats: dict[str, float] = field(default_factory=dict)

    def up(self, name: str, value: float) -> float:
        """A constant that is at least a measured one, which is >= 0.

        Args:
            name: of the constant, one for each.
            value: as measured, rounding errors included.
        """
        return self._enter(name, value, round_up)

    def signed(self, name: str, value: float) -> float:
        """A constant of either sign that is at least a measured one, on the grid ``j / per_octave``.

        Args:
            name: of the constant, one for each.
            value: as measured.
        """
        return self._enter(name, value, _round_up_evenly)

    def _enter(self, name: str, value: float, rounding: Callable[..., Rounded]) -> float:
        if name in self.nats:
            raise ArgumentError(where="Ledger", got=f"{name} twice", wanted="one name for each constant")
        if name in self.promised:
            # What projection leaves above the promise is rounding: the class is the one with a little more.
            most = self.promised[name] + (SLACK - 1) * abs(self.promised[name])
            if value > most:
                raise AssumptionError(
                    where=name,
                    got=value,
                    wanted=f"at most {self.promised[name]}, as was promised",
                    remedy="Project the weights while training, or let the constant be measured and paid for.",
                )
            self.nats[name] = 0.0
            return most
        chosen = rounding(value, per_octave=self.per_octave)
        self.nats[name] = chosen.nats
        return chosen.value

    @property
    def total(self) -> float:
        """What all constants cost."""
        return math.fsum(self.nats.values())


def _round_up_evenly(value: float, *, per_octave: int) -> Rounded:
    if not math.isfinite(value):
        raise ArgumentError(where="Ledger.signed", got=value, wanted="a finite number")
    index = math.ceil(value * per_octave)
    return Rounded(index / per_octave, nats(index))
