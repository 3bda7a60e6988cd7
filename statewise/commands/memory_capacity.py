"""``statewise memory capacity``: the longest delay, the most bits or the longest sequence that networks can bridge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands.shared import DEVICE, check_new, command_parser, find_device
from statewise.data.copying_memory import CopyingMemory
from statewise.data.memory_task import MemoryTask
from statewise.data.similarity import StartEndSimilarity
from statewise.errors import ArgumentError, MissingExtraError
from statewise.memory.budget import COUNTS
from statewise.models.orthogonal_network import UPDATES
from statewise.report.figures_capacity import plot_capacity
from statewise.report.tables import Table
from statewise.sweep.bisection import METHODS, Strategy
from statewise.sweep.capacity import RESULT, search_capacity
from statewise.sweep.capacity_result import CapacityResult
from statewise.sweep.capacity_search import CapacitySearch, Network, Tuning, networks_within
from statewise.sweep.capacity_table import COLUMNS
from statewise.sweep.executors import Executor, ReplicaExecutor
from statewise.sweep.processes import ProcessExecutor
from statewise.sweep.ray_cluster import RayExecutor
from statewise.sweep.trial import Trial
from statewise.train.telling import say

PLOT = "capacity.png"
EXECUTORS = ("replicas", "processes")
#: What is made harder, what it is called, and the values that Ziv 2019 tries.
TASKS: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "copying-delay": ("largest delay solved (steps)", (*range(0, 1001, 50), *range(1100, 1501, 100))),
    "copying-bits": ("largest memory solved (bits)", tuple(range(150, 1001, 25))),
    "similarity": ("largest length solved (steps)", tuple(range(60, 1501, 30))),
}


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "Find the hardest task that orthogonal networks of some depths and sizes solve. Every run has a folder; what "
        "was interrupted goes on with --resume."
    )
    _add_task(made.add_argument_group("task and networks").add_argument)
    _add_search(made.add_argument_group("search").add_argument)
    _add_training(made.add_argument_group("training").add_argument)
    _add_places(made.add_argument_group("where").add_argument)
    return made


def _add_task(add: Callable[..., Any]) -> None:
    add("--task", choices=tuple(TASKS), default="copying-delay", help="what is made harder")
    add("--values", type=int, nargs="+", help="of the delay, bits or length; else those of the thesis")
    add("--m", type=int, default=30, help="how many symbols are shown; not for copying-bits")
    add("--n", type=int, default=32, help="how many kinds of symbols there are")
    add("--delay", type=int, default=0, help="of copying-bits")
    add("--depths", type=int, nargs="+", default=[1, 2, 3], help="numbers of layers")
    add("--sizes", type=int, nargs="+", help="budgets of parameters; else 8192 16384")
    add("--widths", type=int, nargs="+", help="channels of a layer, instead of --sizes")
    add("--count", choices=COUNTS, default="true", help="how parameters are counted for --sizes")


def _add_search(add: Callable[..., Any]) -> None:
    add("--method", choices=METHODS, default="bisection", help="which values are tried")
    add("--misses", type=int, default=2, help="ascending: how many values in a row must fail")
    add("--verify-above", type=int, default=1, help="bisection: how many values above the first failure are tried")
    add("--at-once", type=int, default=1, help="how many values of a network are tried at a time")
    add("--rates", type=float, nargs="+", default=[1e-4, 3e-4, 1e-3], help="learning rates; the best counts")
    add("--seeds", type=int, default=3, help="how many runs of each rate")
    add(
        "--enough", type=int, help="end a value as soon as so many runs have solved it; else all runs end by themselves"
    )
    add("--above", type=float, default=0.99, help="the test accuracy that counts as solved")
    add("--network-seconds", type=float, help="of computing, at most, for each network")
    add("--seconds", type=float, help="at most, for the whole search")
    add("--tune", type=int, help="choose the rates of each network by so many short runs of Optuna, instead of --rates")
    add("--tune-iterations", type=int, help="of these runs; else a tenth of --iterations")


def _add_training(add: Callable[..., Any]) -> None:
    add("--iterations", type=int, default=200_000, help="of a run, at most")
    add("--check-every", type=int, default=1000, help="iterations from one look at held-out examples to the next")
    add("--patience", type=int, default=10, help="looks without an improvement that are put up with, twice")
    add("--goal", type=float, default=0.995, help="accuracy on held-out examples that ends a run; 0 for none")
    add("--batch", type=int, default=128, help="sequences of an iteration")
    add("--validate", type=int, default=5000, help="held-out examples of a look")
    add("--test", type=int, default=10_000, help="held-out examples at the end")
    add("--lr-recurrent", type=float, help="of the orthogonal matrices; else a tenth of the rate, at most 1e-4")
    add("--update", choices=UPDATES, default="cayley", help="of the orthogonal matrices")
    add("--seed", type=int, default=0, help="the first of the seeds")


def _add_places(add: Callable[..., Any]) -> None:
    add("--executor", choices=EXECUTORS, default="replicas", help="this process, or several")
    add("--workers", type=int, help="processes; else one a core, or one an accelerator")
    add("--replicas", type=int, default=16, help="how many runs are trained side by side at most")
    add("--ray", type=str, help="a Ray cluster instead: auto, an address, or local to start one here")
    add("--gpus-per-task", type=float, help="with --ray: such as 0.25; else 1 on an accelerator")
    add("--cpus-per-task", type=float, default=1.0, help="with --ray")
    add("--device", **DEVICE)
    add("--out", type=str, default="runs/capacity", help="the folder of the search and of all its runs")
    add("--resume", action="store_true", help="go on with the search that is there; give the other options again")
    add("--quiet", action="store_true", help="print the table only")


def run(chosen: Any, console: Console) -> None:
    """Search, print the table, and write results and picture.

    Args:
        chosen: as the parser gives them.
        console: where to print.
    """
    folder, place = Path(chosen.out), executor_of(chosen, find_device(chosen.device))
    search = search_of(chosen)
    check_new(folder, chosen.resume)
    told = None if chosen.quiet else console
    runs = (1 if search.tuning else len(search.rates)) * search.seeds
    say(told, f"{len(search.networks)} networks, {len(search.values)} values, {runs} runs at each value that is tried")
    try:
        result = search_capacity(search, folder, executor=place, resume=chosen.resume, console=told)
    except KeyboardInterrupt:
        say(console, f"Stopped. The same command with --resume goes on with {folder}.")
        raise
    table_of(result).print(console)
    say(console, f"Result: {folder / RESULT}\nPlot: {_drawn(result, chosen.task, folder)}")


def task_of(chosen: Any) -> MemoryTask:
    """The task, at any hardness.

    Args:
        chosen: as the parser gives them.
    """
    if chosen.task == "similarity":
        return StartEndSimilarity(length=2 * chosen.m, m=chosen.m, n=chosen.n)
    scale = "bits" if chosen.task == "copying-bits" else "delay"
    return CopyingMemory(m=chosen.m, n=chosen.n, delay=chosen.delay if scale == "bits" else 0, scale=scale)


def search_of(chosen: Any) -> CapacitySearch:
    """The search that was asked for.

    Args:
        chosen: as the parser gives them.
    """
    if chosen.sizes and chosen.widths:
        raise ArgumentError(where="--widths", got="--sizes too", wanted="one of the two")
    like = Trial(
        task=task_of(chosen),
        depth=1,
        width=1,
        lr_recurrent=chosen.lr_recurrent,
        seed=chosen.seed,
        batch=chosen.batch,
        iterations=chosen.iterations,
        check_every=chosen.check_every,
        patience=chosen.patience,
        validate=chosen.validate,
        test=chosen.test,
        goal=chosen.goal or None,
        update=chosen["update"],  # a Namespace has methods of these two names
    )
    values = tuple(chosen["values"] or TASKS[chosen.task][1])
    return CapacitySearch(
        like=like,
        values=values,
        networks=_networks(chosen, task_of(chosen).harder(values[-1])),
        rates=tuple(chosen.rates),
        seeds=chosen.seeds,
        strategy=Strategy(
            method=chosen.method,
            misses=chosen.misses,
            verify_above=chosen.verify_above,
            at_once=chosen.at_once,
        ),
        enough=chosen.enough,
        above=chosen.above,
        tuning=None if chosen.tune is None else Tuning(trials=chosen.tune, iterations=chosen.tune_iterations),
        network_seconds=chosen.network_seconds,
        seconds=chosen.seconds,
    )


def _networks(chosen: Any, hardest: MemoryTask) -> tuple[Network, ...]:
    if chosen.widths:
        return tuple(Network(depth=depth, width=width) for width in chosen.widths for depth in chosen.depths)
    sizes = chosen.sizes or (2**13, 2**14)
    return networks_within(hardest, depths=chosen.depths, sizes=sizes, count=chosen.count)


def executor_of(chosen: Any, device: torch.device) -> Callable[[Path], Executor]:
    """What makes the place that trains.

    Args:
        chosen: as the parser gives them.
        device: where to compute.
    """
    told: dict[str, Any] = {"device": device, "replicas": chosen.replicas}
    if chosen.ray is not None:
        ray = {"address": chosen.ray, "gpus": chosen.gpus_per_task, "cpus": chosen.cpus_per_task}
        return partial(RayExecutor, **told, **ray)
    if chosen.gpus_per_task is not None:
        raise ArgumentError(where="--gpus-per-task", got=chosen.gpus_per_task, wanted="--ray with it")
    if chosen.executor == "processes":
        return partial(ProcessExecutor, **told, workers=chosen.workers)
    if chosen.workers is not None:
        raise ArgumentError(where="--workers", got=chosen.workers, wanted="--executor processes with it")
    return partial(ReplicaExecutor, **told)


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
