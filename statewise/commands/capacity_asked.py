"""The search that ``statewise memory capacity`` is asked for: by its options, or by the folder of one that goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from statewise.commands.capacity_options import OF_THE_SEARCH, REMEDIES, SIZES, TASKS, USUAL, given, refuse_idle_search
from statewise.commands.naming import naming_options, typed
from statewise.data.copying_memory import CopyingMemory
from statewise.data.memory_task import MemoryTask, SequenceTask
from statewise.data.similarity import StartEndSimilarity
from statewise.errors import ArgumentError, RunFolderError
from statewise.memory.budget import COUNTS, orthogonal_parameters
from statewise.sweep.bisection import Strategy
from statewise.sweep.capacity import read_search
from statewise.sweep.capacity_search import CapacitySearch, Network, Tuning, networks_within
from statewise.sweep.trial import Trial

#: Beyond these no network can be trained, and one that is tried would fill the memory first.
MOST_LAYERS, MOST_PARAMETERS = 1000, 10**10
MOST = 10**12
_LIKE = ("lr_recurrent", "seed", "batch", "iterations", "check_every", "patience", "validate", "test", "update")
_BUDGETS = ("network_seconds", "seconds")
#: The options by the fields that they become.
_OPTIONS = {
    **{f"Trial.{key}": f"--{key.replace('_', '-')}" for key in (*_LIKE, "goal")},
    **{
        f"CapacitySearch.{key}": f"--{key.replace('_', '-')}" for key in ("values", "rates", "seeds", "enough", "above")
    },
    **{f"CapacitySearch.{key}": f"--{key.replace('_', '-')}" for key in _BUDGETS},
    **{f"Strategy.{key}": f"--{key.replace('_', '-')}" for key in ("method", "misses", "verify_above", "at_once")},
    "CapacitySearch.like goal": "--goal",
    "Trial.lr": "--rates",
    "CopyingMemory.harder": "--values",
    "Tuning.trials": "--tune",
    "Tuning.iterations": "--tune-iterations",
    "Network.depth": "--depths",
    "depth": "--depths",
    "Network.width": "--widths",
    "budget": "--sizes",
    "StartEndSimilarity.length": "--values",
    "StartEndSimilarity.m": "--m",
    "StartEndSimilarity.n": "--n",
    "CopyingMemory.m": "--m",
    "CopyingMemory.n": "--n",
}


@contextmanager
def _naming(asked: Mapping[str, Any]) -> Iterator[None]:
    """A region whose errors name options; the same field may be of one or of another, as the task is."""
    options = {**_OPTIONS, "CopyingMemory.delay": "--delay" if asked["task"] == "copying-bits" else "--values"}
    remedies = REMEDIES if asked["values"] else {**REMEDIES, "--values": "Name values of your own (--values)."}
    if asked["task"] == "similarity":
        remedies = {**remedies, "--m": "Show fewer symbols, or take longer sequences (--values)."}
    with naming_options(options, remedies):
        yield


def search_of(chosen: Any) -> CapacitySearch:
    """The search that was asked for.

    Args:
        chosen: as the parser gives them.
    """
    there = given(chosen, OF_THE_SEARCH)
    refuse_idle_search(there)
    _refuse_absurd(there)
    asked = {**USUAL, **there}
    with _naming(asked):
        return _search(asked)


def _refuse_absurd(there: Mapping[str, Any]) -> None:
    """Refuse numbers that no machine can hold or count to."""
    for option in OF_THE_SEARCH:
        value = there.get(option.key)
        counts = option.kind is int or option.key in ("rates", "lr_recurrent")
        if counts and value is not None and max(value if option.many else [value]) > MOST:
            remedy = REMEDIES[f"--{option.name}"]
            raise ArgumentError(where=f"--{option.name}", got=typed(value), wanted=f"at most {MOST:,}", remedy=remedy)


def _search(asked: Mapping[str, Any]) -> CapacitySearch:
    task, values = _task(asked), tuple(asked["values"] or TASKS[asked["task"]][1])
    like = Trial(task=task, depth=1, width=1, goal=asked["goal"] or None, **{name: asked[name] for name in _LIKE})
    return CapacitySearch(
        like=like,
        values=values,
        networks=_networks(asked, task.harder(values[-1])),
        rates=tuple(asked["rates"]),
        seeds=asked["seeds"],
        strategy=Strategy(**{name: asked[name] for name in ("method", "misses", "verify_above", "at_once")}),
        enough=asked["enough"],
        above=asked["above"],
        tuning=None if asked["tune"] is None else Tuning(trials=asked["tune"], iterations=asked["tune_iterations"]),
        **{name: asked[name] for name in _BUDGETS},
    )


def _task(asked: Mapping[str, Any]) -> MemoryTask:
    """The task, at any hardness."""
    m, n = asked["m"], asked["n"]
    if asked["task"] == "similarity":
        if m < 1:  # or the length would be blamed
            raise ArgumentError(where="--m", got=m, wanted="an integer >= 1", remedy=REMEDIES["--m"])
        return StartEndSimilarity(length=2 * m, m=m, n=n)
    if asked["task"] == "copying-delay":
        return CopyingMemory(m=m, n=n, delay=0)
    if n > 1 and n & (n - 1):
        wanted, remedy = "a power of two with --task copying-bits", "Else a symbol is not a whole number of bits."
        raise ArgumentError(where="--n", got=n, wanted=wanted, remedy=remedy)
    return CopyingMemory(m=m, n=n, delay=asked["delay"], scale="bits")


def _networks(asked: Mapping[str, Any], hardest: MemoryTask) -> tuple[Network, ...]:
    depths, by = asked["depths"], "widths" if asked["widths"] else "sizes"
    entries = asked[by] or SIZES
    for name, each in (("depths", depths), (by, entries)):
        if len(set(each)) < len(each):
            raise ArgumentError(where=f"--{name}", got=typed(each), wanted="each once")
    if max(depths) > MOST_LAYERS:
        raise ArgumentError(where="Network.depth", got=max(depths), wanted=f"at most {MOST_LAYERS:,} layers")
    if by == "sizes":
        networks = networks_within(hardest, depths=depths, sizes=entries, count=asked["count"])
    else:
        networks = tuple(Network(depth=depth, width=width) for width in entries for depth in depths)
    for network in networks:
        if (parameters := _parameters(network, hardest)) > MOST_PARAMETERS:
            got = f"depth {network.depth} with {network.width:,} channels, {parameters:,} parameters"
            remedy = f"Take less (--{by}), fewer layers (--depths) or fewer kinds of symbols (--n)."
            raise ArgumentError(where=f"--{by}", got=got, wanted=f"at most {MOST_PARAMETERS:,}", remedy=remedy)
    _refuse_twins(networks)
    return networks


def _refuse_twins(networks: tuple[Network, ...]) -> None:
    """Refuse two budgets that have room for the same network."""
    seen: dict[tuple[int, int], int | None] = {}
    for network in networks:
        place = network.depth, network.width
        if place in seen:
            got = f"{seen[place]} and {network.size}, both of which give depth {place[0]} {place[1]} channels"
            raise ArgumentError(where="--sizes", got=got, wanted="other networks", remedy="Take budgets further apart.")
        seen[place] = network.size


def task_name(task: SequenceTask) -> str:
    """What the command calls a task.

    Args:
        task: of a search.

    >>> task_name(CopyingMemory(m=30, n=32, delay=0, scale="bits"))
    'copying-bits'
    """
    return f"copying-{task.scale}" if isinstance(task, CopyingMemory) else "similarity"


def search_that_goes_on(chosen: Any) -> CapacitySearch:
    """The search in a folder; what was typed must agree with it, but for budgets of time.

    Args:
        chosen: as the parser gives them.
    """
    folder = Path(chosen.out)
    try:
        search = read_search(folder)
    except RunFolderError as error:
        if (folder / "config.json").exists():
            raise error.told(remedy="Name the folder of a search (--out).") from None
        raise error.told(remedy="Leave --resume out to begin one there, or look at the spelling of --out.") from None
    there = given(chosen, OF_THE_SEARCH)
    known = options_of(search)
    for key, value in there.items():
        if key not in _BUDGETS and not _agree(key, value, known, search):
            raise ArgumentError(
                where=f"--{key.replace('_', '-')}",
                got=typed(value),
                wanted=f"{typed(known[key])}, as the search in {folder} has it",
                remedy="Leave it out to go on, or begin another search: another --out, and no --resume.",
            )
    with naming_options(_OPTIONS, {f"--{name}": "Leave it out for that of the folder." for name in _BUDGETS}):
        return replace(search, **{name: there[name] for name in _BUDGETS if name in there})


def options_of(search: CapacitySearch) -> dict[str, Any]:
    """The options that ask for a search; None for those that it has no use for.

    Args:
        search: which.
    """
    task, name = search.like.task.describe(), task_name(search.like.task)
    plan, tuning = search.strategy, search.tuning
    bits, ascends = name == "copying-bits", plan.method == "ascending"
    sizes = tuple(dict.fromkeys(each.size for each in search.networks if each.size is not None))
    widths = tuple(dict.fromkeys(each.width for each in search.networks if each.size is None))
    return {
        **{key: getattr(search.like, key) for key in _LIKE},
        **{key: getattr(search, key) for key in ("values", "seeds", "enough", "above", *_BUDGETS)},
        "task": name,
        "m": None if bits else task["m"],
        "n": task["n"],
        "delay": task["delay"] if bits else None,
        "depths": tuple(dict.fromkeys(each.depth for each in search.networks)),
        "sizes": sizes or None,
        "widths": widths or None,
        "count": next((count for count in COUNTS if sizes and _counted(search, count)), None),
        "goal": search.like.goal or 0.0,
        "method": plan.method,
        "misses": plan.misses if ascends else None,
        "verify_above": None if ascends else plan.verify_above,
        "at_once": plan.at_once,
        "rates": None if tuning else search.rates,
        "lr_recurrent": None if tuning else search.like.lr_recurrent,
        "tune": None if tuning is None else tuning.trials,
        "tune_iterations": None if tuning is None else tuning.iterations,
    }


def _agree(key: str, value: Any, known: Mapping[str, Any], search: CapacitySearch) -> bool:
    if key == "count":  # of which a folder knows only what came of it, and one layer is counted the same both ways
        return known["sizes"] is not None and _counted(search, value)
    if isinstance(value, list) and known[key] is not None:
        return sorted(value) == sorted(known[key])
    return bool(value == known[key])


def _counted(search: CapacitySearch, count: str) -> bool:
    """Whether the networks are the widest within their budgets if parameters are counted so."""
    sized = [each for each in search.networks if each.size is not None]
    wider = [replace(each, width=each.width + 1) for each in sized]
    sizes = [[_parameters(each, search.hardest, count) for each in some] for some in (sized, wider)]
    return all(least <= (each.size or 0) < most for each, least, most in zip(sized, *sizes, strict=True))


def _parameters(network: Network, task: MemoryTask, count: str = "true") -> int:
    sizes: dict[str, Any] = {"depth": network.depth, "width": network.width, "count": count}
    return orthogonal_parameters(inputs=task.inputs, classes=task.classes, **sizes)
