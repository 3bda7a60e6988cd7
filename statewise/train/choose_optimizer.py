"""An optimiser by its name."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import nn
from torch.optim import SGD, Adam, Optimizer, RMSprop

from statewise.errors import ArgumentError
from statewise.train.rmsprop_tf import RMSpropTF

# What torch's fused kernels take.
_FUSED = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def build_optimizer(
    name: Literal["sgd", "adam", "rmsprop", "rmsprop-tf"],
    parameters: Iterable[nn.Parameter],
    *,
    lr: float,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    betas: tuple[float, float] = (0.9, 0.999),
    alpha: float | None = None,
    eps: float | None = None,
) -> Optimizer:
    """An optimiser by its name, such that a captured step can turn its learning rate.

    All but one are torch's; "rmsprop-tf" is :class:`~statewise.train.rmsprop_tf.RMSpropTF`.

    Weight decay is coupled: ``weight_decay * w`` is added to the gradient of w. A parameter that is given twice, as a
    tied weight may be, is moved once. On CUDA devices SGD and Adam are fused.

    Args:
        name: which one.
        parameters: what it moves.
        lr: the learning rate.
        weight_decay: the strength of the L2 penalty.
        momentum: of SGD and RMSprop.
        betas: of Adam, the two decays of its means.
        alpha: of RMSprop, the decay of its mean; None for 0.99, or 0.9 in TensorFlow's convention.
        eps: of Adam and RMSprop, what is added to the root, or in TensorFlow's convention inside it; None for 1e-8, or
            1e-10 there.

    >>> weight = nn.Parameter(torch.ones(2))
    >>> optimizer = build_optimizer("sgd", [weight, weight], lr=30.0, weight_decay=1.2e-6)
    >>> len(optimizer.param_groups[0]["params"]), type(optimizer).__name__
    (1, 'SGD')
    """
    moved = [parameter for parameter in dict.fromkeys(parameters) if parameter.requires_grad]
    if not moved:
        raise ArgumentError(where="build_optimizer.parameters", got="none", wanted="at least one that is trained")
    for field, number in (("lr", lr), ("weight_decay", weight_decay), ("momentum", momentum)):
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < math.inf:
            raise ArgumentError(where=f"build_optimizer.{field}", got=number, wanted="a number >= 0")
    fused = all(each.is_cuda and each.dtype in _FUSED for each in moved)
    common: dict[str, Any] = {"lr": float(lr), "weight_decay": float(weight_decay)}
    if name == "sgd":
        return SGD(moved, momentum=momentum, fused=fused or None, **common)
    if name == "rmsprop":
        return RMSprop(moved, momentum=momentum, alpha=_or(alpha, 0.99), eps=_or(eps, 1e-8), **common)
    if name == "rmsprop-tf":
        return RMSpropTF(moved, momentum=momentum, decay=_or(alpha, 0.9), epsilon=_or(eps, 1e-10), **common)
    if name != "adam":
        raise ArgumentError(where="build_optimizer.name", got=name, wanted="'sgd', 'adam', 'rmsprop' or 'rmsprop-tf'")
    if momentum:
        raise ArgumentError(
            where="build_optimizer.momentum", got=momentum, wanted="0 with adam", remedy="Its momentum is betas[0]."
        )
    return Adam(moved, betas=betas, eps=_or(eps, 1e-8), fused=fused or None, **common)


def _or(given: float | None, usual: float) -> float:
    return usual if given is None else given
