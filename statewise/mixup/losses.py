"""Losses of mixed labels: the members' own losses, weighted; no one-hot vector is ever made."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from statewise.errors import ArgumentError, DtypeError
from statewise.heads.cross_entropy import at_least_single, cross_entropy
from statewise.kernels import transformed

REDUCTIONS = ("pair", "token", "none")


class Weighted(NamedTuple):
    """The losses of rows, and the weight of the labels in each: 1, less in a tail or where a label is ignored."""

    losses: Float[Tensor, " rows"]
    weights: Float[Tensor, " rows"]


def mixed_cross_entropy(
    logits: Float[Tensor, "rows classes"],
    labels: tuple[Int[Tensor, " rows"], Int[Tensor, " rows"]],
    weights: tuple[Float[Tensor, " rows"], Float[Tensor, " rows"]],
    *,
    ignore_index: int = -100,
    where: str = "labels",
) -> Weighted:
    """``w CE(p, y) + w' CE(p, y')``, which is the cross-entropy with the mixed label since that is linear in it.

    Args:
        logits: before the softmax.
        labels: of the first and of the second member.
        weights: of these labels.
        ignore_index: a member with this label has weight 0; its partner keeps its own.
        where: the argument that the labels came as, for errors. Those on a device are not looked at, since the host
            would have to wait for them.

    >>> half = torch.full((1,), 0.5)
    >>> found = mixed_cross_entropy(torch.zeros(1, 4), (torch.tensor([0]), torch.tensor([3])), (half, half))
    >>> found.losses
    tensor([1.3863])
    """
    labels = labels[0].long(), labels[1].long()
    first, second = (
        torch.where(label == ignore_index, 0, at_least_single(weight))
        for label, weight in zip(labels, weights, strict=True)
    )
    for label, weight in zip(labels, (first, second), strict=True):
        _check_range(label, weight > 0, logits.shape[1], ignore_index, where)
    # A label that does not count may be anything, and must not be looked up: its partner's takes its place.
    lead = torch.where(first > 0, labels[0], torch.where(second > 0, labels[1], -100))
    trail = torch.where(second > 0, labels[1], lead)
    # One normaliser serves both: CE(y') is CE(y) and the difference of their scores.
    both = logits.gather(1, torch.stack((lead, trail), 1).clamp(min=0))
    # Where the first score is -inf its loss is infinite, and so is the whole; -inf less anything would make it NaN.
    apart = torch.where(both[:, 0] == -torch.inf, 0, at_least_single(both[:, 0]) - at_least_single(both[:, 1]))
    losses = (first + second) * cross_entropy(logits, lead)
    return Weighted(losses + torch.where((first > 0) & (second > 0), second * apart, 0), first + second)


def mixed_squared_error(
    outputs: Float[Tensor, "rows width"],
    targets: tuple[Float[Tensor, "rows width"], Float[Tensor, "rows width"]],
    weights: tuple[Float[Tensor, " rows"], Float[Tensor, " rows"]],
) -> Weighted:
    """``|z - y~|^2`` with the mixed target ``y~ = w y + w' y'``, summed over the width.

    ``|z - y~|^2 = w |z - y|^2 + w' |z - y'|^2 - w w' |y - y'|^2``: gradients as for the weighted sum, other values.
    Where the weights add up to ``s < 1``, the target is that of the weights over ``s``, and the loss ``s`` times its.

    Args:
        outputs: the predictions.
        targets: of the first and of the second member.
        weights: of these targets.

    >>> half = torch.full((1,), 0.5)
    >>> mixed_squared_error(torch.ones(1, 1), (torch.zeros(1, 1), torch.ones(1, 1)), (half, half)).losses
    tensor([0.2500])
    """
    scores = at_least_single(outputs)
    first, second = (weight.to(scores.dtype) for weight in weights)
    total = first + second
    safe = torch.where(total > 0, total, 1)
    mixed = torch.zeros_like(scores)
    for target, weight in zip(targets, (first, second), strict=True):
        share = (weight / safe).unsqueeze(1)
        mixed = mixed + torch.where(share > 0, share * target.to(scores.dtype), 0)
    return Weighted(total * (scores - mixed).square().sum(1), total)


def label_entropy(
    labels: tuple[Int[Tensor, " rows"], Int[Tensor, " rows"]],
    weights: tuple[Float[Tensor, " rows"], Float[Tensor, " rows"]],
    *,
    ignore_index: int = -100,
) -> Weighted:
    """The least that :func:`mixed_cross_entropy` can be: ``s H(w / s)``, ``s = w + w'``, and 0 for equal labels.

    >>> half = torch.full((1,), 0.5)
    >>> label_entropy((torch.tensor([0]), torch.tensor([3])), (half, half)).losses
    tensor([0.6931])
    """
    first, second = (
        torch.where(label == ignore_index, 0, at_least_single(weight))
        for label, weight in zip(labels, weights, strict=True)
    )
    total = first + second
    entropy = torch.xlogy(total, total) - torch.xlogy(first, first) - torch.xlogy(second, second)
    return Weighted(torch.where(labels[0] == labels[1], 0, entropy), total)


def reduced(found: Weighted, *, reduction: str, pairs: int) -> Float[Tensor, ""]:
    """One number: summed over the steps and averaged over the pairs ("pair"), or averaged over all labels ("token").

    >>> reduced(Weighted(torch.ones(6), torch.full((6,), 0.5)), reduction="token", pairs=2)
    tensor(2.)
    """
    if reduction == "pair":
        return found.losses.sum() / pairs
    total = found.weights.sum()
    return found.losses.sum() / torch.where(total > 0, total, 1)


def check_labels(where: str, labels: Tensor) -> None:
    """Refuse labels that are no whole numbers.

    >>> check_labels("Pairs.cross_entropy targets", torch.tensor([0, 1]))
    """
    if (
        not isinstance(labels, Tensor)
        or labels.is_floating_point()
        or labels.is_complex()
        or labels.dtype == torch.bool
    ):
        got = str(labels.dtype) if isinstance(labels, Tensor) else type(labels).__name__
        raise DtypeError(where=where, got=got, wanted="a tensor of whole numbers, the classes")


def _check_range(labels: Tensor, counts: Tensor, classes: int, ignore_index: int, where: str) -> None:
    """Refuse labels that count and are no classes."""
    if labels.device.type != "cpu" or torch.compiler.is_compiling() or transformed():
        return
    wrong = counts & ((labels < 0) | (labels >= classes))
    if bool(wrong.any()):
        raise ArgumentError(
            where=where,
            got=int(labels[wrong][0]),
            wanted=f"classes from 0 to {classes - 1}, or {ignore_index} for labels that do not count",
            remedy="Say which other number is padding: ignore_index=.",
        )


def check_reduction(where: str, reduction: str) -> None:
    """Refuse an unknown reduction.

    >>> check_reduction("Pairs.cross_entropy", "pair")
    """
    if reduction not in REDUCTIONS:
        raise ArgumentError(where=f"{where} reduction", got=reduction, wanted=f"one of {', '.join(REDUCTIONS)}")
