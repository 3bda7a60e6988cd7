"""``statewise train classify --automaton``: an exact automaton of labelled words, and the network that computes it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from statewise.automata import witness
from statewise.commands.fields import from_fields
from statewise.commands.judged import tell_sets
from statewise.commands.labelled import Labelled, read_examples
from statewise.data import Images
from statewise.engine.threads import one_thread
from statewise.errors import ArgumentError, RunFolderError
from statewise.models import ClassifierConfig, SequenceClassifier
from statewise.train import ClassifierSettings, Judged, save_classifier
from statewise.train.classify_data import OnDevice
from statewise.train.harden import AUTOMATON, Hardening, LearntAutomaton, learn_automaton
from statewise.train.settings import as_json
from statewise.train.tasks import measure
from statewise.train.telling import say

#: What of the training of a network the learning of an automaton takes over.
TAKEN = ("seed", "lr", "clip")
BATCH = 512


def learn(asked: Any, source: Mapping[str, Any], console: Console) -> Path:
    """Learn an automaton, keep the network that computes it as a run, and tell whether it is exact; gives its folder.

    Args:
        asked: the options.
        source: where the examples are.
        console: where to print.
    """
    hardening = hardening_of(asked)
    examples = read_examples(source, seed=hardening.seed, hold=False)
    if isinstance(examples.train, Images):
        raise ArgumentError(where="--automaton", got="pictures", wanted="words: an automaton reads symbols")
    config = replace(AUTOMATON, **from_fields(ClassifierConfig, vars(asked)))
    folder = Path(asked.out or f"runs/{examples.name}-automaton")
    if (folder / "config.json").exists():  # what is learnt in one go cannot go on
        got, wanted = "a folder with a run", "a new or empty one"
        raise RunFolderError(where=str(folder), got=got, wanted=wanted, remedy="Name another folder (--out).")
    with one_thread():
        learnt = learn_automaton(examples.train, config, hardening=hardening, console=None if asked.quiet else console)
        judged = judge(learnt.model, examples)
    training = {**as_json(hardening), "steps_taken": learnt.steps, "exact": learnt.exact}
    save_classifier(folder, learnt.model, examples.train, training=training, judged=judged, source=source)
    if asked.quiet:
        say(console, learnt.message)
    tell_sets(console, judged, examples.train.classes)
    if examples.language is not None and examples.language.minimal is not None:
        say(console, compared(learnt, examples))
    say(console, f"Next:\n  statewise extract {shlex.quote(str(folder))}")
    return folder


def hardening_of(asked: Any) -> Hardening:
    """How the automaton is learnt, from the options; those that have no meaning here are refused.

    Args:
        asked: the options.
    """
    given = from_fields(ClassifierSettings, vars(asked))
    idle = [f"--{name.replace('_', '-')}" for name in given if name not in TAKEN]
    idle += [f"--{name}" for name in ("resume", "tensorboard") if getattr(asked, name)]
    if idle:
        raise ArgumentError(
            where="--automaton",
            got=f"{' and '.join(idle)} with it",
            wanted=f"of the training only {', '.join(f'--{name}' for name in TAKEN)}",
            remedy="Leave the others out: it has rules of its own for noise, lengths and when to stop.",
        )
    if asked.device not in ("auto", "cpu"):
        raise ArgumentError(
            where="--automaton",
            got=f"--device {asked.device}",
            wanted="a CPU",
            remedy="Leave it out: its networks are small, and learnt on one core.",
        )
    return Hardening(**{name: given[name] for name in TAKEN if given.get(name) is not None})


def judge(model: SequenceClassifier, examples: Labelled) -> dict[str, Judged]:
    """What a network does on all sets, as it is and as an automaton.

    Args:
        model: the network.
        examples: the sets.
    """
    found = {}
    held = {} if examples.valid is examples.train else {"valid": examples.valid}
    for name, each in {"train": examples.train, **held, **examples.tests}.items():
        here = OnDevice(each, torch.device("cpu"))
        found[name] = Judged(measure(model, here, batch=BATCH), measure(model, here, batch=BATCH, hard=True))
    return found


def compared(learnt: LearntAutomaton, examples: Labelled) -> str:
    """Whether the machine has the language that the words were drawn from; the learning did not look at it.

    Args:
        learnt: what was learnt.
        examples: whose language is known.
    """
    assert examples.language is not None
    assert examples.language.minimal is not None
    word = witness(learnt.machine, examples.language.minimal)
    if word is None:
        return f"It is the minimal automaton of {examples.language.name}: they agree on every word."
    shown = repr(word) if word else "the empty word"
    return (
        f"It is not the automaton of {examples.language.name}: the shortest word that they judge otherwise is {shown}."
    )
