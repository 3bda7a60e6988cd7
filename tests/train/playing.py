"""A stand-in for CUDA graphs, so that all but the device is tested without one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from statewise.train import graphs
from statewise.train import step as step_module
from statewise.train.capture import Recorder, Recording
from statewise.train.exchange import Batch, Outcome
from statewise.train.optimizers import GraphOptimizer
from statewise.train.rmsprop_tf import RMSpropTF

Body = Callable[[tuple[Any, ...]], Outcome]


class Played:
    """Replays a step as a graph does: on the tensors and with the numbers that it had when it was recorded."""

    def __init__(self, body: Callable[[], Outcome], optimizer: torch.optim.Optimizer) -> None:
        self._body, self._optimizer = body, optimizer
        self._groups = [dict(group) for group in optimizer.param_groups]
        self.recording: Recording | None = None
        self.dropped = False

    def replay(self) -> None:
        assert self.recording is not None
        assert not self.dropped
        groups = [dict(group) for group in self._optimizer.param_groups]
        for group, held in zip(self._optimizer.param_groups, self._groups, strict=True):
            group.update(held)
        with torch.enable_grad():
            again = self._body()
        for written, now in zip(self.recording.outcome.leaves(), again.leaves(), strict=True):
            written.copy_(now)
        for parameter, grad in self.recording.grads:
            if grad is not None:
                grad.copy_(_of(parameter))
        for group, present in zip(self._optimizer.param_groups, groups, strict=True):
            group.update(present)

    def reset(self) -> None:
        self.dropped = True


class StandIn(Recorder):
    """Takes the place of the recorder of CUDA graphs, on the CPU."""

    made: list[StandIn]

    def __init__(self, optimizer: GraphOptimizer, device: torch.device) -> None:
        self.optimizer, self.device = optimizer, device
        self.rehearsals = 0
        self.recordings: list[Played] = []
        self.pools: list[object] = []
        self.waits: list[str] = []
        self.failure: BaseException | None = None
        self.made.append(self)

    @contextmanager
    def rehearsal(self, *, watch: bool) -> Iterator[list[str]]:
        self.rehearsals += 1
        with self.optimizer.fit():
            yield self.waits if watch else []

    def record(
        self,
        step: Body,
        batch: Batch,
        *,
        parameters: Sequence[nn.Parameter],
        buffers: Sequence[tuple[nn.Module, str, Tensor | None]],
        pool: object,
    ) -> Recording:
        inputs = tuple(None if leaf is None else leaf.clone() for leaf in batch.leaves)
        states = self.optimizer.optimizer.state.values()
        kept = [value for state in states for value in state.values() if isinstance(value, Tensor)]
        kept += [*parameters, *(buffer for _, _, buffer in buffers if buffer is not None)]
        before = [tensor.detach().clone() for tensor in kept]
        with self.optimizer.fit():
            played = Played(lambda: step(batch.arguments(inputs)), self.optimizer.optimizer)
            outcome = step(batch.arguments(inputs)).map(Tensor.clone)
        assert all(module._buffers[name] is buffer for module, name, buffer in buffers), "the next replay reads these"
        grads = [(each, None if each.grad is None else each.grad.clone()) for each in parameters]
        with torch.no_grad():  # a recording leaves the device's memory as it was
            for tensor, value in zip(kept, before, strict=True):
                tensor.copy_(value)
        if self.failure is not None:
            raise self.failure
        self.recordings.append(played)
        self.pools.append(pool)
        played.recording = Recording(played, f"pool {len(self.pools)}", inputs, outcome, grads, buffers)
        return played.recording


def stand_in(monkeypatch: pytest.MonkeyPatch) -> list[StandIn]:
    """Put the stand-in in place; the list will have the recorders that are made."""
    monkeypatch.setattr(StandIn, "made", [], raising=False)
    monkeypatch.setattr(graphs, "Recorder", StandIn)
    monkeypatch.setattr(step_module, "obstacle", lambda *_: None)
    for name in ("adam", "rmsprop", "nadam", "radam", "adamax", "adadelta"):
        module = importlib.import_module(f"torch.optim.{name}")
        monkeypatch.setattr(module, "_get_capturable_supported_devices", lambda *_, **__: ["cpu"])
    return StandIn.made


def _of(parameter: nn.Parameter) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad


class Tagger(nn.Module):
    """A small recurrent model whose loss carries its state."""

    def __init__(self, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 5)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(5, 2)

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        states = []
        for each in x:
            state = self.cell(each, state)
            states.append(state)
        return self.out(self.dropout(torch.stack(states))), states[-1]


def squared(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The mean squared error of a tagger."""
    out: Tensor = model(x)[0]
    return (out - y).square().mean()


def carried(model: nn.Module, x: Tensor, y: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
    """The same with the state that the next call starts from."""
    out, state = model(x, state)
    assert state is not None
    return (out - y).square().mean(), state


def batches(count: int, *, rows: int = 4, seed: int = 0, device: str = "cpu") -> list[tuple[Tensor, Tensor]]:
    """Inputs and targets for the tagger."""
    source = torch.Generator().manual_seed(seed)
    drawn = [torch.randn(6, rows, 5, generator=source).to(device) for _ in range(count)]
    return [(each[..., :3], each[..., 3:]) for each in drawn]


Make = Callable[[Any], torch.optim.Optimizer]
OPTIMIZERS: dict[str, Make] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd with momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.02),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.02, weight_decay=0.1, amsgrad=True),
    "fused sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
    "fused adam": lambda p: torch.optim.Adam(p, lr=0.02, fused=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5),
    "rmsprop-tf": lambda p: RMSpropTF(p, lr=0.01, momentum=0.5),
}


def by_hand(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: list[tuple[Tensor, Tensor]],
    *,
    clip: float | None = None,
    between: Callable[[int], object] = lambda _: None,
) -> list[float]:
    """The loop that a training step replaces; the losses."""
    losses = []
    for number, (x, y) in enumerate(data):
        optimizer.zero_grad()
        loss = squared(model, x, y)
        loss.backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(loss.item())
        between(number)
    return losses
