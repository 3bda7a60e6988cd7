"""Training a tagger: the state of a run, and one update after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from statewise.mixup import Pairs
from statewise.models import Tagger
from statewise.models.encoded import TokenBatch
from statewise.train.choose_optimizer import build_optimizer
from statewise.train.classify_data import EpochBatches
from statewise.train.eager import EagerStep
from statewise.train.epochs import EpochTraining
from statewise.train.language import Update
from statewise.train.precision import precisely, while_evaluating
from statewise.train.schedules import EarlyStopping, set_lr
from statewise.train.tag_data import TagMeasured, TagSet, mean_loss, measure_tags
from statewise.train.tag_settings import TaggerSettings
from statewise.train.watch import Watch
from statewise.train.weights import keep_weights, lent_weights

CLEAN = (32, 512)  # at least and at most so many training sentences tell how far they are learnt, else a tenth of them


@dataclass
class BestTagger:
    """The best tagger so far.

    Args:
        epoch: after how many epochs it was found; 0 for none.
        measured: what it did on the validation set; None without one.
        weights: its parameters, by name.
    """

    epoch: int = 0
    measured: TagMeasured | None = None
    weights: dict[str, Tensor] = field(default_factory=dict)

    @property
    def rank(self) -> tuple[float, float]:
        """What taggers are compared by; the smaller the better."""
        return (math.inf, math.inf) if self.measured is None else (-self.measured.f1, self.measured.loss)

    def state(self) -> dict[str, Any]:
        """All but the weights, as JSON."""
        return {"epoch": self.epoch, "measured": None if self.measured is None else self.measured.record()}


class TaggerTraining(EpochTraining):
    """The training of a tagger: everything that changes while it runs, and how.

    Args:
        model: what is trained, on ``device``.
        settings: how it is trained.
        train: on what.
        valid: what says which epoch's model is the best; None where the last is kept.
        device: where.
    """

    best: BestTagger
    settings: TaggerSettings

    def __init__(
        self, model: Tagger, settings: TaggerSettings, train: TagSet, valid: TagSet | None, *, device: torch.device
    ) -> None:
        super().__init__(model, settings, BestTagger(), device=device, sums=1)
        self.train, self.valid, self.mixer = train, valid, settings.mixer()
        moved = [parameter for parameter in model.parameters() if parameter.requires_grad]
        rates = {"lr": settings.lr, "weight_decay": settings.weight_decay}
        self.optimizer = build_optimizer(settings.optimizer, moved, **rates)  # type: ignore[arg-type]
        self.plateau = EarlyStopping(patience=settings.step_every) if settings.schedule == "plateau" else None
        # On a CPU nothing waits, and a look after every step finds the first tensor that went wrong.
        self.watch = Watch(every=1 if device.type == "cpu" else 50)
        # Without graphs: sentences have many lengths.
        self.step = EagerStep(model, self._loss, self.optimizer, settings.clip, self.skipped)
        self._planned: tuple[int, EpochBatches] | None = None

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to train."""
        epoch, patience = self.position.epoch, self.settings.patience
        stale = patience is not None and self.valid is not None and epoch - self.best.epoch >= patience
        stopped = self.settings.schedule == "plateau" and self.lr < self.settings.least_lr
        return self.position.batch == 0 and (stale or stopped or epoch >= self.settings.epochs)

    def updates(self) -> Iterator[Update]:
        """Train to the end of the epoch, one update after the other."""
        self.model.train()
        batches = self._planned_batches()
        for number, where in enumerate(batches.slices(self.position.batch), start=self.position.batch):
            yield self._update(number / len(batches), batches.places[where])

    def close_epoch(self) -> dict[str, Any]:
        """Validate, keep the best or the last, and let the rules act; gives the record of the epoch."""
        self.watch.look(model=self.model, checkpoint=self.checkpoint)
        batches = self._planned_batches()
        skipped = self._skipped_in(len(batches))
        train_loss = float(self.sums[0]) / len(batches)
        rate = self._rate(0.0, self.position.epoch)
        self.position.epoch += 1
        measured = None if self.valid is None else self.measured(self.valid)
        found = BestTagger(self.position.epoch, measured)
        if self.settings.keep == "last" or found.rank < self.best.rank:
            self._keep(measured)
        record = {"epoch": self.position.epoch, "updates": self.position.updates, "train_loss": train_loss}
        record["clean_loss"] = self._clean_loss()
        if measured is not None:
            record |= {f"valid_{name}": getattr(measured, name) for name in ("loss", "f1", "strict_f1", "accuracy")}
        record |= {"lr": rate, "skipped": skipped}
        self._turn_rate(train_loss)
        self._close()
        return record

    def measured(self, examples: TagSet) -> TagMeasured:
        """How the model of now does on a set.

        Args:
            examples: the set.
        """
        with precisely(while_evaluating(self.settings.precision), self.device):
            return measure_tags(self.model, examples, batch=self.settings.evaluation_batch)

    def _clean_loss(self) -> float:
        """The loss of training sentences, in every epoch the same ones, as they are.

        What is minimised is of dropped and mixed sentences, and where labels are mixed it has a floor above 0: it can
        be compared with no run that is mixed otherwise, and tells little of how far its own has come.
        """
        count = np.clip(len(self.train) // 10, *CLEAN)
        which = np.unique(np.linspace(0, len(self.train) - 1, count).astype(np.int64))
        with precisely(while_evaluating(self.settings.precision), self.device):
            return mean_loss(self.model, self.train, which, batch=self.settings.evaluation_batch)

    @contextmanager
    def best_weights(self) -> Iterator[None]:
        """A region in which the model has the best weights; afterwards those of now."""
        with lent_weights(self.model, self.best.weights):
            yield

    def begin_with_these(self) -> None:
        """Take the weights of now for the best so far."""
        self._keep(None if self.valid is None else self.measured(self.valid))

    def _keep(self, measured: TagMeasured | None) -> None:
        self.best = BestTagger(self.position.epoch, measured, self.best.weights)
        keep_weights(self.model, self.best.weights)

    def _update(self, progress: float, which: npt.NDArray[np.int64]) -> Update:
        tokens, tags = self.train.batch(self.model, which)
        pairs = None
        if self.mixer is not None and len(which) > 1:  # a last sentence alone has no partner
            pairs = self.mixer.draw(tokens.lengths, device=self.device)
        set_lr(self.optimizer, self._rate(progress, self.position.epoch))
        with precisely(self.settings.precision, self.device):
            loss: Tensor = self.step((tokens, tags, pairs)).result()
        self.sums[0].add_(loss)
        self.position.updates += 1
        # Whole epochs are counted by close_epoch.
        self.position.batch += 1
        self.watch.step(loss, model=self.model, checkpoint=self.checkpoint)
        return Update(loss, int(tokens.lengths.sum()))

    def _loss(self, model: Tagger, tokens: TokenBatch, tags: Tensor, pairs: Pairs | None) -> Tensor:
        return model.loss(tokens, tags, pairs=pairs, mode=self.settings.crf_mode)

    def _rate(self, progress: float, epoch: int) -> float:
        """The learning rate at a moment of an epoch."""
        if self.settings.schedule == "steps":
            return float(self.settings.lr / self.settings.divide ** (epoch // self.settings.step_every))
        if self.settings.schedule == "cosine":
            return self.lr * 0.5 * (1 + math.cos(math.pi * min(1.0, (epoch + progress) / self.settings.epochs)))
        return self.lr

    def _turn_rate(self, train_loss: float) -> None:
        if self.plateau is not None and self.plateau.observe(train_loss):
            self.lr /= self.settings.divide
            self.plateau.best_at = self.plateau.count  # it counts from here

    def _rules(self) -> dict[str, Any]:
        rules: dict[str, Any] = {"watch": self.watch}
        return rules if self.plateau is None else {**rules, "plateau": self.plateau}

    def _best_of(self, state: Mapping[str, Any], weights: dict[str, Tensor]) -> BestTagger:
        measured = state["measured"]
        return BestTagger(state["epoch"], None if measured is None else TagMeasured.of(measured), weights)

    def _planned_batches(self) -> EpochBatches:
        if self._planned is None or self._planned[0] != self.position.epoch:
            passes, generator = self.settings.passes, self._order()
            how: dict[str, Any] = {"batch": self.settings.batch * passes, "bucket": self.settings.bucket}
            some = [EpochBatches.shuffled(self.train.lengths, generator=generator, **how) for _ in range(passes)]
            self._planned = self.position.epoch, EpochBatches.joined(some)
        return self._planned[1]
