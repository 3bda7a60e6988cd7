"""What mixup can and cannot reach: floors of its losses, the width that it needs, and how affine a network is.

The theorems of the paper are stated here as they hold; ``docs/mixup.md`` says which printed statement each replaces.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from statewise.errors import ArgumentError
from statewise.mixup.processes import check_alpha
from statewise.mixup.quadrature import symmetric_nodes

_FARTHEST = 1e5  # a gap of logits beyond which a floor is 0 in float64
_MANY = 1e4  # an alpha above which log Gamma has lost more digits than a series leaves out


class NarrowStateWarning(UserWarning):
    """A hidden state is too narrow for mixup: what it costs is in the text."""


@dataclass(frozen=True, eq=False)
class MixupFloor:
    """The least cross-entropy per token that any network with a linear softmax can have under mixup.

    Attributes:
        value: the floor.
        irreducible: the part of it that no network of any kind can avoid: the entropy of the mixed labels.
        logits: those at which it is reached: row k for the states of class k.
        frequencies: of the classes.
    """

    value: float
    irreducible: float
    logits: Float64[Tensor, "classes classes"]
    frequencies: Float64[Tensor, " classes"]

    def __float__(self) -> float:
        return self.value

    @property
    def gap(self) -> float:
        """``k``: how far the right logit of an unmixed token lies above the others, averaged over the classes."""
        classes = len(self.frequencies)
        right = self.logits.diagonal()
        others = self.logits.clone().fill_diagonal_(0).sum(1) / (classes - 1)
        return float((self.frequencies * (right - others)).sum())

    @property
    def p_pure(self) -> float:
        """The probability that an unmixed token's label gets there: the confidence that mixup allows."""
        if math.isinf(float(self.logits[0, 0])):
            return 1.0
        return float((self.frequencies * self.logits.softmax(1).diagonal()).sum())

    def excess(self, loss: float) -> float:
        """How far a loss per token is above the floor: an honest sign of convergence, which can reach 0."""
        return loss - self.value


def mixup_floor(
    alpha: float, classes: int | Sequence[float] | Tensor, *, unlike_only: bool = False, nodes: int = 64
) -> MixupFloor:
    """The least cross-entropy per token under mixup with a softmax of linear logits.

    For balanced classes it is reached where the states of a class are one point and the logits are ``k`` times the
    identity: ``min_k L(k)``,

    ``L(k) = log(1 + (C-1) e^-k) / C + (1 - 1/C) E[log(e^(lambda k) + e^((1-lambda) k) + C-2) - (lambda^2 +
    (1-lambda)^2) k]``.

    For others the same convex objective is minimised over all ``C x C`` logits. It holds for ``lambda ~ Beta(alpha,
    alpha)``, so for ``rho`` 0 and 1, for pairs drawn independently of labels, and for states of at least ``C - 1``
    units. It is what makes mixup cautious: the confidence in an unmixed token is at most ``p_pure``.

    Args:
        alpha: the shape of the coefficients.
        classes: how many, equally frequent; or their frequencies.
        unlike_only: whether only pairs of different labels count.
        nodes: of the quadrature over lambda.

    >>> floor = mixup_floor(1.0, 2)
    >>> round(floor.value, 6), round(floor.gap, 5), round(floor.p_pure, 5)
    (0.273899, 3.54228, 0.97187)
    """
    check_alpha("mixup_floor.alpha", alpha)
    frequencies = _frequencies(classes, "mixup_floor.classes")
    count = len(frequencies)
    if count < 2:
        raise ArgumentError(where="mixup_floor.classes", got=count, wanted="at least 2")
    irreducible = irreducible_ce(alpha, frequencies) / (unlike_share(frequencies) if unlike_only else 1)
    if alpha == 0:
        certain = torch.zeros(count, count, dtype=torch.float64).fill_diagonal_(math.inf)
        return MixupFloor(0.0, 0.0, certain, frequencies)
    lam, weight = symmetric_nodes(alpha, nodes)
    if bool((frequencies == frequencies[0]).all()):
        gap, value = _balanced(lam, weight, count, 0.0 if unlike_only else 1 / count)
        logits = gap * torch.eye(count, dtype=torch.float64)
    else:
        logits, value = _unbalanced(lam, weight, frequencies, unlike_only)
    return MixupFloor(value, irreducible, logits, frequencies)


