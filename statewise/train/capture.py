"""CUDA graphs: rehearsing a step, recording it, playing it again, and clearing up after a recording that failed."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from statewise.train.exchange import Batch, Outcome
from statewise.train.host import alike
from statewise.train.optimizers import GraphOptimizer

Pool = Any  # torch's handle is opaque
Step = Callable[[tuple[Any, ...]], Outcome]

# torch's warning for an optimiser that is fit for graphs and runs without one, as it does in a rehearsal.
_UNCAPTURED = "capturable=True"
_WAITS = "called a synchronizing"
_PROTOTYPE = "Synchronization debug mode"


@runtime_checkable
class Replayable(Protocol):
    """What a recording needs of a graph."""

    def replay(self) -> None:
        """Do all again."""

    def reset(self) -> None:
        """Give the memory back."""


@dataclass
class Recording:
    """A step as a graph, and the memory that it reads and writes.

    Args:
        graph: what is replayed.
        pool: where the graph has its memory; the recordings of a step share one, since they never run at once.
        inputs: the tensors that the graph reads instead of the arguments.
        outcome: what it writes.
        grads: the gradient of each parameter, which lies in the graph's memory; None where there is none.
        buffers: module, name and tensor of the model's buffers, where the graph finds them.
    """

    graph: Replayable
    pool: Pool
    inputs: tuple[Tensor | None, ...]
    outcome: Outcome
    grads: Sequence[tuple[nn.Parameter, Tensor | None]]
    buffers: Sequence[tuple[nn.Module, str, Tensor | None]]

    def settle(self) -> bool:
        """Bring the model's buffers to where the graph reads them; False if they have become others."""
        moved = []
        for module, name, tensor in self.buffers:
            now = module._buffers.get(name)
            if now is tensor:
                continue
            if now is None or tensor is None or not alike(now, tensor):
                return False
            moved.append((module, name, tensor, now))
        with torch.no_grad():
            for module, name, tensor, now in moved:
                tensor.copy_(now)
                module._buffers[name] = tensor
        return True

    def replay(self, batch: Batch) -> Outcome:
        """Run the step on new arguments."""
        with torch.no_grad():
            for tensor, leaf in zip(self.inputs, batch.leaves, strict=True):
                if tensor is not None and leaf is not None:
                    tensor.copy_(leaf)
            self.graph.replay()
            for parameter, grad in self.grads:
                parameter.grad = grad
            # The next replay writes into the same memory, so the caller gets copies.
            return self.outcome.map(Tensor.clone)

    def drop(self) -> None:
        """Give the graph's memory back."""
        self.graph.reset()


class Recorder:
    """Rehearses and records steps on one CUDA device, on a stream of its own.

    Args:
        optimizer: the optimiser of the steps.
        device: a CUDA device.
    """

    def __init__(self, optimizer: GraphOptimizer, device: torch.device) -> None:
        self.optimizer, self.device = optimizer, device
        self.stream = torch.cuda.Stream(device)

    @contextmanager
    def rehearsal(self, *, watch: bool) -> Iterator[list[str]]:
        """A region for a step that runs as it will be recorded: on the side stream, with the optimiser made fit.

        Args:
            watch: look for places where the host waits for the device; they are in the list afterwards.
        """
        present = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(present)
        try:
            with self._aside(), _watched() if watch else _quiet() as waits:
                yield waits
        finally:
            present.wait_stream(self.stream)

    def record(
        self,
        step: Step,
        batch: Batch,
        *,
        parameters: Sequence[nn.Parameter],
        buffers: Sequence[tuple[nn.Module, str, Tensor | None]],
        pool: Pool | None,
    ) -> Recording:
        """Capture a step; the device does nothing meanwhile, and the caller puts back what the host did.

        Args:
            step: the step.
            batch: arguments of the kind that it will have.
            parameters: of model and optimiser.
            buffers: of the model.
            pool: memory of another recording to share.
        """
        inputs = tuple(None if leaf is None else torch.empty_like(leaf).copy_(leaf) for leaf in batch.leaves)
        pool = torch.cuda.graph_pool_handle() if pool is None else pool
        graph = torch.cuda.CUDAGraph()
        # What is dead but not yet collected may hold memory and streams that a capture must not meet.
        gc.collect()
        torch.cuda.synchronize(self.device)
        torch.cuda.empty_cache()
        with self._aside():
            try:
                # Threads of others, such as those that pin memory for a data loader, may go on meanwhile.
                graph.capture_begin(pool=pool, capture_error_mode="thread_local")
                outcome = step(batch.arguments(inputs))
                graph.capture_end()
            except BaseException:
                self._clear_up(graph, pool)
                raise
        grads = [(parameter, parameter.grad) for parameter in parameters]
        return Recording(graph, pool, inputs, outcome, grads, buffers)

    @contextmanager
    def _aside(self) -> Iterator[None]:
        with torch.cuda.device(self.device), torch.cuda.stream(self.stream), self.optimizer.fit():
            yield

    def _clear_up(self, graph: torch.cuda.CUDAGraph, pool: Pool) -> None:
        """End a capture that failed, wherever it did, so that the device can be used as before.

        A wait for the device in a capture makes ``capture_end`` raise before it has told the allocator and the
        generator; both would believe for ever that a capture is under way (pytorch issue 171263).
        """
        with warnings.catch_warnings(), suppress(RuntimeError):
            warnings.simplefilter("ignore")
            graph.capture_end()
        with suppress(RuntimeError):  # when the allocator has been told
            torch._C._cuda_endAllocateToPool(self.device.index, pool)
            torch._C._cuda_releasePool(self.device.index, pool)
        graph.reset()
        with suppress(RuntimeError):  # a capture that succeeds tells the generator
            tiny, other = torch.zeros(1, device=self.device), torch.cuda.CUDAGraph()
            other.capture_begin(capture_error_mode="thread_local")
            tiny.add_(1)
            other.capture_end()
            other.reset()


@contextmanager
def _quiet() -> Iterator[list[str]]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=f".*{_UNCAPTURED}")
        yield []


@contextmanager
def _watched() -> Iterator[list[str]]:
    """A region whose waits for the device are listed; its other warnings are told when it ends."""
    waits: list[str] = []
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield waits
        finally:
            torch.cuda.set_sync_debug_mode(before)
    for each in heard:
        text = str(each.message)
        if _WAITS in text:
            waits.append(f"{each.filename}, line {each.lineno}")
        elif _UNCAPTURED not in text and _PROTOTYPE not in text:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
