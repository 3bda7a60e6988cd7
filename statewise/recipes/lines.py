"""What all kinds of recipes share: lines of a table, steps behind them, what these came to, and who makes them."""

from __future__ import annotations

import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from statewise.errors import ArgumentError
from statewise.recipes.published import Published
from statewise.train.settings import as_json


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of the table that a recipe ends with: what its runs have in common.

    Args:
        row: the row of the published table.
        size: of the network, or of the data.
        placement: of the noise; empty without noise.
        stage: of the training, where there are several.
        gamma: the spread of the noise; None without noise.
        published: the paper's perplexities, of a language model.
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
class Made(ABC):
    """What one run came to; each kind of recipe adds its numbers.

    Args:
        name: of the run and of its folder.
        line: where it belongs.
        seed: of weights and noise.
        best_epoch: when the best model was found.
        epochs: how many there were.
        seconds: how long they took.
        curve: the records of the epochs.
        parameters: how many the model has.
    """

    name: str
    line: Line
    seed: int
    best_epoch: int = 0
    epochs: int = 0
    seconds: float = 0.0
    curve: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    parameters: int = 0

    @abstractmethod
    def numbers(self) -> dict[str, Any]:
        """What was measured, as a file holds it."""


@runtime_checkable
class Step(Protocol):
    """One thing to be made: a run, or something with a run that was made before."""

    @property
    def name(self) -> str: ...
    @property
    def line(self) -> Line: ...
    @property
    def after(self) -> Any:
        """The step that must be made before; None for nothing."""

    @property
    def recorded(self) -> dict[str, Any]:
        """Model and settings, as a file holds them."""

    @property
    def settable(self) -> frozenset[str]:
        """The names that :meth:`overridden` takes."""

    def overridden(self, values: Mapping[str, Any]) -> Step:
        """The same with other settings; names that it has not are left alone."""

    def as_made(self, made: Any) -> Step:
        """What a later step begins with."""


@runtime_checkable
class Maker(Protocol):
    """Makes the steps of a request, or finds them made."""

    data: Any  # what they are made on; a recipe describes it

    def make(self, step: Any, number: str) -> tuple[Any, bool]:
        """What a step came to, and whether it was there already.

        Args:
            step: one of the recipe's.
            number: such as 2/5, for the line that tells of it.
        """


@dataclass(frozen=True, kw_only=True)
class SeededRun:
    """One run that nothing must be made before.

    Args:
        line: where its numbers belong.
        settings: how it is trained; with a seed.
    """

    line: Line
    settings: Any
    after: None = None

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.line.name}-seed{self.settings.seed}"

    def as_made(self, made: Made) -> Any:
        """Itself; nothing begins with it.

        Args:
            made: what it came to.
        """
        return self


@dataclass(frozen=True, kw_only=True)
class SeededCase(SeededRun):
    """Such a run of a model; kinds of models say what can be set otherwise.

    Args:
        config: the model.
    """

    config: Any

    @property
    def recorded(self) -> dict[str, Any]:
        """Model and settings, as a file holds them."""
        return {"model": as_json(self.config), "settings": as_json(self.settings)}

    @property
    def settable(self) -> frozenset[str]:
        """What can be overridden."""
        return names_of(self.config) | names_of(self.settings)


class Sheet(NamedTuple):
    """The body of a table: its columns, rows of texts, and how many columns are aligned at the left."""

    columns: list[str]
    rows: list[list[str]]
    left: int


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

    def text(self, digits: int) -> str:
        """As it is printed, with so many digits behind the point."""
        return f"{self.value:.{digits}f}" + (f" ± {self.spread:.{digits}f}" if self.count > 1 else "")

    def __str__(self) -> str:
        return self.text(1)


One = TypeVar("One", bound=Made)


def group(measured: Sequence[One]) -> dict[Line, list[One]]:
    """The runs of each line of a table, in order.

    Args:
        measured: all runs.
    """
    lines: dict[Line, list[One]] = {}
    for one in measured:
        lines.setdefault(one.line, []).append(one)
    return lines


Settings = TypeVar("Settings")


def override(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """A dataclass with other values in the fields that it has; one number stands for a tuple of one.

    Args:
        settings: the dataclass.
        values: by name.

    >>> from statewise.models import ClassifierConfig
    >>> override(ClassifierConfig(), {"centroids": 5, "lr": 0.1}).centroids
    (5,)
    """
    found: dict[str, Any] = {}
    for name in names_of(settings) & values.keys():
        value, now = values[name], getattr(settings, name)
        found[name] = (value,) if isinstance(now, tuple) and isinstance(value, int) else value
        if isinstance(value, str) and not isinstance(now, str | None):
            raise ArgumentError(where=f"--set {name}", got=value, wanted=f"such as {now}")
    return replace(settings, **found)  # type: ignore[type-var]


def names_of(settings: Any) -> frozenset[str]:
    """The fields of a dataclass."""
    return frozenset(entry.name for entry in fields(settings))
