"""Whole numbers from uniform ones, on whatever device these lie and inside any transformation of torch.func."""

from __future__ import annotations

from jaxtyping import Float, Int64
from torch import Tensor

from statewise.errors import DtypeError, ShapeError


def whole(numbers: Float[Tensor, "*any"], below: int) -> Int64[Tensor, "*any"]:
    """Whole numbers uniform in 0 to ``below - 1``: ``floor(u * below)``.

    Args:
        numbers: uniform in [0, 1).
        below: how many there are.

    >>> import torch
    >>> whole(torch.tensor([0.0, 0.49, 0.5, 0.99999994]), 30).tolist()  # 0.99999994 * 30 rounds to 30 in float32
    [0, 14, 15, 29]
    """
    return (numbers * below).long().clamp(max=below - 1)


def require_numbers(numbers: Tensor, *, needs: int, where: str) -> None:
    """Refuse numbers from which no examples can be made.

    Args:
        numbers: (..., needs) floating.
        needs: how many an example is made of.
        where: for which task.
    """
    if not numbers.is_floating_point():
        raise DtypeError(
            where=f"{where}.examples numbers",
            got=str(numbers.dtype).removeprefix("torch."),
            wanted="a floating dtype",
            remedy=f"Draw them with torch.rand(rows, {needs}, generator=...).",
        )
    if numbers.dim() == 0 or numbers.shape[-1] != needs:
        raise ShapeError(
            where=f"{where}.examples numbers",
            got=tuple(numbers.shape),
            wanted=f"(..., {needs}), {needs} uniform numbers for each example",
            remedy="Draw torch.rand(rows, task.needs, generator=...).",
        )
