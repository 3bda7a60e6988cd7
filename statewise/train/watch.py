"""Stopping a run that came to nothing, and saying which tensor was the first to go."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from statewise.errors import ArgumentError, DivergedError

_REMEDY = (
    "Begin a new run with a lower learning rate (lr=, --lr) or a gradient clipped at a smaller norm (clip=, --clip), "
    "and check the data for extreme values."
)


class Watch:
    """Stops a run whose loss is NaN or infinite, or has become worse than at the start for good.

    The loop gives each loss; it stays on its device, and only every so many steps the host looks at them. A loss that
    is not finite ends the run at once. Otherwise let ``worst`` and ``range`` be the largest of the first ``window``
    losses and their range. The run has diverged when the mean over a window is above

        ``ceiling = worst + diverged * range``

    for ``patience`` windows in a row, which do not overlap. The rule does not change with the unit or the zero of the
    loss. Noise does not fire it: even the mean of a hundred losses above the largest of a hundred others is something
    that equal distributions never give in practice, and it must happen in a row. A loss that rises by plan, as with
    harder data or a growing penalty, needs a larger ``diverged``, or None.

    Args:
        every: after how many losses the host looks at them, which waits for the device.
        window: how many losses a mean is taken over.
        diverged: how far above the worst of the first losses a mean must be, in their range; None looks only for
            losses that are not finite.
        patience: how many windows in a row must be above.

    >>> watch = Watch(every=2)
    >>> watch.step(torch.tensor(1.0))
    >>> watch.step(torch.tensor(float("nan")), checkpoint="run/resume.safetensors")
    Traceback (most recent call last):
        ...
    statewise.errors.DivergedError: training, step 2: got a loss of nan, wanted a finite loss. Begin a new run ...
    """

    def __init__(self, *, every: int = 50, window: int = 100, diverged: float | None = 1.0, patience: int = 3) -> None:
        for name, number in (("every", every), ("window", window), ("patience", patience)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise ArgumentError(where=f"Watch.{name}", got=number, wanted="a whole number >= 1")
        if diverged is not None and (isinstance(diverged, bool) or not 0 <= diverged < math.inf):
            raise ArgumentError(
                where="Watch.diverged", got=diverged, wanted="a number >= 0", remedy="Use None to let the loss rise."
            )
        self.every, self.window, self.diverged, self.patience = every, window, diverged, patience
        self.seen = 0
        self.strikes = 0
        self._first: tuple[float, float] | None = None
        self._losses: list[float] = []
        self._waiting = 0
        self._buffer: Tensor | None = None
        self._given: dict[str, Any] = {}

    def step(
        self,
        loss: Tensor,
        *,
        model: nn.Module | None = None,
        states: Any = None,
        checkpoint: Path | str | None = None,
    ) -> None:
        """Take the loss of one step; every so many steps, look.

        Args:
            loss: a scalar on any device.
            model: whose gradients, parameters and buffers are searched if a loss is not finite.
            states: tensors carried from step to step, in tuples, lists and dicts; searched too.
            checkpoint: the last good resume point, for the error.

        Raises:
            DivergedError: the run came to nothing.
        """
        if self._buffer is None or self._buffer.device != loss.device:
            dtype = torch.float64 if loss.dtype == torch.float64 else torch.float32
            self._buffer = torch.empty(self.every, dtype=dtype, device=loss.device)
        self._buffer[self._waiting].copy_(loss.detach())
        self._waiting += 1
        self._given = {"model": model, "states": states, "checkpoint": checkpoint}
        if self._waiting == self.every:
            self._look(model, states, checkpoint)

    def look(self, *, model: nn.Module | None = None, states: Any = None, checkpoint: Path | str | None = None) -> None:
        """Look now, and at the tensors too: what a resume point should be made of.

        Args:
            model: parameters and buffers that must be finite.
            states: tensors that must be finite.
            checkpoint: the last good resume point, for the error.

        Raises:
            DivergedError: the run came to nothing.
        """
        self._look(model, states, checkpoint)
        tensors = dict(_kept(model, states))
        if tensors and not bool(torch.stack([tensor.isfinite().all().cpu() for tensor in tensors.values()]).all()):
            raise self._not_finite(None, model, states, checkpoint)

    def state(self) -> dict[str, Any]:
        """What the rule remembers, as strict JSON.

        Looks first, at the tensors of the latest step too, so that no resume point is made of a run that is lost.
        """
        self.look(**self._given)
        first = None if self._first is None else list(self._first)
        return {"seen": self.seen, "strikes": self.strikes, "first": first, "losses": list(self._losses)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state` gave."""
        self.seen, self.strikes = state["seen"], state["strikes"]
        self._first = None if state["first"] is None else (state["first"][0], state["first"][1])
        self._losses, self._waiting = list(state["losses"]), 0

    def _look(self, model: nn.Module | None, states: Any, checkpoint: Path | str | None) -> None:
        if self._buffer is None or not self._waiting:
            return
        losses = self._buffer[: self._waiting].tolist()
        self._waiting = 0
        for loss in losses:
            self.seen += 1
            if not math.isfinite(loss):
                raise self._not_finite(loss, model, states, checkpoint)
            self._losses.append(loss)
            if len(self._losses) == self.window:
                self._judge(checkpoint)

    def _judge(self, checkpoint: Path | str | None) -> None:
        """Compare the mean of a whole window with the first one."""
        losses, self._losses = self._losses, []
        if self._first is None:
            self._first = min(losses), max(losses)
            return
        if self.diverged is None:
            return
        low, high = self._first
        mean = math.fsum(losses) / len(losses)
        # A loss that was constant at first has no range, and the rounding of a mean is no rise.
        ceiling = high + max(self.diverged * (high - low), 1e-9 * abs(high))
        self.strikes = self.strikes + 1 if mean > ceiling else 0
        if self.strikes >= self.patience:
            raise DivergedError(
                where=f"training, step {self.seen}",
                got=f"a mean loss of {mean:.6g}, above {ceiling:.6g} for {self.strikes * self.window} steps",
                wanted=f"not more than at the start, when losses were {low:.6g} to {high:.6g}",
                remedy=f"{_REMEDY}{_left(checkpoint)}",
                step=self.seen,
                checkpoint=None if checkpoint is None else str(checkpoint),
            )

    def _not_finite(
        self, loss: float | None, model: nn.Module | None, states: Any, checkpoint: Path | str | None
    ) -> DivergedError:
        """The error for a loss that is not finite, or for tensors that are not although the losses were."""
        found = culprits({**dict(_gradients(model)), **dict(_kept(model, states))})
        culprit, fraction = next(iter(found.items()), ("loss", 1.0))
        got = [] if loss is None else [f"a loss of {loss}"]
        if found:
            got.append(
                f"tensors that are not finite: {culprit} ({100 * fraction:.3g} % of it){_others(len(found) - 1)}"
            )
        # A gradient that is not finite spreads to all parameters in one step.
        late = f" Tensors are looked at every {self.every} steps, so another may have been the first to go."
        return DivergedError(
            where=f"training, step {self.seen}",
            got="; ".join(got),
            wanted="a finite loss" if loss is not None else "finite parameters and states",
            remedy=f"{_REMEDY}{_left(checkpoint)}{late if self.every > 1 and found else ''}",
            step=self.seen,
            culprit=culprit,
            fraction=fraction,
            checkpoint=None if checkpoint is None else str(checkpoint),
        )