def irreducible_ce(alpha: float, frequencies: Sequence[float] | Tensor | None = None) -> float:
    """The mean entropy of mixed labels: ``(1 - sum f_k^2) (psi(2 alpha + 1) - psi(alpha + 1))``.

    No network can have a smaller cross-entropy per token, so "zero training error" is not to be had.

    Args:
        alpha: the shape of the coefficients.
        frequencies: of the classes; None for pairs of different labels.

    >>> irreducible_ce(1.0), round(irreducible_ce(0.5), 6)
    (0.5, 0.386294)
    """
    check_alpha("irreducible_ce.alpha", alpha)
    share = 1.0 if frequencies is None else unlike_share(frequencies)
    if math.isinf(alpha):
        return share * math.log(2)
    shape = torch.tensor(float(alpha), dtype=torch.float64)
    return share * float(torch.special.digamma(2 * shape + 1) - torch.special.digamma(shape + 1))


def unlike_share(frequencies: Sequence[float] | Tensor) -> float:
    """``1 - sum f_k^2``: the share of pairs whose labels differ, which is how much of a batch has its labels mixed.

    >>> round(unlike_share([0.83, 0.17]), 4)
    0.2822
    """
    found = _frequencies(frequencies, "unlike_share.frequencies")
    return float(1 - found.square().sum())


def class_frequencies(
    labels: Int[Tensor, "*shape"], *, classes: int | None = None, ignore_index: int = -100
) -> Float64[Tensor, " classes"]:
    """How frequent each class is among labels.

    Args:
        labels: of any shape.
        classes: how many there are; None for as many as the largest label tells.
        ignore_index: a label that does not count.

    >>> class_frequencies(torch.tensor([0, 0, 1, -100])).tolist()
    [0.6666666666666666, 0.3333333333333333]
    """
    counts = torch.bincount(labels[labels != ignore_index].flatten().cpu(), minlength=classes or 0).double()
    return counts / counts.sum()


def expected_minority(alpha: float) -> float:
    """``E[min(lambda, 1 - lambda)] = 1/2 - 1 / (alpha 4^alpha B(alpha, alpha))``: the mean share of the lesser member.

    >>> expected_minority(1.0)
    0.25
    """
    check_alpha("expected_minority.alpha", alpha)
    if alpha == 0:
        return 0.0
    if alpha > _MANY:
        # 4^-alpha (2 alpha choose alpha) by Stirling's series: the logarithms below would cancel.
        return 0.5 - (1 - 1 / (8 * alpha) + 1 / (128 * alpha * alpha)) / (2 * math.sqrt(math.pi * alpha))
    log_beta = 2 * math.lgamma(alpha) - math.lgamma(2 * alpha)
    return 0.5 - math.exp(-math.log(alpha) - alpha * math.log(4) - log_beta)


def affine_floor(alpha: float, classes: int, width: int) -> float:
    """The least squared error under mixup of an affine output map: ``(alpha+1)/(2 alpha+1) max(0, C-1-H)/C``.

    For balanced classes, one-hot labels and independent pairs. It replaces the paper's Theorem 1, which holds for
    affine maps only: with a curved output map a state of three units can reach 0 for any number of classes.

    Args:
        alpha: the shape of the coefficients.
        classes: ``C``.
        width: ``H``, of the hidden state.

    >>> round(affine_floor(1.0, 4, 2), 6), affine_floor(1.0, 4, 3)
    (0.166667, 0.0)
    """
    check_alpha("affine_floor.alpha", alpha)
    scale = 0.5 if math.isinf(alpha) else (alpha + 1) / (2 * alpha + 1)
    return scale * max(0, classes - 1 - width) / classes


@dataclass(frozen=True)
class WidthCheck:
    """Whether a hidden state is wide enough for mixup with an affine output map.

    Attributes:
        level: "ok", "info", "warning" or "error".
        sentence: why.
    """

    level: str
    sentence: str


def check_width(width: int, classes: int, *, warn: bool = True) -> WidthCheck:
    """Say whether a state of ``H`` units can serve ``C`` classes under mixup with an affine output map.

    Below ``C - 1`` the loss cannot reach its floor; at ``C - 1`` every class collapses to one point, so that the state
    remembers the label and nothing else; from ``C`` on there is room for memory; ``2 C - 1`` is what the paper advises.

    Args:
        width: ``H``, of the state that the output map reads.
        classes: ``C``.
        warn: whether the first two cases also give a :class:`NarrowStateWarning`.

    >>> check_width(256, 17).level, check_width(20, 17).level
    ('ok', 'info')
    """
    start = f"a state of {width} units for {classes} classes"
    if width < classes - 1:
        found = WidthCheck("error", f"{start}: below {classes - 1} mixup with an affine output map keeps an error")
    elif width == classes - 1:
        found = WidthCheck("warning", f"{start}: under mixup with an affine output map each class becomes one point")
    elif width < 2 * classes - 1:
        found = WidthCheck("info", f"{start}: enough, though less than the paper's advice of {2 * classes - 1}")
    else:
        found = WidthCheck("ok", f"{start}: enough")
    if warn and found.level in ("error", "warning"):
        warnings.warn(found.sentence, NarrowStateWarning, stacklevel=2)
    return found


