"""Who goes on after a rung: worse strengths fall out, the plain network and the best of each family stay."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from statewise.errors import ArgumentError

NONE = "none"
RUNGS = 3
FACTOR = 2


class Standing(NamedTuple):
    """What is known of a candidate after a rung; smaller is better, in both.

    Attributes:
        loss: what candidates are ranked by: the mean over seeds, turned so that smaller is better.
        tie: what decides among equals.
    """

    loss: float
    tie: float = 0.0


def rungs(epochs: int, *, count: int = RUNGS, factor: int = FACTOR) -> tuple[int, ...]:
    """The epochs after which candidates are compared, the last of which are all of them (Jamieson & Talwalkar 2016).

    Args:
        epochs: of a run that is never dropped.
        count: how many rungs at most; with few epochs some would be the same, and are one.
        factor: by how much each has more epochs than the one before.

    >>> rungs(20), rungs(3), rungs(1)
    ((5, 10, 20), (1, 2, 3), (1,))
    """
    for name, value, least in (("epochs", epochs, 1), ("count", count, 1), ("factor", factor, 2)):
        if type(value) is not int or value < least:
            raise ArgumentError(where=f"rungs.{name}", got=value, wanted=f"a whole number >= {least}")
    return tuple(sorted({-(-epochs // factor**step) for step in range(count)}))


def ranked(standings: Mapping[str, Standing]) -> list[str]:
    """The names from the best to the worst; what is not a number is worst, and equals keep their order.

    Args:
        standings: of each candidate.

    >>> ranked({"a": Standing(2.0), "b": Standing(1.0), "c": Standing(math.nan), "d": Standing(1.0, -1.0)})
    ['d', 'b', 'a', 'c']
    """
    places = {name: place for place, name in enumerate(standings)}

    def key(name: str) -> tuple[float, float, int]:
        loss, tie = (math.inf if math.isnan(value) else value for value in standings[name])
        return loss, tie, places[name]

    return sorted(standings, key=key)


def protected(standings: Mapping[str, Standing], families: Mapping[str, str]) -> set[str]:
    """Who cannot be dropped: the plain network, and of each family the best, unless all of it came to nothing.

    Args:
        standings: of each candidate that is left.
        families: of each candidate.

    >>> one = {"none": Standing(3.0), "zoneout-0.1": Standing(2.0), "zoneout-0.3": Standing(4.0)}
    >>> sorted(protected(one, {"none": "none", "zoneout-0.1": "zoneout", "zoneout-0.3": "zoneout"}))
    ['none', 'zoneout-0.1']
    """
    best: dict[str, str] = {}
    for name in ranked(standings):
        if math.isfinite(standings[name].loss):
            best.setdefault(families[name], name)
    return {*best.values(), *(name for name in standings if name == NONE)}


def survivors(
    standings: Mapping[str, Standing], families: Mapping[str, str], *, last: bool = False, factor: int = FACTOR
) -> list[str]:
    """The candidates that go on, in the order in which they were given.

    Of ``n`` candidates the best ``n / factor`` go on, and all that are protected. What came to nothing never does.
    Before the last rung, one of each family is left.

    Args:
        standings: of each candidate that is left.
        families: of each candidate.
        last: whether only the protected go on.
        factor: which part of them does otherwise.
    """
    safe = protected(standings, families)
    wanted = 0 if last else -(-len(standings) // factor)
    for name in ranked(standings):
        if len(safe) >= wanted or not math.isfinite(standings[name].loss):
            break
        safe.add(name)
    return [name for name in standings if name in safe]


def check_line_up(names: Sequence[str]) -> None:
    """Refuse a line-up in which nothing could be compared with the plain network.

    Args:
        names: of the families.
    """
    if NONE not in names or len(names) < 2:
        raise ArgumentError(
            where="--lineup",
            got=", ".join(names) or "nothing",
            wanted="none, and something to compare it with",
            remedy="Such as --lineup none,dropout,noise.",
        )