def culprits(tensors: Mapping[str, Tensor]) -> dict[str, float]:
    """The tensors that hold NaN or infinity, and how much of each is so.

    >>> culprits({"weight": torch.ones(2), "bias": torch.tensor([1.0, float("inf")])})
    {'bias': 0.5}
    """
    bad = {name: 1 - float(tensor.detach().isfinite().double().mean()) for name, tensor in tensors.items()}
    return {name: fraction for name, fraction in bad.items() if fraction > 0}


def _gradients(model: nn.Module | None) -> Iterator[tuple[str, Tensor]]:
    for name, parameter in model.named_parameters() if model is not None else ():
        if parameter.grad is not None:
            yield f"the gradient of {name}", parameter.grad


def _kept(model: nn.Module | None, states: Any) -> Iterator[tuple[str, Tensor]]:
    """What the next step begins with: parameters, buffers, states."""
    if model is not None:
        yield from ((f"the parameter {name}", tensor) for name, tensor in model.named_parameters() if tensor.numel())
        yield from ((f"the buffer {name}", tensor) for name, tensor in model.named_buffers() if tensor.numel())
    yield from ((f"the state {name}".rstrip(), tensor) for name, tensor in _leaves(states, ""))


def _leaves(tree: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(tree, Tensor) and tree.numel():
        yield name, tree
    elif isinstance(tree, list | tuple):
        for index, part in enumerate(tree):
            yield from _leaves(part, f"{name}[{index}]")
    elif isinstance(tree, Mapping):
        for key, part in tree.items():
            yield from _leaves(part, f"{name}[{key!r}]")


def _left(checkpoint: Path | str | None) -> str:
    return "" if checkpoint is None else f" The last good weights are in {checkpoint}."


def _others(count: int) -> str:
    return f" and {count} more" if count else ""
