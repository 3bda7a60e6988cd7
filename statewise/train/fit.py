"""A run from beginning to end: train, validate, keep the best, test; killed at any moment, it goes on."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from statewise.data import Corpus, TokenStream
from statewise.models import LanguageModelConfig
from statewise.models.text import perplexity
from statewise.train.distributed import joined, own_device
from statewise.train.driver import Checkpoints, Driver, Snapshot, fingerprint, seeded
from statewise.train.evaluation import evaluate_stream
from statewise.train.language import LanguageTraining
from statewise.train.language_folder import TASK, VOCABULARY
from statewise.train.precision import precisely, while_evaluating
from statewise.train.progress import Progress
from statewise.train.run import RunFolder
from statewise.train.settings import TrainingSettings, as_json, defaults_of
from statewise.train.snapshot import restore, snapshot

#: What a run that goes on may be told anew; the name of the text is only a name, its tokens are compared.
MAY_DIFFER = ("training.epochs", "training.patience", "source", "data.name")
PIECE = 2**20  # tokens


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
    if weights is not None:
        described["begins_with"] = fingerprint(weights)
    with joined(device) as world, seeded(settings.seed + 7919 * world.rank, device):
        # First what may be refused: a folder becomes a run only when it can be one.
        model = config.build(len(corpus.vocabulary), generator=torch.Generator().manual_seed(settings.seed))
        if weights is not None:
            model.load_state_dict(weights)
        training = LanguageTraining(model.to(device), settings, corpus, device=device, world=world, graph=graph)
        run = None
        if world.first:
            known = defaults_of(config, settings)
            run = RunFolder.create(folder, described, resume=resume, may_differ=MAY_DIFFER, defaults=known)
        try:
            world.wait()
            driver = _LanguageDriver(training, Path(folder), run, checkpoints or Checkpoints(), console, on_epoch)
            driver.drive(validate_first=weights is not None)
            return driver.finish()
        finally:
            if run is not None:
                run.close()


def describe(config: LanguageModelConfig, settings: TrainingSettings, corpus: Corpus) -> dict[str, Any]:
    """What the folder of a run says that it is."""
    parts = {"train": corpus.train, "valid": corpus.valid, "test": corpus.test}
    data: dict[str, Any] = {"name": corpus.name, "vocabulary": corpus.vocabulary.fingerprint}
    for name, stream in parts.items():
        data |= {f"{name}_tokens": len(stream), f"{name}_checksum": _checksum(stream)}
    return {"task": TASK, "model": as_json(config), "training": as_json(settings), "data": data}


def _checksum(stream: TokenStream) -> str:
    """A number for all tokens of a stream, which is read a piece at a time."""
    found = 0
    for start in range(0, len(stream), PIECE):
        found = zlib.crc32(stream.read(start, min(start + PIECE, len(stream))).astype("<i4").data, found)
    return f"{found:08x}"


class _LanguageDriver(Driver[LanguageTraining]):
    """The loop around the training of a language model."""

    def _prepare(self) -> None:
        self.training.corpus.vocabulary.save(self.folder / VOCABULARY)

    def _snapshot(self) -> Snapshot:
        return snapshot(self.training)

    def _restore(self, tensors: Mapping[str, Tensor], document: Mapping[str, Any]) -> None:
        restore(self.training, tensors, document)

    def _about_the_best(self) -> dict[str, Any]:
        return {"epoch": self.training.best.epoch, "valid_perplexity": perplexity(self.training.best.nll)}

    def _tell(self, progress: Progress, record: Mapping[str, Any]) -> None:
        losses = {name: math.log(record[f"{name}_perplexity"]) for name in ("train", "valid")}
        progress.end_epoch(note=f"lr {record['lr']:.3g}{' averaged' if record['averaged'] else ''}", **losses)

    def finish(self) -> TrainingResult:
        """Test the best."""
        training = self.training
        precision = while_evaluating(training.settings.precision)
        with training.best_weights(), precisely(precision, training.device):
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
                    "seconds": round(result.seconds, 3),
                }
            )
        return result
