"""Dynamic evaluation: a model that goes on learning from the text it has already been scored on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from statewise.errors import ArgumentError, LengthError, ShapeError
from statewise.models.text import Score, in_mode

# (inputs, targets, state) -> (sum of the negative log-likelihoods, number of targets, new state)
Loss = Callable[[Any, Any, Any], tuple[Tensor, int | Tensor, Any]]
Convention = Literal["new", "old"]


@dataclass(frozen=True)
class GradientStatistics:
    """The root mean square of each parameter's gradient over training batches.

    Args:
        roots: ``sqrt(mean over batches of g^2)`` by the name of the parameter.
        batches: how many batches the means are over.
    """

    roots: Mapping[str, Tensor]
    batches: int


def gradient_statistics(
    loss: Loss,
    parameters: Mapping[str, nn.Parameter] | Iterable[tuple[str, nn.Parameter]],
    batches: Iterable[tuple[Any, Any]],
    *,
    model: nn.Module | None = None,
) -> GradientStatistics:
    """How large the gradients are on the training set, with noise, dropout and weight drop off.

    ``sqrt(mean over batches of g^2)``, where g is the gradient of the mean loss of a batch (Krause et al. 2018). The
    state is carried from batch to batch without gradients.

    Args:
        loss: a function ``(inputs, targets, state) -> (sum of losses, number of targets, state)``; the first state is
            None.
        parameters: by name, as ``model.named_parameters()`` gives them.
        batches: pairs of inputs and targets, in order.
        model: what is put into eval mode meanwhile; without it, the loss must see to that.

    >>> weight = nn.Parameter(torch.tensor(2.0))
    >>> loss = lambda x, y, state: ((weight * x - y).square().sum(), x.numel(), None)
    >>> batches = [(torch.ones(1), torch.ones(1)), (torch.ones(2), torch.zeros(2))]
    >>> gradient_statistics(loss, {"weight": weight}, batches).roots["weight"].item() ** 2
    10.0...
    """
    trained = _trained(parameters)
    squares = [torch.zeros_like(each, requires_grad=False) for each in trained.values()]
    count, state = 0, None
    with _evaluating(model):
        for inputs, targets in batches:
            _, _, grads, state = _gradient(loss, list(trained.values()), inputs, targets, state)
            torch._foreach_addcmul_(squares, grads, grads)
            count += 1
    if not count:
        raise LengthError(where="gradient_statistics.batches", got="no batch", wanted="at least one")
    torch._foreach_div_(squares, float(count))
    torch._foreach_sqrt_(squares)
    return GradientStatistics(dict(zip(trained, squares, strict=True)), count)


def dynamic_evaluation(
    loss: Loss,
    parameters: Mapping[str, nn.Parameter] | Iterable[tuple[str, nn.Parameter]],
    batches: Iterable[tuple[Any, Any]],
    *,
    statistics: GradientStatistics,
    lr: float,
    decay: float,
    epsilon: float,
    convention: Convention = "new",
    model: nn.Module | None = None,
) -> Score:
    """Score a stream segment by segment, and after each score take a step on it.

    ``w += min(decay R, 1) (w0 - w) - lr g / (M + epsilon)``, ``R = M / gbar``, where g is the gradient of the segment's
    mean loss, w0 the parameters as they were, M the root of the gradient statistics and gbar the mean over tensors of
    the mean of M (Krause et al. 2018, "RMS with decay"). In the "old" convention of public code M lacks the mean over
    the N batches, so it is ``sqrt(N)`` times as large, and gbar is a sum over the tensors. Old settings become new ones
    by ``decay / tensors``, ``lr / sqrt(N)``, ``epsilon / sqrt(N)``.

    Every segment is scored before the model has seen it. With lr = decay = 0 this is plain evaluation. Afterwards the
    parameters are what they were, bit for bit.

    Args:
        loss: a function ``(inputs, targets, state) -> (sum of losses, number of targets, state)``; the first state is
            None.
        parameters: what adapts, by name; raw ones where a weight is parametrized, as ``named_parameters()`` has them.
        batches: pairs of inputs and targets, in order; segments of five tokens of one stream are usual.
        statistics: of the training set.
        lr: the learning rate, >= 0.
        decay: the pull towards the parameters as they were, >= 0.
        epsilon: what is added to the root, > 0.
        convention: "new" or "old", as above.
        model: what is put into eval mode meanwhile, so that noise, dropout and weight drop are off; without it, the
            loss must see to that.

    >>> weight = nn.Parameter(torch.tensor(0.0))
    >>> loss = lambda x, y, state: ((weight - y).square().sum(), y.numel(), None)
    >>> stream = [(None, torch.ones(5))] * 3
    >>> statistics = gradient_statistics(loss, {"weight": weight}, stream)
    >>> still, moving = (
    ...     dynamic_evaluation(loss, {"weight": weight}, stream, statistics=statistics, lr=lr, decay=0.0, epsilon=1e-3)
    ...     for lr in (0.0, 0.1)
    ... )
    >>> still.nll, moving.nll < still.nll, weight.item()
    (15.0, True, 0.0)
    """
    adapting = _trained(parameters)
    rule = DecayedStep(adapting, statistics=statistics, lr=lr, decay=decay, epsilon=epsilon, convention=convention)
    nll: Tensor | float = 0.0
    tokens: Tensor | int = 0
    state = None
    with _evaluating(model), rule.restored():
        for inputs, targets in batches:
            value, count, grads, state = _gradient(loss, list(adapting.values()), inputs, targets, state)
            nll, tokens = nll + value.double(), tokens + count
            rule.step(grads)
    if not int(tokens):
        raise LengthError(where="dynamic_evaluation.batches", got="no target", wanted="at least one")
    return Score(nll=float(nll), tokens=int(tokens))


class DecayedStep:
    """The step of dynamic evaluation: RMS-scaled descent with decay towards the parameters as they were.

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
    ...     rule.step([torch.tensor(0.2), torch.tensor(-0.4)])
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
    def step(self, grads: list[Tensor]) -> None:
        """Move the parameters.

        Args:
            grads: one for each parameter, in order.
        """
        moves = torch._foreach_sub(self._origin, self.parameters)
        torch._foreach_mul_(moves, self._pulls)
        torch._foreach_addcmul_(moves, grads, self._rates, value=-1)
        torch._foreach_add_(self.parameters, moves)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """A region after which the parameters are what they were when the rule was made."""
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(self.parameters, self._origin)


