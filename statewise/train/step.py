"""A whole training step behind one call: forward, loss, backward, clipping, optimiser."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, Literal

from torch import Tensor, nn
from torch.optim import LBFGS, Optimizer

from statewise.errors import ArgumentError, DtypeError
from statewise.train.eager import EagerStep
from statewise.train.exchange import Batch, Outcome
from statewise.train.graphs import Graphs
from statewise.train.obstacles import obstacle
from statewise.train.plan import Refusal, StepPlan


class TrainingStep:
    """One step of training behind one call, replayed as a CUDA graph where that is possible.

    ``step(*arguments)`` clears the gradients, calls ``loss(model, *arguments)``, goes backward, clips, and steps the
    optimiser. It computes what the same lines written by hand compute. It returns the loss, detached and on its device:
    nothing waits for the device.

    The loss returns a scalar, or a pair of a scalar and other tensors: a tensor, or tuples, lists and dicts of them.
    The others come back detached beside the loss, and may be arguments of the next call: so a recurrent state is
    carried.

    On a CUDA device the first calls of a kind run eagerly; they are training steps like any other, and warm the device
    up. Then the step is captured, and from then on replayed. Calls are of one kind if their arguments have the same
    structure, shapes, dtypes and devices, and the model the same modules in training mode, under the same autocast. If
    parameters or the state of the optimiser are replaced, or a number of its groups changes that the graph holds, the
    graph is made anew. A learning rate that changes costs nothing where the optimiser can read it from device memory:
    with Adam, AdamW, NAdam, RAdam, Adamax, Adadelta, RMSprop, RMSpropTF, and with SGD if it is fused. For the graph an
    optimiser is ``capturable`` if it can be; its ``param_groups`` stay as they are.

    A graph repeats what the device did, not what Python did. What a loss closes over, numbers of Python and branches on
    them, stays as it was in the capture: call :meth:`reset` when it changes. Arguments are copied, so the loss cannot
    return something by writing into them. A graph that would silently repeat random numbers, counts of the optimiser,
    or tensors that modules keep as attributes is refused.

    Under autocast the forward pass alone runs so. A ``GradScaler`` is not supported: use bfloat16. ``LBFGS``, which
    calls its closure several times, is refused.

    Args:
        model: what is trained.
        loss: a function ``(model, *arguments) -> scalar`` or ``-> (scalar, tensors)``.
        optimizer: one of torch's, or of the same class.
        clip: the largest norm of the gradient of all that the optimiser moves; None for no clipping.
        graph: "auto" captures where it can, else runs eagerly, says why in :meth:`plan`, and warns once with a
            :class:`CaptureWarning` if the model is on a CUDA device; True raises a :class:`CaptureError` instead;
            False never captures.
        warmup: how many calls of a kind run eagerly before the capture.
        keep: how many graphs are kept; the one that was not used for longest goes.
        skipped: a whole number in a tensor on the model's device, to which one is added for every step whose gradient
            is not finite; such a step moves the weights by no gradient. None lets it move them, as by hand.

    >>> import torch
    >>> model = nn.Linear(3, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> step = TrainingStep(model, lambda model, x: model(x).square().mean(), optimizer, clip=1.0)
    >>> x = torch.ones(5, 3)
    >>> bool(step(x) > step(x) > step(x))
    True
    >>> print(step.plan())
    eager; not captured because the model is on cpu
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[..., Any],
        optimizer: Optimizer,
        *,
        clip: float | None = None,
        graph: Literal["auto"] | bool = "auto",
        warmup: int = 3,
        keep: int = 8,
        skipped: Tensor | None = None,
    ) -> None:
        _check_parts(model, loss, optimizer)
        _check_settings(clip=clip, graph=graph, warmup=warmup, keep=keep)
        self.graph = graph
        self._step = EagerStep(model, loss, optimizer, clip, skipped)
        self._graphs = Graphs(self._step, warmup=warmup, keep=keep)
        self._plan = StepPlan(captured=False, why_not="the step has not been called yet")
        self._warned = False

    def __call__(self, *arguments: Any) -> Any:
        """Train on one batch.

        Args:
            *arguments: for the loss: tensors, or tuples, lists and dicts of them; None is passed on.

        Returns:
            The loss or, if the loss function returns a pair, the pair; detached, and on its device.
        """
        batch = Batch.read(arguments)
        answer = self._attempt(batch)
        if not isinstance(answer, Refusal):
            self._plan = self._graphs.plan
            self._warn(self._graphs.impatience())
            return answer.result()
        self._plan = StepPlan(captured=False, why_not=answer.reason)
        if self.graph is True:
            raise answer.error()
        self._warn(None if answer.expected else answer)
        with self._graphs.beside():
            return self._step(batch.arguments()).result()

    def plan(self) -> StepPlan:
        """Whether the latest call replayed a graph and, when not, why."""
        return self._plan

    def reset(self) -> None:
        """Drop all graphs, and what was found out about calls, so that the next ones capture anew."""
        self._graphs.reset()

    def _attempt(self, batch: Batch) -> Outcome | Refusal:
        if self.graph is False:
            return Refusal("graph=False", "", expected=True)
        parameters = self._step.parameters()
        return obstacle(self._step.model, parameters, batch) or self._graphs.attempt(batch, parameters)

    def _warn(self, refusal: Refusal | None) -> None:
        if refusal is not None and not self._warned:
            self._warned = True
            warnings.warn(refusal.warning(), stacklevel=3)


def _check_parts(model: object, loss: object, optimizer: object) -> None:
    parts = (
        ("model", model, isinstance(model, nn.Module), "a torch.nn.Module"),
        ("loss", loss, callable(loss), "a function (model, *arguments) -> scalar"),
        ("optimizer", optimizer, isinstance(optimizer, Optimizer), "a torch.optim.Optimizer"),
    )
    for name, part, good, wanted in parts:
        if not good:
            raise DtypeError(where=f"TrainingStep.{name}", got=type(part).__name__, wanted=wanted)
    if isinstance(optimizer, LBFGS):
        raise ArgumentError(
            where="TrainingStep.optimizer",
            got="LBFGS",
            wanted="an optimiser whose step is one evaluation",
            remedy="Call optimizer.step(closure) by hand.",
        )


def _check_settings(*, clip: object, graph: object, warmup: object, keep: object) -> None:
    if clip is not None and (isinstance(clip, bool) or not isinstance(clip, int | float) or not 0 < clip < math.inf):
        raise ArgumentError(
            where="TrainingStep.clip", got=clip, wanted="a number > 0", remedy="Use None for no clipping."
        )
    if not isinstance(graph, bool) and graph != "auto":
        raise ArgumentError(where="TrainingStep.graph", got=graph, wanted='"auto", True or False')
    for name, number in (("warmup", warmup), ("keep", keep)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ArgumentError(where=f"TrainingStep.{name}", got=number, wanted="a whole number >= 1")
