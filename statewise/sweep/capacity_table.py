"""The table of a search for capacities, and what must be said beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statewise.memory.telling import counted
from statewise.sweep.network_capacity import NetworkCapacity
from statewise.sweep.trial import Failure
from statewise.sweep.tries import Try

COLUMNS = (
    "depth",
    "channels",
    "parameters",
    "thesis count",
    "largest solved",
    "what bounds it",
    "solved runs",
    "95 %",
    "best",
    "median",
    "tried",
    "seconds",
)


def capacity_notes(search: Mapping[str, Any], networks: Sequence[NetworkCapacity]) -> list[str]:
    """What must be said beside the table: budgets, and results that are no clear answer.

    Args:
        search: as it describes itself.
        networks: what was found.
    """
    return [_budgets(search), *(note for each in networks for note in network_notes(each))]


def capacity_row(found: NetworkCapacity) -> tuple[str, ...]:
    """A network as a row of texts under ``COLUMNS``.

    Args:
        found: what was found of it.
    """
    there = next((each for each in found.tries if each.value == found.capacity), None)
    numbers = ("-",) * 4 if there is None else _shares(there)
    return (
        str(found.depth),
        str(found.width),
        f"{found.parameters:,}",
        f"{found.thesis_parameters:,}",
        "none" if found.capacity is None else f"{'≥ ' if found.censored else ''}{found.capacity}",
        _bounded(found),
        *numbers,
        f"{len(found.tries)} of {len(found.values)}",
        f"{found.seconds:.0f}",
    )


def _shares(there: Try) -> tuple[str, str, str, str]:
    low, high = there.interval
    share = f"{there.solved} of {len(there.runs)}"
    return share, f"{low:.2f} to {high:.2f}", f"{there.best:.4f}", f"{there.median:.4f}"


def _bounded(found: NetworkCapacity) -> str:
    if found.censored in ("all solved", "unfinished"):
        return found.censored
    assert found.bound is not None
    return f"{found.bound.value} {found.bound.verdict}"


def network_notes(found: NetworkCapacity) -> list[str]:
    """What must be said of one network: what ended its search, what is not monotone, what could not be run.

    Args:
        found: what was found of it.
    """
    name = f"depth {found.depth}, {counted(found.width, 'channel')}"
    notes = []
    if found.ended.startswith("seconds"):
        notes.append(f"{name}: ended by the budget of {found.ended}; the capacity may be larger.")
    elif found.ended:
        notes.append(f"{name}: {found.ended}. Resumed, the search tries it again.")
    if found.exceptions:
        those = ", ".join(map(str, found.exceptions))
        notes.append(f"{name}: {those} not solved though {found.capacity} was: not monotone.")
    for each in found.tries:
        if each.verdict == "broken":
            error = next(run.outcome.error for run in each.runs if isinstance(run.outcome, Failure))
            notes.append(f"{name}: {each.value} could not be run: {error}")
    return notes


def _budgets(search: Mapping[str, Any]) -> str:
    """What the search was allowed, in a sentence."""
    like = search["like"]
    rates = "tuned rates" if search["tuning"] else counted(len(search["rates"]), "rate")
    parts = [f"{rates} x {counted(search['seeds'], 'seed')}", f"at most {counted(like['iterations'], 'iteration')}"]
    for name, whose in (("network_seconds", "a network"), ("seconds", "in all")):
        if search[name] is not None:
            parts.append(f"{search[name]:g} s {whose}")
    return f"Solved: some run has a test accuracy above {search['above']:g}. Budget: {', '.join(parts)}."
