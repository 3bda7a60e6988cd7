"""Where the training on examples is, and the best model that it has found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from statewise.train.metrics import encode_number
from statewise.train.tasks import Measured, Outcome


@dataclass
class Position:
    """Where a run is.

    Args:
        epoch: how many epochs are complete.
        batch: the number of the next batch within the epoch.
        updates: how many updates there were in all.
    """

    epoch: int = 0
    batch: int = 0
    updates: int = 0


_NOTHING = Measured(math.inf, 1.0, 0, ())


@dataclass
class Best:
    """The best model so far.

    Args:
        rank: what it was compared by.
        epoch: after how many epochs it was found; 0 for none.
        temperature: of its centroids.
        measured: on the validation set.
        hard_error: there, with the nearest centroid at each step; None without centroids.
        weights: its parameters, by name.
    """

    rank: tuple[float, ...] = (math.inf,)
    epoch: int = 0
    temperature: float = 1.0
    measured: Outcome = _NOTHING
    hard_error: float | None = None
    weights: dict[str, Tensor] = field(default_factory=dict)

    def state(self) -> dict[str, Any]:
        """All but the weights, as strict JSON."""
        found = {**vars(self), "rank": [encode_number(part) for part in self.rank], "measured": vars(self.measured)}
        found["measured"] = {**found["measured"], "loss": encode_number(self.measured.loss)}
        del found["weights"]
        return found

    @classmethod
    def of(cls, state: Mapping[str, Any], weights: dict[str, Tensor]) -> Best:
        """What :meth:`state` gave, with its weights."""
        told = state["measured"]
        confusion = tuple(tuple(row) for row in told["confusion"])
        measured = Measured(float(told["loss"]), told["error"], told["count"], confusion)
        rank = tuple(math.nan if part is None else float(part) for part in state["rank"])
        return cls(rank, state["epoch"], state["temperature"], measured, state["hard_error"], weights)
