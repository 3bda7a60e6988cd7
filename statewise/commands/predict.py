"""``statewise predict``: what a trained model says of new data: tags, classes, next words, next values."""

from __future__ import annotations

import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands.predict_classes import predict_classes
from statewise.commands.predict_series import predict_next, predict_series
from statewise.commands.predict_tags import predict_tags
from statewise.commands.predict_words import predict_words
from statewise.commands.series_run import SERIES_CLASSES, kind_of_run
from statewise.commands.series_sets import add_reading
from statewise.commands.shared import DEVICE, command_parser, find_device
from statewise.commands.tagger_run import task_of
from statewise.data.tagged_read import KINDS
from statewise.engine.threads import one_thread
from statewise.errors import ArgumentError, DataError, RunFolderError
from statewise.files import atomic_file
from statewise.train.forecast_measure import FORECASTS
from statewise.train.language_folder import TASK as LANGUAGE
from statewise.train.tag_folder import TASK
from statewise.train.tasks import CLASSES
from statewise.train.telling import say

FORMATS = ("columns", "jsonl")
STANDARD_INPUT = ("-", "/dev/stdin")


class Served(NamedTuple):
    """How the runs of a kind are asked.

    Attributes:
        predict: gives a line for each answer.
        heard: options that not all kinds of runs listen to.
        what: of which there are so many.
    """

    predict: Callable[..., Iterator[str]]
    heard: tuple[str, ...]
    what: str


_OF_NUMBERS = ("form", "sequence", "label", "time", "kind")
_SERVED: Mapping[str, Served] = {
    TASK: Served(predict_tags, ("token", "sentence", "comments", "vectors", "context", "kind"), "sentences"),
    CLASSES.name: Served(predict_classes, ("text", "kind"), "texts"),
    LANGUAGE: Served(predict_words, ("text", "kind", "top"), "texts"),
    SERIES_CLASSES: Served(predict_series, _OF_NUMBERS, "sequences"),
    FORECASTS.name: Served(predict_next, (*_OF_NUMBERS, "steps", "samples", "seed"), "lines"),
}


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "Say what a trained model makes of new data: a tagger tags the words of sentences, a classifier names the "
        "classes of texts or of numeric sequences, a language model the words that may follow, a forecaster how "
        "sequences go on. Right answers that the file has too are not looked at.",
        "statewise predict runs/names new.txt --probabilities",
        "statewise predict runs/reviews reviews.csv --text review --out classes.tsv",
        "statewise predict runs/load load.csv --steps 12 --json",
        "echo Anna lives in Oslo | statewise predict runs/names - --json",
    )
    add = made.add_argument
    add("run", type=str, help="the folder of a run of statewise train tag, classify, series or lm")
    add("file", type=str, help="a text with a sentence a line and blanks between its words (.txt); or a word a line, "
        ".conllu, .jsonl, .csv, .tsv; numbers as in statewise train series; or - for standard input")  # fmt: skip
    add("--out", type=str, help="the file to write; else the result is printed")
    add("--format", choices=FORMATS, default="columns", help="columns with a tab between, or an object a line")
    add("--json", action="store_true", help="the same as --format jsonl")
    add("--probabilities", action="store_true", help="write how probable each tag is, or each class")
    add("--kind", choices=("text", *KINDS), help="what the file is, where its name does not say")
    add("--token", type=str, help="tagger: the column of the words, as in statewise train tag; else that of the run, "
        "where its files are alike")  # fmt: skip
    add("--sentence", type=str, help="tagger: the column that numbers the sentences of a table")
    add("--comments", action="store_true", help="tagger: leave out lines that begin with #")
    add("--vectors", type=str, help="tagger: a file with vectors of the words that the run has none for, from where "
        "its own are; or glove")  # fmt: skip
    add("--context", type=str, help="tagger: a file with the further vector of each word, if the run has such")
    add("--text", type=str, help="classifier, language model: the column of the texts, by name or by number from 0")
    add("--top", type=int, help="language model: how many words are told (default: 5)")
    add("--steps", type=int, help="forecaster: how many steps to go on (default: 1)")
    add("--samples", type=int, help="forecaster: in how many ways to go on, for the laws of later steps (default: 500)")
    add("--seed", type=int, help="forecaster: of these ways (default: 0)")
    add_reading(made, "numbers: ")
    add("--device", **DEVICE)
    return made


def run(arguments: Any, console: Console) -> None:
    """Predict, and print or write.

    Args:
        arguments: as the parser gives them.
        console: where to print.
    """
    task, device = kind_of_run(arguments.run, task_of(arguments.run)), find_device(arguments.device)
    if arguments.json:
        arguments.format = "jsonl"
    _refuse(arguments, task)
    with one_thread(device.type == "cpu"), _standard_input(arguments) as asked:
        lines = _SERVED[task].predict(asked, device=device)
        if arguments.out is None:
            console.file.writelines(lines)
            return
        count = _write(Path(arguments.out).expanduser(), lines)
    say(console, f"Written: {arguments.out}, {count:,} {_SERVED[task].what}")


def _refuse(arguments: Any, task: str) -> None:
    """Refuse runs of other kinds, and options that would do nothing."""
    if task not in _SERVED:
        raise RunFolderError(
            where=arguments.run,
            got=f"a run of the task {task!r}",
            wanted="a tagger, a classifier, a language model or a forecaster",
        )
    for served in _SERVED.values():
        for name in served.heard:
            if name not in _SERVED[task].heard and getattr(arguments, name):
                wanted = f"no such option for a run of the task {task!r}"
                raise ArgumentError(where=f"--{name}", got=str(getattr(arguments, name)), wanted=wanted)
    if arguments.out is not None and Path(arguments.out).expanduser().is_dir():
        raise ArgumentError(where="--out", got=f"{arguments.out}, which is a folder", wanted="a file to write")
    for name in ("file", "vectors", "context") if arguments.out is not None else ():
        if _same(arguments.out, getattr(arguments, name)):
            raise ArgumentError(
                where="--out", got=f"{arguments.out}, which is read", wanted="another file", remedy="Name a new one."
            )


def _same(one: str, other: str | None) -> bool:
    places = [Path(each).expanduser() for each in (one, other) if each is not None]
    return len(places) == 2 and all(place.is_file() for place in places) and places[0].samefile(places[1])


@contextmanager
def _standard_input(arguments: Any) -> Iterator[Any]:
    """The options, with a copy of standard input for the file where that is what is named: some are read twice."""
    if arguments.file not in STANDARD_INPUT:
        yield arguments
        return
    if sys.stdin is None:  # closed by whoever started the program
        wanted = "a text from standard input"
        raise DataError(where="standard input", got="nothing: it is closed", wanted=wanted, remedy="Name a file.")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "standard-input"
        with place.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield Namespace(**{**vars(arguments), "file": str(place), "kind": arguments.kind or "text"})
        except DataError as error:
            raise error.told(where=error.where.replace(str(place), "standard input")) from None


def _write(path: Path, lines: Iterable[str]) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with atomic_file(path, "w") as file:
        for line in lines:
            file.write(line)
            count += 1
    return count
