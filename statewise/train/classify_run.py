"""A run of a classifier, whatever is asked of it, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from rich.console import Console
from torch import Tensor

from statewise.data import Sequences
from statewise.errors import RunFolderError
from statewise.models import Forecaster, SequenceClassifier
from statewise.models.steps import StepClassifier
from statewise.train.callbacks import Callback, Callbacks
from statewise.train.classify_data import OnDevice
from statewise.train.classify_folder import about_examples, describe_examples, write_about
from statewise.train.classify_settings import ClassifierSettings
from statewise.train.distributed import own_device
from statewise.train.driver import Checkpoints, Driver, Snapshot, fingerprint, seeded
from statewise.train.examples import ExampleTraining
from statewise.train.progress import Progress
from statewise.train.run import RunFolder, system_errors
from statewise.train.settings import as_json, defaults_of
from statewise.train.tasks import CLASSES, Measured, Task
from statewise.train.tensor_file import read_document

#: What a run that goes on may be told anew; test sets do not change what is learnt.
MAY_DIFFER = ("training.epochs", "training.patience", "training.evaluation_batch", "source", "data.tests")


def may_differ(settings: ClassifierSettings) -> tuple[str, ...]:
    """What a run that goes on may be told anew; not its epochs where they say how rate or temperature fall.

    Args:
        settings: how it is trained.

    >>> "training.epochs" in may_differ(ClassifierSettings(schedule="cosine"))
    False
    """
    return tuple(name for name in MAY_DIFFER if name != "training.epochs" or not settings.plans_ahead)


@dataclass(frozen=True)
class Judged:
    """What the best model does on a set.

    Attributes:
        soft: as it is.
        hard: with the nearest centroid at each step, as its automaton would; None without centroids.

    >>> print(Judged(Measured(0.01, 0.25, 4, ((2, 0), (1, 1))), None))
    error 25.00 %, loss 0.0100
    """

    soft: Measured
    hard: Measured | None

    def __str__(self) -> str:
        return str(self.soft) if self.hard is None else f"{self.soft}, argmax error {100 * self.hard.error:.2f} %"

    def record(self) -> dict[str, Any]:
        """As the metrics of a run have it."""
        found: dict[str, Any] = {"loss": self.soft.loss, "error": self.soft.error, "count": self.soft.count}
        return found if self.hard is None else {**found, "argmax_error": self.hard.error}


@dataclass(frozen=True)
class ClassifierResult:
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
    valid: Judged
    tests: dict[str, Judged]
    best_epoch: int
    epochs: int
    seconds: float

    def __str__(self) -> str:
        parts = {"valid": self.valid, **self.tests}
        told = "\n".join(f"{name}: {tested}" for name, tested in parts.items())
        return f"{told}\nbest after epoch {self.best_epoch} of {self.epochs}"


Model = TypeVar("Model", SequenceClassifier, StepClassifier, Forecaster)


@dataclass(frozen=True)
class ExampleRun(Generic[Model]):
    """A run of either kind: the model is built, moved, trained and tested.

    Args:
        task: what is asked of the model.
        config: of the model.
        settings: how it is trained.
        build: makes the model, with weights from a generator.
        about: what a reader of the model must know of the examples.
    """

    task: Task
    config: Any
    settings: ClassifierSettings
    build: Callable[[torch.Generator], Model]
    about: dict[str, Any]

    def __call__(
        self,
        train: Any,
        valid: Any,
        tests: Mapping[str, Any],
        folder: Path | str,
        *,
        device: torch.device | str = "cpu",
        resume: bool = False,
        checkpoints: Checkpoints | None = None,
        graph: Any = "auto",
        console: Console | None = None,
        on_epoch: Callable[[dict[str, Any]], None] | None = None,
        weights: Mapping[str, Tensor] | None = None,
        source: Mapping[str, Any] | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> Any:
        """Train and test; arguments as for :func:`~statewise.train.train_classifier`."""
        device, settings, acting = own_device(torch.device(device)), self.settings, Callbacks.of(callbacks)
        described: dict[str, Any] = {"task": self.task.name, "model": as_json(self.config)}
        described |= {"training": as_json(settings)}
        described |= {"data": describe_examples(train, valid, tests)} | ({"source": dict(source)} if source else {})
        if weights is not None:
            described["begins_with"] = fingerprint(weights)
        if acting:
            described["callbacks"] = acting.describe()
        with seeded(settings.seed, device):
            # First what may be refused: a folder becomes a run only when it can be one.
            model = self.build(torch.Generator().manual_seed(settings.seed))
            if weights is not None:
                model.load_state_dict(weights)
            sets = (self.placed(each, device) for each in (train, valid))
            options: dict[str, Any] = {"device": device, "graph": graph, "callbacks": acting}
            training = self.training(model.to(device), *sets, **options)
            free = may_differ(settings)
            if resume and "training.epochs" in free:
                refuse_fewer(Path(folder), settings.epochs)
            known = defaults_of(self.config, settings)
            with RunFolder.create(folder, described, resume=resume, may_differ=free, defaults=known) as run:
                driver = self.driver(training, Path(folder), run, checkpoints or Checkpoints(), console, on_epoch)
                driver.about = self.about
                driver.drive(validate_first=weights is not None)
                return driver.finish({name: self.placed(each, device) for name, each in tests.items()})

    def placed(self, examples: Any, device: torch.device) -> OnDevice:
        """A set where the network computes."""
        return OnDevice(examples, device)

    def training(self, model: Model, train: OnDevice, valid: OnDevice, **options: Any) -> ExampleTraining:
        """Everything that changes while the run goes on."""
        return ExampleTraining(model, self.task, self.settings, train, valid, **options)

    def driver(self, *parts: Any) -> ExampleDriver:
        """The loop around it."""
        return ExampleDriver(*parts)


def refuse_fewer(folder: Path, epochs: int) -> None:
    """Refuse fewer epochs than a run has: its settings would tell of a run that never was.

    Args:
        folder: of the run.
        epochs: that it shall have.
    """
    path = folder / "resume.safetensors"
    if not path.exists():
        return
    with system_errors(folder):
        position = read_document(path)["position"]
    begun = position["epoch"] + (position["batch"] > 0)
    if begun > epochs:
        raise RunFolderError(
            where=str(folder),
            got=f"{epochs} epochs",
            wanted=f"at least the {begun} that the run has begun",
            remedy=f"Go on with {begun} epochs or more, or begin a new run in another folder.",
        )


class ExampleDriver(Driver[ExampleTraining]):
    """The loop around the training of a classifier."""

    about: dict[str, Any]

    def _prepare(self) -> None:
        write_about(self.folder, self.about)

    def _snapshot(self) -> Snapshot:
        return self.training.snapshot()

    def _restore(self, tensors: Mapping[str, Tensor], document: Mapping[str, Any]) -> None:
        self.training.restore(tensors, document)

    def _about_the_best(self) -> dict[str, Any]:
        best = self.training.best
        found = {"epoch": best.epoch, "valid_error": best.measured.error, "valid_loss": best.measured.loss}
        return {**found, "temperature": best.temperature}

    def _progress(self) -> Progress:
        return Progress(self.console, epochs=self.training.settings.epochs, perplexity=False, unit="steps")

    def _tell(self, progress: Progress, record: Mapping[str, Any]) -> None:
        note = f"error {100 * record['valid_error']:.2f} %"
        if "valid_argmax_error" in record:
            note += f", argmax {100 * record['valid_argmax_error']:.2f} %"
        if record.get("noise"):
            note += f", noise {record['noise']:.2f}"
        if record.get("penalty"):
            note += f", penalty {record['penalty']:.4f}"
        if record["skipped"]:
            note += f", {record['skipped']} updates left out: their gradient overflowed"
        if not self.training.curriculum.complete:
            note += f", to length {record['longest']}"
        progress.end_epoch(note=note, train=record["train_loss"], valid=record["valid_loss"])

    def finish(self, tests: Mapping[str, OnDevice]) -> Any:
        """Test the best; gives a :class:`ClassifierResult`."""
        training = self.training
        with training.best_weights():
            tested = {name: Judged(*training.measured(examples)) for name, examples in tests.items()}
            valid = Judged(*training.measured(training.valid))
        result = ClassifierResult(
            folder=self.folder,
            valid=valid,
            tests=tested,
            best_epoch=training.best.epoch,
            epochs=training.position.epoch,
            seconds=self.seconds,
        )
        assert self.run is not None
        self.run.append_metrics(
            {
                "best_epoch": result.best_epoch,
                "valid": valid.record(),
                "tests": {name: each.record() for name, each in tested.items()},
                "seconds": round(result.seconds, 3),
            }
        )
        return result


def save_classifier(
    folder: Path | str,
    model: SequenceClassifier,
    train: Sequences,
    *,
    training: Mapping[str, Any],
    judged: Mapping[str, Judged],
    source: Mapping[str, Any] | None = None,
) -> None:
    """Write a model that was trained otherwise as the folder of a run, for whoever loads classifiers.

    Args:
        folder: new or empty.
        model: what is written.
        train: what it was trained on.
        training: how, as JSON can hold it.
        judged: what it does on sets, by name.
        source: where the examples came from.
    """
    described = {"task": CLASSES.name, "model": as_json(model.config), "training": dict(training)}
    described |= {"data": describe_examples(train, train, {})} | ({"source": dict(source)} if source else {})
    with RunFolder.create(folder, described) as run:
        with system_errors(run.path):
            write_about(run.path, about_examples(train))
        run.save_model(model.state_dict(), {"epoch": 0, "temperature": model.config.temperature})
        run.append_metrics({"sets": {name: each.record() for name, each in judged.items()}})
