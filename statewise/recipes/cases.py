"""What a recipe asks for: the cases behind a published number, and what was measured of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from statewise.errors import ArgumentError
from statewise.models import LanguageModelConfig
from statewise.recipes.published import Published
from statewise.train.dynamic_steps import CONVENTIONS, Convention
from statewise.train.settings import TrainingSettings

SCALES = ("full", "smoke")
PLACEMENTS = ("recurrent", "outputs", "last")
SEED = 1111


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a person asks of a recipe; None or empty leaves a choice to the recipe.

    Args:
        rows: of the table.
        sizes: of the network.
        placements: of the noise.
        epochs: passes over the training text.
        finetune: the most epochs of fine-tuning, where a recipe has it.
        seeds: how many runs of each row, with the seeds 1111, 1112 and so on.
        precision: as in :class:`~statewise.train.TrainingSettings`.
        scale: "full", or "smoke": the same path with a tiny network and an embedded text.
        convention: of dynamic evaluation, where a recipe has it.

    >>> Request(seeds=2).seed_numbers
    (1111, 1112)
    """

    rows: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    placements: tuple[str, ...] = ()
    epochs: int | None = None
    finetune: int | None = None
    seeds: int = 1
    precision: str = "tf32"
    scale: str = "full"
    convention: Convention = "old"

    def __post_init__(self) -> None:
        for name, value, least in (
            ("epochs", self.epochs, 1),
            ("finetune", self.finetune, 0),
            ("seeds", self.seeds, 1),
        ):
            if value is not None and value < least:
                raise ArgumentError(where=f"--{name}", got=value, wanted=f"a whole number >= {least}")
        if self.scale not in SCALES:
            raise ArgumentError(where="--scale", got=self.scale, wanted=f"one of {', '.join(SCALES)}")
        if self.convention not in CONVENTIONS:
            raise ArgumentError(where="--dynamic", got=self.convention, wanted=f"one of {', '.join(CONVENTIONS)}")
        for placement in self.placements:
            if placement not in PLACEMENTS:
                raise ArgumentError(
                    where="--placement", got=placement, wanted=f"some of {', '.join(PLACEMENTS)}, or both"
                )

    @property
    def smoke(self) -> bool:
        """Whether the numbers mean nothing but that everything runs."""
        return self.scale == "smoke"

    @property
    def seed_numbers(self) -> tuple[int, ...]:
        """The seeds of the runs of each row."""
        return tuple(range(SEED, SEED + self.seeds))


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of the table that a recipe ends with: what its runs have in common.

    Args:
        row: the row of the published table.
        size: of the network.
        placement: of the noise; empty without noise.
        stage: of the training, where there are several.
        gamma: the spread of the noise; None without noise.
        published: the paper's numbers.
    """

    row: str
    size: str = ""
    placement: str = ""
    stage: str = ""
    gamma: float | None = None
    published: Published | None = None

    @property
    def name(self) -> str:
        """What a folder or a curve is called.

        >>> Line(row="gaussian", size="medium", placement="recurrent").name
        'medium-gaussian-recurrent'
        """
        parts = (self.size, self.row, self.placement, self.stage.replace(" ", "-"))
        return "-".join(part for part in parts if part)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run: a model to be trained.

    Args:
        line: where its numbers belong.
        config: the model.
        settings: how it is trained.
        after: the case with whose best weights it begins; None for fresh ones.
    """

    line: Line
    config: LanguageModelConfig
    settings: TrainingSettings
    after: Case | None = None

    @property
    def name(self) -> str:
        """The name of its folder; what begins after other epochs has another."""
        after = f"-after{self.after.settings.epochs}" if self.after is not None else ""
        return f"{self.line.name}{after}-seed{self.settings.seed}"


@dataclass(frozen=True, kw_only=True)
class Adaptation:
    """Dynamic evaluation of a trained model.

    Args:
        line: where its numbers belong.
        after: the case whose best model goes on learning.
        lr: the learning rate.
        decay: the pull back.
        epsilon: what is added to the root.
        convention: "new" or "old".
        statistics_batch: columns in which the training text is read for the gradient statistics.
    """

    line: Line
    after: Case
    lr: float
    decay: float
    epsilon: float
    convention: Convention
    statistics_batch: int = 100

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.line.name}-seed{self.after.settings.seed}"

    @property
    def told(self) -> dict[str, Any]:
        """Its settings, as a file holds them."""
        return {
            "model": self.after.name,
            "lr": self.lr,
            "decay": self.decay,
            "epsilon": self.epsilon,
            "convention": self.convention,
            "statistics_batch": self.statistics_batch,
        }


Step = Case | Adaptation


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one run came to.

    Args:
        name: of the run and of its folder.
        line: where it belongs.
        seed: of weights and noise.
        valid: perplexity of the best model.
        test: perplexity of the same.
        best_epoch: when it was found.
        epochs: how many there were.
        seconds: how long they took.
        curve: the records of the epochs.
        parameters: how many the model has.
    """

    name: str
    line: Line
    seed: int
    valid: float
    test: float
    best_epoch: int = 0
    epochs: int = 0
    seconds: float = 0.0
    curve: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    parameters: int = 0


@dataclass(frozen=True)
class Mean:
    """The mean of some runs, and how far they scatter.

    >>> print(Mean.of([71.0, 73.0]))
    72.0 ± 1.4
    >>> print(Mean.of([71.25]))
    71.2
    """

    value: float
    spread: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        """The mean and the standard deviation of a sample; one of infinite numbers is NaN."""
        spread = statistics.stdev(values) if len(values) > 1 and all(map(math.isfinite, values)) else math.nan
        return cls(statistics.fmean(values), spread, len(values))

    def __str__(self) -> str:
        return f"{self.value:.1f}" + (f" ± {self.spread:.1f}" if self.count > 1 else "")
