"""What happens to a pair where one member has ended: three treatments, and the lengths of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from statewise.errors import DeviceError, DtypeError, LengthError, ShapeError

POLICIES = ("handover", "zero", "truncate")


class Treated(NamedTuple):
    """Coefficients of pairs after the treatment of their lengths, and the weights of both members' labels.

    All are 0 beyond the end of a pair.
    """

    coefficients: Float64[Tensor, "steps pairs"]
    weights: Float64[Tensor, "steps pairs"]
    partner_weights: Float64[Tensor, "steps pairs"]
    lengths: Int64[Tensor, " pairs"]


def treat(
    policy: str,
    coefficients: Float64[Tensor, "steps pairs"],
    own: Int64[Tensor, " pairs"],
    other: Int64[Tensor, " pairs"],
) -> Treated:
    """Apply a treatment of unequal lengths to coefficients as they were drawn.

    ==========  ==================================  =======================================  ===========
    policy      where one member has ended          weights of the labels                    valid steps
    ==========  ==================================  =======================================  ===========
    zero        it is the zero vector               lambda n, (1 - lambda) n': less than 1   the longer
    truncate    the pair ends                       lambda, 1 - lambda                       the shorter
    handover    the other takes over: lambda 1, 0   they add up to 1 everywhere              the longer
    ==========  ==================================  =======================================  ===========

    Args:
        policy: one of the three.
        coefficients: lambda, the weight of the first member.
        own: the lengths of the first members.
        other: those of the second members.

    >>> lam = torch.full((3, 1), 0.4, dtype=torch.float64)
    >>> treat("handover", lam, torch.tensor([3]), torch.tensor([2])).weights.flatten().tolist()
    [0.4, 0.4, 1.0]
    >>> treat("zero", lam, torch.tensor([3]), torch.tensor([2])).weights.flatten().tolist()
    [0.4, 0.4, 0.4]
    """
    steps = len(coefficients)
    here, there = present(own, steps), present(other, steps)
    if policy == "truncate":
        here = there = here & there
    elif policy == "handover":
        coefficients = torch.where(here & ~there, 1.0, torch.where(there & ~here, 0.0, coefficients))
    lengths = torch.minimum(own, other) if policy == "truncate" else torch.maximum(own, other)
    return Treated(
        torch.where(here | there, coefficients, 0.0),
        torch.where(here, coefficients, 0.0),
        torch.where(there, 1 - coefficients, 0.0),
        lengths,
    )


def present(lengths: Int64[Tensor, " rows"], steps: int) -> Bool[Tensor, "steps rows"]:
    """Where sequences have not ended.

    >>> present(torch.tensor([1, 2]), 2).tolist()
    [[True, True], [False, True]]
    """
    return torch.arange(steps).unsqueeze(1) < lengths


def read_lengths(lengths: Tensor | Sequence[int] | None, *, steps: int, batch: int) -> Int64[Tensor, " batch"]:
    """The lengths of a batch as an integer vector on the CPU; None means that all have all steps.

    >>> read_lengths([2, 3], steps=3, batch=2)
    tensor([2, 3])
    """
    if lengths is None:
        return torch.full((batch,), steps)
    found = torch.as_tensor(lengths)
    if found.is_floating_point() or found.dtype == torch.bool or found.ndim != 1:
        got = f"{found.dtype} of shape {tuple(found.shape)}"
        raise DtypeError(where="lengths", got=got, wanted="whole numbers, one for each sequence")
    if found.device.type != "cpu":
        raise DeviceError(where="lengths", got=str(found.device), wanted="the CPU", remedy="Keep them there.")
    if len(found) != batch:
        raise ShapeError(where="lengths", got=f"{len(found)} of them", wanted=f"{batch}, one for each sequence")
    found = found.long()
    if bool((found < 1).any()):
        raise LengthError(
            where="lengths",
            got="an empty sequence in pair",
            wanted="at least one step in every sequence",
            remedy="Leave empty sequences out of the batch.",
        )
    if int(found.max()) > steps:
        raise LengthError(where="lengths", got=f"a sequence of {int(found.max())} steps", wanted=f"at most {steps}")
    return found
