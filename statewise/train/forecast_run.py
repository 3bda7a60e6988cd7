"""The run of a forecaster: what it is made of, and what it comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from statewise.data import Scale
from statewise.models import Forecaster
from statewise.train.classify_data import OnDevice
from statewise.train.classify_run import ExampleDriver, ExampleRun
from statewise.train.examples import ExampleTraining
from statewise.train.forecast_data import NextSteps
from statewise.train.forecast_measure import ForecastMeasured, measure_forecasts
from statewise.train.found import Best
from statewise.train.progress import Progress


@dataclass(frozen=True)
class ForecastResult:
    """What a run came to.

    Attributes:
        folder: the run's folder.
        valid: what the best model does on the validation set.
        tests: and on each test set, by name.
        best_epoch: when it was found.
        epochs: how many there were.
        seconds: how long they took, all processes of a resumed run together.
    """

    folder: Path
    valid: ForecastMeasured
    tests: dict[str, ForecastMeasured]
    best_epoch: int
    epochs: int
    seconds: float

    def __str__(self) -> str:
        parts = {"valid": self.valid, **self.tests}
        told = "\n".join(f"{name}: {tested}" for name, tested in parts.items())
        return f"{told}\nbest after epoch {self.best_epoch} of {self.epochs}"


class ForecastRun(ExampleRun[Forecaster]):
    """A run whose examples are their own targets."""

    def placed(self, examples: Any, device: torch.device) -> OnDevice:
        return NextSteps(examples, device, Scale(tuple(self.about["mean"]), tuple(self.about["deviation"])))

    def training(self, model: Forecaster, train: OnDevice, valid: OnDevice, **options: Any) -> ExampleTraining:
        return ForecastTraining(model, self.task, self.settings, train, valid, **options)

    def driver(self, *parts: Any) -> ExampleDriver:
        return _ForecastDriver(*parts)


class ForecastTraining(ExampleTraining):
    """The training of a forecaster: that of a classifier, but for how it is measured."""

    def _measure(self, examples: OnDevice, *, hard: bool = False) -> Any:
        assert isinstance(examples, NextSteps)
        return measure_forecasts(self.model, examples, batch=self.settings.evaluation_batch, hard=hard)

    def _best_of(self, state: Mapping[str, Any], weights: dict[str, Tensor]) -> Best:
        if "features" not in state["measured"]:  # nothing was measured yet
            return super()._best_of(state, weights)
        rank = tuple(float(part) for part in state["rank"])
        measured = ForecastMeasured.of(state["measured"])
        return Best(rank, state["epoch"], state["temperature"], measured, state["hard_error"], weights)


class _ForecastDriver(ExampleDriver):
    """The loop around the training of a forecaster."""

    def _tell(self, progress: Progress, record: Mapping[str, Any]) -> None:
        note = f"RMSE {record['valid_error'] ** 0.5:.4f}"
        if "valid_argmax_error" in record:
            note += f", argmax {record['valid_argmax_error'] ** 0.5:.4f}"
        if record["skipped"]:
            note += f", {record['skipped']} updates left out: their gradient overflowed"
        progress.end_epoch(note=note, train=record["train_loss"], valid=record["valid_loss"])

    def finish(self, tests: Mapping[str, OnDevice]) -> Any:
        """Test the best; gives a :class:`ForecastResult`."""
        training = self.training
        with training.best_weights():
            tested = {name: training.measured(examples)[0] for name, examples in tests.items()}
            valid = training.measured(training.valid)[0]
        result = ForecastResult(
            folder=self.folder,
            valid=valid,
            tests=tested,
            best_epoch=training.best.epoch,
            epochs=training.position.epoch,
            seconds=self.seconds,
        )
        assert self.run is not None
        found = {"best_epoch": result.best_epoch, "valid": valid.record()}
        found |= {"tests": {name: each.record() for name, each in tested.items()}}
        self.run.append_metrics({**found, "seconds": round(result.seconds, 3)})
        return result
