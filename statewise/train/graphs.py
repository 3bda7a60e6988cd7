"""Which graph belongs to a call, when it is made, and when it is made anew."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from statewise.train.capture import Recorder, Recording
from statewise.train.eager import EagerStep
from statewise.train.exchange import Batch, Outcome
from statewise.train.host import HostState
from statewise.train.optimizers import Fingerprint, GraphOptimizer, difference, places
from statewise.train.plan import Refusal, StepPlan

# So many calls in a row without a graph, though each might have had one, are worth a word.
PATIENCE = 50
_AUTOCAST = ("cuda", "cpu")

Parameters = list[nn.Parameter]


@dataclass
class _Kind:
    """What is known of the calls of one kind.

    Args:
        rehearsed: how many have run eagerly since anything changed.
        fingerprint: where all was, and how the optimiser was set, at the latest of them.
        recording: the graph, once there is one.
        refusal: why there will be none.
        changed: why the rehearsals have begun again.
    """

    rehearsed: int = 0
    fingerprint: Fingerprint | None = None
    recording: Recording | None = None
    refusal: Refusal | None = None
    changed: str = ""

    def begin_again(self, changed: str) -> None:
        self.drop()
        self.rehearsed, self.changed = 0, changed

    def drop(self) -> None:
        if self.recording is not None:
            self.recording.drop()
        self.recording = None


class Graphs:
    """The graphs of a training step: one for each kind of call.

    Calls are of one kind if their arguments have one signature, and the model and torch are in one mode.

    Args:
        step: the step itself.
        warmup: how many calls of a kind run eagerly before the capture.
        keep: how many graphs are kept.
    """

    def __init__(self, step: EagerStep, *, warmup: int, keep: int) -> None:
        self._step, self._warmup, self._keep = step, warmup, keep
        self._kinds: OrderedDict[Hashable, _Kind] = OrderedDict()
        self._recorder: Recorder | None = None
        self._without_graph = 0
        self.plan = StepPlan(captured=False)

    def attempt(self, batch: Batch, parameters: Parameters) -> Outcome | Refusal:
        """Run a step by a graph, or on the way to one; or say why there will be none.

        Args:
            batch: the arguments, on the device of the model.
            parameters: of model and optimiser.
        """
        recorder = self._recorder_on(parameters[0].device)
        kind = self._kind(batch)
        if kind.refusal is not None:
            return kind.refusal
        now = self._fingerprint(recorder, parameters)
        if kind.fingerprint is not None and kind.fingerprint != now:
            kind.begin_again(difference(kind.fingerprint, now))
        elif kind.recording is not None and not kind.recording.settle():
            kind.begin_again("the buffers of the model have changed")
        if kind.recording is None and kind.rehearsed < self._warmup:
            return self._rehearse(kind, recorder, batch, parameters)
        recorder.optimizer.refresh()
        found = kind.recording or self._capture(kind, recorder, batch, parameters)
        if isinstance(found, Refusal):
            return self._refuse(kind, found)
        self.plan, self._without_graph = StepPlan(captured=True), 0
        return found.replay(batch)

    def impatience(self) -> Refusal | None:
        """A word on calls that differ so much that no graph is ever made."""
        if self._without_graph < PATIENCE:
            return None
        return Refusal(
            f"of {PATIENCE} calls in a row none was like enough to earlier ones; of the latest, {self.plan.why_not}",
            "Give batches of few shapes, and an optimiser that reads its learning rate from device memory, such as "
            "Adam or SGD(fused=True).",
        )

    def beside(self) -> AbstractContextManager[None]:
        """A region for an eager step while graphs live, when the optimiser counts on the device."""
        prepared = self._recorder is not None and self._recorder.optimizer.prepared
        return self._recorder.optimizer.fit() if self._recorder is not None and prepared else nullcontext()

    def reset(self) -> None:
        """Drop all graphs, and what was found out about calls."""
        for kind in self._kinds.values():
            kind.drop()
        self._kinds.clear()
        self._without_graph = 0
        self._retire()

    def _rehearse(self, kind: _Kind, recorder: Recorder, batch: Batch, parameters: Parameters) -> Outcome:
        recorder.optimizer.prepare()
        last = kind.rehearsed + 1 >= self._warmup
        with recorder.rehearsal(watch=last) as waits:
            outcome = self._step(batch.arguments())
        kind.rehearsed += 1
        kind.fingerprint = self._fingerprint(recorder, parameters)
        told = f"call {kind.rehearsed} of {self._warmup} of its kind runs eagerly before the capture"
        self.plan = StepPlan(captured=False, why_not=told + (f"; {kind.changed}" if kind.changed else ""))
        self._without_graph += 1
        if waits:
            reason = f"the host waits for the device in it ({waits[0]})"
            self._refuse(kind, Refusal(reason, "Keep .item(), .cpu() and branches on tensors out of the step."))
        return outcome

    def _capture(self, kind: _Kind, recorder: Recorder, batch: Batch, parameters: Parameters) -> Recording | Refusal:
        """Make the graph of a kind; afterwards all is as it was, whether there is one or not."""
        host = HostState(self._step.model, self._step.optimizer, parameters, recorder.device)

        def step(arguments: tuple[Any, ...]) -> Outcome:
            outcome = self._step(arguments)
            host.keep_buffers()
            return outcome

        pool = next((other.recording.pool for other in self._kinds.values() if other.recording is not None), None)
        try:
            recording = recorder.record(step, batch, parameters=parameters, buffers=host.buffers, pool=pool)
            refusal = host.frozen() or _elsewhere(recording.outcome, recorder.device)
        except Exception as error:
            return Refusal.of(error)
        finally:
            host.restore()
        if refusal is not None:
            recording.drop()
            return refusal
        kind.recording = recording
        self._forget()
        return recording

    def _refuse(self, kind: _Kind, refusal: Refusal) -> Refusal:
        kind.refusal = refusal
        if not any(other.recording is not None for other in self._kinds.values()):
            self._retire()
        return refusal

    def _retire(self) -> None:
        if self._recorder is not None:
            self._recorder.optimizer.retire()

    def _recorder_on(self, device: torch.device) -> Recorder:
        if self._recorder is None or self._recorder.device != device:
            self.reset()
            self._recorder = Recorder(GraphOptimizer(self._step.optimizer, device), device)
        return self._recorder

    def _kind(self, batch: Batch) -> _Kind:
        modes = tuple(module.training for module in self._step.model.modules())
        autocast = tuple((torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in _AUTOCAST)
        key = batch.signature(), modes, torch.is_grad_enabled(), autocast, torch.is_autocast_cache_enabled()
        if key not in self._kinds:
            self._kinds[key] = _Kind()
            self._forget()
        self._kinds.move_to_end(key)
        return self._kinds[key]

    def _forget(self) -> None:
        """Let the graphs go that were not used for longest, and in time also what is known of other kinds."""
        captured = [key for key, kind in self._kinds.items() if kind.recording is not None]
        others = [key for key, kind in self._kinds.items() if kind.recording is None]
        for key in [*captured[: -self._keep], *others[: -8 * self._keep]]:
            self._kinds.pop(key).drop()

    def _fingerprint(self, recorder: Recorder, parameters: Parameters) -> Fingerprint:
        return {**places(parameters), **recorder.optimizer.fingerprint()}


def _elsewhere(outcome: Outcome, device: torch.device) -> Refusal | None:
    """What the loss returns on another device was not made by the graph."""
    others = [str(leaf.device) for leaf in outcome.leaves() if leaf.device != device]
    return Refusal(f"the loss returns a tensor on {others[0]}", f"Return it on {device}.") if others else None
