"""What is asked of a classifier, of whole sequences or of every step, and how well it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from statewise.mixup import Pairs
from statewise.models.views import view_of
from statewise.train.classify_data import EpochBatches, OnDevice


@dataclass(frozen=True)
class Outcome:
    """How well a model does on a set, whatever is asked of it.

    Attributes:
        loss: the mean of what is minimised, in nats.
        error: how wrong the answers are; 0 is the best.
        count: how many answers there were.
    """

    loss: float
    error: float
    count: int


@dataclass(frozen=True)
class Measured(Outcome):
    """How well a classifier does on a set.

    Attributes:
        loss: the mean cross-entropy, in nats.
        error: the share of wrong answers.
        count: how many answers there were.
        confusion: for each true class, how often each class was answered.

    >>> print(Measured(0.01, 0.25, 4, ((2, 0), (1, 1))))
    error 25.00 %, loss 0.0100
    """

    confusion: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        return f"error {100 * self.error:.2f} %, loss {self.loss:.4f}"

    @property
    def accuracy(self) -> float:
        """The share of right answers."""
        return 1.0 - self.error

    @property
    def balanced_accuracy(self) -> float:
        """The mean over the classes that occur of the share of right answers: what rare classes also count in."""
        shares = [row[label] / sum(row) for label, row in enumerate(self.confusion) if sum(row)]
        return sum(shares) / len(shares)

    @property
    def correlation(self) -> float:
        """Matthews' correlation of answers and classes: 1 for no error, 0 for answers that do not look at the example.

        >>> Measured(0.1, 0.05, 20, ((19, 0), (1, 0))).correlation
        0.0
        """
        table = np.array(self.confusion, dtype=np.float64)
        answered, true, total = table.sum(0), table.sum(1), table.sum()
        spread = np.sqrt((total**2 - answered @ answered) * (total**2 - true @ true))
        return float((np.trace(table) * total - answered @ true) / spread) if spread > 0 else 0.0


@dataclass(frozen=True)
class Task:
    """What is asked, and what the best answer is.

    Args:
        name: of the task, as the folder of a run has it.
        by_loss: whether the best model is that of the smallest loss; else that of the fewest errors, then of the loss.

    >>> logits, targets = torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1])
    >>> loss, errors = CLASSES.loss(logits, targets)
    >>> round(float(loss), 3), int(errors)
    (1.127, 1)
    """

    name: str
    by_loss: bool = False

    def loss(
        self, logits: Float[Tensor, "*answers classes"], targets: Int[Tensor, "*answers"]
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """The mean cross-entropy, and how many answers are wrong."""
        flat = logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits
        mean = cross_entropy(flat.flatten(0, -2), targets.flatten())
        return mean, (logits.detach().argmax(-1) != targets).sum()

    def mixed_loss(
        self, logits: Float[Tensor, "pairs classes"], targets: Int[Tensor, " answers"], pairs: Pairs
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """The mean loss of mixed labels, and how many answers are wrong, each counted by the weights of its labels.

        ``l CE(p, y) + (1 - l) CE(p, y')`` with the mean coefficient ``l`` of the pair (Karamzade et al. 2020, Remark
        1), over the steps that it has after the treatment of unequal lengths. Wrong answers are told for as many labels
        as there are sequences, whether they make as many pairs or half as many.

        Args:
            logits: of the pairs.
            targets: of the sequences.
            pairs: of them.
        """
        answers, weight = logits.detach().argmax(-1), pairs.mean_coefficient.to(logits.device)
        first, second = (targets[side.to(targets.device, non_blocking=True)] for side in (pairs.first, pairs.second))
        wrong = weight * (answers != first) + (1 - weight) * (answers != second)
        return pairs.classification(logits, targets), wrong.mean() * len(targets)

    def rank(self, soft: Outcome, hard: Outcome | None = None, *, noise: float = 0.0) -> tuple[float, ...]:
        """What models are compared by; the smaller the better.

        Args:
            soft: on the validation set.
            hard: there too, with the nearest centroid at each step; None where that does not count.
            noise: that it was trained with: of two without an error, that which withstood more is harder.
        """
        if self.by_loss:
            return (soft.loss,)
        return (soft.error, soft.loss) if hard is None else (soft.error, hard.error, -noise, soft.loss)


CLASSES = Task("classifier")
STEPS = Task("step classifier", by_loss=True)


def measure(
    model: Any, examples: OnDevice, *, batch: int, hard: bool = False, which: npt.NDArray[np.int64] | None = None
) -> Measured:
    """How well a classifier does on a set, with everything random switched off.

    Args:
        model: the classifier, on the device of the examples.
        examples: the set.
        batch: how many run at once.
        hard: move to the nearest centroid at each step, as the automaton of the model does.
        which: some of the examples; None for all.
    """
    seen = view_of(model)
    if hard:
        seen.retune(transition="argmax")
    classes = model.classes
    table = torch.zeros(classes * classes, dtype=torch.int64, device=examples.device)
    summed = torch.zeros((), dtype=torch.float64, device=examples.device)
    batches = EpochBatches.sorted(examples.lengths if which is None else examples.lengths[which], batch=batch)
    places = batches.places if which is None else which[batches.places]
    rows = torch.from_numpy(places).to(examples.device)
    seen.eval()
    with torch.no_grad():
        for part in batches.slices():
            inputs, lengths, targets, _ = examples.batch(rows[part], places[part])
            logits = seen(inputs, lengths).flatten(0, -2).float()
            targets = targets.flatten()
            summed += cross_entropy(logits.double(), targets, reduction="sum")
            pairs = targets * classes + logits.argmax(-1)
            table.index_add_(0, pairs, torch.ones_like(pairs))
    confusion = np.array(table.tolist()).reshape(classes, classes)
    count = int(confusion.sum())
    right = int(np.trace(confusion))
    shares = (float(summed) / count, (count - right) / count) if count else (0.0, 0.0)
    return Measured(*shares, count, tuple(tuple(row) for row in confusion.tolist()))