@contextmanager
def _evaluating(model: nn.Module | None) -> Iterator[None]:
    """A region in eval mode through which gradients flow, with the modes put back afterwards."""
    evaluated = model if model is not None else nn.ModuleList()
    with in_mode(evaluated, training=False), _fused_backward(evaluated), torch.enable_grad():
        yield


@contextmanager
def _fused_backward(model: nn.Module) -> Iterator[None]:
    """Let cuDNN's layers have gradients: they have no backward in eval mode, and without dropout both are the same."""
    layers = [module for module in model.modules() if isinstance(module, nn.RNNBase)]
    fused = [(layer, layer.dropout, layer.training) for layer in layers if any(w.is_cuda for w in layer.parameters())]
    for layer, _, _ in fused:
        layer.dropout, layer.training = 0.0, True
    try:
        yield
    finally:
        for layer, dropout, training in fused:
            layer.dropout, layer.training = dropout, training


def _gradient(
    loss: Loss, parameters: list[nn.Parameter], inputs: Any, targets: Any, state: Any
) -> tuple[Tensor, int | Tensor, list[Tensor], Any]:
    """Sum of losses, number of targets, gradient of their mean, and the state cut off from it."""
    value, count, state = loss(inputs, targets, state)
    # A segment without a target has no loss, and its mean would be 0 / 0.
    least = count.clamp(min=1) if isinstance(count, Tensor) else max(count, 1)
    grads = torch.autograd.grad(value / least, parameters, allow_unused=True, materialize_grads=True)
    return value.detach(), count, list(grads), _detached(state)


def _detached(state: Any) -> Any:
    if isinstance(state, Tensor):
        return state.detach()
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return type(state)(*(_detached(part) for part in state))
    if isinstance(state, list | tuple):
        return type(state)(_detached(part) for part in state)
    if isinstance(state, Mapping):
        return {key: _detached(part) for key, part in state.items()}
    return state


def _trained(
    parameters: Mapping[str, nn.Parameter] | Iterable[tuple[str, nn.Parameter]],
) -> dict[str, nn.Parameter]:
    """The parameters that have gradients, each once."""
    pairs = parameters.items() if isinstance(parameters, Mapping) else parameters
    first: dict[nn.Parameter, str] = {}
    for name, parameter in pairs:
        if parameter.requires_grad:
            first.setdefault(parameter, name)
    if not first:
        raise ArgumentError(where="parameters", got="none that is trained", wanted="at least one")
    return {name: parameter for parameter, name in first.items()}


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
    if convention not in ("new", "old"):
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
