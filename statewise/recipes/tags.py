"""Making the runs of taggers, each once: what is finished is read, what was interrupted goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from statewise.data import TaggedSentences, WordVectors
from statewise.models import TaggerConfig
from statewise.recipes.lines import Made, SeededCase, override
from statewise.train import RunFolder, TaggerSettings, train_tagger
from statewise.train.run import differences
from statewise.train.settings import as_json, defaults_of
from statewise.train.stored import as_written
from statewise.train.tag import may_differ
from statewise.train.tag_folder import TASK, Tags, checksum_of, describe_sets, read_given, tagged_path
from statewise.train.telling import say


@dataclass(frozen=True)
class TagSets:
    """Sentences to train on, to choose by, and to report, and the vectors of their words.

    Args:
        train: what a tagger is trained on.
        valid: what the best epoch is chosen by; None where the last is kept.
        tests: what is reported, by name.
        vectors: of words; None for random ones, which are trained.
    """

    train: TaggedSentences
    valid: TaggedSentences | None
    tests: Mapping[str, TaggedSentences]
    vectors: WordVectors | None

    @property
    def counts(self) -> dict[str, Any]:
        """How many sentences each set has."""
        tests = {name: len(each) for name, each in self.tests.items()}
        return {"train": len(self.train), "valid": 0 if self.valid is None else len(self.valid), "tests": tests}


@dataclass(frozen=True, kw_only=True)
class TagCase(SeededCase):
    """One run: a tagger to be trained.

    Args:
        line: where its numbers belong.
        config: the model.
        settings: how it is trained.
    """

    config: TaggerConfig
    settings: TaggerSettings

    def overridden(self, values: Mapping[str, Any]) -> TagCase:
        """The same with other settings; what belongs to mixing only where something is mixed.

        Args:
            values: by name.
        """
        own = dict(values)
        if self.settings.mixup == "none":
            own = {name: value for name, value in own.items() if name not in ("mixup", "alpha", "rho")}
        return replace(self, config=override(self.config, own), settings=override(self.settings, own))


@dataclass(frozen=True, kw_only=True)
class Tagged(Made):
    """What one run of a tagger came to.

    Args:
        tests: what was measured on each test set.
        tagged: of each the right tags and those that it gave.
        extra: what else was looked at, such as spectra of the states.
    """

    tests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tagged: Mapping[str, tuple[Tags, Tags]] = field(default_factory=dict, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        parts = (f"{name} F1 {100 * one['f1']:.2f} % (loss {one['loss']:.4f})" for name, one in self.tests.items())
        return ", ".join(parts)

    def numbers(self) -> dict[str, Any]:
        """What was measured."""
        found: dict[str, Any] = {"tests": {name: dict(one) for name, one in self.tests.items()}}
        return {**found, **self.extra}


class TagMaker:
    """Makes one run of a tagger, or finds it made.

    Args:
        load: gives the sets; asked once.
        folder: where the runs are, each in a folder of its own.
        device: where to compute.
        console: where to tell of the progress; None for silence.
        look: what else to look at, given the folder of a finished run and the sets; None for nothing.
    """

    def __init__(
        self,
        load: Callable[[], TagSets],
        folder: Path,
        device: torch.device,
        console: Console | None,
        look: Callable[[Path, TagSets, torch.device], dict[str, Any]] | None = None,
    ) -> None:
        self.load, self.folder, self.device, self.console, self.look = load, folder, device, console, look
        self.data: dict[str, TagSets] = {}

    def make(self, step: TagCase, number: str) -> tuple[Tagged, bool]:
        """What a run came to, and whether it was there.

        Args:
            step: what is asked.
            number: such as 2/5.
        """
        if not self.data:
            self.data["sets"] = self.load()
        sets, place = self.data["sets"], self.folder / step.name
        there = finished(step, sets, place)
        if not there:
            say(self.console, f"[{number}] {step.name}")
            train_tagger(
                step.config,
                step.settings,
                sets.train,
                sets.valid,
                sets.tests,
                place,
                vectors=sets.vectors,
                device=self.device,
                resume=True,
                console=self.console,
            )
        extra = {} if self.look is None else self.look(place, sets, self.device)
        return _tagged(step, sets, place, extra), there


def finished(case: TagCase, sets: TagSets, folder: Path) -> bool:
    """Whether a run has all its epochs or ended by its own rule, and was tested on these sets.

    Args:
        case: what is asked.
        sets: the sentences.
        folder: of the run.
    """
    if not (folder / "config.json").exists():
        return False
    run = RunFolder(folder)
    there, records = run.config(), run.metrics()
    wanted = {"task": TASK, "model": as_json(case.config), "training": as_json(case.settings)}
    wanted |= {"data": describe_sets(sets.train, sets.valid, sets.tests)}
    wanted |= {} if sets.vectors is None else {"vectors": checksum_of(sets.vectors.vectors, words=sets.vectors.words)}
    free = tuple(name for name in may_differ(case.settings, vectors=True) if name != "training.patience")
    known = defaults_of(case.config, case.settings)
    other = differences({part: there.get(part) for part in wanted}, wanted, free, known)
    if other or not records or "tests" not in records[-1]:
        return False
    epochs = sum("epoch" in record for record in records)
    # A run that ended before the epochs it was told has ended by its own rule.
    return bool(epochs < there["training"]["epochs"] or epochs >= case.settings.epochs)


def _tagged(case: TagCase, sets: TagSets, folder: Path, extra: Mapping[str, Any]) -> Tagged:
    records = RunFolder(folder).metrics()
    with as_written(folder / "metrics.jsonl", "the records of a finished run"):
        curve, last = [dict(record) for record in records if "epoch" in record], records[-1]
        return Tagged(
            name=case.name,
            line=case.line,
            seed=case.settings.seed,
            tests=last["tests"],
            tagged={name: read_given(tagged_path(folder, name)) for name in sets.tests},
            extra=extra,
            best_epoch=last["best_epoch"],
            epochs=len(curve),
            seconds=last["seconds"],
            curve=curve,
            parameters=last["parameters"],
        )
