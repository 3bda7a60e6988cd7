"""``statewise compare``: which regularizer helps on a person's own data, and by how much."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands.compare_table import drawn, next_steps, print_comparison, table_of
from statewise.commands.shared import DEVICE, JSON, command_parser, find_device, split_list
from statewise.commands.way_on import way_on
from statewise.errors import ArgumentError, MissingExtraError
from statewise.files import write_atomically
from statewise.lineup import Asked, Comparison, Told, compare_on, go_on, recognise, registry
from statewise.lineup.jobs import adaptor_of
from statewise.lineup.recognise import IN_WORDS, KINDS, SAMPLES
from statewise.lineup.state import EPOCHS, STATE
from statewise.models.config import CELLS
from statewise.report.figures_lineup import plot_differences
from statewise.train.run import system_errors
from statewise.train.telling import say

TABLE, PICTURE = "table.md", "comparison.png"
MODEL, TRAINING = ("hidden", "layers", "cell"), ("lr", "batch")
#: What may be said of files; each kind of data listens to some.
READING = (
    *("label", "text", "group", "unit", "limit", "truncate", "min_count", "lower"),
    *("token", "tag", "sentence", "scheme", "repair", "comments", "form", "sequence", "time", "features"),
)
_DRAWN = ("seeds", "seed", "epochs", "minutes", "lineup", "kind", "valid", "test")


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "Find out which regularizer helps on data of your own, and by how much. Dropout, noise, zoneout, mixup, "
        "centroids and others are trained beside a plain network, in several strengths and with several seeds; the "
        "worse strengths are dropped on the way, and the rest is tested once. Killed at any moment, it goes on with "
        "--resume.",
        "statewise compare sample",
        "statewise compare reviews.csv --minutes 30",
        "statewise compare names.conll --lineup none,variational,mixup-input --epochs 30",
        "statewise compare --resume --out runs/compare-reviews",
    )
    add = made.add_argument
    add("data", type=str, nargs="?", help="a text, or a folder with train.txt, valid.txt and test.txt; tagged words "
        "(.conll, .conllu); labelled texts (.csv, .tsv, .jsonl); sequences of numbers; or one of "
        f"{', '.join(SAMPLES)}, which are embedded")  # fmt: skip
    add("--kind", choices=KINDS, help="what the data is, where its first rows do not say")
    add("--valid", type=str, help="a file to choose by; else a part of the data")
    add("--test", type=str, help="a file to report on; else a part of the data")
    add("--lineup", type=str, help=f"who takes part, with commas: some of {', '.join(registry('lm'))}; else all")
    add("--epochs", type=int, help=f"of each run that is not dropped (default: {EPOCHS}, unless --minutes)")
    add("--minutes", type=float, help="that training may take, instead of --epochs")
    add("--seeds", type=int, help="how often each candidate is trained (default: 3)")
    add("--seed", type=int, help="the first of them, which also divides the data (default: 0)")
    add("--out", type=str, help="the folder of the comparison; else runs/compare-NAME")
    add("--resume", action="store_true", help="go on with the comparison in the folder, as it was asked for")
    add("--workers", type=int, help="processes, with one thread each; else one a core, or one for an accelerator")
    add("--device", **DEVICE)
    add("--json", **JSON)
    add("--quiet", action="store_true", help="print the result only")
    model = made.add_argument_group("the network and its training, the same for all")
    model.add_argument("--hidden", type=int, help="its width")
    model.add_argument("--layers", type=int, help="how many lie on each other (default: 1)")
    model.add_argument("--cell", choices=tuple(CELLS), help="of the recurrence")
    model.add_argument("--lr", type=float, help="the learning rate, which stays the same")
    model.add_argument("--batch", type=int, help="sequences of an update")
    _add_reading(made)
    return made


def _add_reading(made: ArgumentParser) -> None:
    add = made.add_argument_group("how files are read").add_argument
    add("--label", type=str, help="labelled data: the column of the labels, by name or by number from 0")
    add("--text", type=str, help="labelled texts: the column of the texts, likewise")
    add("--group", type=str, help="labelled texts: the column of what belongs together, such as a person; no group is "
        "both trained and tested on")  # fmt: skip
    add("--unit", type=str, help="labelled texts: what a step reads: words, characters, symbols (default: auto)")
    add("--limit", type=int, help="the most words that are known")
    add("--truncate", type=int, help="labelled texts: how many words of each are kept, the last ones")
    add("--min-count", type=int, help="text: words that it has less often are unknown (default: 2)")
    add("--lower", action="store_true", help="text: make letters lower case")
    add("--token", type=str, help="tagged words: the column of the words")
    add("--tag", type=str, help="tagged words: the column of the tags")
    add("--sentence", type=str, help="tagged words: the column that numbers the sentences of a table")
    add("--scheme", type=str, help="tagged words: iob1, iob2, bioes, bilou, or none (default: auto)")
    add("--repair", action="store_true", help="tagged words: read tags that cannot stand where they do as conlleval "
        "does")  # fmt: skip
    add("--comments", action="store_true", help="tagged words: leave out lines that begin with #")
    add("--form", type=str, help="numbers: whether a row of a table is a step (long) or a whole sequence (wide)")
    add("--sequence", type=str, help="numbers: the column that names the sequence of each row")
    add("--time", type=str, help="numbers: a column of times")
    add("--features", type=str, help="numbers: the columns of the numbers of a step, with commas")


def run(arguments: Any, console: Console) -> dict[str, Any]:
    """Compare, and tell what came of it and what to do next.

    Args:
        arguments: as the parser gives them.
        console: where to print.
    """
    told = None if arguments.quiet else console
    options: dict[str, Any] = {"workers": arguments.workers, "device": find_device(arguments.device), "console": told}
    if arguments.resume:
        folder = _folder_to_resume(arguments)
        with way_on("statewise compare", folder, told, told=STATE):
            found = go_on(folder, **options)
    else:
        asked, why = asked_of(arguments)
        folder = Path(arguments.out or f"runs/compare-{_name(asked.data)}").expanduser()
        say(told, f"{asked.data}: {IN_WORDS[asked.kind]}, since {why}; in {folder}")
        with way_on("statewise compare", folder, told, told=STATE):
            found = compare_on(asked, folder, why=why, **options)
    _keep(found)
    _tell(found, console, next_too=not arguments.quiet)
    return {"folder": str(found.folder), **found.document()}


def asked_of(arguments: Any) -> tuple[Asked, str]:
    """What is asked for, and by what its data was recognised.

    Args:
        arguments: the options.
    """
    if not arguments.data:
        raise ArgumentError(
            where="DATA",
            got="nothing",
            wanted="data to compare on",
            remedy=f"Name a file or a folder; {', '.join(SAMPLES)} are embedded.",
        )
    if arguments.epochs is not None and arguments.minutes is not None:
        raise ArgumentError(where="--minutes", got="--epochs with it", wanted="one of the two")
    found = recognise(arguments.data, arguments.kind)
    files = {part: str(path.resolve()) for part, path in found.files.items()}
    for part in ("valid", "test"):
        if given := getattr(arguments, part):
            if not files:
                raise ArgumentError(where=f"--{part}", got=given, wanted=f"no such option with {arguments.data}")
            files[part] = str(Path(given).expanduser().resolve())
    heard = adaptor_of(found.kind).readings
    reading = {name: value for name in READING if (value := getattr(arguments, name))}
    if strange := [name for name in reading if name not in heard]:
        option, listening = strange[0].replace("_", "-"), ", ".join(f"--{name.replace('_', '-')}" for name in heard)
        raise ArgumentError(
            where=f"--{option}", got=str(reading[strange[0]]), wanted=f"for {IN_WORDS[found.kind]}, some of {listening}"
        )
    told = Told(
        reading=reading,
        model={name: value for name in MODEL if (value := getattr(arguments, name)) is not None},
        training={name: value for name in TRAINING if (value := getattr(arguments, name)) is not None},
        seed=arguments.seed or 0,
    )
    minutes = arguments.minutes
    asked = Asked(
        data=files.get("train", arguments.data) if len(found.files) == 1 else str(arguments.data),
        kind=found.kind,
        files=files,
        told=told,
        lineup=split_list(arguments.lineup or ""),
        seeds=3 if arguments.seeds is None else arguments.seeds,
        epochs=arguments.epochs if arguments.epochs is not None or minutes is not None else EPOCHS,
        minutes=minutes,
    )
    return asked, found.why


def _folder_to_resume(arguments: Any) -> Path:
    if not arguments.out:
        raise ArgumentError(where="--resume", got="no --out", wanted="the folder of the comparison: --out runs/NAME")
    given = [name for name in (*_DRAWN, *MODEL, *TRAINING, *READING) if getattr(arguments, name)]
    if given or arguments.data:
        what = "DATA" if not given else f"--{given[0].replace('_', '-')}"
        remedy = "A comparison goes on as it was asked for; begin another one for something else (--out)."
        raise ArgumentError(where=what, got="--resume with it", wanted="--out alone", remedy=remedy)
    return Path(arguments.out).expanduser()


def _name(data: str) -> str:
    return Path(data).name.partition(".")[0] or "data"


def _keep(found: Comparison) -> None:
    """Write the table, and the picture where it can be drawn."""
    with system_errors(found.folder):
        write_atomically(found.folder / TABLE, table_of(found).markdown() + "\n")
    metric = found.metrics[0]
    ends = {
        line.name: (each.value, each.low, each.high)
        for line in found.lines
        for name, each in line.differences.items()
        if name == metric.name
    }
    if not ends:
        return  # the plain network alone was left
    called = f"{metric.name} against none{f', {metric.unit}' if metric.unit else ''}"
    try:
        plot_differences(ends, found.folder / PICTURE, title=found.folder.name, called=called)
    except MissingExtraError:
        return  # the terminal has one made of signs


def _tell(found: Comparison, console: Console, *, next_too: bool) -> None:
    print_comparison(found, console)
    for line in drawn(found, width=console.width):
        say(console, line)
    if not next_too:
        return
    say(console, f"The table lies in {found.folder / TABLE}; the best model by validation, {found.best_run}, in best/.")
    say(console, "Next:")
    readable = found.kind == "classify" and "centroids" in found.best
    for step in next_steps(found.kind, shlex.quote(str(found.folder / "best")), automaton=readable):
        say(console, f"  {step}")
