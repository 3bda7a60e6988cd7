"""Whether deeper networks solve harder tasks, as Ziv 2019 finds, told only as far as it is known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from statewise.sweep.network_capacity import NetworkCapacity


def order(networks: Sequence[NetworkCapacity]) -> list[tuple[str, bool | None]]:
    """The claim that capacities do not fall with depth, and whether it holds; nothing of fewer than two networks.

    A capacity is what a network learns within the budget of its runs. Where the search ended before the next value was
    decided it is known from below only, and where the order hangs on that the answer is None.

    Args:
        networks: of one size, each of another depth.
    """
    ranked = sorted(networks, key=lambda network: network.depth)
    if len(ranked) < 2:
        return []
    told = " >= ".join(f"depth {network.depth} ({_text(network)})" for network in reversed(ranked))
    return [(told, _ordered([network.span for network in ranked]))]


def _ordered(spans: Sequence[tuple[float, float]]) -> bool | None:
    """Whether no network solves less than a shallower one; None where that is not known."""
    before = list(accumulate((least for least, _ in spans), max))  # the most that is known of each or a shallower one
    falls = any(known > most for known, (_, most) in zip(before, spans, strict=True))
    nothing = all(most < 0 for _, most in spans)  # then there is no order to speak of
    if falls or nothing:
        return False
    rises = all(most <= least for (_, most), (least, _) in pairwise(spans))
    return True if rises and before[-1] >= 0 else None


def _text(network: NetworkCapacity) -> str:
    least, most = network.span
    if network.capacity is None:
        return "none" if most < 0 else "unknown"
    return f"{'at least ' if most > least else ''}{network.capacity}"
