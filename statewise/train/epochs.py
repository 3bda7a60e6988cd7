"""What the training of every model of examples has in common: where it is, its best, and going on from there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from statewise.errors import DivergedError
from statewise.train.classify_data import EpochBatches
from statewise.train.distributed import World
from statewise.train.driver import Snapshot
from statewise.train.found import Position
from statewise.train.snapshot import check_device, generators, load_generators, load_moments, moments, part
from statewise.train.weights import check_weights, restore_weights


class EpochTraining(ABC):
    """The training of a model on examples, epoch after epoch: everything that changes while it runs.

    All that is drawn comes from torch's global generators, so that a captured step can draw; whoever runs this keeps
    them for it.

    Args:
        model: what is trained, on ``device``.
        settings: how it is trained; with ``lr`` and ``seed``.
        best: the best model so far: nothing yet.
        device: where.
        sums: how many numbers are summed over an epoch.
    """

    optimizer: torch.optim.Optimizer
    best: Any
    lr: float

    def __init__(self, model: Any, settings: Any, best: Any, *, device: torch.device, sums: int) -> None:
        self.model, self.settings, self.device, self.world = model, settings, device, World()
        self.position, self.best, self.lr = Position(), best, float(settings.lr)
        # Through hundreds of steps a gradient may overflow once in a while, where the loss does not: it is left out.
        self.skipped = torch.zeros((), dtype=torch.int64, device=device)
        self.sums = torch.zeros(sums, dtype=torch.float64, device=device)
        self.checkpoint: str | None = None  # the last good resume point, for the error of a run that comes to nothing

    @property
    def remaining(self) -> int:
        """How many updates the epoch still has."""
        return len(self._planned_batches()) - self.position.batch

    @abstractmethod
    def _planned_batches(self) -> EpochBatches:
        """The batches of this epoch, the same whenever they are asked for."""

    @abstractmethod
    def _rules(self) -> dict[str, Any]:
        """What remembers something from epoch to epoch, with ``state`` and ``load_state``."""

    @abstractmethod
    def _best_of(self, state: Mapping[str, Any], weights: dict[str, Tensor]) -> Any:
        """The best model, from what its ``state`` gave."""

    def snapshot(self) -> Snapshot:
        """All that the rest of the run depends on: tensors, and what JSON can hold."""
        tensors = {f"model.{name}": parameter.detach() for name, parameter in self.model.named_parameters()}
        tensors |= {f"best.{name}": weight for name, weight in self.best.weights.items()}
        tensors |= {f"optimizer.{name}": tensor for name, tensor in moments(self.optimizer)}
        tensors |= {"sums": self.sums, "skipped": self.skipped, **generators(self.device)}
        document = {"position": vars(self.position), "best": self.best.state(), "lr": self.lr}
        document |= {"device": self.device.type}
        return tensors, document | {name: rule.state() for name, rule in self._rules().items()}

    def restore(self, tensors: Mapping[str, Tensor], document: Mapping[str, Any]) -> None:
        """Go on from what :meth:`snapshot` gave.

        Args:
            tensors: on the CPU.
            document: the rest.
        """
        check_device(document["device"], self.device)
        restore_weights(self.model, part(tensors, "model"))
        weights = {name: tensor.to(self.device) for name, tensor in part(tensors, "best").items()}
        if weights:  # before the first validation there is no best
            check_weights(self.model, weights, where="resume, the best model")
        self.best = self._best_of(document["best"], weights)
        self.position, self.lr = Position(**document["position"]), float(document["lr"])
        load_moments(self.optimizer, part(tensors, "optimizer"))
        self.sums.copy_(tensors["sums"])
        self.skipped.copy_(tensors["skipped"])
        load_generators(tensors, self.device)
        for name, rule in self._rules().items():
            rule.load_state(document[name])

    def _skipped_in(self, updates: int) -> int:
        """How many updates of an epoch were left out; an error if all were."""
        skipped = int(self.skipped)
        if skipped == updates:
            raise self._nothing_learnt(skipped)
        return skipped

    def _nothing_learnt(self, updates: int) -> DivergedError:
        """The error for an epoch that has not moved the weights."""
        last = "" if self.checkpoint is None else f" The last weights are in {self.checkpoint}."
        return DivergedError(
            where=f"training, epoch {self.position.epoch + 1}",
            got=f"a gradient that overflowed in each of its {updates} updates",
            wanted="finite gradients",
            remedy="Begin a new run with a lower learning rate (lr=, --lr), a gradient clipped at a smaller norm "
            f"(clip=, --clip), or a smaller forget_bias (--forget-bias).{last}",
            step=self.position.updates,
            culprit="the gradient",
            fraction=1.0,
            checkpoint=self.checkpoint,
        )

    def _order(self) -> torch.Generator:
        """What the order of this epoch's examples is drawn from."""
        return torch.Generator().manual_seed(self.settings.seed + (self.position.epoch << 32))

    def _close(self) -> None:
        """Begin the next epoch."""
        self.position.batch = 0
        self.sums.zero_()
        self.skipped.zero_()
