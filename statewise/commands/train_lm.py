"""``statewise train lm``: a language model on a text of one's own."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands.as_json import result_of
from statewise.commands.compare import COMPARED, STD, asked_before, compare
from statewise.commands.curves import curves
from statewise.commands.fields import add_fields, from_fields
from statewise.commands.shared import DEVICE, JSON, check_new, command_parser, find_device
from statewise.commands.texts import read_text
from statewise.commands.way_on import way_on
from statewise.data import Corpus
from statewise.errors import ArgumentError
from statewise.models import LanguageModelConfig
from statewise.train.fit import TrainingResult, train_language_model
from statewise.train.run import RunFolder
from statewise.train.settings import TrainingSettings
from statewise.train.telling import say
from statewise.transforms import Noise

#: For a text of a person's own, on a small machine; the dataclasses' own defaults are those of the paper.
DEFAULTS: Mapping[str, Any] = {"epochs": 20, "batch": 20, "lr": 20.0}
ADAPTIVE_LR = 0.002  # of an optimiser that scales its steps itself


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "Train a word-level language model, validate it after every epoch, and test the best one. Killed "
        "at any moment, it goes on with --resume. Under torchrun the batch is divided among the processes.",
        "statewise train lm --data sample --hidden 32 --epochs 3 --out runs/sample",
        "statewise train lm --data book.txt --noise gaussian --gamma 0.5 --out runs/book",
        "statewise train lm --data book.txt --noise gaussian --compare",
        "statewise train lm --resume --out runs/book --epochs 40",
    )
    add = made.add_argument
    add("--data", type=str, help="a folder with train.txt, valid.txt and test.txt, a text file, ptb, wikitext-2, or "
        "sample for the embedded text")  # fmt: skip
    add("--out", type=str, help="the folder of the run; else runs/ and the name of the text")
    add("--resume", action="store_true", help="go on with the run in the folder, with its settings; more --epochs "
        "than it had continue it")  # fmt: skip
    add("--compare", action="store_true", help="train the same model without noise, with dropout and with the noise, "
        "and tell by how much each beats the others")  # fmt: skip
    add("--limit", type=int, help="the most words of the vocabulary; the others are unknown")
    add("--min-count", type=int, help="words that the text has less often are unknown")
    add("--lower", action="store_true", help="make letters lower case")
    add("--device", **DEVICE)
    add("--tensorboard", action="store_true", help="write curves for TensorBoard too (the extra 'track')")
    add("--quiet", action="store_true", help="print the result only")
    add("--json", **JSON)
    add_fields(made, LanguageModelConfig, title="the model", defaults={"gamma": f"a standard deviation of {STD}"})
    add_fields(made, TrainingSettings, title="its training", defaults=DEFAULTS)
    return made


def run(asked: Any, console: Console) -> dict[str, Any]:
    """Train, and tell what to do next.

    Args:
        asked: as the parser gives them.
        console: where to print.
    """
    device = find_device(asked.device)
    there = _there(asked) if asked.resume else {}
    source = _source(asked, there)
    corpus = read_text(source["data"], **{name: value for name, value in source.items() if name != "data"})
    config = config_of(asked, there.get("model", {}))
    settings = settings_of(asked, there.get("training", {}))
    refuse_idle(asked, settings)
    folder = _folder(asked, corpus)
    told = None if asked.quiet else console
    options: dict[str, Any] = {"device": device, "resume": asked.resume, "source": source}
    region = way_on("statewise train lm", folder, console)
    if asked.compare:
        drawn = {"tensorboard": asked.tensorboard}
        with way_on("statewise train lm --compare", folder, console, told=COMPARED):
            found = compare(config, settings, corpus, folder, console=console, told=told, **drawn, **options)
        return result_of(folder, within=found)
    check_new(folder, asked.resume)
    say(told, describe_run(config, settings, corpus, device, folder))
    with region, curves(folder, wanted=asked.tensorboard) as write:
        result = train_language_model(config, settings, corpus, folder, console=told, on_epoch=write, **options)
    _tell(console, result, settings)
    return result_of(folder)


def config_of(asked: Any, there: Mapping[str, Any]) -> LanguageModelConfig:
    """The model: what was given, else what the run in the folder has, else the defaults.

    Args:
        asked: the options.
        there: the model of a run that goes on.
    """
    given = from_fields(LanguageModelConfig, vars(asked))
    if "hidden" in there:
        there = {**there, "hidden": tuple(there["hidden"])}
    if "noise" in given and given["noise"] != there.get("noise"):
        there = {**there, "gamma": None}  # it was the other law's
    whole = {**there, **given}
    law = whole.get("noise")
    if law is not None and whole.get("gamma") is None:
        whole["gamma"] = Noise.from_std(law, STD).gamma
    return LanguageModelConfig(**whole)


def settings_of(asked: Any, there: Mapping[str, Any]) -> TrainingSettings:
    """How it is trained: what was given, else what the run in the folder has, else the defaults.

    Args:
        asked: the options.
        there: the settings of a run that goes on.
    """
    whole = {**there, **from_fields(TrainingSettings, vars(asked))}
    usual = DEFAULTS if whole.get("optimizer", "sgd") == "sgd" else {**DEFAULTS, "lr": ADAPTIVE_LR}
    return TrainingSettings(**{**usual, **whole})


def refuse_idle(asked: Any, settings: TrainingSettings) -> None:
    """Refuse options of mixing where nothing is mixed.

    Args:
        asked: the options.
        settings: how it is trained.
    """
    for name in ("mixup_alpha", "mixup_rho") if settings.mixup == "none" else ():
        if getattr(asked, name) is not None:
            raise ArgumentError(
                where=f"--{name.replace('_', '-')}",
                got=getattr(asked, name),
                wanted="no such option without --mixup",
                remedy="It would do nothing: leave it out.",
            )


def describe_run(
    config: LanguageModelConfig, settings: TrainingSettings, corpus: Corpus, device: torch.device, folder: Path
) -> str:
    """A run in two lines, before it begins."""
    widths = " and ".join(map(str, config.hidden))
    noise = f"{config.noise} noise {config.gamma:g} ({config.placement})" if config.noise else "no noise"
    noise += "" if settings.mixup == "none" else f", {settings.mixup} mixup"
    text = f"{corpus.name}: {len(corpus.train):,} tokens to train on, {len(corpus.vocabulary):,} words"
    return f"{text}\n{config.cell} of {widths} units, {noise}; {settings.epochs} epochs on {device}, in {folder}"


def _there(asked: Any) -> dict[str, Any]:
    """What the run that goes on was told; nothing if there is none yet."""
    if not asked.out:
        raise ArgumentError(where="--resume", got="no --out", wanted="the folder of the run: --out runs/NAME")
    folder = Path(asked.out)
    if asked.compare:
        return asked_before(folder)
    return RunFolder(folder).config() if (folder / "config.json").exists() else {}


def _source(asked: Any, there: Mapping[str, Any]) -> dict[str, Any]:
    """Where the text is, and how it is read."""
    before = there.get("source", {})
    data = asked.data or before.get("data")
    if data is None:
        raise ArgumentError(
            where="--data",
            got="nothing",
            wanted="a text",
            remedy="Name a folder with train.txt, valid.txt and test.txt, or one text file with a sentence a line; "
            "--data sample takes the embedded text.",
        )
    if Path(data).expanduser().exists():
        data = str(Path(data).expanduser().resolve())
    return {
        "data": data,
        "limit": asked.limit if asked.limit is not None else before.get("limit"),
        "min_count": asked.min_count if asked.min_count is not None else before.get("min_count", 1),
        "lower": asked.lower or before.get("lower", False),
    }


def _folder(asked: Any, corpus: Corpus) -> Path:
    return Path(asked.out or f"runs/{corpus.name}{'-compared' if asked.compare else ''}")


def _tell(console: Console, result: TrainingResult, settings: TrainingSettings) -> None:
    folder = shlex.quote(str(result.folder))
    say(console, f"{result} ({result.seconds:.0f} s)")
    more: str | None = f"--epochs {2 * result.epochs}"
    if result.epochs < settings.epochs:
        say(console, f"Stopped early, after {result.epochs} of {settings.epochs} epochs.")
        # More epochs would change nothing, more patience does where no other rule has ended the run.
        patient = settings.patience is not None and not settings.stop_non_monotone
        more = f"--patience {2 * (settings.patience or 1)}" if patient else None
    say(console, "Next:")
    say(console, f"  statewise evaluate {folder} --text FILE")
    say(console, f"  statewise generate {folder} --length 30")
    if more is not None:
        say(console, f"  statewise train lm --resume --out {folder} {more}")
