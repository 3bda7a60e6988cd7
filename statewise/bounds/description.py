"""The exact length of a network's weights in nats, where they lie on a few levels.

A prior over networks that was fixed before the data was seen is the same as a prefix code, ``nats = ln(1 / prior)``.

The code of one tensor, given its shape and dtype:

- which of five forms follows: ln 5 nats. ``raw``: all bits of all numbers. The others name a number of levels L,
  ``ln(L (L+1))`` nats; a scale, which is ``2^(j/8)`` for ``ln(1 / weight(j))`` nats or all bits of a number, ln 2 nats
  more; and then one level for each number, of ``-K..K`` where ``L = 2K + 1`` and of ``-K..K-1`` where ``L = 2K``:
- ``fixed``: ``ln L`` nats each;
- ``counted``: how often each level occurs (one of ``C(n+L-1, L-1)`` ways), then which of the arrangements;
- ``adaptive``: each level given those before it, with the probability ``(seen + 1/2) / (total + L/2)``;
- ``supported``: which rows and which columns are not all zero, ln 2 nats each, then those alone, as ``adaptive``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from statewise.bounds.grid import nats, prefix_nats
from statewise.bounds.hidden import named_tensors, why_hidden
from statewise.bounds.levels import find_levels
from statewise.errors import ArgumentError, AssumptionError

_FORMS = 5


@dataclass(frozen=True, kw_only=True)
class TensorDescription:
    """How one tensor is described, and what that costs.

    Args:
        name: of the tensor.
        entries: how many numbers it holds.
        form: ``raw``, ``fixed``, ``counted``, ``adaptive`` or ``supported``, the shortest of them.
        levels: L; None for raw.
        scale: the step from level to level; None for raw.
        nats: of everything.
    """

    name: str
    entries: int
    form: str
    levels: int | None
    scale: float | None
    nats: float


@dataclass(frozen=True, kw_only=True)
class Description:
    """A whole network, given its architecture: what was said of each of its tensors.

    Args:
        tensors: one description each.
        fixed: names of tensors that were fixed before the data was seen, and cost nothing.

    >>> from statewise.bounds.quantised import quantise_
    >>> description = describe(quantise_(nn.Linear(8, 4), levels=3))
    >>> [(part.name, part.levels) for part in description.tensors]
    [('weight', 3), ('bias', 3)]
    >>> description.nats < 36 * 32 * math.log(2)
    True
    """

    tensors: tuple[TensorDescription, ...]
    fixed: tuple[str, ...] = ()

    @property
    def nats(self) -> float:
        """The length of the description."""
        return math.fsum(part.nats for part in self.tensors)

    @property
    def entries(self) -> int:
        """How many numbers were described."""
        return sum(part.entries for part in self.tensors)

    def __str__(self) -> str:
        lines = [
            f"{part.name}: {part.entries} numbers, {part.form}"
            f"{'' if part.levels is None else f', {part.levels} levels of {part.scale:.6g}'}, {part.nats:.1f} nats"
            for part in self.tensors
        ]
        return "\n".join([*lines, f"in all {self.entries} numbers, {self.nats:.1f} nats"])


def describe(network: nn.Module | Mapping[str, Tensor], *, fixed: Collection[str] = ()) -> Description:
    """The shortest description of a network's weights that the code of this module has.

    It looks for itself whether a tensor lies on levels (every number equals its level times the scale, computed in the
    tensor's own dtype) and falls back on the raw bits, so it is right for every network. The architecture, which is
    the names, shapes and dtypes and everything that is no tensor of the state, has to be fixed before the data is
    seen; who chooses among several pays for that, e.g. :func:`~statewise.bounds.grid.prefix_nats` of the hidden size.

    Args:
        network: a module, of which all parameters and buffers are described, each once; or named tensors. One that
            computes with something else, such as a tensor in a plain attribute or a hook, is refused.
        fixed: names of tensors that did not depend on the data, such as random ones that were never trained.

    >>> print(describe({"weight": 0.5 * torch.tensor([[1.0, 0.0], [0.0, -1.0]])}))
    weight: 4 numbers, fixed, 3 levels of 0.5, 14.1 nats
    in all 4 numbers, 14.1 nats
    """
    tensors = dict(_state(network))
    unknown = set(fixed) - set(tensors)
    if unknown:
        raise ArgumentError(where="describe.fixed", got=sorted(unknown), wanted=f"names among {sorted(tensors)}")
    parts = tuple(_describe(name, tensor) for name, tensor in tensors.items() if name not in fixed)
    return Description(tensors=parts, fixed=tuple(name for name in tensors if name in fixed))


def integer_nats(integers: Tensor, *, levels: int) -> tuple[str, float]:
    """The best form for integers of a known number of levels, and its nats, without those for the form's name.

    Args:
        integers: of any shape, each one of the levels.
        levels: L.

    >>> form, length = integer_nats(torch.tensor([0] * 98 + [1, -1]), levels=3)
    >>> form, round(length, 2), round(100 * math.log(3), 2)
    ('adaptive', 15.88, 109.86)
    """
    lowest = -(levels // 2)
    if integers.numel() and not lowest <= int(integers.min()) <= int(integers.max()) < lowest + levels:
        raise ArgumentError(where="integer_nats", got="integers", wanted=f"{levels} levels from {lowest} on")
    counts = _counts(integers, levels)
    lengths = {
        "fixed": integers.numel() * math.log(levels),
        "counted": _mixture_nats(counts, 1.0),
        "adaptive": _mixture_nats(counts, 0.5),
    }
    if integers.ndim >= 2:
        matrix = integers.flatten(1)
        rows, columns = (matrix != 0).any(1), (matrix != 0).any(0)
        inner = _mixture_nats(_counts(matrix[rows][:, columns], levels), 0.5)
        lengths["supported"] = sum(matrix.shape) * math.log(2) + inner
    form = min(lengths, key=lengths.__getitem__)
    return form, lengths[form]


def _describe(name: str, tensor: Tensor) -> TensorDescription:
    bits = 8 * tensor.element_size()
    raw = TensorDescription(
        name=name,
        entries=tensor.numel(),
        form="raw",
        levels=None,
        scale=None,
        nats=math.log(_FORMS) + bits * tensor.numel() * math.log(2),
    )
    found = find_levels(tensor)
    if found is None:
        return raw
    form, length = integer_nats(found.integers, levels=found.levels)
    scale_nats = math.log(2) + (bits * math.log(2) if found.index is None else nats(found.index))
    total = math.log(_FORMS) + prefix_nats(found.levels) + scale_nats + length
    if total >= raw.nats:
        return raw
    return TensorDescription(
        name=name, entries=raw.entries, form=form, levels=found.levels, scale=found.scale, nats=total
    )


def _state(network: nn.Module | Mapping[str, Tensor]) -> Iterable[tuple[str, Tensor]]:
    if not isinstance(network, nn.Module):
        yield from network.items()
        return
    if hidden := why_hidden(network):
        raise AssumptionError(
            where="describe",
            got=hidden,
            wanted="a network of parameters and buffers",
            remedy="Register it as a buffer: what is not described cannot be paid for.",
        )
    for name, tensor in named_tensors(network):
        yield name, tensor.detach()


def _counts(integers: Tensor, levels: int) -> list[int]:
    return torch.bincount(integers.flatten().cpu() + levels // 2, minlength=levels).tolist()


def _mixture_nats(counts: list[int], prior: float) -> float:
    """Of a sequence with these counts: Dirichlet-multinomial, ``prior`` 1 is the counted form, 1/2 the adaptive one."""
    whole = math.lgamma(sum(counts) + prior * len(counts)) - math.lgamma(prior * len(counts))
    return whole - math.fsum(math.lgamma(count + prior) - math.lgamma(prior) for count in counts if count)
