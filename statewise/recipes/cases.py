"""The steps of a recipe of language models, and what was measured of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from statewise.models import LanguageModelConfig
from statewise.recipes.lines import Line, Made, names_of, override
from statewise.recipes.lines import Step as Step
from statewise.train.dynamic_steps import Convention
from statewise.train.settings import TrainingSettings, as_json


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

    @property
    def recorded(self) -> dict[str, Any]:
        """Model and settings, as a file holds them."""
        return {"model": as_json(self.config), "settings": as_json(self.settings)}

    @property
    def settable(self) -> frozenset[str]:
        """What can be overridden."""
        return names_of(self.config) | names_of(self.settings)

    def overridden(self, values: Mapping[str, Any]) -> Case:
        """The same with other settings.

        Args:
            values: by name.
        """
        after = None if self.after is None else self.after.overridden(values)
        config, settings = override(self.config, values), override(self.settings, values)
        return replace(self, config=config, settings=settings, after=after)

    def as_made(self, made: Made) -> Case:
        """The case with the epochs that it has, which may be more than were asked for.

        Args:
            made: what it came to.
        """
        return replace(self, settings=replace(self.settings, epochs=made.epochs))


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

    @property
    def recorded(self) -> dict[str, Any]:
        """Model and settings, as a file holds them."""
        return {"model": None, "settings": self.told}

    @property
    def settable(self) -> frozenset[str]:
        """Nothing of its own."""
        return frozenset()

    def overridden(self, values: Mapping[str, Any]) -> Adaptation:
        """The same after a case with other settings.

        Args:
            values: by name.
        """
        return replace(self, after=self.after.overridden(values))

    def as_made(self, made: Made) -> Adaptation:
        """Itself; nothing begins with it.

        Args:
            made: what it came to.
        """
        return self


@dataclass(frozen=True, kw_only=True)
class Measured(Made):
    """What one run of a language model came to.

    Args:
        valid: perplexity of the best model.
        test: perplexity of the same.
    """

    valid: float
    test: float

    def __str__(self) -> str:
        return f"valid {self.valid:.2f}, test {self.test:.2f}"

    def numbers(self) -> dict[str, Any]:
        """What was measured, and what was published."""
        line = self.line
        published = None if line.published is None else line.published._asdict()
        found = {"placement": line.placement, "stage": line.stage, "gamma": line.gamma, "published": published}
        return {**found, "valid_perplexity": self.valid, "test_perplexity": self.test}
