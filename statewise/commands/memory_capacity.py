"""``statewise memory capacity``: the longest delay, the most bits or the longest sequence that networks can bridge."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands import as_json
from statewise.commands.capacity_asked import search_of, search_that_goes_on, task_name
from statewise.commands.capacity_options import (
    PLACES,
    REMEDIES,
    TASKS,
    USUAL,
    capacity_parser,
    given,
    refuse_idle_places,
)
from statewise.commands.naming import naming_options, typed
from statewise.commands.shared import find_device
from statewise.errors import ArgumentError, MissingExtraError, RunFolderError
from statewise.memory.telling import counted
from statewise.report.figures_capacity import plot_capacity
from statewise.report.tables import Table
from statewise.sweep.capacity import RESULT, read_search, search_capacity
from statewise.sweep.capacity_result import CapacityResult
from statewise.sweep.capacity_search import CapacitySearch
from statewise.sweep.capacity_table import COLUMNS
from statewise.sweep.course import OF_A_NETWORK, OF_THE_SEARCH
from statewise.sweep.executors import Executor, ReplicaExecutor
from statewise.sweep.processes import ProcessExecutor
from statewise.sweep.ray_cluster import RayExecutor
from statewise.train.telling import say

PLOT = "capacity.png"
#: The options by what they become where a search is computed.
_OPTIONS = {
    **{f"{place}Executor.replicas": "--replicas" for place in ("Replica", "Process", "Ray")},
    "ProcessExecutor.workers": "--workers",
    "RayExecutor": "--ray",
    "RayExecutor.gpus": "--gpus-per-task",
    "RayExecutor.cpus": "--cpus-per-task",
    "tune_rate": "--tune",
    "tune_rate.trials": "--tune",
}


def parser() -> ArgumentParser:
    """The options of the command."""
    return capacity_parser()


def run(chosen: Any, console: Console) -> dict[str, Any]:
    """Search, print the table, and write results and picture.

    Args:
        chosen: as the parser gives them.
        console: where to print.
    """
    folder, told = Path(chosen.out), None if chosen.quiet else console
    place = executor_of(chosen, find_device(chosen.device), console=told)
    search = search_that_goes_on(chosen) if chosen.resume else search_of(chosen)
    if not chosen.resume:
        refuse_taken(folder, chosen)
    say(told, _summary(search, f"Going on with {folder}: " if chosen.resume else ""))
    try:
        with naming_options(_OPTIONS, REMEDIES):
            result = search_capacity(search, folder, executor=place, resume=chosen.resume, console=told)
    except KeyboardInterrupt:
        begun = (folder / "config.json").exists()
        say(console, f"Stopped. Go on: {command_to_go_on(chosen)}" if begun else "Stopped before the search began.")
        raise
    table_of(result).print(console)
    say(console, f"Result: {folder / RESULT}\nPlot: {_drawn(result, task_name(search.like.task), folder)}")
    for line in _more_time(search, result, chosen):
        say(console, line)
    return {"folder": str(folder), **as_json.table_of(table_of(result))}


def _summary(search: CapacitySearch, before: str) -> str:
    parts = counted(len(search.networks), "network"), counted(len(search.values), "value"), counted(search.runs, "run")
    return f"{before}{task_name(search.like.task)}, {', '.join(parts)} at each value that is tried"


def command_to_go_on(chosen: Any) -> str:
    """What to type to go on with a search, in the same place.

    Args:
        chosen: as the parser gives them.
    """
    words = ["--resume", "--out", chosen.out]
    for key, value in given(chosen, PLACES).items():
        words += [f"--{key.replace('_', '-')}", typed(value)]
    if chosen.device != "auto":
        words += ["--device", chosen.device]
    return shlex.join(["statewise", "memory", "capacity", *words])


def refuse_taken(folder: Path, chosen: Any) -> None:
    """Refuse a folder with a search that nobody wants to go on with, or with another run.

    Args:
        folder: that was named.
        chosen: as the parser gives them.
    """
    if not (folder / "config.json").exists():
        return
    got, remedy = "a folder with a search", f"Go on ({command_to_go_on(chosen)}), or name another folder (--out)."
    try:
        read_search(folder)
    except RunFolderError:
        got, remedy = "a folder with another run", "Name another folder (--out)."
    raise RunFolderError(where=str(folder), got=got, wanted="a new or empty one", remedy=remedy)


def executor_of(chosen: Any, device: torch.device, *, console: Console | None = None) -> Callable[[Path], Executor]:
    """What makes the place that trains.

    Args:
        chosen: as the parser gives them.
        device: where to compute.
        console: where to tell of the runs that have ended, if they are made by this process.
    """
    there = given(chosen, PLACES)
    refuse_idle_places(there)
    asked = {**USUAL, **there}
    told: dict[str, Any] = {"device": device, "replicas": asked["replicas"]}
    if "ray" in there:
        shares = {"gpus": asked["gpus_per_task"], "cpus": asked["cpus_per_task"]}
        for name, share in shares.items():
            if share is not None and not math.isfinite(share):
                raise ArgumentError(where=f"--{name}-per-task", got=typed(share), wanted="a number >= 0, such as 0.25")
        return partial(RayExecutor, **told, address=asked["ray"], **shares)
    if asked["executor"] == "processes":
        return partial(ProcessExecutor, **told, workers=asked["workers"])
    return partial(ReplicaExecutor, **told, console=console)


def table_of(result: CapacityResult) -> Table:
    """The table of a result.

    Args:
        result: of a search.
    """
    return Table(columns=COLUMNS, rows=result.rows(), left=0, notes=result.notes())


def _drawn(result: CapacityResult, task: str, folder: Path) -> str:
    try:
        plot_capacity(result, folder / PLOT, hardness=TASKS[task][0], title=task)
    except MissingExtraError as error:
        return f"not drawn ({error})"
    return str(folder / PLOT)


def _more_time(search: CapacitySearch, result: CapacityResult, chosen: Any) -> list[str]:
    """What to type if a budget of time has ended the search: twice of it, or of what was spent."""
    ended, spent = {each.ended for each in result.networks}, [each.seconds for each in result.networks]
    limits = (
        (OF_THE_SEARCH, "--seconds", search.seconds, sum(spent)),
        (OF_A_NETWORK, "--network-seconds", search.network_seconds, max(spent)),
    )
    more = [
        f"{option} {math.ceil(2 * max(limit, so_far))}"
        for why, option, limit, so_far in limits
        if why in ended and limit is not None
    ]
    return [f"With more time: {command_to_go_on(chosen)} {' '.join(more)}"] if more else []
