"""What a comparison must know of a kind of data: how it is read, divided, trained on and tested; one file a kind."""

from __future__ import annotations

import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float

from statewise.data.tables import Column
from statewise.lineup.candidates import Candidate, with_changes
from statewise.lineup.intervals import Score
from statewise.train.run import RunFolder

PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class Metric:
    """What is reported.

    Attributes:
        name: in a table.
        score: of the summed rows of test sequences.
        higher: whether more is better.
        logarithmic: whether the score is a logarithm, which is told as the number itself, and differences in per cent;
            otherwise it is a share, told in per cent, and differences in points.
        share: whether it is such a share.
        least: below it no score lies, so that no interval reaches there.
        most: nor above it.
        digits: behind the point, in a table.
    """

    name: str
    score: Score
    higher: bool
    logarithmic: bool = False
    share: bool = False
    least: float = -math.inf
    most: float = math.inf
    digits: int = 4

    def loss(self, value: float) -> float:
        """A score such that smaller is better."""
        return 0.0 - value if self.higher else value  # not -value, which makes -0 of nothing

    def shown(self, value: float) -> float:
        """A score as a person reads it: a perplexity, per cent, or the number itself.

        Args:
            value: the score.
        """
        return float(np.exp(min(value, 700.0))) if self.logarithmic else 100 * value if self.share else value

    def shown_difference(self, value: float) -> float:
        """A difference of scores as a person reads it: in per cent, in points, or the number itself.

        Args:
            value: the difference.
        """
        return 100 * float(np.expm1(min(value, 700.0))) if self.logarithmic else 100 * value if self.share else value

    def possible(self, value: float, *, apart: bool = False) -> float:
        """The nearest number that a score can be.

        Args:
            value: what draws from Student's t, whose tails have no end, may have led to.
            apart: whether it is a difference of two scores.

        >>> accuracy = Metric("accuracy", lambda sums: sums[..., 0], higher=True, share=True, least=0.0, most=1.0)
        >>> accuracy.possible(1.3), accuracy.possible(-0.2), accuracy.possible(-1.37, apart=True)
        (1.0, 0.0, -1.0)
        """
        low, high = (self.least - self.most, self.most - self.least) if apart else (self.least, self.most)
        return min(max(value, low), high)

    @property
    def unit(self) -> str:
        """Of differences."""
        return "%" if self.logarithmic else "points" if self.share else ""


@dataclass(frozen=True)
class Trained:
    """What a run came to so far, on the validation set.

    Attributes:
        score: of the first metric.
        tie: the loss, which decides among equals.
        epochs: how many there were.
        seconds: of an epoch; the median.
    """

    score: float
    tie: float
    epochs: int
    seconds: float


@dataclass(frozen=True)
class Tested:
    """What a run's best model did on the test set.

    Attributes:
        rows: numbers to be added up, for each test sequence.
        parameters: how many the model has.
        ece: the expected calibration error; None where it means nothing.
    """

    rows: Float[np.ndarray, "units columns"]
    parameters: int
    ece: float | None = None


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a person said of data, model and training, besides the names of the files.

    Args:
        reading: how files are read; of each kind its own names.
        model: fields of the model's config.
        training: fields of the training's settings.
        seed: of what is drawn when data is divided.

    >>> Told(model={"hidden": 8}).document()
    {'reading': {}, 'model': {'hidden': 8}, 'training': {}, 'seed': 0}
    """

    reading: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        parts = {name: dict(getattr(self, name)) for name in ("reading", "model", "training")}
        return {**parts, "seed": self.seed}


class Adaptor(ABC):
    """A kind of data.

    What a person has becomes three files in a folder, which all candidates read: so the division is the same for all,
    can be looked at, and can be trained on by hand.
    """

    kind: ClassVar[str]
    ending: ClassVar[str]
    unit: ClassVar[str]  # what a test sequence is called, in the plural
    readings: ClassVar[tuple[str, ...]]  # what may be said of the files

    @property
    @abstractmethod
    def metrics(self) -> tuple[Metric, ...]:
        """What is reported; candidates are ranked by the first."""

    @abstractmethod
    def prepare(self, files: Mapping[str, Path], sample: str | None, told: Told, folder: Path) -> dict[str, Any]:
        """Read what a person has, divide it where that is needed, and write the parts.

        Args:
            files: "train", and perhaps "valid" and "test"; nothing for a sample.
            sample: the name of embedded data; None for files.
            told: what was said of them.
            folder: gets a file for each part.

        Returns:
            How large the parts are, and what readers of the parts must know under ``"reading"``.
        """

    @abstractmethod
    def load(self, folder: Path, reading: Mapping[str, Any]) -> Any:
        """The sets, from the files that :meth:`prepare` wrote.

        Args:
            folder: with the parts.
            reading: as :meth:`prepare` gave it.
        """

    @abstractmethod
    def plain(self, told: Told) -> tuple[Any, Any]:
        """The config and the settings of a network without regularization, trained at a constant rate.

        Args:
            told: what was said of model and training.
        """

    @abstractmethod
    def train(
        self, sets: Any, config: Any, settings: Any, folder: Path, source: Mapping[str, Any], device: torch.device
    ) -> Trained:
        """Train in a folder as far as the settings say, from where the run in it is.

        Args:
            sets: as :meth:`load` gave them.
            config: of the model.
            settings: of the training, with its epochs and its seed.
            folder: of the run.
            source: where the sets came from, for the run's config.
            device: where to compute.
        """

    @abstractmethod
    def test(self, sets: Any, folder: Path, device: torch.device) -> Tested:
        """Test the best model of a run.

        Args:
            sets: as :meth:`load` gave them.
            folder: of the run.
            device: where to compute.
        """

    def source(self, folder: Path, reading: Mapping[str, Any]) -> dict[str, Any]:
        """Where the sets came from, as the commands that load runs understand it.

        Args:
            folder: with the parts.
            reading: as :meth:`prepare` gave it.
        """
        parts = {part: str((folder / f"{part}.{self.ending}").resolve()) for part in PARTS}
        known = {name: value for name, value in reading.items() if value is not None}
        return {"data": parts["train"], "valid": parts["valid"], "test": [parts["test"]], **known}

    def configured(self, candidate: Candidate, told: Told, *, seed: int, epochs: int) -> tuple[Any, Any]:
        """The config and the settings of a candidate's run.

        Args:
            candidate: who.
            told: what was said of model and training.
            seed: of the run.
            epochs: of the run.
        """
        config, settings = self.plain(told)
        training = {**candidate.training, "seed": seed, "epochs": epochs}
        return with_changes(config, candidate.model), with_changes(settings, training)


def column(said: Any) -> Column | None:
    """A column as it was typed: a number is a place, from the end if it is negative; all else a name.

    Args:
        said: what was typed; None for nothing.

    >>> column("2"), column("-1"), column("review")
    (2, -1, 'review')
    """
    return int(said) if isinstance(said, str) and said.removeprefix("-").isdecimal() else said


def seconds_of(folder: Path) -> float:
    """How long an epoch of a run took; the median.

    Args:
        folder: of the run.
    """
    found = [float(record["seconds"]) for record in RunFolder(folder).metrics() if "epoch" in record]
    return statistics.median(found) if found else 0.0


def parameters_of(model: torch.nn.Module) -> int:
    """How many numbers a model has learnt.

    Args:
        model: any.

    >>> parameters_of(torch.nn.Linear(2, 3))
    9
    """
    return sum(each.numel() for each in model.parameters() if each.requires_grad)
