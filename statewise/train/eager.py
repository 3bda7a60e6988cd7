"""The training step itself, as it would be written by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from statewise.train.exchange import Outcome


@dataclass(frozen=True)
class EagerStep:
    """Forward, loss, backward, clipping, optimiser.

    Args:
        model: what is trained.
        loss: a function ``(model, *arguments) -> scalar`` or ``-> (scalar, tensors)``.
        optimizer: the optimiser.
        clip: the largest norm of the gradient of all that the optimiser moves; None for no clipping.
        skipped: counts the steps whose gradient was not finite, which then move nothing; None lets them move.

    >>> model = nn.Linear(2, 1, bias=False)
    >>> step = EagerStep(model, lambda model, x: model(x).sum(), torch.optim.SGD(model.parameters(), lr=0.5), 1.0)
    >>> before = model.weight.detach().clone()
    >>> _ = step((torch.tensor([3.0, 4.0]),))
    >>> model.weight.detach() - before
    tensor([[-0.3000, -0.4000]])
    """

    model: nn.Module
    loss: Callable[..., Any]
    optimizer: Optimizer
    clip: float | None
    skipped: Tensor | None = None

    def __call__(self, arguments: tuple[Any, ...]) -> Outcome:
        for parameter in self.parameters():
            parameter.grad = None
        # Weights that autocast has converted belong to one forward pass: afterwards the optimiser changes them.
        torch.clear_autocast_cache()
        outcome = Outcome.read(self.loss(self.model, *arguments))
        torch.clear_autocast_cache()
        with _without_autocast():
            outcome.value.backward()
            self._clip()
            self.optimizer.step()
        return outcome.map(Tensor.detach)

    def _clip(self) -> None:
        if self.clip is None and self.skipped is None:
            return
        norm = clip_grad_norm_(self.moved(), math.inf if self.clip is None else self.clip)
        if self.skipped is None:
            return
        # Nothing of it waits for the device, so that it can be captured. A norm that is not finite has made every
        # gradient 0 or NaN, unless there is no clipping: then what is finite must go too.
        finite = norm.isfinite()
        self.skipped.add_(~finite)
        for parameter in self.moved():
            if parameter.grad is not None:
                parameter.grad.mul_(finite).nan_to_num_(0.0, 0.0, 0.0)

    def moved(self) -> list[nn.Parameter]:
        """The parameters that the optimiser moves."""
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]

    def parameters(self) -> list[nn.Parameter]:
        """Those and the model's others, each once."""
        return list(dict.fromkeys([*self.moved(), *self.model.parameters()]))


@contextmanager
def _without_autocast() -> Iterator[None]:
    with ExitStack() as stack:
        for kind in ("cuda", "cpu"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        yield
