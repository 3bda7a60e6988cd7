"""What validation losses decide: when the learning rate falls, and when a run ends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from torch import Tensor
from torch.optim import Optimizer

from statewise.errors import ArgumentError
from statewise.train.metrics import encode_number


class Divide:
    """Divides the learning rate when the validation loss has not improved.

    ``if loss < best: best = loss else: lr = lr / factor`` (Dieng et al. 2018, section 5); with ``versus="previous"``
    the rate falls when the loss is above that of the previous epoch. NaN counts as infinity.

    Args:
        factor: what the rate is divided by, > 1.
        versus: what a loss is compared with: the best so far, or the previous one.

    >>> import torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=30.0)
    >>> rule = Divide()
    >>> [rule.observe(loss, optimizer) for loss in (120, 110, 112)], optimizer.param_groups[0]["lr"]
    ([False, False, True], 25.0)
    """

    def __init__(self, factor: float = 1.2, versus: Literal["best", "previous"] = "best") -> None:
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not 1 < factor < math.inf:
            raise ArgumentError(where="Divide.factor", got=factor, wanted="a number > 1")
        if versus not in ("best", "previous"):
            raise ArgumentError(where="Divide.versus", got=versus, wanted='"best" or "previous"')
        self.factor, self.versus = factor, versus
        self.best = self.previous = math.inf

    def observe(self, loss: float, optimizer: Optimizer) -> bool:
        """Compare a loss, and divide all rates of the optimiser if it did not do; whether they were divided.

        Args:
            loss: of an evaluation; the smaller the better.
            optimizer: whose rates are divided. A rate that is a tensor is changed in place.
        """
        loss = math.inf if math.isnan(loss) else float(loss)
        failed = not loss < self.best if self.versus == "best" else loss > self.previous
        self.best, self.previous = min(self.best, loss), loss
        if failed:
            # Groups may share one tensor, which is divided once.
            tensors = {id(rate): rate for rate in _rates(optimizer) if isinstance(rate, Tensor)}
            for rate in tensors.values():
                rate.fill_(float(rate) / self.factor)
            for group in optimizer.param_groups:
                if not isinstance(group["lr"], Tensor):
                    group["lr"] = group["lr"] / self.factor
        return failed

    def state(self) -> dict[str, Any]:
        """What the rule remembers, as strict JSON; the rates are the optimiser's."""
        return {"best": encode_number(self.best), "previous": encode_number(self.previous)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state` gave."""
        self.best, self.previous = float(state["best"]), float(state["previous"])


class EarlyStopping:
    """Ends a run whose validation loss has not improved for a number of observations.

    Args:
        patience: how many observations in a row may pass without a new best.
        margin: by how much a loss must be below the best to be a new one.

    >>> stopping = EarlyStopping(patience=2)
    >>> [stopping.observe(loss) for loss in (3.0, 2.0, 2.5, 2.1)]
    [False, False, False, True]
    >>> stopping.best, stopping.best_at
    (2.0, 2)
    """

    def __init__(self, patience: int, margin: float = 0.0) -> None:
        if isinstance(patience, bool) or not isinstance(patience, int) or patience < 1:
            raise ArgumentError(where="EarlyStopping.patience", got=patience, wanted="a whole number >= 1")
        if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 <= margin < math.inf:
            raise ArgumentError(where="EarlyStopping.margin", got=margin, wanted="a number >= 0")
        self.patience, self.margin = patience, margin
        self.best = math.inf
        self.best_at = self.count = 0

    @property
    def improved(self) -> bool:
        """Whether the latest loss is the best: the time to keep a model."""
        return 0 < self.count == self.best_at

    def observe(self, loss: float) -> bool:
        """Whether to stop after this loss.

        Args:
            loss: of an evaluation; the smaller the better. NaN is no improvement.
        """
        self.count += 1
        if loss < self.best - self.margin:
            self.best, self.best_at = float(loss), self.count
        return self.count - self.best_at >= self.patience

    def state(self) -> dict[str, Any]:
        """What it remembers, as strict JSON."""
        return {"best": encode_number(self.best), "best_at": self.best_at, "count": self.count}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state` gave."""
        self.best, self.best_at, self.count = float(state["best"]), state["best_at"], state["count"]


def set_lr(optimizer: Optimizer, lr: float) -> None:
    """Give all groups of an optimiser one learning rate; one that is a tensor is changed in place.

    Args:
        optimizer: whose rates.
        lr: the rate.
    """
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(lr)
        else:
            group["lr"] = lr


def _rates(optimizer: Optimizer) -> list[float | Tensor]:
    return [group["lr"] for group in optimizer.param_groups]
