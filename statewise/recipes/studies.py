"""Small studies: cases with settings and a seed, each computed once; what many recipes of generated data share."""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from rich.console import Console
from torch import nn

from statewise.files import read_object, write_atomically
from statewise.recipes.lines import Line, Made, Mean, SeededRun, group, names_of, override
from statewise.recipes.recipe import Recipe
from statewise.recipes.request import Request
from statewise.train.metrics import strict
from statewise.train.stored import as_written
from statewise.train.telling import say
from statewise.train.tensor_file import write_tensors

MODEL, RESULT = "model.safetensors", "result.json"
_TOLD = 4  # how many numbers of a case are told along the way

_WANTED = "what an earlier run of the recipe came to"
_REMEDY = "Remove it: it is made again."


@dataclass(frozen=True, kw_only=True)
class StudyCase(SeededRun):
    """One thing to be computed; its settings are a dataclass with a seed.

    Attributes:
        said: settings that its line, or an option, says: changed by --set, it would be another line than its name says.
    """

    said: ClassVar[frozenset[str]] = frozenset()

    @property
    def recorded(self) -> dict[str, Any]:
        """The settings, as a file holds them."""
        return {"settings": asdict(self.settings)}

    @property
    def settable(self) -> frozenset[str]:
        """What can be overridden."""
        return names_of(self.settings) - self.said

    def overridden(self, values: Mapping[str, Any]) -> Any:
        """The same with other settings.

        Args:
            values: by name.
        """
        return replace(self, settings=override(self.settings, values))


@dataclass(frozen=True, kw_only=True)
class Computed:
    """What a case came to.

    Args:
        found: numbers, texts and lists of them by name, as a JSON file can hold them.
        network: what was trained, if anything was; it is kept.
        files: texts to be kept beside the numbers, by the name of their file.
        final: whether that is the last word; else the same command tries again.
    """

    found: Mapping[str, Any]
    network: nn.Module | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    final: bool = True


@dataclass(frozen=True, kw_only=True)
class Studied(Made):
    """A finished case.

    Args:
        found: numbers, texts and lists of them, by name.
        smoke: whether it was only tried out, so that nothing can be claimed of it.
    """

    found: Mapping[str, Any] = field(default_factory=dict)
    smoke: bool = False

    def __str__(self) -> str:
        plain = {name: value for name, value in self.found.items() if type(value) in (int, float)}
        told = [f"{name.replace('_', ' ')} {_short(value)}" for name, value in list(plain.items())[:_TOLD]]
        return ", ".join([*told, f"{self.seconds:.1f} s"])

    def numbers(self) -> dict[str, Any]:
        """What was measured."""
        return dict(self.found)


class StudyMaker:
    """Computes one case, or finds it computed.

    Args:
        compute: what a case comes to, given what it is made on.
        folder: where the results go, each in a folder of its own.
        console: where to tell of the progress; None for silence.
        data: what the cases are made on.
        kind: of the finished cases.
        smoke: whether they are only tried out.
    """

    def __init__(
        self,
        compute: Callable[[Any, Any], Computed],
        folder: Path,
        console: Console | None,
        *,
        data: Any = None,
        kind: type[Studied] = Studied,
        smoke: bool = False,
    ) -> None:
        self.compute, self.folder, self.console, self.kind, self.smoke = compute, folder, console, kind, smoke
        self.data: Any = {} if data is None else data

    def make(self, step: StudyCase, number: str) -> tuple[Any, bool]:
        """What a case came to, and whether it was there.

        Args:
            step: what is asked.
            number: such as 2/5.
        """
        place, told = self.folder / step.name, strict(step.recorded, "settings")
        path = place / RESULT
        there = read_object(path, wanted=_WANTED, remedy=_REMEDY) if path.exists() else {}
        if there.get("told") == told and there.get("final", True):
            with as_written(path, _WANTED):
                return self._made(step, there), True
        say(self.console, f"[{number}] {step.name}")
        began = time.monotonic()
        computed = self.compute(step, self.data)
        found, network = strict(dict(computed.found), "result"), computed.network
        parameters = 0 if network is None else sum(parameter.numel() for parameter in network.parameters())
        whole = {"told": told, "found": found, "parameters": parameters, "seconds": round(time.monotonic() - began, 3)}
        whole |= {} if computed.final else {"final": False}
        place.mkdir(parents=True, exist_ok=True)
        if network is not None:
            write_tensors(place / MODEL, network.state_dict(), told)
        for name, text in computed.files.items():
            write_atomically(place / name, text)
        # Last, so that what has a result is whole.
        write_atomically(path, json.dumps(whole, indent=2, allow_nan=False) + "\n")
        return self._made(step, whole), False

    def _made(self, step: StudyCase, there: Mapping[str, Any]) -> Studied:
        return self.kind(
            name=step.name,
            line=step.line,
            seed=step.settings.seed,
            seconds=there["seconds"],
            parameters=there["parameters"],
            found=there["found"],
            smoke=self.smoke,
        )


