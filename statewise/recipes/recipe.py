"""What every recipe has: a name, rows, runs to be made, and a price."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from statewise.errors import ArgumentError
from statewise.recipes.lines import Maker, Sheet, Step
from statewise.recipes.request import Request

SMOKE_EPOCHS = 3


@dataclass(frozen=True)
class Pace:
    """How long an epoch takes, or a run without epochs, roughly: for planning, not for comparing.

    Args:
        gpu: seconds on one H200.
        cpu: seconds on two cores of a CPU.
    """

    gpu: float
    cpu: float


@dataclass(frozen=True)
class Cost:
    """What a request costs.

    Args:
        runs: how many there are.
        epochs: of all of them together.
        gpu: hours on one H200.
        cpu: hours on two cores of a CPU.
    """

    runs: int
    epochs: int
    gpu: float
    cpu: float


class Recipe(ABC):
    """A published table or figure, and how to make it.

    Attributes:
        name: by which a person asks for it.
        title: what it shows.
        data: the data set that it needs; "generated" for none.
        rows: that it has.
        usual_rows: those that are made when none is named.
        sizes: of the network, or of the data.
        epochs: that the paper trained for, or that are enough; 0 for what is not trained by epochs.
        usual_seeds: how many runs of each row there are when nothing is said.
        paces: seconds of an epoch, by size; empty where runs have none.
        seconds: of such a run, roughly.
        options: what can be set beside the fields of models and settings, and its usual value.
        comparable: whether the published numbers belong to the same data.
        curve: of which number of an epoch's record the curves are told, and what it is called; empty for none.
    """

    name: str
    title: str
    data: str
    rows: tuple[str, ...]
    usual_rows: tuple[str, ...]
    sizes: tuple[str, ...]
    epochs: int
    paces: Mapping[str, Pace]
    seconds: float = 0.0
    usual_seeds = 1
    smoke_epochs = SMOKE_EPOCHS
    options: Mapping[str, Any] = {}
    comparable = True
    curve = ("valid_perplexity", "validation perplexity")
    train_curve = False  # whether its plot shows the training loss too

    @abstractmethod
    def steps(self, request: Request) -> Sequence[Step]:
        """The runs behind the rows asked for, in the order in which they are made."""

    @abstractmethod
    def maker(
        self,
        request: Request,
        folder: Path,
        *,
        data: Path | str | None,
        device: torch.device,
        console: Console | None,
    ) -> Maker:
        """Who makes the steps.

        Args:
            request: what is asked, completed.
            folder: where the runs go.
            data: where the data set is; None for the usual places.
            device: where to compute.
            console: where to tell of the progress; None for silence.
        """

    @abstractmethod
    def describe(self, data: Any) -> dict[str, Any]:
        """The data in numbers.

        Args:
            data: the maker's.
        """

    def sheet(self, measured: Sequence[Any], request: Request) -> Sheet:
        """The table's columns and rows; of language models the report knows them.

        Args:
            measured: the finished runs.
            request: what was asked.
        """
        raise NotImplementedError

    def notes(self, measured: Sequence[Any]) -> list[str]:
        """What is to be said of the numbers, a sentence each."""
        return []

    def made_with(self, request: Request, seeds: Sequence[int]) -> str:
        """Which seeds, and how exact products were, in a line.

        Args:
            request: what was asked.
            seeds: of the finished runs.
        """
        return f"Seeds: {', '.join(map(str, seeds)) or 'none'}. Products in {request.precision}."

    def complete(self, request: Request) -> Request:
        """The request with the recipe's own choices where it has none, all of them checked."""
        wanted = request.rows or self.usual_rows
        sizes = self.sizes if request.sizes == ("all",) else request.sizes or self.sizes[:1]
        # What is named twice is one run, and must not count as two seeds.
        request = replace(
            request,
            rows=tuple(dict.fromkeys(self.rows if wanted == ("all",) else wanted)),
            sizes=tuple(dict.fromkeys(sizes)),
            placements=tuple(dict.fromkeys(request.placements or ("recurrent",))),
            epochs=request.epochs or (self.smoke_epochs if request.smoke and self.epochs else self.epochs) or None,
            seeds=request.seeds or (1 if request.smoke else self.usual_seeds),
        )
        for option, given, known in (("rows", request.rows, self.rows), ("size", request.sizes, self.sizes)):
            for one in given:
                if one not in known:
                    raise ArgumentError(
                        where=f"--{option} of {self.name}", got=one, wanted=f"some of {', '.join(known)}, or all"
                    )
        if request.epochs and not self.epochs:
            raise ArgumentError(
                where=f"--epochs of {self.name}",
                got=request.epochs,
                wanted="nothing: it is not trained by epochs",
                remedy="Leave it out; --set steps=2000 says for how long at most.",
            )
        self._check_overrides(request)
        return request

    def planned(self, request: Request) -> list[Step]:
        """The steps with what the request sets otherwise.

        Args:
            request: what is asked, completed.
        """
        return [step.overridden(dict(request.overrides)) for step in self.steps(request)]

    def option(self, request: Request, name: str) -> Any:
        """One of ``options``, as the request or the recipe has it.

        Args:
            request: what is asked.
            name: of the option.
        """
        return dict(request.overrides).get(name, self.options[name])

    def cost(self, request: Request) -> Cost:
        """What a full request costs, roughly.

        Args:
            request: what is asked; see :meth:`complete`.
        """
        steps = self.steps(self.complete(request))
        if not self.paces:
            took = [self.pace_of(step) for step in steps]
            hours = {place: sum(getattr(pace, place) for pace in took) / 3600 for place in ("gpu", "cpu")}
            return Cost(runs=len(steps), epochs=0, **hours)
        cases: list[Any] = [step for step in steps if hasattr(step, "settings")]
        paces = [(case.settings.epochs, self.paces[case.line.size]) for case in cases]
        return Cost(
            runs=len(cases),
            epochs=sum(epochs for epochs, _ in paces),
            gpu=sum(epochs * pace.gpu for epochs, pace in paces) / 3600,
            cpu=sum(epochs * pace.cpu for epochs, pace in paces) / 3600,
        )

    def pace_of(self, step: Any) -> Pace:
        """How long a run takes that has no epochs.

        Args:
            step: which.
        """
        return Pace(self.seconds, self.seconds)

    def _check_overrides(self, request: Request) -> None:
        if not request.overrides:
            return
        known = frozenset(self.options).union(*(step.settable for step in self.steps(request)))
        for name, value in request.overrides:
            if name not in known:
                raise ArgumentError(
                    where=f"--set of {self.name}", got=name, wanted=f"some of {', '.join(sorted(known))}"
                )
            usual = self.options.get(name)
            if usual is not None and type(value) is not type(usual):
                raise ArgumentError(where=f"--set {name}", got=value, wanted=f"such as {usual}")
        self.planned(request)  # values are checked by what they are given to
