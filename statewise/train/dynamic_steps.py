"""The steps of dynamic evaluation as optimisers that count nothing, so that a graph may hold them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from statewise.errors import ArgumentError, ShapeError

Convention = Literal["new", "old"]
CONVENTIONS = get_args(Convention)


@dataclass(frozen=True)
class GradientStatistics:
    """The root mean square of each parameter's gradient over training batches.

    Args:
        roots: ``sqrt(mean over batches of g^2)`` by the name of the parameter.
        batches: how many batches the means are over.
    """

    roots: Mapping[str, Tensor]
    batches: int


class SquaredGradients(Optimizer):
    """Moves nothing, and adds up the squares of the gradients.

    Args:
        parameters: whose gradients.

    >>> weight = nn.Parameter(torch.tensor(2.0))
    >>> gathered = SquaredGradients({"weight": weight})
    >>> for grad in (1.0, 3.0):
    ...     weight.grad = torch.tensor(grad)
    ...     gathered.step()
    >>> gathered.statistics(batches=2).roots["weight"].item() ** 2
    5.0...
    """

    def __init__(self, parameters: Mapping[str, nn.Parameter]) -> None:
        super().__init__(parameters.values(), {})
        self.parameters: dict[str, Tensor] = dict(parameters)
        for each in parameters.values():
            self.state[each]["squares"] = torch.zeros_like(each, requires_grad=False)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Add the squares of the gradients of now.

        Args:
            closure: not taken: a step is one evaluation.
        """
        grads, squares = _graded(self.parameters.values(), self._squares())
        if grads:
            torch._foreach_addcmul_(squares, grads, grads)

    def statistics(self, *, batches: int) -> GradientStatistics:
        """The roots of the means.

        Args:
            batches: over how many batches.
        """
        roots = torch._foreach_sqrt(torch._foreach_div(self._squares(), float(batches)))
        return GradientStatistics(dict(zip(self.parameters, roots, strict=True)), batches)

    def _squares(self) -> list[Tensor]:
        return [self.state[each]["squares"] for each in self.parameters.values()]


class DecayedStep(Optimizer):
    """RMS-scaled descent with decay towards the parameters as they were.

    ``w += min(decay R, 1) (w0 - w) - lr g / (M + epsilon)``: see :func:`~statewise.train.dynamic_evaluation`. A
    parameter without a gradient is only pulled back. It counts nothing, so a graph may hold it.

    Args:
        parameters: what it moves, by name.
        statistics: of the training set.
        lr: the learning rate.
        decay: the pull back.
        epsilon: what is added to the root.
        convention: "new" or "old".

    >>> weights = {"a": nn.Parameter(torch.tensor(1.0)), "b": nn.Parameter(torch.tensor(-2.0))}
    >>> statistics = GradientStatistics({"a": torch.tensor(0.3), "b": torch.tensor(0.1)}, batches=1)
    >>> rule = DecayedStep(weights, statistics=statistics, lr=0.002, decay=0.1, epsilon=0.001)
    >>> with rule.restored():
    ...     _ = weights["a"].data.fill_(1.1), weights["b"].data.fill_(-2.2)
    ...     weights["a"].grad, weights["b"].grad = torch.tensor(0.2), torch.tensor(-0.4)
    ...     rule.step()
    ...     print([f"{weight.item():.5f}" for weight in weights.values()])
    ['1.08367', '-2.18208']
    """

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        *,
        statistics: GradientStatistics,
        lr: float,
        decay: float,
        epsilon: float,
        convention: Convention = "new",
    ) -> None:
        _check_settings(lr=lr, decay=decay, epsilon=epsilon, convention=convention)
        _check_statistics(parameters, statistics)
        super().__init__(parameters.values(), {})
        self.parameters: list[Tensor] = list(parameters.values())
        roots = [statistics.roots[name].to(each) for name, each in parameters.items()]
        means = torch.stack([root.double().mean().cpu() for root in roots])
        if convention == "old":
            # The factor sqrt(N) cancels in R, but not in lr / (M + epsilon).
            roots = [root * math.sqrt(statistics.batches) for root in roots]
            means = means * math.sqrt(statistics.batches)
        overall = float(means.mean() if convention == "new" else means.sum())
        if not 0 < overall < math.inf:
            raise ArgumentError(
                where="statistics", got=f"roots of mean {overall}", wanted="a finite mean > 0", remedy="Gather it anew."
            )
        self._pulls = [(root * (decay / overall)).clamp_(max=1.0) for root in roots]
        self._rates = [lr / (root + epsilon) for root in roots]
        self._origin = [each.detach().clone() for each in self.parameters]

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move the parameters by their gradients.

        Args:
            closure: not taken: a step is one evaluation.
        """
        moves = torch._foreach_sub(self._origin, self.parameters)
        torch._foreach_mul_(moves, self._pulls)
        grads, down, rates = _graded(self.parameters, moves, self._rates)
        if grads:
            torch._foreach_addcmul_(down, grads, rates, value=-1)
        torch._foreach_add_(self.parameters, moves)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """A region after which the parameters are what they were when the rule was made."""
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(self.parameters, self._origin)


def _graded(parameters: Iterable[Tensor], *others: Sequence[Tensor]) -> list[list[Tensor]]:
    """The gradients that there are, and what belongs to them."""
    rows = [(each.grad, *row) for each, *row in zip(parameters, *others, strict=True) if each.grad is not None]
    return [[row[place] for row in rows] for place in range(1 + len(others))]


def _check_settings(*, lr: float, decay: float, epsilon: float, convention: str) -> None:
    for name, number in (("lr", lr), ("decay", decay)):
        if not 0 <= number < math.inf:
            raise ArgumentError(where=f"dynamic_evaluation.{name}", got=number, wanted="a number >= 0")
    if not 0 < epsilon < math.inf:
        raise ArgumentError(
            where="dynamic_evaluation.epsilon",
            got=epsilon,
            wanted="a number > 0",
            remedy="A word that the training set lacks has a root of 0.",
        )
    if convention not in CONVENTIONS:
        raise ArgumentError(where="dynamic_evaluation.convention", got=convention, wanted='"new" or "old"')


def _check_statistics(parameters: Mapping[str, nn.Parameter], statistics: GradientStatistics) -> None:
    for name, parameter in parameters.items():
        root = statistics.roots.get(name)
        if root is None or root.shape != parameter.shape:
            raise ShapeError(
                where=f"statistics.roots[{name!r}]",
                got="nothing" if root is None else f"shape {tuple(root.shape)}",
                wanted=f"the parameter's {tuple(parameter.shape)}",
                remedy="Gather the statistics with the same model and parameters.",
            )