def affine_residual(
    head: Callable[[Tensor], Tensor],
    first: Float[Tensor, "*rows hidden"],
    second: Float[Tensor, "*rows hidden"],
    *,
    points: int = 33,
) -> Float[Tensor, "*rows"]:
    """How far a network is from affine between two states: ``max |p(mix) - mix(p)|`` over lambda, p its softmax.

    Mixing before the output drives it to 0 between states of the same step.

    Args:
        head: from states to logits.
        first: states.
        second: as many others.
        points: how many lambda from 0 to 1 are looked at.

    >>> bool((affine_residual(lambda h: 0 * h, torch.randn(4, 3), torch.randn(4, 3)) < 1e-6).all())
    True
    """
    found = torch.zeros_like(first[..., 0])
    with torch.no_grad():
        ends = [head(side).softmax(-1) for side in (first, second)]
        for share in torch.linspace(0, 1, points).tolist():
            there = head(share * first + (1 - share) * second).softmax(-1)
            found = torch.maximum(found, (there - share * ends[0] - (1 - share) * ends[1]).norm(dim=-1))
    return found


def _frequencies(classes: int | Sequence[float] | Tensor, where: str) -> Tensor:
    """Frequencies of the classes, which add up to 1."""
    if isinstance(classes, int):
        return torch.full((classes,), 1 / classes, dtype=torch.float64)
    found = torch.as_tensor(classes, dtype=torch.float64).cpu()
    if found.ndim != 1 or not bool((found > 0).all()) or not bool(found.sum().isfinite()):
        raise ArgumentError(
            where=where,
            got=found.tolist(),
            wanted="a positive frequency for each class",
            remedy="Leave out classes that do not occur.",
        )
    return found / found.sum()


def _balanced(lam: Tensor, weight: Tensor, classes: int, like: float) -> tuple[float, float]:
    """The best gap and its loss, by bisection on the derivative of a convex function."""
    high, low = torch.maximum(lam, 1 - lam), torch.minimum(lam, 1 - lam)
    squares = lam**2 + (1 - lam) ** 2

    def loss(gap: float) -> float:
        # log(e^(high k) + e^(low k) + C - 2), with the largest term taken out
        rest = torch.exp((low - high) * gap) + (classes - 2) * torch.exp(-high * gap)
        unlike = (weight * (high * gap + rest.log1p() - squares * gap)).sum()
        return like * math.log1p((classes - 1) * math.exp(-gap)) + (1 - like) * float(unlike)

    def slope(gap: float) -> float:
        near, far = torch.exp((low - high) * gap), (classes - 2) * torch.exp(-high * gap)
        unlike = (weight * ((high + low * near) / (1 + near + far) - squares)).sum()
        wrong = (classes - 1) * math.exp(-gap)
        return -like * wrong / (1 + wrong) + (1 - like) * float(unlike)

    below, above = 0.0, 1.0
    while slope(above) < 0 and above < _FARTHEST:
        below, above = above, 2 * above
    for _ in range(100):
        middle = (below + above) / 2
        below, above = (middle, above) if slope(middle) < 0 else (below, middle)
    return above, loss(above)


def _unbalanced(lam: Tensor, weight: Tensor, frequencies: Tensor, unlike_only: bool) -> tuple[Tensor, float]:
    """The best logits and their loss: a convex objective over C x C numbers."""
    couples = frequencies.unsqueeze(1) * frequencies
    if unlike_only:
        couples = couples - couples.diagonal().diag()
        couples = couples / couples.sum()
    half = lam <= 0.5 + 1e-12  # lambda and 1 - lambda exchange the members of a pair
    lam, weight = lam[half], torch.where((lam[half] - 0.5).abs() < 1e-12, 1, 2) * weight[half]
    share = lam.reshape(-1, 1, 1, 1)
    own, cross = (weight * lam.square()).sum(), (weight * lam * (1 - lam)).sum()
    other = (weight * (1 - lam).square()).sum()

    def loss(logits: Tensor) -> Tensor:
        mixed = share * logits.unsqueeze(1) + (1 - share) * logits
        normaliser = torch.einsum("n,nij->ij", weight, mixed.logsumexp(3))
        right = logits.diagonal()
        score = own * right.unsqueeze(1) + other * right + cross * (logits + logits.T)
        return (couples * (normaliser - score)).sum()

    logits = 3 * torch.eye(len(frequencies), dtype=torch.float64)
    logits.requires_grad_()
    solver = torch.optim.LBFGS(
        [logits], max_iter=2000, tolerance_grad=1e-12, tolerance_change=1e-16, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        solver.zero_grad()
        value = loss(logits)
        value.backward()
        return value

    with torch.enable_grad():
        solver.step(closure)
    found = logits.detach()
    return found - found.mean(1, keepdim=True), float(loss(found))
