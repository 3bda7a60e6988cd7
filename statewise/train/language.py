"""Training a language model: the state of a run, and one update after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from statewise.data import Columns, Corpus, bptt_lengths
from statewise.errors import LengthError
from statewise.mixup import Pairs
from statewise.models import LanguageModel
from statewise.models.text import perplexity
from statewise.objectives import tile
from statewise.train.averaging import Averaging, NonMonotone
from statewise.train.choose_optimizer import build_optimizer
from statewise.train.distributed import World
from statewise.train.eager import EagerStep
from statewise.train.evaluation import evaluate_stream
from statewise.train.mixed_language import MixedObjective, following_pairs, refuse_mixing
from statewise.train.precision import precisely, while_evaluating
from statewise.train.schedules import Divide, EarlyStopping, set_lr
from statewise.train.settings import TrainingSettings
from statewise.train.step import TrainingStep
from statewise.train.watch import Watch
from statewise.train.weights import keep_weights, lent_weights

GRAPHS = 64  # random lengths of segments make many kinds of calls


class Objective(nn.Module):
    """A language model as a function of a segment, which is what data-parallel training can wrap.

    Args:
        model: the language model.
    """

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor, targets: Tensor, state: Any) -> tuple[Tensor, tuple[Tensor, Any]]:
        """What is minimised, and beside it the negative log-likelihood and the state."""
        losses = self.model.loss(tokens, targets, state)
        return losses.total, (losses.nll, losses.state)


@dataclass
class Position:
    """Where a run is.

    Args:
        epoch: how many epochs are complete.
        segment: the number of the next segment within the epoch.
        row: where it begins.
        updates: how many updates there were in all.
    """

    epoch: int = 0
    segment: int = 0
    row: int = 0
    updates: int = 0


class Update(NamedTuple):
    """What an update was.

    Attributes:
        nll: the mean negative log-likelihood of its tokens, on the device.
        tokens: how many they were, in all processes.
    """

    nll: Tensor
    tokens: int


@dataclass
class Best:
    """The best model so far.

    Args:
        nll: its validation loss.
        epoch: after how many epochs it was found; 0 for none, or for the weights of the beginning.
        weights: its parameters, by name.
    """

    nll: float = math.inf
    epoch: int = 0
    weights: dict[str, Tensor] = field(default_factory=dict)


class LanguageTraining:
    """The training of a language model: everything that changes while it runs, and how.

    Truncated backpropagation through time over parallel columns, with the state carried from segment to segment and
    forgotten at the beginning of an epoch (Dieng et al. 2018, Algorithm 1).

    All that is drawn comes from torch's global generator of the device, so that a captured step can draw; whoever runs
    this keeps that generator for it, as :func:`~statewise.train.train_language_model` does.

    Args:
        model: what is trained, on ``device``.
        settings: how.
        corpus: on what.
        device: where.
        world: this process among those that train together.
        graph: as for :class:`TrainingStep`.
    """

    def __init__(
        self,
        model: LanguageModel,
        settings: TrainingSettings,
        corpus: Corpus,
        *,
        device: torch.device,
        world: World | None = None,
        graph: Any = "auto",
    ) -> None:
        _check_texts(corpus)
        self.model, self.settings, self.corpus, self.device = model, settings, corpus, device
        self.world = world or World()
        self.position, self.best, self.lr = Position(), Best(), settings.lr
        parameters = list(model.parameters())
        self.optimizer = build_optimizer(
            settings.optimizer,  # type: ignore[arg-type]
            parameters,
            lr=settings.lr,
            weight_decay=settings.weight_decay,
        )
        self.averaging = Averaging(parameters)
        if settings.averaging == "always":
            self.averaging.start()
        self.non_monotone = NonMonotone(settings.non_monotone)  # begins the averaging, or ends the run
        self.divide = None if settings.divide is None else Divide(settings.divide)
        self.stopping = EarlyStopping(settings.patience or settings.epochs + 1)
        # On a CPU nothing waits, and a look after every step finds the first tensor that went wrong.
        self.watch = Watch(every=1 if device.type == "cpu" else 50)
        columns = Columns(corpus.train, settings.batch)
        self.columns = columns.shard(self.world.rank, self.world.size).to(device)
        wrapped = self.world.wrapped(Objective(model), device)
        graph = graph if self.world.size == 1 else False
        self.step = TrainingStep(wrapped, _call, self.optimizer, clip=settings.clip, graph=graph, keep=GRAPHS)
        self.mixer = settings.mixer()
        self.pairs: Pairs | None = None
        self._mixed_step: EagerStep | None = None
        if self.mixer is not None:
            refused: dict[str, Any] = {"samples": settings.samples, "processes": self.world.size, "graph": graph}
            refuse_mixing(model, mixup=settings.mixup, **refused)
            # Pairs are drawn on the host, with other indices and coefficients in every update.
            self._mixed_step = EagerStep(MixedObjective(model, self.mixer), _call, self.optimizer, settings.clip)
        self.carried: Any = None
        self.summed_nll = torch.zeros((), dtype=torch.float64, device=device)
        self.checkpoint: str | None = None  # the last good resume point, for the error of a run that comes to nothing

    @property
    def remaining(self) -> int:
        """How many updates the epoch still has."""
        return len(self._lengths()) - self.position.segment

    def updates(self) -> Iterator[Update]:
        """Train to the end of the epoch, one update after the other."""
        self.model.train()
        lengths = self._lengths()
        while self.position.segment < len(lengths):
            yield self._update(lengths[self.position.segment])

    def begin_with_these(self) -> None:
        """Take the weights of now for the best so far, as fine-tuning does: it must not end with worse ones."""
        self._keep(self._validated())

    def close_epoch(self) -> dict[str, Any]:
        """Validate, keep the best, and let the rules act; gives the record of the epoch."""
        self.watch.look(model=self.model, checkpoint=self.checkpoint)
        tokens = self.columns.predicted * self.settings.samples * self.world.size
        train_nll = float(self.world.summed(self.summed_nll.clone())) / tokens
        averaged, lr = self.averaging.count > 0, self.lr
        self.position.epoch += 1
        with self.averaging.swapped():
            valid_nll = self._validated()
            if valid_nll < self.best.nll:
                self._keep(valid_nll)
        self._apply_rules(valid_nll)
        self.position.segment = self.position.row = 0
        self.carried = None
        self.summed_nll.zero_()
        return {
            "epoch": self.position.epoch,
            "updates": self.position.updates,
            "train_perplexity": perplexity(train_nll),
            "valid_perplexity": perplexity(valid_nll),
            "lr": lr,
            "averaged": averaged,
        }

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to train."""
        stale = self.stopping.count - self.stopping.best_at >= self.stopping.patience
        ended = stale or (self.settings.stop_non_monotone and self.non_monotone.fired is not None)
        return self.position.segment == 0 and (ended or self.position.epoch >= self.settings.epochs)

    @contextmanager
    def best_weights(self) -> Iterator[None]:
        """A region in which the model has the best weights; afterwards those of now."""
        with lent_weights(self.model, self.best.weights):
            yield

    def _validated(self) -> float:
        with precisely(while_evaluating(self.settings.precision), self.device):
            found = evaluate_stream(self.model, self.corpus.valid, batch=self.settings.valid_batch, device=self.device)
        return self.world.agreed(found.nll / found.tokens)

    def _update(self, length: int) -> Update:
        tokens, targets = self.columns.segment(self.position.row, length)
        tokens, targets = (tile(part, self.settings.samples) for part in (tokens, targets))
        set_lr(self.optimizer, self.lr * length / self.settings.bptt if self.settings.random_bptt else self.lr)
        with precisely(self.settings.precision, self.device):
            total, (nll, self.carried) = self._stepped(tokens, targets)
        self.averaging.update()
        self.summed_nll.add_(nll, alpha=targets.numel())
        self.position.updates += 1
        self.position.segment += 1
        self.position.row += length
        self.watch.step(total, model=self.model, states=self.carried, checkpoint=self.checkpoint)
        return Update(nll, targets.numel() * self.world.size)

    def _stepped(self, tokens: Tensor, targets: Tensor) -> Any:
        """Train on a segment, of mixed columns if they are mixed."""
        if self.mixer is None or self._mixed_step is None:
            return self.step(tokens, targets, self.carried)
        before = None if self.carried is None else self.pairs
        steps, batch = tokens.shape
        self.pairs = following_pairs(self.mixer, before, steps, batch, self.device)
        return self._mixed_step((tokens, targets, self.carried, self.pairs)).result()

    def _lengths(self) -> list[int]:
        """The lengths of the segments of this epoch, the same whenever they are asked for."""
        generator = torch.Generator().manual_seed(self.settings.seed + (self.position.epoch << 32))
        random = self.settings.random_bptt
        return bptt_lengths(len(self.columns), base=self.settings.bptt, random=random, generator=generator)

    def _keep(self, valid_nll: float) -> None:
        self.best.nll, self.best.epoch = valid_nll, self.position.epoch
        keep_weights(self.model, self.best.weights)

    def _apply_rules(self, valid_nll: float) -> None:
        self.stopping.observe(valid_nll)
        fires = self.non_monotone.observe(valid_nll)
        if fires and self.settings.averaging == "non-monotone" and not self.averaging.started:
            self.averaging.start()
        if self.divide is not None:
            set_lr(self.optimizer, self.lr)
            self.divide.observe(valid_nll, self.optimizer)
            self.lr = float(self.optimizer.param_groups[0]["lr"])


def _check_texts(corpus: Corpus) -> None:
    """Refuse at once what validation would find after an epoch, and the test at the end."""
    for name in ("valid", "test"):
        tokens = len(getattr(corpus, name))
        if tokens < 2:
            raise LengthError(where=f"corpus.{name}", got=f"{tokens} token(s)", wanted="at least two")


def _call(objective: nn.Module, tokens: Tensor, targets: Tensor, state: Any, *pairs: Pairs) -> Any:
    return objective(tokens, targets, state, *pairs)
