"""A run from beginning to end: train, validate, keep the best, test; killed at any moment, it goes on."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from statewise.data import Corpus, TokenStream, Vocabulary
from statewise.errors import ArgumentError, RunFolderError
from statewise.models import LanguageModel, LanguageModelConfig
from statewise.models.text import perplexity
from statewise.train.distributed import World, joined, own_device
from statewise.train.evaluation import evaluate_stream
from statewise.train.interruption import Interruption
from statewise.train.language import LanguageTraining
from statewise.train.precision import precisely, while_evaluating
from statewise.train.progress import Progress
from statewise.train.run import RunFolder, system_errors
from statewise.train.settings import TrainingSettings, as_json
from statewise.train.snapshot import restore, snapshot

TASK = "language model"
VOCABULARY = "vocabulary.txt"
#: What a run that goes on may be told anew; the name of the text is only a name, its tokens are compared.
MAY_DIFFER = ("training.epochs", "training.patience", "source", "data.name")
PIECE = 2**20  # tokens
DECISION = 50  # updates after which several processes ask whether it is time to write


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
        updates: also after every so many updates; None for no such rule.

    >>> Checkpoints().seconds
    60.0
    """

    seconds: float = 60.0
    updates: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.seconds, bool) or not isinstance(self.seconds, int | float) or not self.seconds >= 0:
            raise ArgumentError(where="Checkpoints.seconds", got=self.seconds, wanted="a number >= 0")
        if self.updates is not None and (type(self.updates) is not int or self.updates < 1):
            raise ArgumentError(where="Checkpoints.updates", got=self.updates, wanted="a whole number >= 1, or None")


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
        described["begins_with"] = _fingerprint(weights)
    with joined(device) as world, _seeded(settings.seed + 7919 * world.rank, device):
        # First what may be refused: a folder becomes a run only when it can be one.
        model = config.build(len(corpus.vocabulary), generator=torch.Generator().manual_seed(settings.seed))
        if weights is not None:
            model.load_state_dict(weights)
        training = LanguageTraining(model.to(device), settings, corpus, device=device, world=world, graph=graph)
        run = RunFolder.create(folder, described, resume=resume, may_differ=MAY_DIFFER) if world.first else None
        try:
            world.wait()
            driver = _Driver(training, Path(folder), run, checkpoints or Checkpoints(), console, on_epoch)
            return driver.drive(validate_first=weights is not None)
        finally:
            if run is not None:
                run.close()


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    """A region with torch's global generators seeded; afterwards they are as they were."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


def _fingerprint(tensors: Mapping[str, Tensor]) -> str:
    """A number for all bits of tensors.

    >>> _fingerprint({"a": torch.zeros(2)}) == _fingerprint({"a": torch.ones(2)})
    False
    """
    found = 0
    for name in sorted(tensors):
        found = zlib.crc32(tensors[name].detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data, found)
    return f"{found:08x}"


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
        self._kept = -1  # the epoch of the best model that is on disk

    @property
    def world(self) -> World:
        return self.training.world

    def drive(self, *, validate_first: bool = False) -> TrainingResult:
        """Go on where the folder says, to the end.

        Args:
            validate_first: whether the weights of the beginning may be the best.
        """
        if self.run is not None:
            with system_errors(self.folder):
                self.training.corpus.vocabulary.save(self.folder / VOCABULARY)
        found = RunFolder(self.folder).load_resume()
        if found is not None:
            self.seconds = found[1].pop("seconds")
            restore(self.training, *found)
            self.training.checkpoint = str(RunFolder(self.folder).resume_path)
        elif validate_first:
            self.training.begin_with_these()
        # Several processes are stopped by torchrun, which tells each at another moment.
        listening = Interruption() if self.world.size == 1 else nullcontext(Interruption())
        with listening as interruption, Progress(self.console, epochs=self.training.settings.epochs) as progress:
            while not self.training.finished:
                self._epoch(progress, interruption)
        self._checkpoint()
        return self._finish()

    def _epoch(self, progress: Progress, interruption: Interruption) -> None:
        training, began = self.training, time.monotonic()
        progress.begin_epoch(training.position.epoch + 1, steps=training.remaining)
        for update in training.updates():
            progress.advance(tokens=update.tokens, loss=update.nll)
            if interruption.asked or self._due():
                self._checkpoint()
            interruption.obey()
        record = training.close_epoch()
        record["seconds"] = round(time.monotonic() - began, 3)
        if self.run is not None:
            self.run.append_metrics(record)
        losses = {name: math.log(record[f"{name}_perplexity"]) for name in ("train", "valid")}
        progress.end_epoch(note=f"lr {record['lr']:.3g}{' averaged' if record['averaged'] else ''}", **losses)
        if self.on_epoch is not None and self.world.first:
            self.on_epoch(record)
        if interruption.asked or self._agreed_late():
            self._checkpoint()
        interruption.obey()

    def _due(self) -> bool:
        every, updates = self.checkpoints.updates, self.training.position.updates
        if every is not None and updates % every == 0:
            return True
        # The processes must write together, and to agree on it costs them time.
        return (self.world.size == 1 or updates % DECISION == 0) and self._agreed_late()

    def _agreed_late(self) -> bool:
        """Whether it is time to write, by the first process's clock."""
        late = time.monotonic() - self._written >= self.checkpoints.seconds
        return bool(self.world.agreed(float(late)))

    def _checkpoint(self) -> None:
        tensors, document = snapshot(self.training)
        now = time.monotonic()
        self.seconds, self._since = self.seconds + now - self._since, now
        if self.run is not None:
            if self.training.best.weights and self.training.best.epoch != self._kept:
                self._save_best()
            self.run.save_resume(tensors, {**document, "seconds": self.seconds})
            self.training.checkpoint = str(self.run.resume_path)
        self._written = time.monotonic()

    def _save_best(self) -> None:
        assert self.run is not None
        with self.training.best_weights():
            best = self.training.best
            about = {"epoch": best.epoch, "valid_perplexity": perplexity(best.nll)}
            self.run.save_model(self.training.model.state_dict(), about)
        self._kept = best.epoch

    def _finish(self) -> TrainingResult:
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
