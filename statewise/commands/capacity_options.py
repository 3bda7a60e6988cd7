"""The options of ``statewise memory capacity``; what is not typed is None, so that it can be told from what is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from jsonargparse import ArgumentParser

from statewise.commands.naming import typed
from statewise.commands.shared import DEVICE, JSON, command_parser
from statewise.errors import ArgumentError
from statewise.memory.budget import COUNTS
from statewise.models.orthogonal_network import UPDATES
from statewise.recipes.memory_capacity import BITS, DELAYS, LENGTHS
from statewise.sweep.bisection import METHODS

EXECUTORS = ("replicas", "processes")
#: What is made harder, what it is called, and the values that Ziv 2019 tries.
TASKS: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "copying-delay": ("largest delay solved (steps)", DELAYS),
    "copying-bits": ("largest memory solved (bits)", BITS),
    "similarity": ("largest length solved (steps)", LENGTHS),
}
SIZES = (2**13, 2**14)


class Option(NamedTuple):
    """An option: its name, what it says, its type or its choices, and what it is if it is not typed."""

    name: str
    says: str
    kind: Any
    usual: Any = None
    otherwise: str = "none"  # in words, where there is no usual value
    many: bool = False

    @property
    def key(self) -> str:
        """Its name in Python."""
        return self.name.replace("-", "_")

    @property
    def default(self) -> str:
        """What it is if it is not typed, in words."""
        return self.otherwise if self.usual is None else typed(self.usual)


TASK = (
    Option("task", "what is made harder", tuple(TASKS), "copying-delay"),
    Option("values", "of the delay, bits or length", int, otherwise="those of the thesis", many=True),
    Option("m", "how many symbols are shown; not for copying-bits", int, 30),
    Option("n", "how many kinds of symbols there are", int, 32),
    Option("delay", "of copying-bits", int, 0),
    Option("depths", "numbers of layers", int, (1, 2, 3), many=True),
    Option("sizes", "budgets of parameters", int, otherwise=typed(SIZES), many=True),
    Option("widths", "channels of a layer, instead of --sizes", int, otherwise="the widest within --sizes", many=True),
    Option("count", "how parameters are counted for --sizes", COUNTS, "true"),
)
SEARCH = (
    Option("method", "which values are tried", METHODS, "bisection"),
    Option("misses", "ascending: how many values in a row must fail", int, 2),
    Option("verify-above", "not ascending: how many values above the first failure are tried", int, 1),
    Option("at-once", "how many values of a network are tried at a time", int, 1),
    Option("rates", "learning rates; the best counts", float, (1e-4, 3e-4, 1e-3), many=True),
    Option("seeds", "how many runs of each rate", int, 3),
    Option("enough", "end a value as soon as so many runs have solved it", int, otherwise="all runs, to their end"),
    Option("above", "the test accuracy that counts as solved", float, 0.99),
    Option("network-seconds", "of computing, at most, for each network", float, otherwise="no limit"),
    Option("seconds", "at most, for the whole search", float, otherwise="no limit"),
    Option("tune", "choose the rates of each network by so many short runs of Optuna", int, otherwise="--rates"),
    Option("tune-iterations", "of these runs", int, otherwise="a tenth of --iterations"),
)
TRAINING = (
    Option("iterations", "of a run, at most", int, 200_000),
    Option("check-every", "iterations from one look at held-out examples to the next", int, 1000),
    Option("patience", "looks without an improvement that are put up with, twice", int, 10),
    Option("goal", "accuracy on held-out examples that ends a run; 0 for none", float, 0.995),
    Option("batch", "sequences of an iteration", int, 128),
    Option("validate", "held-out examples of a look", int, 5000),
    Option("test", "held-out examples at the end", int, 10_000),
    Option("lr-recurrent", "of the orthogonal matrices", float, otherwise="a tenth of the rate, at most 1e-4"),
    Option("update", "of the orthogonal matrices", UPDATES, "cayley"),
    Option("seed", "the first of the seeds", int, 0),
)
PLACES = (
    Option("executor", "this process, or several", EXECUTORS, "replicas"),
    Option("workers", "with --executor processes: how many", int, otherwise="one a core, or one an accelerator"),
    Option("replicas", "how many runs are trained side by side at most", int, 16),
    Option("ray", "a Ray cluster instead: auto, an address, or local to start one here", str),
    Option("gpus-per-task", "with --ray: such as 0.25", float, otherwise="1 on an accelerator"),
    Option("cpus-per-task", "with --ray", float, 1.0),
)
#: All that a search is told; the rest says where it is computed.
OF_THE_SEARCH = (*TASK, *SEARCH, *TRAINING)
USUAL = {option.key: option.usual for option in (*OF_THE_SEARCH, *PLACES)}
#: What to do about a wrong value of each.
REMEDIES = {f"--{option.name}": f"Leave it out for {option.default}." for option in (*OF_THE_SEARCH, *PLACES)}


def capacity_parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "Find the hardest task that orthogonal networks of some depths and sizes solve. Every run has a folder; what "
        "was interrupted goes on with --resume --out FOLDER.",
        "statewise memory capacity --task copying-delay --m 5 --n 8 --sizes 1024 --depths 1 2 --method galloping "
        "--enough 1 --check-every 200 --seconds 600",
        "statewise memory capacity --resume --out runs/capacity",
    )
    groups = {"task and networks": TASK, "search": SEARCH, "training": TRAINING, "where": PLACES}
    for title, options in groups.items():
        add = made.add_argument_group(title).add_argument
        for option in options:
            words: dict[str, Any] = {"help": f"{option.says} (default: {option.default})"}
            words |= {"choices": option.kind} if isinstance(option.kind, tuple) else {"type": option.kind}
            words |= {"nargs": "+"} if option.many else {}
            add(f"--{option.name}", **words)
    add = made.add_argument
    add("--device", **DEVICE)
    add("--out", type=str, default="runs/capacity", help="the folder of the search and of all its runs")
    add("--resume", action="store_true", help="go on with the search in --out, which knows its options")
    add("--quiet", action="store_true", help="print the table only")
    add("--json", **JSON)
    return made


def given(chosen: Any, options: tuple[Option, ...]) -> dict[str, Any]:
    """What was typed of some options.

    Args:
        chosen: as the parser gives them.
        options: of which.
    """
    # Not by attribute: the namespace has methods of its own, such as "values" and "update".
    return {option.key: chosen[option.key] for option in options if chosen[option.key] is not None}


def refuse_idle_search(there: Mapping[str, Any]) -> None:
    """Refuse options of the search that have no effect beside others.

    Args:
        there: those that were typed.
    """
    task, method = there.get("task", USUAL["task"]), there.get("method", USUAL["method"])
    bits, tunes, ascends = task == "copying-bits", "tune" in there, method == "ascending"
    rules = (
        (bits, "m", f"--task {task}", "another task", "Leave it out: the bits (--values) say how many are shown."),
        (not bits, "delay", f"--task {task}", "--task copying-bits", "Leave it out, or see --values."),
        ("widths" in there, "sizes", "--widths", "one of the two", "Leave one of them out."),
        ("widths" in there, "count", "--widths", "--sizes", "Leave one of them out: --widths are not counted."),
        (not ascends, "misses", f"--method {method}", "--method ascending", "Leave it out, or see --verify-above."),
        (ascends, "verify_above", f"--method {method}", "another method", "Leave it out, or see --misses."),
        (tunes, "rates", "--tune", "one of the two", "Leave one of them out: --tune chooses the rates."),
        (tunes, "lr_recurrent", "--tune", "one of the two", "Leave one of them out: --tune chooses this rate too."),
        (
            not tunes,
            "tune_iterations",
            "no --tune",
            "--tune with it",
            "Say how many runs (--tune 32), or leave it out.",
        ),
    )
    _refuse(rules, there)


def refuse_idle_places(there: Mapping[str, Any]) -> None:
    """Refuse options on where to compute that have no effect beside others.

    Args:
        there: those that were typed.
    """
    ray, executor = "ray" in there, there.get("executor", USUAL["executor"])
    crowd, alone = "Leave one of them out: a cluster has workers of its own.", executor != "processes"
    rules = (
        (ray, "executor", "--ray", "one of the two", "Leave one of them out."),
        (ray, "workers", "--ray", "one of the two", crowd),
        (alone, "workers", f"--executor {executor}", "--executor processes with it", "Add that, or leave it out."),
        (not ray, "gpus_per_task", "no --ray", "--ray with it", "Name a cluster (--ray auto), or leave it out."),
        (not ray, "cpus_per_task", "no --ray", "--ray with it", "Name a cluster (--ray auto), or leave it out."),
    )
    _refuse(rules, there)


def _refuse(rules: tuple[tuple[bool, str, str, str, str], ...], there: Mapping[str, Any]) -> None:
    for idle, key, beside, wanted, remedy in rules:
        if idle and key in there:
            got = f"{typed(there[key])} with {beside}"
            raise ArgumentError(where=f"--{key.replace('_', '-')}", got=got, wanted=wanted, remedy=remedy)
