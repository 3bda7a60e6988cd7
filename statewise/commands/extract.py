"""``statewise extract``: the automaton that a trained classifier computes, and how far it may be trusted."""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.automata import (
    ApproximateExtractionWarning,
    MooreMachine,
    UnfaithfulMachineWarning,
    all_words,
    count,
    extract,
    random_words,
    to_table,
    verify,
)
from statewise.automata.formats import to_json
from statewise.automata.words import number_of_words
from statewise.commands.shared import JSON, command_parser, require_classifier_run
from statewise.data import Text
from statewise.engine.threads import one_thread
from statewise.errors import ArgumentError, DataError, NotMemorylessError
from statewise.models import SequenceClassifier
from statewise.report import save_drawing
from statewise.train import load_classifier
from statewise.train.telling import say

#: How a machine can be written, and the ending of its file.
FORMATS = {"svg": ".svg", "png": ".png", "dot": ".dot", "json": ".json", "table": ".txt"}
USUAL = ("json", "svg")
CHECK = 1000
MOST_STATES, MOST_SYMBOLS = 40, 30  # that a table on a page has
MOST_DRAWN = 80  # states that a drawing has
SHORT, LONGEST = 2000, 50  # words that are counted where none are named: so many short ones, and random ones up to


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "Read the automaton of a trained classifier off its weights: exact for cells without a memory, whose states "
        "move among centroids. Prints its table, how far it may be trusted, and writes it into files.",
        "statewise extract runs/words",
        "statewise extract runs/words --format svg --out machine.svg",
        "statewise extract runs/reviews --count --words sentences.txt",
    )
    add = made.add_argument
    add("run", type=str, help="the folder of a run of statewise train classify")
    add("--format", choices=tuple(FORMATS), help=f"how it is written (default: {' and '.join(USUAL)})")
    add("--out", type=str, help="the file; else machine.svg and so on in the folder of the run")
    add("--words", type=str, help="a file with a word a line, to compare on and to count with; a class may stand "
        "before it, with a tab between")  # fmt: skip
    add("--check", type=int, default=CHECK, help="how many random words to check, beside all short ones")
    add("--count", action="store_true", help="count which state follows which while the network reads words: "
        "approximate, and the only way for cells with a memory")  # fmt: skip
    add("--json", **JSON)
    return made


def run(arguments: Any, console: Console) -> dict[str, Any]:
    """Read the machine, tell what it is worth, and write it.

    Args:
        arguments: as the parser gives them.
        console: where to print.
    """
    if arguments.check < 0:
        raise ArgumentError(where="--check", got=arguments.check, wanted="a whole number >= 0")
    targets = _targets(arguments)
    model, classes = _load(arguments.run)
    for target in targets:  # a folder that cannot be made is told before the work
        target.parent.mkdir(parents=True, exist_ok=True)
    words, labels = (None, None) if arguments.words is None else read_words(Path(arguments.words), model, classes)
    with one_thread(), warnings.catch_warnings():
        # What they say is printed.
        warnings.simplefilter("ignore", ApproximateExtractionWarning)
        warnings.simplefilter("ignore", UnfaithfulMachineWarning)
        machine, told = (
            _counted(model, words, classes, arguments.check)
            if arguments.count
            else _exact(model, words, labels, classes, folder=arguments.run)
        )
        checked = verify(model, machine, random_words=arguments.check)
    _show(console, machine)
    say(console, told)
    say(console, str(checked))
    written = []
    for target in targets:
        if target.suffix in (".svg", ".png") and len(machine) > MOST_DRAWN:
            say(console, f"Not drawn: {len(machine)} states; a drawing is readable up to about 30.")
            continue
        written.append(str(save_drawing(machine, target)))
        say(console, f"Written: {written[-1]}")
    return {
        "run": arguments.run,
        "told": told,
        "checked": str(checked),
        "written": written,
        "machine": json.loads(to_json(machine)),
    }


