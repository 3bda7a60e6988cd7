"""When to lower the rates and when to end a run: patience, once at full rates and once at a tenth of them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from statewise.errors import ArgumentError

Verdict = Literal["improved", "waiting", "slower", "stop", "diverged"]


@dataclass(kw_only=True)
class TwoPhase:
    """Early stopping in two phases, by the loss on held-out examples (the rule of the code published with Ziv 2019).

    A loss that is less than the best one by more than ``min_delta`` is an improvement: its weights are worth keeping.
    After more than ``patience`` looks in a row without one, all rates are to be divided by ten and training goes on
    from the present weights; the second time, the run is over, and the weights that were kept are its result.

    The rule knows neither weights nor optimisers: who trains does what it says. Its fields are all of its state, plain
    numbers that JSON can hold.

    Args:
        min_delta: by how much a loss must fall.
        patience: how many looks without an improvement are put up with.
        best: the least loss that counted; None before the first.
        waited: looks since then, or since the rates were divided.
        slower: whether the rates have been divided.
        over: whether the run has ended.

    >>> rule = TwoPhase(min_delta=0.1, patience=1)
    >>> [rule.observe(loss) for loss in (1.0, 0.95, 0.95, 0.5, 0.5, 0.5)]
    ['improved', 'waiting', 'slower', 'improved', 'waiting', 'stop']
    """

    min_delta: float
    patience: int = 10
    best: float | None = None
    waited: int = 0
    slower: bool = False
    over: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.min_delta < math.inf:
            raise ArgumentError(where="TwoPhase.min_delta", got=self.min_delta, wanted="a number >= 0")
        for name in ("patience", "waited"):
            if getattr(self, name) < 0:
                raise ArgumentError(where=f"TwoPhase.{name}", got=getattr(self, name), wanted="an integer >= 0")
        if self.best is not None and not math.isfinite(self.best):
            raise ArgumentError(where="TwoPhase.best", got=self.best, wanted="a finite loss, or None before the first")

    def observe(self, loss: float) -> Verdict:
        """What to do after a look.

        Args:
            loss: on held-out examples.

        Returns:
            "improved": keep these weights; "waiting": go on; "slower": divide all rates by ten and go on; "stop": end;
            "diverged": end, since the loss is not a finite number.
        """
        if self.over:
            raise ArgumentError(
                where="TwoPhase.observe",
                got=f"the loss {loss} after the end",
                wanted="none",
                remedy="Begin a new run with a new TwoPhase.",
            )
        if not math.isfinite(loss):
            self.over = True
            return "diverged"
        if self.best is None or self.best - loss > self.min_delta:
            self.best, self.waited = loss, 0
            return "improved"
        self.waited += 1
        if self.waited <= self.patience:
            return "waiting"
        if self.slower:
            self.over = True
            return "stop"
        self.slower, self.waited = True, 0
        return "slower"

    def describe(self) -> dict[str, Any]:
        """All of it, as JSON can hold it; ``TwoPhase(**document)`` goes on from there.

        >>> TwoPhase(min_delta=0.1).describe()["patience"]
        10
        """
        return asdict(self)
