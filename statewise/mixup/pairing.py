"""Who is mixed with whom: pairs of a batch as two vectors of indices."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Int64
from torch import Tensor

from statewise.errors import ArgumentError, DtypeError, ShapeError

Lengths = Int64[Tensor, " batch"]
Members = Int64[Tensor, " pairs"]
Rule = Callable[[Tensor, torch.Generator | None], tuple[Tensor, Tensor]]


class LonelyBatchWarning(UserWarning):
    """A batch holds one sequence, whose only partner is itself, so that nothing is mixed."""


class Couples(NamedTuple):
    """The first and the second member of every pair, as indices of sequences."""

    first: Members
    second: Members


def permute(lengths: Lengths, generator: torch.Generator | None = None) -> Couples:
    """Every sequence with that of a random permutation, which may be itself.

    >>> permute(torch.tensor([3, 4, 5]), torch.Generator().manual_seed(0)).first
    tensor([0, 1, 2])
    """
    _warn_if_lonely(lengths)
    return Couples(torch.arange(len(lengths)), torch.randperm(len(lengths), generator=generator))


def derange(lengths: Lengths, generator: torch.Generator | None = None) -> Couples:
    """Every sequence with another: a random permutation without a fixed point, all of them equally probable.

    >>> first, second = derange(torch.tensor([3, 4, 5]), torch.Generator().manual_seed(0))
    >>> bool((first == second).any())
    False
    """
    _at_least_two(lengths, "derange")
    rows = torch.arange(len(lengths))
    while True:  # more than a third of all permutations will do
        partners = torch.randperm(len(lengths), generator=generator)
        if not bool((partners == rows).any()):
            return Couples(rows, partners)


def double(lengths: Lengths, generator: torch.Generator | None = None) -> Couples:
    """Every sequence in one pair: half as many pairs as sequences, and an odd one is left out.

    So the paper's experiments pair. For the updates of an epoch of plain training give it batches of twice the size,
    and go through the data twice.

    >>> [len(side) for side in double(torch.tensor([3, 4, 5, 6, 7]))]
    [2, 2]
    """
    _at_least_two(lengths, "double")
    order = torch.randperm(len(lengths), generator=generator)
    half = len(lengths) // 2
    return Couples(order[:half], order[half : 2 * half])


def double_sorted(lengths: Lengths, generator: torch.Generator | None = None) -> Couples:
    """As :func:`double`, with both halves sorted by length before they are paired.

    >>> first, second = double_sorted(torch.tensor([3, 9, 4, 8]), torch.Generator().manual_seed(0))
    >>> sorted(first.tolist() + second.tolist())
    [0, 1, 2, 3]
    """
    return Couples(*(half[lengths[half].argsort(stable=True)] for half in double(lengths, generator)))


def neighbours(lengths: Lengths, generator: torch.Generator | None = None) -> Couples:
    """Every sequence with a neighbour in the order of lengths, equal ones in random order.

    Neighbours take each other, and of an odd number the last three go in a round; so every sequence is once first and
    once second.

    >>> [side.tolist() for side in neighbours(torch.tensor([3, 9, 4, 8]))]
    [[0, 1, 2, 3], [2, 3, 0, 1]]
    """
    _warn_if_lonely(lengths)
    shuffled = torch.randperm(len(lengths), generator=generator)
    order = shuffled[lengths[shuffled].argsort(stable=True)]
    place = torch.arange(len(order))
    follower = place ^ 1
    if len(order) % 2:
        follower[-3:] = place[-3:].roll(-1)
    partners = torch.empty_like(order)
    partners[order] = order[follower]
    return Couples(torch.arange(len(order)), partners)


RULES: dict[str, Rule] = {
    "permute": permute,
    "derange": derange,
    "double": double,
    "sorted": neighbours,
    "double_sorted": double_sorted,
}
PAIRINGS = tuple(RULES)


def pair(rule: str | Rule, lengths: Lengths, generator: torch.Generator | None = None) -> Couples:
    """Pair the sequences of a batch by a rule: the name of one of these, or a function of your own.

    Args:
        rule: "permute", "derange", "double", "sorted", "double_sorted", or ``f(lengths, generator) -> first, second``.
        lengths: of the sequences.
        generator: a generator of the CPU; None means torch's global one.

    >>> pair(lambda lengths, generator: (torch.tensor([0]), torch.tensor([1])), torch.tensor([3, 4])).second
    tensor([1])
    """
    check_rule("pairing", rule)
    found = (RULES[rule] if isinstance(rule, str) else rule)(lengths, generator)
    first, second = (checked_members(side, len(lengths), where="pairing") for side in found)
    if len(first) != len(second) or not len(first):
        raise ShapeError(where="pairing", got=f"{len(first)} and {len(second)} members", wanted="as many of each")
    return Couples(first, second)


def check_rule(where: str, rule: object) -> None:
    """Refuse what is neither a known rule nor a function.

    >>> check_rule("InputMixup.pairing", "permute")
    """
    if not callable(rule) and not (isinstance(rule, str) and rule in RULES):
        raise ArgumentError(
            where=where,
            got=rule,
            wanted=f"one of {', '.join(PAIRINGS)}, or a function",
            remedy="For pairs that are known give Pairs.of(...) to a call, as pairs=.",
        )


def checked_members(members: Tensor, batch: int, *, where: str) -> Members:
    """Indices of sequences on the CPU, refused if they are none.

    >>> checked_members(torch.tensor([1, 0]), 2, where="Pairs.first")
    tensor([1, 0])
    """
    if not isinstance(members, Tensor) or members.dtype not in (torch.int32, torch.int64) or members.ndim != 1:
        got = f"{members.dtype} of shape {tuple(members.shape)}" if isinstance(members, Tensor) else repr(members)
        raise DtypeError(where=where, got=got, wanted="an integer vector of indices of sequences")
    members = members.long().cpu()
    if bool(((members < 0) | (members >= batch)).any()):
        raise ArgumentError(where=where, got=members.tolist(), wanted=f"indices from 0 to {batch - 1}")
    return members


def _at_least_two(lengths: Tensor, rule: str) -> None:
    if len(lengths) < 2:
        raise ArgumentError(where=f"pairing {rule!r}", got="a batch of 1", wanted="at least two sequences to pair")


def _warn_if_lonely(lengths: Tensor) -> None:
    if len(lengths) == 1:
        # Python shows a warning once for each place it comes from.
        warnings.warn(
            "statewise.mixup: a batch of 1 has no partner but itself, so that nothing is mixed; use larger batches.",
            LonelyBatchWarning,
            stacklevel=2,
        )
