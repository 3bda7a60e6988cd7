"""Networks whose weights lie on a few levels: their exact length in nats, and the certificate that follows from it.

A prior over networks that was fixed before the data was seen is the same as a prefix code, ``nats = ln(1 / prior)``.
With probability at least ``1 - delta`` over m independent sequences, for all networks at once,
``P(error) <= kl_inverse(training error, (nats + ln(1 / delta)) / m)``: no margin and no norm enters.

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

from statewise.bounds.grid import NORMS, nats, prefix_nats
from statewise.bounds.kl import kl_inverse
from statewise.bounds.levels import Quantised, find_levels, round_to_levels
from statewise.errors import ArgumentError

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
        network: a module (a tensor that it holds twice is described once), or named tensors.
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


def quantise(tensor: Tensor, *, levels: int = 3, bits: float | None = None, scale: float | None = None) -> Quantised:
    """The nearest tensor of L equally spaced levels around zero.

    ``n = clamp(round(w / s), -K, K)`` for ``L = 2K + 1`` levels, ``s`` on the grid ``2^(j/8)``.

    Args:
        tensor: any floating tensor.
        levels: L >= 2; 3 is ternary.
        bits: the same as ``2^bits`` levels, which must be a whole number; it takes the place of ``levels``.
        scale: s, rounded to the grid; None tries all that may be of use and takes the one of least square error.

    >>> quantise(torch.tensor([0.9, -0.1, -1.2]), levels=3, scale=1.0).integers
    tensor([ 1,  0, -1])
    """
    count = _level_count(levels, bits)
    if not tensor.is_floating_point() or not bool(torch.isfinite(tensor).all()):
        raise ArgumentError(where="quantise", got=tensor.dtype, wanted="a floating tensor of finite numbers")
    largest = float(tensor.detach().abs().max()) if tensor.numel() else 0.0
    if scale is None and largest == 0:
        scale = 1.0
    if scale is not None:
        if not 0 < scale < math.inf:
            raise ArgumentError(where="quantise.scale", got=scale, wanted="a finite number > 0")
        return round_to_levels(tensor, levels=count, index=round(NORMS * math.log2(scale)))
    top = math.ceil(NORMS * math.log2(largest))
    bottom = math.floor(NORMS * math.log2(largest / count)) - NORMS
    tries = (round_to_levels(tensor, levels=count, index=index) for index in range(bottom, top + 1))
    return min(tries, key=lambda found: float((found.dequantise(tensor.dtype) - tensor.detach()).square().sum()))


@torch.no_grad()
def quantise_(
    module: nn.Module, *, levels: int = 3, bits: float | None = None, levels_of: Mapping[str, int] | None = None
) -> nn.Module:
    """Round all floating parameters of a module in place, each tensor with its own scale; returns the module.

    Args:
        module: whatever it is.
        levels: L, for each parameter.
        bits: the same as ``2^bits`` levels.
        levels_of: other numbers of levels, by the parameter's name.

    >>> len(quantise_(nn.Linear(8, 4), levels=3).weight.unique()) <= 3
    True
    """
    chosen = dict(levels_of or {})
    parameters = {name: parameter for name, parameter in module.named_parameters() if parameter.is_floating_point()}
    if set(chosen) - set(parameters):
        raise ArgumentError(where="quantise_.levels_of", got=sorted(chosen), wanted=f"names among {sorted(parameters)}")
    for name, parameter in parameters.items():
        count = chosen.get(name) or _level_count(levels, bits)
        parameter.copy_(quantise(parameter, levels=count).dequantise(parameter.dtype))
    return module


def rounded(tensor: Tensor, *, levels: int = 3, scale: Tensor | float) -> Tensor:
    """The rounded tensor, with gradients as if the rounding were not there: for training with rounded weights.

    ``s clamp(round(w / s), -K, K)``, where ``round`` counts as the identity in the backward pass (Bengio, Leonard &
    Courville 2013) and s is rounded to the grid in the same way, so that it can be learned (Esser et al. 2020). In
    float32 the result is bit by bit what :func:`quantise` gives for the same scale.

    Args:
        tensor: w, the free weights.
        levels: L.
        scale: s > 0, one for the tensor.

    >>> free = torch.tensor([0.3, 0.8, -3.0], requires_grad=True)
    >>> rounded(free, levels=3, scale=1.0).sum().backward()
    ... free.grad
    tensor([1., 1., 0.])
    """
    count = _level_count(levels, None)
    s = torch.as_tensor(scale, dtype=torch.float64, device=tensor.device)
    octaves = NORMS * torch.log2(s)
    # Grid points are computed in float64 and rounded once, as everywhere else.
    step = torch.exp2((octaves + (octaves.round() - octaves).detach()) / NORMS).to(tensor.dtype)
    lowest = -(count // 2)
    inside = (tensor / step).clamp(lowest, lowest + count - 1)
    return (inside + (inside.round() - inside).detach()) * step


def occam_certificate(*, errors: int, m: int, nats: float, delta: float) -> float:
    """A bound on the error probability of a network that was described in so many nats.

    ``kl_inverse(errors / m, (nats + ln(1 / delta)) / m)``, with probability ``1 - delta``, for all networks at once.

    Args:
        errors: wrong answers on the m sequences, ties counted as wrong.
        m: how many independent sequences there are.
        nats: of the network and of all choices that were made by looking at the data.
        delta: the probability that the statement fails.

    >>> round(occam_certificate(errors=1200, m=60_000, nats=1500.0, delta=0.05), 4)
    0.0684
    """
    if not 0 <= errors <= m or m < 1:
        raise ArgumentError(where="occam_certificate", got=(errors, m), wanted="0 <= errors <= m, m >= 1")
    if not 0 < delta < 1:
        raise ArgumentError(where="occam_certificate.delta", got=delta, wanted="a number between 0 and 1")
    if not nats >= 0:
        raise ArgumentError(where="occam_certificate.nats", got=nats, wanted="a number >= 0")
    return kl_inverse(errors / m, (nats - math.log(delta)) / m)


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
    # The state says what belongs to the network; a parameter that it holds under two names is one tensor.
    seen: set[int] = set()
    for name, tensor in network.state_dict(keep_vars=True).items():
        if isinstance(tensor, Tensor) and id(tensor) not in seen:
            seen.add(id(tensor))
            yield name, tensor.detach()


def _counts(integers: Tensor, levels: int) -> list[int]:
    return torch.bincount(integers.flatten().cpu() + levels // 2, minlength=levels).tolist()


def _mixture_nats(counts: list[int], prior: float) -> float:
    """Of a sequence with these counts: Dirichlet-multinomial, ``prior`` 1 is the counted form, 1/2 the adaptive one."""
    whole = math.lgamma(sum(counts) + prior * len(counts)) - math.lgamma(prior * len(counts))
    return whole - math.fsum(math.lgamma(count + prior) - math.lgamma(prior) for count in counts if count)


def _level_count(levels: int, bits: float | None) -> int:
    count = levels if bits is None else round(2**bits)
    if bits is not None and abs(2**bits - count) > 1e-9 * count:
        raise ArgumentError(where="bits", got=bits, wanted="a number with 2^bits whole, as log2(3)")
    if count < 2:
        raise ArgumentError(where="levels", got=count, wanted="a whole number of at least 2")
    return count
