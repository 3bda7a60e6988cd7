"""What is asked of CUDA, and in which order, when a step is rehearsed, recorded, and when that fails."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from statewise.train.capture import Recorder
from statewise.train.exchange import Batch, Outcome
from statewise.train.optimizers import GraphOptimizer

pytestmark = pytest.mark.usefixtures("as_users_have_it")  # the graphs here are none of torch's
CPU = torch.device("cpu")


class Cuda:
    """Takes notes of what is called, and of the stream that is current."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.notes: list[str] = []
        self.current: Any = SimpleNamespace(name="present", wait_stream=lambda other: self.notes.append("join"))
        self.side = SimpleNamespace(name="side", wait_stream=lambda other: self.notes.append("fork"))
        self.mode: Any = 0
        self.invalid = False
        cuda = self

        class Graph:
            def capture_begin(self, pool: object = None, capture_error_mode: str = "global") -> None:
                assert cuda.current is cuda.side
                assert capture_error_mode == "thread_local"
                cuda.notes.append(f"begin {pool}")

            def capture_end(self) -> None:
                assert cuda.current is cuda.side
                cuda.notes.append("end")
                if cuda.invalid:
                    cuda.invalid = False
                    raise RuntimeError("operation failed due to a previous error during capture")

            def reset(self) -> None:
                cuda.notes.append("reset")

            def replay(self) -> None:
                cuda.notes.append("replay")

        replaced: dict[str, Any] = {
            "Stream": lambda device: self.side,
            "current_stream": lambda device: self.current,
            "device": lambda device: nullcontext(),
            "stream": self._stream,
            "CUDAGraph": Graph,
            "graph_pool_handle": lambda: "a new pool",
            "synchronize": lambda device: self.notes.append("synchronize"),
            "empty_cache": lambda: None,
            "get_sync_debug_mode": lambda: self.mode,
            "set_sync_debug_mode": self._set_mode,
        }
        for name, value in replaced.items():
            monkeypatch.setattr(torch.cuda, name, value)
        for name in ("_cuda_endAllocateToPool", "_cuda_releasePool"):
            monkeypatch.setattr(torch._C, name, self._allocator(name), raising=False)

    @contextmanager
    def _stream(self, stream: object) -> Iterator[None]:
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    def _set_mode(self, mode: object) -> None:
        warnings.warn("Synchronization debug mode is a prototype feature", stacklevel=2)
        self.mode = mode

    def _allocator(self, name: str) -> Any:
        return lambda device, pool: self.notes.append(f"{name.removeprefix('_cuda_')} {pool}")


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    return Cuda(monkeypatch)


@pytest.fixture
def weight() -> nn.Parameter:
    return nn.Parameter(torch.ones(2))


@pytest.fixture
def recorder(cuda: Cuda, weight: nn.Parameter) -> Recorder:
    return Recorder(GraphOptimizer(torch.optim.SGD([weight], lr=0.1), CPU), CPU)


def record(recorder: Recorder, step: Any, weight: nn.Parameter, pool: object = None) -> Any:
    return recorder.record(step, Batch.read((torch.ones(2), None)), parameters=[weight], buffers=[], pool=pool)


def test_a_recording_holds_its_inputs_its_results_and_the_gradients(
    cuda: Cuda, recorder: Recorder, weight: nn.Parameter
) -> None:
    seen: list[Any] = []

    def step(arguments: tuple[Any, ...]) -> Outcome:
        assert cuda.current is cuda.side
        seen.append(arguments)
        weight.grad = torch.full((2,), 7.0)
        return Outcome(arguments[0].sum())

    recording = record(recorder, step, weight, pool="another's")
    assert cuda.notes == ["synchronize", "begin another's", "end"]
    assert cuda.current is not cuda.side
    assert seen[0][1] is None
    weight.grad = None
    found = recording.replay(Batch.read((torch.full((2,), 5.0), None)))
    assert cuda.notes[-1] == "replay"
    assert seen[0][0].tolist() == [5, 5]
    assert found.value is not recording.outcome.value
    assert weight.grad is recording.grads[0][1]
    recording.drop()
    assert cuda.notes[-1] == "reset"


def test_after_an_invalid_capture_the_allocator_and_the_generator_are_told(
    cuda: Cuda, recorder: Recorder, weight: nn.Parameter
) -> None:
    def step(arguments: tuple[Any, ...]) -> Outcome:
        cuda.invalid = True
        raise RuntimeError("operation not permitted when stream is capturing")

    with pytest.raises(RuntimeError, match="operation not permitted"):
        record(recorder, step, weight)
    assert cuda.notes == [
        *("synchronize", "begin a new pool", "end", "endAllocateToPool a new pool", "releasePool a new pool", "reset"),
        *("begin None", "end", "reset"),  # a capture of one operation, which succeeds
    ]
    assert cuda.current is not cuda.side


def test_a_capture_whose_end_fails_is_cleared_up_too(cuda: Cuda, recorder: Recorder, weight: nn.Parameter) -> None:
    def step(arguments: tuple[Any, ...]) -> Outcome:
        cuda.invalid = True
        return Outcome(arguments[0].sum())

    with pytest.raises(RuntimeError, match="previous error during capture"):
        record(recorder, step, weight)
    assert cuda.notes[-3:] == ["begin None", "end", "reset"]
    assert cuda.current is not cuda.side


def test_a_rehearsal_runs_between_fork_and_join_even_if_it_raises(cuda: Cuda, recorder: Recorder) -> None:
    seen = []

    def rehearse() -> None:
        with recorder.rehearsal(watch=True):
            seen.append((cuda.mode, cuda.current.name))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        rehearse()
    assert seen == [("warn", "side")]
    assert cuda.notes == ["fork", "join"]
    assert cuda.mode == 0
    assert cuda.current is not cuda.side


def test_waits_are_listed_with_their_place_and_other_warnings_are_told(cuda: Cuda, recorder: Recorder) -> None:
    def rehearse() -> list[str]:
        with recorder.rehearsal(watch=True) as waits:
            warnings.warn_explicit("called a synchronizing CUDA operation", UserWarning, "model.py", 7)
            warnings.warn_explicit("constructed with capturable=True, but", UserWarning, "torch.py", 1)
            warnings.warn_explicit("mine", UserWarning, "model.py", 8)
        return waits

    with pytest.warns(UserWarning, match="mine") as heard:
        assert rehearse() == ["model.py, line 7"]
    assert [(str(each.message), each.lineno) for each in heard] == [("mine", 8)]


def test_without_a_watch_only_the_word_on_capturable_optimisers_is_kept_back(cuda: Cuda, recorder: Recorder) -> None:
    def rehearse() -> None:
        with recorder.rehearsal(watch=False):
            warnings.warn("This instance was constructed with capturable=True, but", stacklevel=1)
            warnings.warn("mine", stacklevel=1)

    with pytest.raises(UserWarning, match="mine"):
        rehearse()
