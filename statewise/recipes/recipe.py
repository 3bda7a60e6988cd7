"""What every recipe has: a name, rows, runs to be made, and a price."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from statewise.data import Corpus, find_data_set, read_corpus, sample_corpus
from statewise.errors import ArgumentError
from statewise.recipes.cases import Case, Measured, Request, Step
from statewise.train.settings import TrainingSettings

SMOKE_EPOCHS = 3


@dataclass(frozen=True)
class Pace:
    """How long an epoch takes, roughly: for planning, not for comparing.

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
        data: the data set that it needs.
        rows: that it has.
        usual_rows: those that are made when none is named.
        sizes: of the network.
        epochs: that the paper trained for.
        paces: seconds of an epoch, by size.
    """

    name: str
    title: str
    data: str
    rows: tuple[str, ...]
    usual_rows: tuple[str, ...]
    sizes: tuple[str, ...]
    epochs: int
    paces: Mapping[str, Pace]
    train_curve = False  # whether its plot shows the training loss too

    @abstractmethod
    def steps(self, request: Request) -> list[Step]:
        """The runs behind the rows asked for, in the order in which they are made."""

    def notes(self, measured: Sequence[Measured]) -> list[str]:
        """What is to be said of the numbers, a sentence each."""
        return []

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
            epochs=request.epochs or (SMOKE_EPOCHS if request.smoke else self.epochs),
        )
        for option, given, known in (("rows", request.rows, self.rows), ("size", request.sizes, self.sizes)):
            for one in given:
                if one not in known:
                    raise ArgumentError(
                        where=f"--{option} of {self.name}", got=one, wanted=f"some of {', '.join(known)}, or all"
                    )
        return request

    def corpus(self, request: Request, data: Path | str | None = None) -> Corpus:
        """The text: the embedded one for a smoke run.

        Args:
            request: what is asked.
            data: where the data set is; None for the usual places.
        """
        return sample_corpus() if request.smoke else read_corpus(self.source(request, data))

    def source(self, request: Request, data: Path | str | None = None) -> str:
        """Where the text is, as ``--data`` of other commands takes it.

        Args:
            request: what is asked.
            data: where the data set is; None for the usual places.
        """
        return "sample" if request.smoke else str(find_data_set(self.data, data=data).resolve())

    def cost(self, request: Request) -> Cost:
        """What a full request costs, roughly.

        Args:
            request: what is asked; see :meth:`complete`.
        """
        cases = [step for step in self.steps(self.complete(request)) if isinstance(step, Case)]
        paces = [(case.settings.epochs, self.paces[case.line.size]) for case in cases]
        return Cost(
            runs=len(cases),
            epochs=sum(epochs for epochs, _ in paces),
            gpu=sum(epochs * pace.gpu for epochs, pace in paces) / 3600,
            cpu=sum(epochs * pace.cpu for epochs, pace in paces) / 3600,
        )


def smoke_settings(settings: TrainingSettings) -> TrainingSettings:
    """The settings for a text of a few thousand words.

    Args:
        settings: those of the full run.
    """
    return replace(settings, batch=10, bptt=20, valid_batch=5, test_batch=5)
