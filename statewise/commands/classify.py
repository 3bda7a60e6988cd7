"""``statewise train classify``: a classifier of sequences, whose states can be read."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands.as_json import result_of
from statewise.commands.automaton import learn
from statewise.commands.curves import curves
from statewise.commands.fields import add_fields, from_fields
from statewise.commands.for_certificate import ForCertificate, asked_for, callbacks_from, refuse_for_automaton
from statewise.commands.going_on import refuse_taken, told_before
from statewise.commands.judged import tell_sets
from statewise.commands.labelled import FILES, MADE, UNITS, WORDS, Labelled, read_examples
from statewise.commands.shared import DEVICE, JSON, absolute, command_parser, find_device
from statewise.commands.way_on import way_on
from statewise.data import Images
from statewise.data.images import BY
from statewise.engine.threads import one_thread
from statewise.errors import ArgumentError
from statewise.models import ClassifierConfig
from statewise.train import ClassifierResult, ClassifierSettings, train_classifier
from statewise.train.telling import say

#: What a person wants who names only the examples: states that can be read.
DEFAULTS: Mapping[str, Any] = {"centroids": (10,)}
#: For the words of a regular language: transitions that become hard, so that an automaton can be read off.
REGULAR: Mapping[str, Any] = {"transition": "noisy", "embedding": 8}
OF_MIXING = ("alpha", "rho", "pairing", "lengths")
MEMORY = ("lstm", "peephole")
SMALL = 128  # units up to which one thread is faster than several
DIFFERENT = 0.01  # by so much the automaton must err more often than the network to be worth a word


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "Train a classifier of sequences, validate it after every epoch, and test the best one. With centroids its "
        "states can be read, and without a memory it is an automaton. Killed at any moment, it goes on with --resume.",
        "statewise train classify --data sample --automaton --out runs/words",
        "statewise train classify --data reviews.csv --label sentiment --text review --out runs/reviews",
        "statewise train classify --data tomita:4 --epochs 30 --out runs/tomita",
        "statewise train classify --resume --out runs/reviews --epochs 40",
    )
    add = made.add_argument
    add("--data", type=str, help="a file with a label and a text a row (.tsv, .csv, .jsonl), or tomita:4, "
        "regex:(ab)*, parentheses, parentheses-small, palindromes, mnist, permuted-mnist, fashion-mnist, imdb, or "
        "sample for some words of a regular language")  # fmt: skip
    add("--valid", type=str, help="a file to choose the best model by; else a tenth of the examples is held back, "
        "but not with --automaton")  # fmt: skip
    add("--test", type=str, nargs="+", help="files to test the best model on")
    add("--label", type=str, help="the column of the labels in these files, by name or by number from 0; else the one "
        "called label, class, sentiment, target or y, or the first")  # fmt: skip
    add("--text", type=str, help="the column of the texts, likewise; else the one called text, sentence, review or "
        "content, or the last")  # fmt: skip
    add("--unit", type=str, help=f"what a step reads of a text: {', '.join(UNITS)}; auto takes words if texts have "
        "blanks, else characters; symbols stand between blanks and are all known")  # fmt: skip
    add("--limit", type=int, help="the most words that are known; the others are one")
    add("--truncate", type=int, help="how many words of a text are kept, the last ones")
    add("--alphabet", type=str, help="the symbols of regex:PATTERN, if they are more than it names")
    add("--by", choices=BY, help="what a step reads of a picture: pixels, one after the other, or whole rows (default: "
        "pixels)")  # fmt: skip
    add("--automaton", action="store_true", help="learn an exact automaton of the examples: noise that grows, lengths "
        "that grow, and new starts")  # fmt: skip
    add("--out", type=str, help="the folder of the run; else runs/ and the name of the examples")
    add("--resume", action="store_true", help="go on with the run in the folder, with its settings; more --epochs "
        "than it had continue it, unless rate or temperature fall to the last one")  # fmt: skip
    add("--device", **DEVICE)
    add("--tensorboard", action="store_true", help="write curves for TensorBoard too (the extra 'track')")
    add("--quiet", action="store_true", help="print the result only")
    add("--json", **JSON)
    add_fields(made, ClassifierConfig, title="the model", defaults=DEFAULTS)
    add_fields(made, ClassifierSettings, title="its training", defaults={})
    add_fields(made, ForCertificate, title="training for a certificate", defaults={})
    return made


def run(asked: Any, console: Console) -> dict[str, Any]:
    """Train, and tell what to do next.

    Args:
        asked: the options.
        console: where to print.
    """
    if asked.automaton:
        refuse_for_automaton(asked)
        return result_of(learn(asked, source_of(asked, {}), console))
    device = find_device(asked.device)
    there = _there(asked) if asked.resume else {}
    settings = ClassifierSettings(**{**there.get("training", {}), **from_fields(ClassifierSettings, vars(asked))})
    refuse_idle(asked, settings)
    source = source_of(asked, there)
    examples = read_examples(source, seed=settings.seed)
    config = config_of(asked, there.get("model", {}), examples)
    folder = Path(asked.out or f"runs/{examples.name}")
    refuse_taken(folder, resume=asked.resume)
    told = None if asked.quiet else console
    say(told, describe_run(config, settings, examples, device, folder))
    options: dict[str, Any] = {"device": device, "resume": asked.resume, "source": source, "console": told}
    options["callbacks"] = callbacks_from(asked, there, examples.train)
    few = device.type == "cpu" and config.hidden <= SMALL
    region = way_on("statewise train classify", folder, console)
    with one_thread(few), region, curves(folder, wanted=asked.tensorboard) as write:
        sets = (examples.train, examples.valid, examples.tests)
        result = train_classifier(config, settings, *sets, folder, on_epoch=write, **options)
    _tell(console, result, config, settings, examples)
    return result_of(folder)


def refuse_idle(asked: Any, settings: ClassifierSettings) -> None:
    """Refuse options of mixing where nothing is mixed.

    Args:
        asked: the options.
        settings: how it is trained.
    """
    for name in OF_MIXING if settings.mixup == "none" else ():
        if getattr(asked, name) is not None:
            raise ArgumentError(
                where=f"--{name}",
                got=getattr(asked, name),
                wanted="no such option without --mixup",
                remedy="It would do nothing: leave it out.",
            )


def source_of(asked: Any, there: Mapping[str, Any]) -> dict[str, Any]:
    """Where the examples are, and how they are read.

    Args:
        asked: the options.
        there: what the run that goes on was told.
    """
    for name in WORDS:
        value = getattr(asked, name)
        if value is not None and value < 1:
            raise ArgumentError(where=f"--{name}", got=value, wanted="a whole number >= 1")
    before = there.get("source", {})
    names = ("data", *FILES, *MADE)
    found = {name: getattr(asked, name) or before.get(name) for name in names}
    if found["data"] is None:
        raise ArgumentError(
            where="--data",
            got="nothing",
            wanted="labelled examples",
            remedy="Name a file with a label and a text a row; --data sample takes words of a regular language.",
        )
    found = {name: value for name, value in found.items() if value}
    for name in ("data", "valid"):
        if name in found:
            found[name] = absolute(found[name])
    return {**found, **({"test": [absolute(each) for each in found["test"]]} if "test" in found else {})}


def config_of(asked: Any, there: Mapping[str, Any], examples: Labelled) -> ClassifierConfig:
    """The model: what was given, else what the run in the folder has, else what suits the examples.

    Args:
        asked: the options.
        there: the model of a run that goes on.
        examples: what it shall classify.
    """
    given = from_fields(ClassifierConfig, vars(asked))
    if there:
        return ClassifierConfig(**{**there, "centroids": tuple(there["centroids"]), **given})
    usual = {**DEFAULTS, **(REGULAR if examples.language is not None else {})}
    by_norms = asked_for(asked)
    if by_norms is not None and by_norms.norms:
        usual["centroids"] = ()
    if isinstance(examples.train, Images):
        memory = given.get("cell") in MEMORY and not (by_norms is not None and by_norms.norms)
        usual["readout"] = "hc" if memory else "h"
    return ClassifierConfig(**{**usual, **given})


def describe_run(
    config: ClassifierConfig, settings: ClassifierSettings, examples: Labelled, device: torch.device, folder: Path
) -> str:
    """A run in two lines, before it begins."""
    sizes = f"{len(examples.train):,} examples to train on, {len(examples.valid):,} to choose by"
    kinds = f"{len(examples.train.classes)} classes, "
    if isinstance(examples.train, Images):
        kinds += f"{examples.train.steps:,} steps of {examples.train.features}"
    else:
        kinds += f"{len(examples.train.symbols):,} symbols"
    states = "no centroids"
    if any(config.centroids):
        counts = " and ".join(map(str, config.centroids_of_layers))
        states = f"{counts} centroids ({config.transition})"
    mixed = "" if settings.mixup == "none" else f", {settings.mixup} mixup"
    network = f"{config.cell} of {config.layers} x {config.hidden} units, {states}{mixed}"
    return f"{examples.name}: {sizes}; {kinds}\n{network}; {settings.epochs} epochs on {device}, in {folder}"


def _there(asked: Any) -> dict[str, Any]:
    """What the run that goes on was told; nothing if there is none yet."""
    if not asked.out:
        raise ArgumentError(where="--resume", got="no --out", wanted="the folder of the run: --out runs/NAME")
    return told_before(Path(asked.out))


def _tell(
    console: Console,
    result: ClassifierResult,
    config: ClassifierConfig,
    settings: ClassifierSettings,
    examples: Labelled,
) -> None:
    folder = shlex.quote(str(result.folder))
    sets = {"valid": result.valid, **result.tests}
    tell_sets(console, sets, examples.train.classes)
    say(console, f"Best after epoch {result.best_epoch} of {result.epochs} ({result.seconds:.0f} s).")
    say(console, "Next:")
    readable = any(config.centroids) and not isinstance(examples.train, Images)
    if readable and config.cell not in MEMORY:
        hard, soft = result.valid.hard, result.valid.soft
        if hard is not None and hard.error > soft.error + DIFFERENT:
            say(console, "  The automaton of the centroids errs more often than the network: --transition noisy helps.")
        say(console, f"  statewise extract {folder}")
    if result.epochs < settings.epochs:
        say(console, f"  statewise train classify --resume --out {folder} --patience {2 * (settings.patience or 1)}")
    elif not settings.plans_ahead:
        say(console, f"  statewise train classify --resume --out {folder} --epochs {2 * result.epochs}")
    else:
        say(console, "  A longer run is a new one (--out): how rate or temperature fall was planned to the last epoch.")
