"""A search whose networks have rates of their own, chosen before it begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from statewise.memory.telling import counted
from statewise.sweep.capacity_search import CapacitySearch, Network
from statewise.sweep.executors import Executor
from statewise.sweep.tuning import NoRatesError, tune_rate
from statewise.train.telling import say


def tuned(
    search: CapacitySearch, folder: Path, *, executor: Callable[[Path], Executor], console: Console | None = None
) -> tuple[CapacitySearch, dict[Network, str]]:
    """The same search with tuned rates for every network that has none of its own, and why some could have none.

    A tuning that was made is read, and one that was killed goes on. One that comes to nothing does not end the others.

    Args:
        search: that asks for a tuning; else it is given back as it is.
        folder: where the studies are, one for each network.
        executor: makes the place that trains.
        console: where to tell of the progress; None for silence.
    """
    told = search.tuning
    if told is None:
        return search, {}
    value = search.values[0] if told.value is None else told.value
    iterations = told.iterations or max(search.like.check_every, search.like.iterations // 10)
    # No goal: losses are compared, and those of runs that end at the same accuracy say nothing of their rates.
    changes: dict[str, Any] = {"iterations": iterations, "goal": None}
    networks, without = list[Network](), dict[Network, str]()
    for network in search.networks:
        if network.rates is None:
            say(console, f"Rates for depth {network.depth}, {counted(network.width, 'channel')}:")
            try:
                found = tune_rate(
                    replace(search.trials(network, value)[0], **changes),
                    folder / f"L{network.depth}-R{network.width}",
                    executor=executor,
                    trials=told.trials,
                    at_once=told.at_once,
                    short=told.short,
                    resume=True,
                    console=console,
                )
                network = replace(network, rates=((found.lr, found.lr_recurrent),))
            except NoRatesError as error:
                without[network] = str(error.got)
        networks.append(network)
    return replace(search, networks=tuple(networks)), without
