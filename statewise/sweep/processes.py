"""Trials in processes of their own, which may die without taking anything along."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

import torch

from statewise.errors import ArgumentError
from statewise.sweep.executors import Executor
from statewise.sweep.heap import keep_freed_memory
from statewise.sweep.replicas import train_replicas
from statewise.sweep.work import Report, Trainer, Unit, perform

#: Seconds that a worker gets to end by itself before it is killed.
_GRACE = 30.0
# A fresh interpreter: threads of torch and the state of an accelerator do not survive a fork.
_SPAWN = multiprocessing.get_context("spawn")


@dataclass
class _Worker:
    """A process, the line to it, and what it is busy with."""

    process: SpawnProcess
    line: Connection
    unit: Unit | None = None
    began: float = field(default=0.0)


class ProcessExecutor(Executor):
    """Worker processes, each of which trains one group of trials after the other.

    Threads of the CPU are divided among them. With ``device="cuda"`` and several accelerators, workers take turns on
    them; ``"cuda:0"`` keeps to one. A worker that dies (killed, out of memory) is a failure of its group: another
    takes its place. If this process dies, the workers end too; a run goes on from what it wrote last.

    A script that uses it must guard what it does by ``if __name__ == "__main__":``, as for all of Python's
    ``multiprocessing``.

    Args:
        folder: where the runs go.
        workers: how many processes; None for one a core, or one an accelerator.
        device: where to compute.
        replicas: how many trials a worker trains side by side at most.
        train: what trains them, a function of a module.

    >>> ProcessExecutor("runs", workers=2).workers
    2
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        workers: int | None = None,
        device: torch.device | str = "cpu",
        replicas: int = 16,
        train: Trainer = train_replicas,
    ) -> None:
        super().__init__(folder, device=device, replicas=replicas, train=train)
        if workers is not None and workers < 1:
            raise ArgumentError(where="ProcessExecutor.workers", got=workers, wanted="an integer >= 1, or None")
        self._devices = _devices(self.device)
        usual = _cores() if self.device.type == "cpu" else len(self._devices)
        self.workers = usual if workers is None else workers
        self._crew: list[_Worker] = []
        self._hired = 0

    def close(self) -> None:
        """End the workers; their runs go on from what they wrote last."""
        super().close()
        crew, self._crew = self._crew, []
        for worker in crew:
            # The idle end when their line is closed; the busy are asked, since Ctrl-C does not reach them.
            worker.line.close()
            if worker.unit is not None:
                worker.process.terminate()
        for worker in crew:
            worker.process.join(_GRACE)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.process.close()

    def _step(self, waiting: deque[Unit]) -> Sequence[tuple[Unit, Report]]:
        self._begin(waiting)
        busy = [worker for worker in self._crew if worker.unit is not None]
        ready = set(wait([each for worker in busy for each in (worker.line, worker.process.sentinel)]))
        ended = []
        for worker in busy:
            if worker.line in ready or worker.process.sentinel in ready:
                assert worker.unit is not None
                unit, worker.unit = worker.unit, None
                ended.append((unit, self._heard(worker)))
        return ended

    def _begin(self, waiting: deque[Unit]) -> None:
        """Hand out what waits, and hire workers as long as there is work for them."""
        while waiting:
            idle = next((worker for worker in self._crew if worker.unit is None), None)
            if idle is None and len(self._crew) >= self.workers:
                return
            worker = idle or self._hire()
            try:
                worker.line.send(waiting[0])
            except OSError:
                if idle is not None:  # it died while it had nothing to do, which is nobody's failure
                    self._dismiss(worker)
                    continue
                # A new one that cannot even begin counts, or others would be hired for ever.
            worker.unit, worker.began = waiting.popleft(), time.monotonic()

    def _hire(self) -> _Worker:
        ours, theirs = _SPAWN.Pipe()
        device = self._devices[self._hired % len(self._devices)]
        threads = max(1, _cores() // self.workers)
        told = (theirs, self.train, str(device), self.replicas, threads)
        process = _SPAWN.Process(target=_work, args=told, daemon=True, name=f"trials-{self._hired + 1}")
        with _interrupts_wait():
            process.start()
        theirs.close()  # or the line would never be seen to end
        self._hired += 1
        self._crew.append(_Worker(process, ours))
        return self._crew[-1]

    def _heard(self, worker: _Worker) -> Report:
        """What a worker says of its unit; if it died instead, that."""
        try:
            if worker.line.poll():
                report: Report = worker.line.recv()
                return report
        except (EOFError, OSError):
            pass
        seconds = time.monotonic() - worker.began
        worker.process.join(_GRACE)
        code = worker.process.exitcode
        self._dismiss(worker)
        return Report(None, f"WorkerDied: {_death(code)}", seconds)

    def _dismiss(self, worker: _Worker) -> None:
        self._crew.remove(worker)
        worker.line.close()
        worker.process.kill()
        worker.process.join()
        worker.process.close()

    def _cut(self, trials: int) -> int:
        # On a CPU side by side gains less than cores do; on an accelerator it is the other way round.
        return min(self.replicas, -(-trials // self.workers)) if self.device.type == "cpu" else self.replicas


def _work(line: Connection, train: Trainer, device: str, replicas: int, threads: int) -> None:
    """What a worker does: train what comes until the line ends."""
    # Ctrl-C on a terminal reaches all processes; this one is told by its master, once.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_master, daemon=True).start()
    torch.set_num_threads(threads)
    keep_freed_memory()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            unit: Unit = line.recv()
            line.send(perform(unit, train=train, device=torch.device(device), replicas=replicas))


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """A region in which Ctrl-C waits; a process that begins in it waits too, until it has said that it ignores it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_master() -> None:
    """Wait for the end of the process that started this one; then end, by force if need be."""
    master = multiprocessing.parent_process()
    if master is None:
        return
    wait([master.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    os._exit(1)


def _death(code: int | None) -> str:
    """How a process ended, in words.

    >>> _death(-9)
    'the worker process was ended by signal 9 (SIGKILL): killed from outside, often for want of memory'
    >>> _death(3)
    'the worker process ended with exit code 3; standard error says why'
    """
    if code is None or code >= 0:
        return f"the worker process ended with exit code {code}; standard error says why"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    why = ": killed from outside, often for want of memory" if name == "SIGKILL" else ""
    return f"the worker process was ended by signal {-code} ({name}){why}"


def _devices(device: torch.device) -> list[torch.device]:
    if device.type != "cuda" or device.index is not None:
        return [device]
    return [torch.device("cuda", index) for index in range(max(1, torch.cuda.device_count()))]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
