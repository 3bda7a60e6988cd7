"""RMSprop in the convention of TensorFlow 1, in which the orthogonal networks of the literature were trained."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import ParamsT

from statewise.errors import ArgumentError, DtypeError


def rmsprop_tf_(
    parameter: Tensor,
    gradient: Tensor,
    square: Tensor,
    *,
    lr: float | Tensor,
    decay: float = 0.9,
    epsilon: float = 1e-10,
) -> None:
    """One step in place, without momentum: ``v <- decay v + (1 - decay) g^2``, ``w <- w - lr g / sqrt(v + epsilon)``.

    Args:
        parameter: w.
        gradient: g, of the same shape.
        square: v, of the same shape; ones before the first step.
        lr: a number, or a tensor that broadcasts against w: one rate for each of many networks side by side.
        decay: of the mean square.
        epsilon: added inside the root.

    >>> weight, square = torch.zeros(1), torch.ones(1)
    >>> rmsprop_tf_(weight, torch.tensor([1e-3]), square, lr=1e-3)
    >>> f"{-weight.item():.4e}"
    '1.0541e-06'
    """
    square.mul_(decay).addcmul_(gradient, gradient, value=1 - decay)
    parameter.sub_(gradient.div((square + epsilon).sqrt_()).mul_(lr))


class RMSpropTF(Optimizer):
    """RMSprop whose mean square starts at 1 and whose epsilon stands inside the root.

    ``v <- decay v + (1 - decay) g^2``, ``m <- momentum m + lr g / sqrt(v + epsilon)``, ``w <- w - m``.

    The first steps of torch's RMSprop, whose v starts at 0, are far larger: 3.162e-3 against 1.054e-6 for
    g = lr = 1e-3 and decay 0.9. The code published with Helfrich et al. 2018 and Ziv 2019 trains with this one. Nothing
    is counted or read on the host, so a step can be captured in a CUDA graph; a rate that is a tensor on the device can
    then be turned between replays.

    Args:
        params: what it moves, or groups of it with settings of their own.
        lr: the learning rate: a number, or a tensor of one.
        decay: of the mean square.
        momentum: of the steps.
        epsilon: added to the mean square, inside the root.
        weight_decay: w times this is added to the gradient.
        initial_accumulator: where the mean square starts.

    >>> weight = torch.nn.Parameter(torch.zeros(1))
    >>> (1e-3 * weight).sum().backward()
    >>> RMSpropTF([weight], lr=1e-3).step()
    >>> f"{-weight.item():.4e}"
    '1.0541e-06'
    """

    def __init__(
        self,
        params: ParamsT,
        *,
        lr: float | Tensor = 1e-3,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-10,
        weight_decay: float = 0.0,
        initial_accumulator: float = 1.0,
    ) -> None:
        defaults: dict[str, Any] = {
            "lr": lr,
            "decay": decay,
            "momentum": momentum,
            "epsilon": epsilon,
            "weight_decay": weight_decay,
            "initial_accumulator": initial_accumulator,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with settings of their own."""
        super().add_param_group(param_group)
        try:
            _validate(self.param_groups[-1])
        except Exception:
            self.param_groups.pop()
            raise

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Move every parameter that has a gradient; returns the closure's loss, if given one."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            moved = [parameter for parameter in group["params"] if parameter.grad is not None]
            if moved:
                self._move(moved, group)
        return loss

    def _move(self, moved: list[Tensor], group: dict[str, Any]) -> None:
        """All parameters of a group in a few launches."""
        gradients = [_dense(parameter) for parameter in moved]
        if group["weight_decay"]:
            gradients = list(torch._foreach_add(gradients, moved, alpha=group["weight_decay"]))
        squares = [self._kept(parameter, "square_avg", group["initial_accumulator"]) for parameter in moved]
        torch._foreach_mul_(squares, group["decay"])
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - group["decay"])
        roots = torch._foreach_add(squares, group["epsilon"])
        torch._foreach_sqrt_(roots)
        steps = torch._foreach_div(gradients, roots)
        torch._foreach_mul_(steps, group["lr"])
        if group["momentum"]:
            moments = [self._kept(parameter, "momentum_buffer", 0.0) for parameter in moved]
            torch._foreach_mul_(moments, group["momentum"])
            torch._foreach_add_(moments, steps)
            steps = tuple(moments)
        torch._foreach_sub_(moved, steps)

    def _kept(self, parameter: Tensor, name: str, start: float) -> Tensor:
        state = self.state[parameter]
        if name not in state:
            state[name] = torch.full_like(parameter, start, memory_format=torch.preserve_format)
        kept: Tensor = state[name]
        return kept


def _dense(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None
    if parameter.grad.is_sparse:
        raise DtypeError(
            where="RMSpropTF",
            got="a sparse gradient",
            wanted="dense ones",
            remedy="Use an embedding without sparse=True.",
        )
    return parameter.grad


def _validate(group: dict[str, Any]) -> None:
    rate = group["lr"]
    if isinstance(rate, Tensor):
        if rate.numel() != 1:
            raise ArgumentError(
                where="RMSpropTF.lr",
                got=f"a tensor of shape {tuple(rate.shape)}",
                wanted="a number, or a tensor of one",
                remedy="rmsprop_tf_ takes one rate for each of many networks.",
            )
    elif not 0 <= rate < math.inf:
        raise ArgumentError(where="RMSpropTF.lr", got=rate, wanted="a number >= 0")
    for name, most in (("decay", 1.0), ("momentum", 1.0)):
        if not 0 <= group[name] < most:
            raise ArgumentError(where=f"RMSpropTF.{name}", got=group[name], wanted="a number in [0, 1)")
    for name in ("epsilon", "weight_decay", "initial_accumulator"):
        if not 0 <= group[name] < math.inf:
            raise ArgumentError(where=f"RMSpropTF.{name}", got=group[name], wanted="a number >= 0")
