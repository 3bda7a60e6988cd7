"""Dynamic evaluation: a model that goes on learning from the text it has already been scored on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from statewise.errors import ArgumentError, LengthError
from statewise.models.text import Score, in_mode
from statewise.train.dynamic_steps import Convention, DecayedStep, GradientStatistics, SquaredGradients
from statewise.train.step import TrainingStep

# (inputs, targets, state) -> (sum of the negative log-likelihoods, number of targets, new state)
Loss = Callable[[Any, Any, Any], tuple[Tensor, int | Tensor, Any]]
Graph = Literal["auto"] | bool


def gradient_statistics(
    loss: Loss,
    parameters: Mapping[str, nn.Parameter] | Iterable[tuple[str, nn.Parameter]],
    batches: Iterable[tuple[Any, Any]],
    *,
    model: nn.Module | None = None,
    graph: Graph = "auto",
) -> GradientStatistics:
    """How large the gradients are on the training set, with noise, dropout and weight drop off.

    ``sqrt(mean over batches of g^2)``, where g is the gradient of the mean loss of a batch (Krause et al. 2018). The
    state is carried from batch to batch without gradients.

    Args:
        loss: a function ``(inputs, targets, state) -> (sum of losses, number of targets, state)``; the first state is
            None.
        parameters: by name, as ``model.named_parameters()`` gives them.
        batches: pairs of inputs and targets, in order: tensors, or tuples, lists and dicts of them, or None.
        model: what is put into eval mode meanwhile; without it, the loss must see to that, and parameters that it
            uses beside the given ones gather gradients.
        graph: as in :class:`~statewise.train.TrainingStep`: "auto" replays a batch's work as a CUDA graph where it can.

    >>> weight = nn.Parameter(torch.tensor(2.0))
    >>> loss = lambda x, y, state: ((weight * x - y).square().sum(), x.numel(), None)
    >>> batches = [(torch.ones(1), torch.ones(1)), (torch.ones(2), torch.zeros(2))]
    >>> gradient_statistics(loss, {"weight": weight}, batches).roots["weight"].item() ** 2
    10.0...
    """
    gathered = SquaredGradients(_trained(parameters))
    _, _, count = _walk(loss, gathered, batches, model, graph)
    if not count:
        raise LengthError(where="gradient_statistics.batches", got="no batch", wanted="at least one")
    return gathered.statistics(batches=count)


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
    graph: Graph = "auto",
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
            loss must see to that, and parameters that it uses beside the given ones gather gradients.
        graph: as in :class:`~statewise.train.TrainingStep`: "auto" replays a batch's work as a CUDA graph where it can.

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
    with rule.restored():
        nll, tokens, _ = _walk(loss, rule, batches, model, graph)
    if not tokens:
        raise LengthError(where="dynamic_evaluation.batches", got="no target", wanted="at least one")
    return Score(nll=nll, tokens=tokens)


def _walk(
    loss: Loss, optimizer: Optimizer, batches: Iterable[tuple[Any, Any]], model: nn.Module | None, graph: Graph
) -> tuple[float, int, int]:
    """Take a step on each batch; gives the sum of the losses, each found before its step, of targets and of batches."""
    evaluated = model if model is not None else nn.ModuleList()

    def mean(_: nn.Module, inputs: Any, targets: Any, state: Any) -> tuple[Tensor, Any]:
        value, count, state = loss(inputs, targets, state)
        if not isinstance(count, Tensor):
            count = torch.full((), count, device=value.device)
        # A segment without a target has no loss, and its mean would be 0 / 0.
        return value / count.clamp(min=1), (value, count, state)

    step = TrainingStep(evaluated, mean, optimizer, graph=graph)
    nll: Tensor | float = 0.0
    tokens: Tensor | int = 0
    steps, state = 0, None
    with _evaluating(evaluated), _only_these(optimizer, evaluated):
        for inputs, targets in batches:
            _, (value, count, state) = step(inputs, targets, state)
            nll, tokens, steps = nll + value.double(), tokens + count, steps + 1
    return float(nll), int(tokens), steps


@contextmanager
def _only_these(optimizer: Optimizer, model: nn.Module) -> Iterator[None]:
    """A region in which gradients go to what the optimiser moves alone; afterwards all have those that they had."""
    moved = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    grads = {parameter: parameter.grad for parameter in [*moved, *model.parameters()]}
    others = [parameter for parameter in grads.keys() - set(moved) if parameter.requires_grad]
    try:
        for parameter in others:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in others:
            parameter.requires_grad_(True)
        for parameter, grad in grads.items():
            parameter.grad = grad


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """A region in eval mode through which gradients flow, with the modes put back afterwards."""
    with in_mode(model, training=False), _fused_backward(model), torch.enable_grad():
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
