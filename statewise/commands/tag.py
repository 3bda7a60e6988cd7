"""``statewise train tag``: a tagger of words, and whether mixing sentences helps on the user's own."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands.as_json import result_of
from statewise.commands.compare import COMPARED, asked_before
from statewise.commands.curves import curves
from statewise.commands.fields import add_fields, from_fields
from statewise.commands.shared import DEVICE, JSON, absolute, check_new, command_parser, find_device
from statewise.commands.tag_compare import VARIANTS, compare_mixing
from statewise.commands.tagged import ENCODING, FILES, Tagged, add_reading, find_vectors, read_sets
from statewise.commands.way_on import way_on
from statewise.data import WordVectors
from statewise.engine.threads import one_thread
from statewise.errors import ArgumentError, RunFolderError
from statewise.models import TaggerConfig
from statewise.train import RunFolder, TaggerResult, TaggerSettings, train_tagger
from statewise.train.tag_folder import TASK
from statewise.train.telling import say

#: For sentences of a person's own, on a small machine; the dataclasses' own defaults are those of the paper.
MODEL: Mapping[str, Any] = {"hidden": 100}
TRAINING: Mapping[str, Any] = {"epochs": 30, "batch": 16, "bucket": 10, "optimizer": "adam", "lr": 0.005}
SGD_LR = 0.1  # of the paper, which trains by plain gradients
SMALL = 128  # units up to which one thread is faster than several
_WORD_DROPOUT = f"{TaggerConfig.word_dropout:g}, but 0 with mixing"  # for the help
_ENCODINGS = ("bioes", "iob2", "iob1")
_SOURCE = ("data", *FILES, "encoding", "vectors")
_OF_MIXING = ("alpha", "rho", "pairing", "lengths", "crf_mode")
_PLACES = ("data", "valid", "test", "context", "vectors")  # which of them may be files


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "Train a tagger, which gives every word of a sentence a tag: names in a text, parts of speech. After every "
        "epoch it is validated, and the best one is tested. Killed at any moment, it goes on with --resume.",
        "statewise train tag --data sample --epochs 3 --out runs/sample-tags",
        "statewise train tag --data names.conll --mixup through-time --out runs/names",
        "statewise train tag --data names.conll --compare",
        "statewise train tag --resume --out runs/names --epochs 60",
    )
    add = made.add_argument
    add("--data", type=str, help="a file of tagged words: a word a line and its tag in another column, a blank line "
        "after each sentence (.conll and others), or .conllu, .jsonl, .csv, .tsv; or conll2003; or sample for "
        "synthetic sentences")  # fmt: skip
    add("--valid", type=str, help="a file to choose the best model by; else a tenth of the sentences is held back, but "
        "not with --keep last")  # fmt: skip
    add("--test", type=str, nargs="+", help="files to test the model on")
    add_reading(made)
    add("--encoding", choices=_ENCODINGS, help=f"the scheme in which spans are learnt (default: {ENCODING}); predict "
        "writes that of the files")  # fmt: skip
    add("--vectors", type=str, help="word vectors to begin with: a file as GloVe writes it, an .npz, or glove for "
        "those of the benchmark; else they are learnt")  # fmt: skip
    add("--context", type=str, nargs="+", help="files with a further vector for each word, one file for each of "
        "--data, --valid and --test in this order (.npz or .safetensors)")  # fmt: skip
    add("--compare", action="store_true", help="train the same tagger without mixing and with each kind of it, and "
        "tell by how much each is better")  # fmt: skip
    add("--out", type=str, help="the folder of the run; else runs/ and the name of the file")
    add("--resume", action="store_true", help="go on with the run in the folder, with its settings; more --epochs than "
        "it had continue it, unless the rate falls to the last one")  # fmt: skip
    add("--device", **DEVICE)
    add("--tensorboard", action="store_true", help="write curves for TensorBoard too (the extra 'track')")
    add("--quiet", action="store_true", help="print the result only")
    add("--json", **JSON)
    add_fields(made, TaggerConfig, title="the model", defaults={**MODEL, "word_dropout": _WORD_DROPOUT})
    add_fields(made, TaggerSettings, title="its training", defaults=TRAINING)
    return made


def run(asked: Any, console: Console) -> dict[str, Any]:
    """Train, and tell what to do next.

    Args:
        asked: the options.
        console: where to print.
    """
    if asked.compare and asked.mixup is not None:
        raise ArgumentError(where="--compare", got="--mixup with it", wanted="neither or one: every kind is compared")
    device = find_device(asked.device)
    there = _there(asked) if asked.resume else {}
    settings = settings_of(asked, there.get("training", {}))
    if asked.compare:
        replace(settings, mixup="input")  # what cannot be mixed is refused before anything is trained
    config, mixed = models_of(asked, there)
    config = config if settings.mixup == "none" else mixed
    source = source_of(asked, there)
    refuse_idle(asked, config, settings, vectors="vectors" in source)
    sets = read_sets(source, seed=settings.seed, valid=settings.keep == "best", test=asked.compare)
    source["scheme"] = sets.scheme  # in which predictions are written
    folder = Path(asked.out or f"runs/{sets.name}{'-compared' if asked.compare else ''}")
    check_taken(folder, asked)
    told = None if asked.quiet else console
    words = (sentence for each in sets.all for sentence in each.sentences)
    vectors = find_vectors(source.get("vectors"), words)
    options: dict[str, Any] = {"vectors": vectors, "context": sets.context}
    options |= {"device": device, "resume": asked.resume, "source": source}
    say(told, describe_run(config, settings, sets, device, folder, vectors))
    few = device.type == "cpu" and config.hidden <= SMALL
    command, kept = (
        ("statewise train tag --compare", COMPARED) if asked.compare else ("statewise train tag", "config.json")
    )
    with one_thread(few), way_on(command, folder, console, told=kept):
        if asked.compare:
            options |= {"mixed": mixed, "told": told, "drawn": asked.tensorboard}
            found = compare_mixing(config, settings, sets, folder, console=console, **options)
            return result_of(folder, within=next(iter(found.values())))
        with curves(folder, wanted=asked.tensorboard) as write:
            parts = (sets.train, sets.valid, sets.tests)
            result = train_tagger(config, settings, *parts, folder, console=told, on_epoch=write, **options)
    _tell(console, result, settings, spans=sets.scheme != "none")
    return result_of(folder)


def models_of(asked: Any, there: Mapping[str, Any]) -> tuple[TaggerConfig, TaggerConfig]:
    """The tagger as it is trained without mixing, and with: unless the rate is given, that is without word dropout.

    Both at once regularise too much; Karamzade et al. 2020 leave word dropout out where sentences are mixed. A run that
    goes on keeps what it has.

    Args:
        asked: the options.
        there: what the run that goes on was told.
    """
    given, before = from_fields(TaggerConfig, vars(asked)), there.get("model", {})
    config = TaggerConfig(**{**MODEL, **before, **given})
    if "word_dropout" in given:
        return config, config
    return config, replace(config, **(there.get("mixed", {}) if before else {"word_dropout": 0.0}))


def settings_of(asked: Any, there: Mapping[str, Any]) -> TaggerSettings:
    """How it is trained: what was given, else what the run in the folder has, else the defaults.

    Args:
        asked: the options.
        there: the settings of a run that goes on.
    """
    whole = {**there, **from_fields(TaggerSettings, vars(asked))}
    usual = TRAINING if whole.get("optimizer", TRAINING["optimizer"]) != "sgd" else {**TRAINING, "lr": SGD_LR}
    return TaggerSettings(**{**usual, **whole})


def source_of(asked: Any, there: Mapping[str, Any]) -> dict[str, Any]:
    """Where the sentences are, and how they are read.

    Args:
        asked: the options.
        there: what the run that goes on was told.
    """
    before = there.get("source", {})
    found = {name: getattr(asked, name) or before.get(name) for name in _SOURCE}
    found = {name: value for name, value in found.items() if value}
    if "data" not in found:
        raise ArgumentError(
            where="--data",
            got="nothing",
            wanted="tagged sentences",
            remedy="Name a file with a word and its tag a line; --data sample takes synthetic ones.",
        )
    return {name: absolute(value) if name in _PLACES else value for name, value in found.items()}


def refuse_idle(asked: Any, config: TaggerConfig, settings: TaggerSettings, *, vectors: bool) -> None:
    """Refuse options that would do nothing.

    Args:
        asked: the options.
        config: the model.
        settings: how it is trained.
        vectors: whether word vectors are given.
    """
    mixed = asked.compare or settings.mixup != "none"
    idle = dict.fromkeys(_OF_MIXING, (mixed, "without --mixup"))
    if mixed:
        idle["crf_mode"] = (config.head == "crf", f"with --head {config.head}")
    idle["finetune"] = (vectors, "without --vectors")
    idle["patience"] = (settings.keep == "best", f"with --keep {settings.keep}")
    for name, (heard, why) in idle.items():
        if getattr(asked, name) is not None and not heard:
            where, remedy = f"--{name.replace('_', '-')}", "It would do nothing: leave it out."
            raise ArgumentError(where=where, got=getattr(asked, name), wanted=f"no such option {why}", remedy=remedy)


def check_taken(folder: Path, asked: Any) -> None:
    """Refuse a folder with a run that nobody wants to go on with.

    Args:
        folder: that was named.
        asked: the options.
    """
    if asked.compare:
        check_new(folder, asked.resume, within=tuple(VARIANTS))
    else:
        check_new(folder, asked.resume)


def describe_run(
    config: TaggerConfig,
    settings: TaggerSettings,
    sets: Tagged,
    device: torch.device,
    folder: Path,
    vectors: WordVectors | None = None,
) -> str:
    """A run in two lines, before it begins."""
    held = "" if sets.valid is None else f", {len(sets.valid):,} to choose by"
    sizes = f"{len(sets.train):,} sentences to train on{held}"
    schemes = " as ".join(dict.fromkeys((sets.scheme, sets.train.scheme)))
    kinds = f"{len(sets.train.tag_names)} tags ({schemes})"
    ways = "both ways" if config.bidirectional else "one way"
    network = f"{config.cell} of {config.layers} x {config.hidden} units {ways}, {config.head}"
    dropped = "" if config.word_dropout else " without word dropout"
    mixed = "" if settings.mixup == "none" else f", {settings.mixup} mixup{dropped}"
    known = ""
    if vectors is not None:
        words = {word for each in sets.all for sentence in each.sentences for word in sentence}
        known = f"; vectors for {sum(vectors.lookup(word) >= 0 for word in words):,} of {len(words):,} words"
    return f"{sets.name}: {sizes}; {kinds}{known}\n{network}{mixed}; {settings.epochs} epochs on {device}, in {folder}"


def _there(asked: Any) -> dict[str, Any]:
    """What the run that goes on was told; nothing if there is none yet."""
    if not asked.out:
        raise ArgumentError(where="--resume", got="no --out", wanted="the folder of the run: --out runs/NAME")
    folder = Path(asked.out)
    if not asked.compare and (folder / COMPARED).exists():
        got, wanted = "a comparison", "the folder of one run"
        raise RunFolderError(where=str(folder), got=got, wanted=wanted, remedy="This is a comparison: add --compare.")
    if not (folder / (COMPARED if asked.compare else "config.json")).exists():
        if asked.data is None:
            got, wanted = "no run here", "the folder of a run, or --data to begin one"
            raise RunFolderError(where=str(folder), got=got, wanted=wanted, remedy="Look at the spelling of --out.")
        return {}
    if asked.compare:
        return asked_before(folder)
    told = RunFolder(folder).config()
    if told.get("task") != TASK:
        got, wanted = f"a run of the task {told.get('task')!r}", "a run of statewise train tag"
        raise RunFolderError(where=str(folder), got=got, wanted=wanted, remedy="Name another folder (--out).")
    return told


def _tell(console: Console, result: TaggerResult, settings: TaggerSettings, *, spans: bool) -> None:
    folder = shlex.quote(str(result.folder))
    tests = RunFolder(result.folder).metrics()[-1]["tests"]
    for name, measured in {**({} if result.valid is None else {"valid": result.valid}), **result.tests}.items():
        trust = f", calibration error {100 * tests[name]['ece']:.2f} %" if name in tests else ""
        # Of tags without spans F1 is the accuracy.
        told = str(measured) if spans else f"accuracy {100 * measured.accuracy:.2f} %, loss {measured.loss:.4f}"
        say(console, f"{name}: {told}{trust}")
    say(console, f"Kept after epoch {result.best_epoch} of {result.epochs} ({result.seconds:.0f} s).")
    say(console, "Next:")
    say(console, f"  statewise predict {folder} FILE")
    say(console, f"  statewise evaluate {folder} --data FILE")
    if settings.plans_ahead:
        say(console, "  A longer run is a new one (--out): how the rate falls was planned to the last epoch.")
    elif result.epochs < settings.epochs:
        say(console, f"  statewise train tag --resume --out {folder} --patience {2 * (settings.patience or 1)}")
    else:
        say(console, f"  statewise train tag --resume --out {folder} --epochs {2 * result.epochs}")
