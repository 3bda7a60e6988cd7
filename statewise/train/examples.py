"""Training on labelled examples: the state of a run, and one update after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from statewise.errors import ArgumentError
from statewise.mixup import Pairs
from statewise.train.callbacks import Callbacks
from statewise.train.choose_optimizer import build_optimizer
from statewise.train.classify_data import Batch, EpochBatches, OnDevice
from statewise.train.classify_settings import ClassifierSettings
from statewise.train.curriculum import Curriculum, NoiseRamp, temperature_at
from statewise.train.eager import EagerStep
from statewise.train.epochs import EpochTraining
from statewise.train.found import Best
from statewise.train.language import Update
from statewise.train.precision import precisely, while_evaluating
from statewise.train.schedules import Divide, set_lr
from statewise.train.step import TrainingStep
from statewise.train.tasks import Outcome, Task, measure
from statewise.train.watch import Watch
from statewise.train.weights import keep_weights, lent_weights

CLEAN = (32, 512)  # at least and at most so many training examples tell how far they are learnt, else a tenth of them
DECAY = 0.9  # of RMSprop's mean, without momentum: how Wang & Niepert's "momentum 0.9" must be read


class ExampleTraining(EpochTraining):
    """The training of a classifier: everything that changes while it runs, and how.

    Args:
        model: what is trained, on ``device``.
        task: what is asked of it.
        settings: how it is trained.
        train: on what.
        valid: what says which epoch's model is the best.
        device: where.
        graph: as for :class:`TrainingStep`; idle for sequences of several lengths, or pairs of them, which no graph can
            hold.
        callbacks: what acts on the weights.
    """

    best: Best
    settings: ClassifierSettings

    def __init__(
        self,
        model: Any,
        task: Task,
        settings: ClassifierSettings,
        train: OnDevice,
        valid: OnDevice,
        *,
        device: torch.device,
        graph: Any = "auto",
        callbacks: Callbacks | None = None,
    ) -> None:
        self.callbacks = callbacks or Callbacks()
        # Of losses and of wrong answers; and of penalties where there are some.
        super().__init__(model, settings, Best(), device=device, sums=3 if self.callbacks.penalise else 2)
        self.task, self.train, self.valid = task, train, valid
        self.centroids, self.begin = any(model.config.centroids), model.config.temperature
        rates = {"lr": settings.lr, "weight_decay": settings.weight_decay, "alpha": DECAY}
        self.optimizer = build_optimizer(settings.optimizer, model.parameters(), **rates)  # type: ignore[arg-type]
        start = settings.curriculum_start
        self.curriculum = Curriculum(
            train.lengths,
            start=None if start is None else max(start, train.least),
            step=settings.curriculum_step,
            every=settings.curriculum_every,
            solved=settings.solved,
        )
        most = settings.noise_max if model.config.transition == "noisy" else 0.0
        self.noise = NoiseRamp(model.config.noise, ramp=settings.noise_ramp, most=most, solved=settings.solved)
        self.divide = Divide(settings.divide) if settings.schedule == "plateau" else None
        # What becomes harder by plan has losses that rise.
        harder = settings.curriculum_start is not None or settings.temperature_end is not None or most > 0
        # On a CPU nothing waits, and a look after every step finds the first tensor that went wrong.
        self.watch = Watch(every=1 if device.type == "cpu" else 50, diverged=None if harder else 1.0)
        graph = False if train.ragged else self._graph(graph)
        options = {"clip": settings.clip, "graph": graph, "skipped": self.skipped}
        self.step = TrainingStep(model, self._loss, self.optimizer, **options)
        self.mixer = settings.mixer()
        # Pairs are drawn on the host, with other indices in every update.
        self._mixed_step = EagerStep(model, self._mixed_loss, self.optimizer, settings.clip, self.skipped)
        self._planned: tuple[tuple[int, int], EpochBatches, Tensor] | None = None
        self.callbacks.check(model)
        self.callbacks.after_update(model)

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to train."""
        epoch, patience = self.position.epoch, self.settings.patience
        since = max(self.best.epoch, self.curriculum.complete_at)
        stale = patience is not None and self.curriculum.complete and epoch - since >= patience
        return self.position.batch == 0 and (stale or epoch >= self.settings.epochs)

    def updates(self) -> Iterator[Update]:
        """Train to the end of the epoch, one update after the other."""
        self._tune()
        self.model.train()
        batches, rows = self._batches()
        for number, where in enumerate(batches.slices(self.position.batch), start=self.position.batch):
            yield self._update(number / len(batches), rows[where], batches.places[where])

    def close_epoch(self) -> dict[str, Any]:
        """Validate, keep the best, and let the rules act; gives the record of the epoch."""
        self.watch.look(model=self.model, checkpoint=self.checkpoint)
        batches, _ = self._batches()
        skipped = self._skipped_in(len(batches))
        answers = self.train.counted(batches.places)
        train_loss, train_error, *penalties = (self.sums / answers).tolist()
        longest, temperature, noise = self.curriculum.longest, self.model.config.temperature, self.noise.noise
        self.position.epoch += 1
        with self.callbacks.kept(self.model):
            soft, hard = self.measured(self.valid)
            if self._rank(soft, hard) < self.best.rank:
                self._keep(soft, hard)
        clean_loss = train_loss if self.mixer is None else self._clean_loss()
        self.curriculum.observe(clean_loss)
        self.noise.observe(clean_loss, updates=len(batches))
        record = {
            "epoch": self.position.epoch,
            "updates": self.position.updates,
            "train_loss": train_loss,
            "train_error": train_error,
            **({} if self.mixer is None else {"clean_loss": clean_loss}),
            **({"penalty": penalties[0]} if penalties else {}),
            "valid_loss": soft.loss,
            "valid_error": soft.error,
            **({} if hard is None else {"valid_argmax_error": hard.error, "temperature": temperature, "noise": noise}),
            "longest": longest,
            "lr": self._rate(0.0, self.position.epoch - 1),
            "skipped": skipped,
        }
        if self.divide is not None:
            set_lr(self.optimizer, self.lr)
            self.divide.observe(soft.loss, self.optimizer)
            self.lr = float(self.optimizer.param_groups[0]["lr"])
        self._close()
        return record

    def measured(self, examples: OnDevice) -> tuple[Any, Any]:
        """How the model of now does on a set: as it is, and with the nearest centroid at each step."""
        with precisely(while_evaluating(self.settings.precision), self.device):
            soft = self._measure(examples)
            if not self.centroids:
                return soft, None
            return soft, self._measure(examples, hard=True)

    def _measure(self, examples: OnDevice, *, hard: bool = False) -> Any:
        return measure(self.model, examples, batch=self.settings.evaluation_batch, hard=hard)

    @contextmanager
    def best_weights(self) -> Iterator[None]:
        """A region in which the model has the best weights, and their temperature; afterwards those of now."""
        now = self.model.config.temperature
        with lent_weights(self.model, self.best.weights):
            self._retune(temperature=self.best.temperature)
            try:
                yield
            finally:
                self._retune(temperature=now)

    def begin_with_these(self) -> None:
        """Take the weights of now for the best so far."""
        with self.callbacks.kept(self.model):
            self._keep(*self.measured(self.valid))

    def _rank(self, soft: Outcome, hard: Outcome | None) -> tuple[float, ...]:
        """Where transitions are trained to be hard, it counts how well they are."""
        counts = self.model.config.transition != "mixture"
        return self.task.rank(soft, hard if counts else None, noise=self.model.config.noise)

    def _keep(self, soft: Outcome, hard: Outcome | None) -> None:
        rank, error = self._rank(soft, hard), None if hard is None else hard.error
        temperature, weights = self.model.config.temperature, self.best.weights
        self.best = Best(rank, self.position.epoch, temperature, soft, error, weights)
        keep_weights(self.model, weights)

    def _rules(self) -> dict[str, Any]:
        rules = {"curriculum": self.curriculum, "noise": self.noise, "watch": self.watch}
        return rules if self.divide is None else {**rules, "divide": self.divide}

    def _update(self, progress: float, rows: Tensor, places: np.ndarray[Any, np.dtype[np.int64]]) -> Update:
        batch = self.train.batch(rows, places)
        set_lr(self.optimizer, self._rate(progress, self.position.epoch))
        with precisely(self.settings.precision, self.device):
            loss, found = self._stepped(batch)
        self.callbacks.after_update(self.model)
        # What is told, and what rules look at, is the loss of the task alone.
        mean, wrong, penalty = found if self.callbacks else (loss, found, loss)
        answers = self.train.counted(places)
        self.sums[0].add_(mean, alpha=answers)
        self.sums[1].add_(wrong)
        if self.callbacks.penalise:
            self.sums[2].add_(penalty, alpha=answers)
        self.position.updates += 1
        # Whole epochs are counted by close_epoch.
        self.position.batch += 1
        self.watch.step(loss, model=self.model, checkpoint=self.checkpoint)
        return Update(mean, batch.steps)

    def _stepped(self, batch: Batch) -> tuple[Tensor, Any]:
        """Train on a batch, on pairs of its examples if they are mixed; a last one alone has no partner."""
        if self.mixer is None or len(batch.targets) < 2:
            return self.step(batch.inputs, batch.lengths, batch.targets)  # type: ignore[no-any-return]
        own = self.model.walked(batch.inputs, batch.lengths)
        pairs = self.mixer.draw(own, device=self.device, layers=self.model.layer.num_layers)
        return self._mixed_step((batch.inputs, batch.lengths, batch.targets, pairs)).result()  # type: ignore[no-any-return]

    def _mixed_loss(
        self, model: nn.Module, inputs: Tensor, lengths: Tensor | None, targets: Tensor, pairs: Pairs
    ) -> Any:
        if not self.callbacks:
            return self.task.mixed_loss(model(inputs, lengths, pairs=pairs), targets, pairs)
        logits, penalty = self.callbacks.forward(model, inputs, lengths, pairs=pairs)
        mean, wrong = self.task.mixed_loss(logits, targets, pairs)
        return mean + penalty.to(mean), (mean, wrong, penalty)

    def _clean_loss(self) -> float:
        """The loss of training examples as they are, always the same ones of those that are trained on.

        What is minimised is of mixed labels, and has a floor above 0: it is no sign of how far a lesson is learnt.
        """
        longest = self.curriculum.longest
        known = np.arange(len(self.train)) if longest is None else np.flatnonzero(self.train.lengths <= longest)
        which = known[np.unique(np.linspace(0, len(known) - 1, np.clip(len(known) // 10, *CLEAN)).astype(np.int64))]
        with precisely(while_evaluating(self.settings.precision), self.device):
            return measure(self.model, self.train, batch=self.settings.evaluation_batch, which=which).loss

    def _loss(self, model: nn.Module, inputs: Tensor, lengths: Tensor | None, targets: Tensor) -> Any:
        if not self.callbacks:
            return self.task.loss(model(inputs, lengths), targets)
        logits, penalty = self.callbacks.forward(model, inputs, lengths)
        mean, wrong = self.task.loss(logits, targets)
        return mean + penalty.to(mean), (mean, wrong, penalty)

    def _graph(self, graph: Any) -> Any:
        """Norms are computed on the host or make it wait, and pairs are drawn there, so that neither is captured."""
        why = "callbacks" if self.callbacks else "mixup" if self.settings.mixup != "none" else ""
        if why and graph is True:
            wanted = '"auto" or False: what callbacks do to the weights makes the host wait'
            wanted = '"auto" or False: pairs are drawn on the host' if why == "mixup" else wanted
            raise ArgumentError(where="graph", got=f"True with {why}", wanted=wanted)
        return False if why else graph

    def _rate(self, progress: float, epoch: int) -> float:
        """The learning rate at a moment of an epoch."""
        if self.settings.schedule != "cosine":
            return self.lr
        return self.lr * 0.5 * (1 + math.cos(math.pi * min(1.0, (epoch + progress) / self.settings.epochs)))

    def _tune(self) -> None:
        """Set temperature and noise for an epoch; graphs hold them as numbers, and are made anew."""
        epoch, epochs = self.position.epoch, self.settings.epochs
        temperature = temperature_at(epoch, epochs, begin=self.begin, end=self.settings.temperature_end)
        if self._retune(temperature=temperature, noise=self.noise.noise):
            self.step.reset()

    def _retune(self, **settings: float) -> bool:
        """Change settings of the centroids; whether any was another."""
        changed = {name: value for name, value in settings.items() if getattr(self.model.config, name) != value}
        if not changed or not self.centroids:
            return False
        self.model.retune(**changed)
        return True

    def _best_of(self, state: Mapping[str, Any], weights: dict[str, Tensor]) -> Best:
        return Best.of(state, weights)

    def _planned_batches(self) -> EpochBatches:
        return self._batches()[0]

    def _batches(self) -> tuple[EpochBatches, Tensor]:
        """The batches of this epoch, the same whenever they are asked for."""
        key = self.position.epoch, self.curriculum.longest
        if self._planned is None or self._planned[0] != key:
            passes, generator = self.settings.passes, self._order()
            how: dict[str, Any] = {"batch": self.settings.batch * passes, "bucket": self.settings.bucket}
            how |= {"longest": self.curriculum.longest, "generator": generator}
            some = [EpochBatches.shuffled(self.train.lengths, **how) for _ in range(passes)]
            batches = EpochBatches.joined(some)
            self._planned = key, batches, torch.from_numpy(batches.places).to(self.device)
        return self._planned[1], self._planned[2]
