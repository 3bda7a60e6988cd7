"""Averaged SGD: the mean of the iterates, and the test that says when to begin with it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from statewise.errors import ArgumentError, ShapeError
from statewise.train.metrics import encode_number

_HALVES = (torch.float16, torch.bfloat16)


class Averaging:
    """The running mean of all iterates since the switch; training goes on with the iterates themselves.

    ``mean_k = mean_{k-1} + (w_k - mean_{k-1}) / k``, where ``w_k`` are the parameters after the k-th step since
    :meth:`start` (Polyak and Juditsky 1992; Merity et al. 2018). torch's ``ASGD`` leaves the first iterate out and
    applies a changed learning rate one step late, so it is not used.

    Parameters are written in place and stay where they are, which a captured step needs. Nothing waits for the device.
    Means of half precision parameters are kept in single precision. A parameter that is given twice counts once.

    Args:
        parameters: what is averaged.

    >>> weight = nn.Parameter(torch.tensor([1.0]))
    >>> averaging = Averaging([weight])
    >>> averaging.start()
    >>> for value in (0.9, 0.8, 0.75, 0.55):
    ...     _ = weight.data.fill_(value)
    ...     averaging.update()
    >>> with averaging.swapped():
    ...     print(round(weight.item(), 6))
    0.75
    >>> round(weight.item(), 6)
    0.55
    """

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self.parameters: list[Tensor] = list(dict.fromkeys(parameters))
        if not self.parameters:
            raise ArgumentError(where="Averaging.parameters", got="none", wanted="at least one parameter")
        self.started = False
        self.count = 0
        self._means: list[Tensor] = []
        self._halves = any(parameter.dtype in _HALVES for parameter in self.parameters)
        self._kept: list[Tensor] = []
        self._swapped = False

    def start(self) -> None:
        """Begin a mean, from nothing; the next :meth:`update` gives its first iterate."""
        self._refuse_while_swapped("start")
        self.started, self.count = True, 0
        if not self._means:
            self._means = [
                torch.empty_like(each, dtype=_mean_dtype(each), requires_grad=False) for each in self.parameters
            ]

    @torch.no_grad()
    def update(self) -> None:
        """Take the parameters of now into the mean; before :meth:`start` nothing happens.

        Call it after each step of the optimiser, outside a captured graph: the count is the host's.
        """
        if not self.started:
            return
        self._refuse_while_swapped("update")
        self.count += 1
        iterates = self.parameters
        if self._halves:
            iterates = [each.to(mean.dtype) for each, mean in zip(iterates, self._means, strict=True)]
        if self.count == 1:  # a mean of one is that one, whatever was in the memory before
            torch._foreach_copy_(self._means, iterates)
        else:
            torch._foreach_lerp_(self._means, iterates, 1 / self.count)

    @contextmanager
    def swapped(self) -> Iterator[None]:
        """A region in which the parameters hold the mean; afterwards they are the raw iterates, bit for bit.

        Without an iterate so far they stay as they are. What the region writes into the parameters is lost.
        """
        if not self.count:
            yield
            return
        self._refuse_while_swapped("swapped")
        with torch.no_grad():
            if not self._kept:
                self._kept = [torch.empty_like(each) for each in self.parameters]
            torch._foreach_copy_(self._kept, self.parameters)
        self._swapped = True
        try:
            with torch.no_grad():
                torch._foreach_copy_(self.parameters, self._means)
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(self.parameters, self._kept)
            self._swapped = False

    def state(self) -> dict[str, Tensor]:
        """The means by the number of their parameter, and ``"count"``, which is -1 before the start.

        The tensors are the means themselves, not copies: write them to a file before the next update.
        """
        count = torch.tensor(self.count if self.started else -1)
        means = self._means if self.count else []
        return {"count": count} | {str(index): mean for index, mean in enumerate(means)}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what :meth:`state` gave.

        Args:
            state: of an averaging of parameters of the same shapes, on any device.
        """
        self._refuse_while_swapped("load_state")
        count = int(state["count"])
        wanted = {str(index): tuple(each.shape) for index, each in enumerate(self.parameters)} if count > 0 else {}
        got = {name: tuple(tensor.shape) for name, tensor in state.items() if name != "count"}
        if got != wanted:
            raise ShapeError(
                where="Averaging.load_state",
                got=f"means of shapes {list(got.values())}",
                wanted=f"those of the parameters, {list(wanted.values())}",
                remedy="Load the state of a run of the same model.",
            )
        if count >= 0:
            self.start()
        self.started, self.count = count >= 0, max(count, 0)
        for name in wanted:
            self._means[int(name)].copy_(state[name])

    def _refuse_while_swapped(self, action: str) -> None:
        if self._swapped:
            raise ArgumentError(
                where=f"Averaging.{action}",
                got="parameters that hold the mean",
                wanted="the raw iterates",
                remedy="Leave the region of swapped() first.",
            )


class NonMonotone:
    """The test that begins the averaging: a loss above the best of all but the last n before it.

    With the earlier losses ``logs``: ``len(logs) > n and loss > min(logs[:-n])`` (NT-ASGD, Merity et al. 2018). The
    same test stops fine-tuning. NaN counts as infinity.

    Args:
        n: how many of the latest losses are let off.

    >>> test = NonMonotone(n=5)
    >>> losses = (10, 9, 8, 7, 6, 5.5, 5.6, 5.7, 5.8, 5.9, 6.0, 6.1)
    >>> [epoch for epoch, loss in enumerate(losses, start=1) if test.observe(loss)]
    [12]
    >>> test.fired
    12
    """

    def __init__(self, n: int = 5) -> None:
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise ArgumentError(where="NonMonotone.n", got=n, wanted="a whole number >= 1")
        self.n = n
        self.count = 0
        self.fired: int | None = None
        self._latest: deque[float] = deque()
        self._best_before = math.inf

    def observe(self, loss: float) -> bool:
        """Whether the test fires at this loss; ``fired`` keeps the number of the first one at which it did.

        Args:
            loss: of an evaluation; the smaller the better.
        """
        loss = math.inf if math.isnan(loss) else float(loss)
        fires = self.count > self.n and loss > self._best_before
        self.count += 1
        self._latest.append(loss)
        if len(self._latest) > self.n:
            self._best_before = min(self._best_before, self._latest.popleft())
        if fires and self.fired is None:
            self.fired = self.count
        return fires

    def state(self) -> dict[str, Any]:
        """All that the test remembers, as strict JSON."""
        return {
            "count": self.count,
            "fired": self.fired,
            "latest": [encode_number(loss) for loss in self._latest],
            "best_before": encode_number(self._best_before),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state` gave, of a test with the same n."""
        self.count, self.fired = state["count"], state["fired"]
        self._latest = deque(float(loss) for loss in state["latest"])
        self._best_before = float(state["best_before"])


def _mean_dtype(parameter: Tensor) -> torch.dtype:
    return torch.float32 if parameter.dtype in _HALVES else parameter.dtype