def read_words(
    path: Path, model: SequenceClassifier, classes: Sequence[str]
) -> tuple[list[list[str]], list[int] | None]:
    """The words of a file, one a line, and their classes where they have some.

    Args:
        path: the file.
        model: whose symbols they are of; symbols of several letters stand between blanks.
        classes: the names that may stand before a word.
    """
    symbols, numbers = model.symbols or (), {name: at for at, name in enumerate(classes)}
    letters = all(len(symbol) == 1 for symbol in symbols)
    words, labels = list[list[str]](), list[int]()
    for line, text in enumerate(Text(path=path).lines(), start=1):
        label, tab, word = text.rpartition("\t")
        if tab and label not in numbers:
            got, wanted = f"the class {label!r}", f"one of {', '.join(classes)}"
            raise DataError(where=f"{path}, line {line}", got=got, wanted=wanted)
        labels += [numbers[label]] if tab else []
        words.append(list(word) if letters else word.split())
        if strange := next((symbol for symbol in words[-1] if symbol not in symbols), None):
            got, wanted = f"the symbol {strange!r}", f"one of {', '.join(map(repr, symbols[:12]))}"
            raise DataError(where=f"{path}, line {line}", got=got, wanted=wanted)
    if not words or len(labels) not in (0, len(words)):
        got = f"{len(words)} words and {len(labels)} classes"
        raise DataError(where=str(path), got=got, wanted="a word a line, with classes before all of them or none")
    return words, labels or None


def _targets(arguments: Any) -> list[Path]:
    """The files to be written."""
    if arguments.out is None:
        kinds = [arguments.format] if arguments.format else USUAL
        return [Path(arguments.run) / f"machine{FORMATS[kind]}" for kind in kinds]
    path = Path(arguments.out)
    if arguments.format and path.suffix != FORMATS[arguments.format]:
        path = path.with_name(path.name + FORMATS[arguments.format])
    if path.suffix not in FORMATS.values():
        raise ArgumentError(where="--out", got=path.name, wanted=f"a name that ends in {', '.join(FORMATS.values())}")
    return [path]


def _load(folder: str) -> tuple[SequenceClassifier, tuple[str, ...]]:
    require_classifier_run(folder)
    model, told = load_classifier(folder)
    if model.symbols is None:
        raise NotMemorylessError(
            where=folder, got="a classifier of numbers", wanted="one of symbols: an automaton has an alphabet"
        )
    return model, tuple(told["examples"]["classes"])


def _exact(
    model: SequenceClassifier,
    words: list[list[str]] | None,
    labels: list[int] | None,
    classes: Sequence[str],
    *,
    folder: str,
) -> tuple[MooreMachine, str]:
    try:
        found = extract(model, words=words, labels=labels, classes=classes)
    except NotMemorylessError as error:
        remedy = _remedy(model, folder)
        raise NotMemorylessError(where="extract", got=error.got, wanted=error.wanted, remedy=remedy) from None
    told = [str(found.card)]
    if found.agreement is not None and found.agreement.soft_accuracy is not None:
        soft, hard = found.agreement.soft_accuracy, found.agreement.hard_accuracy
        told.append(f"accuracy on the words: {soft:.2%} as it is, {hard:.2%} at argmax")
    return found.machine, "\n".join(told)


def _remedy(model: SequenceClassifier, folder: str) -> str:
    if not any(model.config.centroids):
        return "Train with centroids: statewise train classify --centroids 10."
    if model.memoryless:
        return ""
    return f"statewise extract {shlex.quote(folder)} --count gives an approximate machine, by counting."


def _counted(
    model: SequenceClassifier, words: list[list[str]] | None, classes: Sequence[str], random: int
) -> tuple[MooreMachine, str]:
    if not any(model.config.centroids):
        raise NotMemorylessError(
            where="extract --count", got="no centroids", wanted="some, to be counted", remedy=_remedy(model, "")
        )
    found = count(model, _some_words(model.symbols or (), random) if words is None else words, classes=classes)
    told = (
        f"counted: {found.steps:,} steps, {found.ambiguity:.2%} of them elsewhere than most from the same state with "
    )
    told += f"the same symbol; {found.unseen} pairs of state and symbol were never seen"
    if found.approximate:
        told += f"\napproximate: {model.why_not_memoryless}"
    return found.machine, told


def _some_words(symbols: Sequence[str], random: int) -> list[Any]:
    longest = 0
    while longest < LONGEST and number_of_words(len(symbols), longest + 1) <= SHORT:
        longest += 1
    short = list(all_words(symbols, longest))
    return short + random_words(symbols, max(1, random), min_length=longest, max_length=LONGEST, seed=0)


def _show(console: Console, machine: MooreMachine) -> None:
    if len(machine) <= MOST_STATES and len(machine.alphabet) <= MOST_SYMBOLS:
        say(console, to_table(machine))
    else:
        say(console, f"A machine of {len(machine)} states over {len(machine.alphabet):,} symbols.")
