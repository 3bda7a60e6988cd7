"""A run from beginning to end: train, validate, keep the best, test; killed at any moment, it goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from statewise.data import Corpus, Vocabulary
from statewise.errors import RunFolderError
from statewise.models import LanguageModel, LanguageModelConfig
from statewise.models.text import perplexity
from statewise.train.distributed import World, joined, own_device
from statewise.train.evaluation import evaluate_stream
from statewise.train.language import LanguageTraining, precisely
from statewise.train.progress import Progress
from statewise.train.run import RunFolder
from statewise.train.settings import TrainingSettings, as_json
from statewise.train.snapshot import restore, snapshot

TASK = "language model"
VOCABULARY = "vocabulary.txt"


@dataclass(frozen=True)
class TrainingResult:
    """What a run came to.

    Attributes:
        folder: the run's folder.
        valid_perplexity: of the best model.
        test_perplexity: of the same.
        best_epoch: when it was found.
        epochs: how many there were.
        seconds: how long they took, all processes of a resumed run together.

    >>> print(TrainingResult(Path("run"), 77.0, 72.3, 52, 80, 90.5))
    valid 77.00, test 72.30, best after epoch 52 of 80
    """

    folder: Path
    valid_perplexity: float
    test_perplexity: float
    best_epoch: int
    epochs: int
    seconds: float

    def __str__(self) -> str:
        found = f"best after epoch {self.best_epoch} of {self.epochs}"
        return f"valid {self.valid_perplexity:.2f}, test {self.test_perplexity:.2f}, {found}"


@dataclass(frozen=True, kw_only=True)
class Checkpoints:
    """How often a run writes where it is; its numbers do not depend on it.

    Args:
        seconds: at least so much time lies between two resume points.
        updates: also after every so many updates; None for no such rule, and the only one with several processes.

    >>> Checkpoints().seconds
    60.0
    """

    seconds: float = 60.0
    updates: int | None = None


def train_language_model(
    config: LanguageModelConfig,
    settings: TrainingSettings,
    corpus: Corpus,
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
) -> TrainingResult:
    """Train a language model in a folder of its own, validate it after every epoch, and test the best.

    Killed at any moment it goes on with ``resume=True``, and on a CPU ends with the same bits as a run that was not. A
    run that is complete goes on if ``epochs`` is raised. Torch's global generators are seeded for the run, and are
    afterwards as they were. Under torchrun the columns of a batch are divided among the processes, which must see the
    same folder.

    Args:
        config: the model.
        settings: how it is trained.
        corpus: on what.
        folder: where the run is kept: see :class:`RunFolder`; beside its files lies the vocabulary.
        device: where to compute.
        resume: go on with the run in the folder; without one, begin.
        checkpoints: how often to write where it is.
        graph: as for :class:`TrainingStep`.
        console: where to tell of the progress; None for silence.
        on_epoch: called with the record of each epoch.
        weights: what the model begins with, such as another run's best, for fine-tuning; None for fresh ones.
        source: where the text came from, for whoever wants it again; kept with the run's settings, and may change.

    >>> import tempfile
    >>> from statewise.data import sample_corpus
    >>> with tempfile.TemporaryDirectory() as place:
    ...     result = train_language_model(
    ...         LanguageModelConfig(hidden=(8,)), TrainingSettings(epochs=1), sample_corpus(), Path(place) / "run"
    ...     )
    >>> result.best_epoch, result.valid_perplexity < 200
    (1, True)
    """
    device = own_device(torch.device(device))
    described = describe(config, settings, corpus) | ({"source": dict(source)} if source else {})
    devices = [device] if device.type == "cuda" else []
    with joined(device) as world, torch.random.fork_rng(devices=devices):
        torch.manual_seed(settings.seed + 7919 * world.rank)
        run = (
            RunFolder.create(folder, described, resume=resume, may_differ=("training.epochs", "source"))
            if world.first
            else None
        )
        world.wait()
        model = config.build(len(corpus.vocabulary), generator=torch.Generator().manual_seed(settings.seed))
        if weights is not None:
            model.load_state_dict(weights)
        training = LanguageTraining(model.to(device), settings, corpus, device=device, world=world, graph=graph)
        driver = _Driver(training, Path(folder), run, checkpoints or Checkpoints(), console, on_epoch)
        try:
            return driver.drive()
        finally:
            if run is not None:
                run.close()


def describe(config: LanguageModelConfig, settings: TrainingSettings, corpus: Corpus) -> dict[str, Any]:
    """What the folder of a run says that it is."""
    parts = {"train": corpus.train, "valid": corpus.valid, "test": corpus.test}
    data: dict[str, Any] = {"name": corpus.name, "vocabulary": corpus.vocabulary.fingerprint}
    data |= {f"{name}_tokens": len(stream) for name, stream in parts.items()}
    return {"task": TASK, "model": as_json(config), "training": as_json(settings), "data": data}


def load_language_model(
    folder: Path | str, *, device: torch.device | str = "cpu"
) -> tuple[LanguageModel, Vocabulary, dict[str, Any]]:
    """The best model of a run, its vocabulary, and what the run was told.

    Args:
        folder: of the run.
        device: where the model goes.
    """
    run = RunFolder(folder)
    told = run.config()
    if told.get("task") != TASK:
        raise RunFolderError(where=str(run.config_path), got=f"task {told.get('task')!r}", wanted=repr(TASK))
    vocabulary = Vocabulary.load(Path(folder) / VOCABULARY)
    config = LanguageModelConfig(**{**told["model"], "hidden": tuple(told["model"]["hidden"])})
    model = config.build(len(vocabulary))
    model.load_state_dict(run.load_model()[0])
    return model.to(device).eval(), vocabulary, told


class _Driver:
    """The loop itself, and when it writes."""

    def __init__(
        self,
        training: LanguageTraining,
        folder: Path,
        run: RunFolder | None,
        checkpoints: Checkpoints,
        console: Console | None,
        on_epoch: Callable[[dict[str, Any]], None] | None,
    ) -> None:
        self.training, self.folder, self.run, self.checkpoints = training, folder, run, checkpoints
        self.console = console if training.world.first else None
        self.on_epoch = on_epoch
        self.seconds, self._since = 0.0, time.monotonic()
        self._written = self._since
        self._good: str | None = None

    @property
    def world(self) -> World:
        return self.training.world

    def drive(self) -> TrainingResult:
        """Go on where the folder says, to the end."""
        if self.run is not None:
            self.training.corpus.vocabulary.save(self.folder / VOCABULARY)
        found = RunFolder(self.folder).load_resume()
        if found is not None:
            self.seconds = found[1].pop("seconds")
            restore(self.training, *found)
            self._good = str(RunFolder(self.folder).resume_path)
        with Progress(self.console, epochs=self.training.settings.epochs) as progress:
            while not self.training.finished:
                self._epoch(progress)
        self._checkpoint()
        return self._finish()

    def _epoch(self, progress: Progress) -> None:
        training, began = self.training, time.monotonic()
        steps = math.ceil(len(training.columns) / training.settings.bptt)
        progress.begin_epoch(training.position.epoch + 1, steps=steps)
        tokens = training.settings.bptt * training.columns.batch_size * self.world.size
        for _ in training.updates(checkpoint=self._good):
            progress.advance(tokens=tokens)
            if self._due():
                self._checkpoint()
        record = training.close_epoch(checkpoint=self._good)
        record["seconds"] = round(time.monotonic() - began, 3)
        if self.run is not None:
            self.run.append_metrics(record)
        losses = {name: math.log(record[f"{name}_perplexity"]) for name in ("train", "valid")}
        progress.end_epoch(note=f"lr {record['lr']:.3g}{' averaged' if record['averaged'] else ''}", **losses)
        if self.on_epoch is not None and self.world.first:
            self.on_epoch(record)
        # With several processes all must agree on when to write, and their clocks do not.
        if self.world.size > 1 or self._late():
            self._checkpoint()

    def _due(self) -> bool:
        every = self.checkpoints.updates
        if every is not None and self.training.position.updates % every == 0:
            return True
        return self.world.size == 1 and self._late()

    def _late(self) -> bool:
        return time.monotonic() - self._written >= self.checkpoints.seconds

    def _checkpoint(self) -> None:
        tensors, document = snapshot(self.training)
        now = time.monotonic()
        self.seconds, self._since = self.seconds + now - self._since, now
        if self.run is not None:
            if self.training.best.weights:
                self._save_best()
            self.run.save_resume(tensors, {**document, "seconds": self.seconds})
            self._good = str(self.run.resume_path)
        self._written = time.monotonic()

    def _save_best(self) -> None:
        assert self.run is not None
        with self.training.best_weights():
            best = self.training.best
            about = {"epoch": best.epoch, "valid_perplexity": perplexity(best.nll)}
            self.run.save_model(self.training.model.state_dict(), about)

    def _finish(self) -> TrainingResult:
        training = self.training
        with training.best_weights(), precisely(training.evaluation_precision, training.device):
            batch = training.settings.test_batch
            test = evaluate_stream(training.model, training.corpus.test, batch=batch, device=training.device)
        result = TrainingResult(
            folder=self.folder,
            valid_perplexity=perplexity(training.best.nll),
            test_perplexity=test.perplexity,
            best_epoch=training.best.epoch,
            epochs=training.position.epoch,
            seconds=self.seconds,
        )
        if self.run is not None:
            self.run.append_metrics(
                {
                    "best_epoch": result.best_epoch,
                    "valid_perplexity": result.valid_perplexity,
                    "test_perplexity": result.test_perplexity,
                }
            )
        return result
