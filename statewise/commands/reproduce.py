"""``statewise reproduce``: a published table beside ours."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands.as_json import table_of
from statewise.commands.classify import SMALL
from statewise.commands.shared import DEVICE, JSON, command_parser, find_device, split_list
from statewise.engine.threads import one_thread
from statewise.errors import ArgumentError, MissingExtraError
from statewise.files import write_atomically
from statewise.recipes import RECIPES, Outcome, Request, find_recipe, reproduce
from statewise.recipes.examples import ExampleCase
from statewise.recipes.lines import Made, Step, group
from statewise.recipes.replica_studies import ReplicaStudy
from statewise.recipes.request import PLACEMENTS
from statewise.recipes.results import write_results
from statewise.recipes.studies import StudyCase
from statewise.report import Table, compare_with_published, plot_curves
from statewise.report.comparison import curves
from statewise.report.pictures import draw_pictures
from statewise.train.settings import PRECISIONS
from statewise.train.telling import say

PLOT = "curves.png"


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "Make a published table again, and print it beside ours. What is finished is not repeated, what "
        "was interrupted goes on, and more --epochs continue.",
        "statewise reproduce --list",
        "statewise reproduce noisin/table3 --scale smoke",
        "statewise reproduce state-regularized/tomita --seeds 1",
    )
    add = made.add_argument
    add("table", nargs="?", type=str, help="such as noisin/table3; --list shows them all")
    add("--list", action="store_true", help="show every table, what it needs and what it costs, and do nothing")
    add("--rows", type=str, default="", help="such as gaussian,dropout+gaussian, or all; else a telling few")
    add("--size", type=str, default="", help="of the network or of the data, such as medium, or all; else the first")
    add("--placement", type=str, default="", help=f"of the noise: {', '.join(PLACEMENTS)}; both is the first two")
    add("--epochs", type=int, help="passes over the training examples; else those of the recipe")
    add("--finetune", type=int, help="noisin/table5: the most epochs of fine-tuning; 0 for none")
    add("--seeds", type=int, help="how many runs of each row; else 1, of some tables 5 or 10")
    add("--count", type=int, help="state-regularized/tomita: how many random machines (default: 50)")
    add("--set", type=str, default="", help="other settings of model and training, such as hidden=64,lr=0.002")
    add("--precision", choices=PRECISIONS, default="tf32", help="of matrix products on an accelerator")
    add("--dynamic", choices=("old", "new"), default="old", help="noisin/table5: convention of dynamic evaluation")
    add("--jobs", type=int, default=1, help="how many runs at a time, each in a process with one thread")
    add("--device", **DEVICE)
    add("--scale", choices=("full", "smoke"), default="full", help="smoke: tiny networks on embedded data")
    add("--data", type=str, help="the folder of the data set; else STATEWISE_DATA, else ../shared/data")
    add("--out", type=str, help="the folder of the runs and results; else runs/ and the name of the table")
    add("--curves", action="store_true", help="print how the validation went along the way too")
    add("--quiet", action="store_true", help="print the table only")
    add("--json", **JSON)
    return made


def run(arguments: Any, console: Console) -> dict[str, Any]:
    """Make the table, or show the list.

    Args:
        arguments: as the parser gives them.
        console: where to print.
    """
    if arguments.list or arguments.table is None:
        if arguments.table is None and not arguments.list:
            raise ArgumentError(where="reproduce", got="no table", wanted=f"one of {', '.join(RECIPES)}, or --list")
        catalogue().print(console)
        return table_of(catalogue())
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ArgumentError(
            where="reproduce", got="several processes", wanted="one", remedy="Start it without torchrun, or once a row."
        )
    recipe, request, device = find_recipe(arguments.table), _request(arguments), find_device(arguments.device)
    planned = recipe.planned(recipe.complete(request))  # a slip is told before anything is made
    folder = Path(arguments.out or _folder(recipe.name, request))
    command = _command(arguments)

    def write(outcome: Outcome) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        write_results(outcome, folder, device=device, command=command)
        along = [curves(outcome).markdown()] if outcome.recipe.curve[0] else []
        parts = [compare_with_published(outcome).markdown(), *along, f"    {command}\n"]
        write_atomically(folder / "results.md", "\n\n".join(parts))

    told = None if arguments.quiet else console
    alone = not isinstance(recipe, ReplicaStudy)  # replicas are many, however small each is
    with one_thread(request.smoke or (alone and device.type == "cpu" and all(map(_small, planned)))):
        outcome = reproduce(
            recipe,
            request,
            folder,
            data=arguments.data,
            device=device,
            console=told,
            after_each=write,
            jobs=arguments.jobs,
        )
        write(outcome)
    compare_with_published(outcome).print(console)
    if outcome.recipe.train_curve or (arguments.curves and outcome.recipe.curve[0]):
        curves(outcome).print(console)
    say(console, _drawn(outcome, folder))
    found: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return {"folder": str(folder), **found}


def _small(step: Step) -> bool:
    """Whether a network is so small that one thread is faster than several."""
    if isinstance(step, StudyCase):
        return bool(getattr(step.settings, "hidden", 0) <= SMALL)
    return isinstance(step, ExampleCase) and step.config.hidden <= SMALL


def catalogue() -> Table:
    """Every table with what it needs and what its usual rows cost."""
    rows = []
    for recipe in RECIPES.values():
        for size in recipe.sizes:
            cost = recipe.cost(Request(sizes=(size,)))
            spent = (str(cost.runs), str(cost.epochs), _hours(cost.gpu), _hours(cost.cpu))
            rows.append((recipe.name, recipe.title, size, recipe.data, *spent))
    notes = (
        "The costs are those of training the usual rows for the recipe's epochs with the usual seeds: rough, for "
        "planning, and where no such run was made, guessed. Dynamic evaluation comes on top. Fewer --rows, --epochs "
        "and --seeds cost less in proportion; --scale smoke takes less than a minute and needs no data.",
        "Rows: " + "; ".join(f"{name}: {', '.join(recipe.rows)}" for name, recipe in RECIPES.items()),
    )
    return Table(
        columns=("table", "what", "size", "data", "runs", "epochs", "on an H200", "on 2 CPU cores"),
        rows=rows,
        left=4,
        notes=notes,
    )


def _request(arguments: Any) -> Request:
    both = arguments.placement == "both"
    return Request(
        rows=split_list(arguments.rows),
        sizes=split_list(arguments.size),
        placements=PLACEMENTS[:2] if both else split_list(arguments.placement),
        epochs=arguments.epochs,
        finetune=arguments.finetune,
        seeds=arguments.seeds,
        count=arguments.count,
        overrides=overrides(arguments.set),
        precision=arguments.precision,
        scale=arguments.scale,
        convention=arguments.dynamic,
    )


def overrides(text: str) -> tuple[tuple[str, Any], ...]:
    """The names and values of ``--set``.

    >>> overrides("hidden=64,lr=0.002,patience=none,cell=gru")
    (('hidden', 64), ('lr', 0.002), ('patience', None), ('cell', 'gru'))
    """
    found = {}
    for entry in split_list(text):
        name, sign, value = (part.strip() for part in entry.partition("="))
        if not (name and sign and value):
            raise ArgumentError(where="--set", got=entry, wanted="names and values, such as hidden=64,lr=0.002")
        found[name.replace("-", "_")] = _value(value)
    return tuple(found.items())


def _value(text: str) -> Any:
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _folder(name: str, request: Request) -> str:
    """Other settings have another folder, so that their runs do not meet."""
    other = "".join(f"-{key}={value}" for key, value in request.overrides)
    return f"runs/{name.replace('/', '-')}{'-smoke' if request.smoke else ''}{other}"


def _command(arguments: Any) -> str:
    """What to type to get the same again."""
    words = ["statewise", "reproduce", arguments.table]
    names = (
        "rows",
        "size",
        "placement",
        "epochs",
        "finetune",
        "seeds",
        "count",
        "set",
        "precision",
        "dynamic",
        "scale",
    )
    for name in (*names, "data"):
        value = getattr(arguments, name)
        if value not in (None, "") and (name != "dynamic" or arguments.table == "noisin/table5"):
            words += [f"--{name}", str(value)]
    if arguments.out:
        words += ["--out", arguments.out]
    return shlex.join(words)


def _drawn(outcome: Outcome, folder: Path) -> str:
    """Draw the curves if that is possible; says what is where."""
    number, called = outcome.recipe.curve
    drawn = _curves(outcome.measured, number)
    dashed = _curves(outcome.measured, "train_perplexity") if outcome.recipe.train_curve else None
    try:
        title = outcome.recipe.name + (" (smoke run)" if outcome.request.smoke else "")
        plots = [plot_curves(drawn, folder / PLOT, title=title, dashed=dashed, called=called)] if drawn else []
        plot = ", ".join(map(str, [*plots, *draw_pictures(outcome, folder)])) or "none"
    except MissingExtraError as error:
        plot = f"not drawn ({error})"
    return f"Results: {folder / 'results.md'}, {folder / 'results.json'}\nPlot: {plot}"


def _curves(measured: Sequence[Made], number: str) -> dict[str, list[float]]:
    """The curve of each line; of several seeds, that of the first."""
    lines = group([one for one in measured if one.curve])
    return {line.name: [float(record[number]) for record in runs[0].curve] for line, runs in lines.items()}


def _hours(hours: float) -> str:
    if hours < 1:
        return f"{hours * 60:.0f} min" if hours * 60 >= 1 else "< 1 min"
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.0f} days"
