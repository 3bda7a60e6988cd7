"""Trials in processes of their own, which may die without taking anything along."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections import deque
from collections.abc import Sequence
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
from statewise.sweep.workers import GRACE, SPAWN, cores, death_of, end_with_master, interrupts_wait


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
        usual = cores() if self.device.type == "cpu" else len(self._devices)
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
            worker.process.join(GRACE)
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
        ours, theirs = SPAWN.Pipe()
        device = self._devices[self._hired % len(self._devices)]
        threads = max(1, cores() // self.workers)
        told = (theirs, self.train, str(device), self.replicas, threads)
        process = SPAWN.Process(target=_work, args=told, daemon=True, name=f"trials-{self._hired + 1}")
        with interrupts_wait():
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
        worker.process.join(GRACE)
        code = worker.process.exitcode
        self._dismiss(worker)
        return Report(None, f"WorkerDied: {death_of(code)}", seconds)

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
    threading.Thread(target=end_with_master, daemon=True).start()
    torch.set_num_threads(threads)
    keep_freed_memory()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            unit: Unit = line.recv()
            line.send(perform(unit, train=train, device=torch.device(device), replicas=replicas))


def _devices(device: torch.device) -> list[torch.device]:
    if device.type != "cuda" or device.index is not None:
        return [device]
    return [torch.device("cuda", index) for index in range(max(1, torch.cuda.device_count()))]