class Study(Recipe):
    """A recipe of such cases: one for each size, row and seed.

    Attributes:
        case: of which class they are.
        kind: of which class they are when finished.
    """

    data = "generated"
    epochs = 0
    paces = {}  # noqa: RUF012
    curve = ("", "")
    case: type[StudyCase] = StudyCase
    kind: type[Studied] = Studied

    @abstractmethod
    def settings(self, line: Line, *, smoke: bool) -> Any:
        """The settings of a line, a dataclass; the seed is the request's.

        Args:
            line: with row and size.
            smoke: whether it is only tried out.
        """

    @abstractmethod
    def compute(self, case: Any, data: Any) -> Computed:
        """What a case comes to.

        Args:
            case: what is asked.
            data: what :meth:`load` gave.
        """

    def load(self, request: Request, *, data: Path | str | None, device: torch.device) -> Any:
        """What the cases are made on, if it is not generated by each for itself.

        Args:
            request: what is asked.
            data: where the data set is; None for the usual places.
            device: where to compute.
        """
        return {}

    def steps(self, request: Request) -> list[Any]:
        return [
            self.case(line=line, settings=replace(self.settings(line, smoke=request.smoke), seed=seed))
            for line in self.lines(request)
            for seed in range(request.seeds or 1)
        ]

    def lines(self, request: Request) -> list[Line]:
        """The lines of the table, in order.

        Args:
            request: what is asked, completed.
        """
        return [Line(row=row, size=size) for size in request.sizes for row in request.rows]

    def maker(
        self,
        request: Request,
        folder: Path,
        *,
        data: Path | str | None,
        device: torch.device,
        console: Console | None,
    ) -> StudyMaker:
        loaded = self.load(request, data=data, device=device)
        given = self.given(loaded, request, folder, device, console)
        return StudyMaker(self.compute, folder, console, data=given, kind=self.kind, smoke=request.smoke)

    def given(self, loaded: Any, request: Request, folder: Path, device: torch.device, console: Console | None) -> Any:
        """What :meth:`compute` is given: what was loaded, and by studies that need it, where they are made.

        Args:
            loaded: what :meth:`load` gave.
            request: what is asked.
            folder: of the study.
            device: where to compute.
            console: where to tell of the progress; None for silence.
        """
        return loaded

    def describe(self, data: Any) -> dict[str, Any]:
        return {"name": self.data}


def means(measured: Sequence[Studied]) -> dict[tuple[str, str], dict[str, Mean]]:
    """The mean of each number over the seeds, by size and row.

    Args:
        measured: finished runs.
    """
    return {
        (line.size, line.row): {
            name: Mean.of([float(run.found[name]) for run in runs])
            for name, value in runs[0].found.items()
            if isinstance(value, int | float)
        }
        for line, runs in group(measured).items()
    }


def verdicts(claims: Sequence[tuple[str, bool | None]]) -> list[str]:
    """Claims as sentences of notes.

    Args:
        claims: what is claimed, and whether it holds; None where what was found does not tell.

    >>> verdicts([("2 > 1", True), ("1 > 2", False), ("x > 2", None)])
    ['2 > 1: holds.', '1 > 2: DOES NOT HOLD.', 'x > 2: undecided.']
    """
    words = {True: "holds", False: "DOES NOT HOLD", None: "undecided"}
    return [f"{text}: {words[holds]}." for text, holds in claims]


def _short(number: float) -> str:
    """Whole numbers as they are, others with four digits."""
    return str(number) if isinstance(number, int) else f"{number:.4g}"
