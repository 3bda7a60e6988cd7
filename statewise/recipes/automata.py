"""Learning automata, each once, and what they are worth against the true ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from statewise.automata import MooreMachine, save_machine, to_svg, witness
from statewise.data import Sequences
from statewise.files import read_object, write_atomically
from statewise.models import ClassifierConfig
from statewise.recipes.lines import Line, Made, names_of, override
from statewise.train.harden import Hardening, LearntAutomaton, learn_automaton
from statewise.train.metrics import strict
from statewise.train.settings import as_json
from statewise.train.stored import as_written
from statewise.train.telling import say

RESULT, MACHINE, PICTURE = "result.json", "machine.json", "machine.svg"

_WANTED = "what an earlier run of the recipe came to"
_REMEDY = "Remove it: it is made again."


@dataclass(frozen=True)
class Task:
    """A language to be learnt.

    Args:
        target: its minimal automaton; only the judgement looks at it.
        train: words to learn from.
        valid: other words, for the judgement.
    """

    target: MooreMachine
    train: Sequences
    valid: Sequences


@dataclass(frozen=True, kw_only=True)
class AutomatonCase:
    """One automaton to be learnt.

    Args:
        line: where its numbers belong.
        config: the network.
        hardening: how it is trained; its seed is that of the words too.
    """

    line: Line
    config: ClassifierConfig
    hardening: Hardening
    after: None = None

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.line.name}-seed{self.hardening.seed}"

    @property
    def recorded(self) -> dict[str, Any]:
        """Network and settings, as a file holds them."""
        return {"model": as_json(self.config), "settings": asdict(self.hardening)}

    @property
    def settable(self) -> frozenset[str]:
        """What can be overridden."""
        return names_of(self.config) | names_of(self.hardening)

    def overridden(self, values: Mapping[str, Any]) -> AutomatonCase:
        """The same with other settings.

        Args:
            values: by name.
        """
        return replace(self, config=override(self.config, values), hardening=override(self.hardening, values))

    def as_made(self, made: Made) -> AutomatonCase:
        """Itself; nothing begins with it.

        Args:
            made: what it came to.
        """
        return self


@dataclass(frozen=True, kw_only=True)
class Learnt(Made):
    """What learning one automaton came to.

    Args:
        found: numbers by name; see :func:`judge`.
    """

    found: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        told = "the true machine" if self.found["recovered"] else f"another machine (on {self.found['witness']!r})"
        states, accuracy = self.found["states"], self.found["accuracy"]
        return f"{told}, {states} states, {accuracy:.2%} of the training words, {self.seconds:.1f} s"

    def numbers(self) -> dict[str, Any]:
        """What was measured."""
        return dict(self.found)


class AutomatonMaker:
    """Learns one automaton, or finds it learnt.

    Args:
        task: gives the language of a case.
        folder: where the machines go, each in a folder of its own.
        console: where to tell of the progress; None for silence.
    """

    def __init__(self, task: Callable[[AutomatonCase], Task], folder: Path, console: Console | None) -> None:
        self.task, self.folder, self.console = task, folder, console
        self.data: dict[str, dict[str, int]] = {}

    def make(self, step: AutomatonCase, number: str) -> tuple[Learnt, bool]:
        """What learning came to, and whether it was there.

        Args:
            step: what is asked.
            number: such as 2/5.
        """
        task, place = self.task(step), self.folder / step.name
        self.data[step.name] = {"states": len(task.target), "train": len(task.train), "valid": len(task.valid)}
        told = strict(step.recorded, "settings")
        path = place / RESULT
        there = read_object(path, wanted=_WANTED, remedy=_REMEDY) if path.exists() else {}
        if there.get("told") == told:
            with as_written(path, _WANTED):
                return _learnt(step, there["found"]), True
        say(self.console, f"[{number}] {step.name}")
        learnt = learn_automaton(task.train, step.config, hardening=step.hardening)
        found = strict(judge(learnt, task), "result")
        place.mkdir(parents=True, exist_ok=True)
        save_machine(learnt.machine, place / MACHINE)
        write_atomically(place / PICTURE, to_svg(learnt.machine, title=step.name))
        # Last, so that what has a result is whole.
        write_atomically(path, json.dumps({"told": told, "found": found}, indent=2, allow_nan=False) + "\n")
        return _learnt(step, found), False


def judge(learnt: LearntAutomaton, task: Task) -> dict[str, Any]:
    """What a learnt automaton is worth, as numbers that a file can hold.

    Args:
        learnt: what came out.
        task: with the true machine.
    """
    differs, card = witness(learnt.machine, task.target), learnt.extraction.card
    words = [task.valid.text(index) for index in range(len(task.valid))]
    right = np.mean(learnt.machine.classify(words) == task.valid.labels)
    return {
        "recovered": differs is None,
        "witness": differs if differs is None or isinstance(differs, str) else " ".join(differs),
        "exact": learnt.exact,
        "accuracy": learnt.accuracy,
        "valid_accuracy": float(right),
        "soft_accuracy": learnt.soft_accuracy,
        "steps": learnt.steps,
        "states": card.minimal_states,
        "target_states": len(task.target),
        "used_states": card.used_states,
        "temperature": card.temperature,
        "certified_temperature": card.certified_temperature,
        "certified": card.certified,
        "seconds": round(learnt.seconds, 3),
    }


def _learnt(step: AutomatonCase, found: Mapping[str, Any]) -> Learnt:
    rest = {name: value for name, value in found.items() if name != "seconds"}
    return Learnt(name=step.name, line=step.line, seed=step.hardening.seed, seconds=found["seconds"], found=rest)
