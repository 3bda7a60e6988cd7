"""Who does the jobs: this process, or several others with one thread each."""

from __future__ import annotations

import contextlib
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

import torch

from statewise.engine.threads import one_thread
from statewise.errors import ArgumentError, RunFolderError, StatewiseError
from statewise.lineup.jobs import Job, Report, perform
from statewise.sweep.workers import GRACE, SPAWN, cores, death_of, end_with_master, interrupts_wait

Work = Callable[[Job, torch.device], Report]
AGAIN = "What is done is kept: --resume goes on."
_TRIES = 2


@dataclass
class _Worker:
    """A process, the line to it, and what it is busy with."""

    process: SpawnProcess
    line: Connection
    job: Job | None = None


class Crew:
    """Processes that do one job after the other; with one worker, this process does them itself.

    Each computes on one thread, so that how many there are does not change a bit of what comes out. Ctrl-C stops them
    after they have written where they are; if this process dies, they end too. A worker that dies is replaced, and its
    job is tried once more.

    Args:
        workers: how many; None for one a core, or one for an accelerator.
        device: where to compute.
        work: what does a job, a function of a module.

    >>> Crew(workers=2).workers
    2
    """

    def __init__(self, *, workers: int | None = None, device: torch.device | str = "cpu", work: Work = perform) -> None:
        if workers is not None and (type(workers) is not int or workers < 1):
            raise ArgumentError(where="--workers", got=workers, wanted="a whole number >= 1")
        self.device, self._work = torch.device(device), work
        self.workers = (cores() if self.device.type == "cpu" else 1) if workers is None else workers
        self._hands: list[_Worker] = []

    def do(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Report]]:
        """Do jobs, and tell what came of each as they end.

        Args:
            jobs: in the order in which they are begun.
        """
        if min(self.workers, len(jobs)) <= 1:
            for job in jobs:
                with one_thread():
                    report = self._work(job, self.device)
                yield job, report
            return
        waiting, tries = deque(jobs), dict.fromkeys((job.run for job in jobs), 0)
        while waiting or any(hand.job is not None for hand in self._hands):
            self._hand_out(waiting)
            yield from self._heard(waiting, tries)

    def close(self) -> None:
        """End the workers; their runs go on from what they wrote last."""
        hands, self._hands = self._hands, []
        for hand in hands:
            # The idle end when their line is closed; the busy are asked, since Ctrl-C does not reach them.
            hand.line.close()
            if hand.job is not None:
                hand.process.terminate()
        for hand in hands:
            hand.process.join(GRACE)
            if hand.process.is_alive():
                hand.process.kill()
                hand.process.join()
            hand.process.close()

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _hand_out(self, waiting: deque[Job]) -> None:
        while waiting:
            idle = next((hand for hand in self._hands if hand.job is None), None)
            if idle is None and len(self._hands) >= self.workers:
                return
            hand = idle or self._hire()
            try:
                hand.line.send(waiting[0])
            except OSError:
                if idle is not None:  # it died while it had nothing to do, which is nobody's failure
                    self._dismiss(hand)
                    continue
            hand.job = waiting.popleft()

    def _heard(self, waiting: deque[Job], tries: dict[str, int]) -> Iterator[tuple[Job, Report]]:
        busy = [hand for hand in self._hands if hand.job is not None]
        ready = set(wait([each for hand in busy for each in (hand.line, hand.process.sentinel)]))
        for hand in busy:
            if hand.line not in ready and hand.process.sentinel not in ready:
                continue
            assert hand.job is not None
            job, said = hand.job, _said(hand)
            hand.job = None
            if isinstance(said, Report):
                yield job, said
            elif isinstance(said, StatewiseError | OSError):
                raise said
            elif isinstance(said, str):
                raise RunFolderError(where=job.run, got=said, wanted="a run that ends", remedy=AGAIN)
            else:
                self._mourn(hand, job, waiting, tries)

    def _mourn(self, hand: _Worker, job: Job, waiting: deque[Job], tries: dict[str, int]) -> None:
        """Let another worker try the job of one that has died, unless it was tried before."""
        hand.process.join(GRACE)
        death = death_of(hand.process.exitcode)
        self._dismiss(hand)
        tries[job.run] += 1
        if tries[job.run] >= _TRIES:
            remedy = f"Use fewer --workers, or a smaller network. {AGAIN}"
            raise RunFolderError(where=job.run, got=death, wanted="memory for all runs at a time", remedy=remedy)
        waiting.appendleft(job)

    def _hire(self) -> _Worker:
        ours, theirs = SPAWN.Pipe()
        told = (theirs, self._work, str(self.device))
        process = SPAWN.Process(target=_serve, args=told, daemon=True, name=f"comparing-{len(self._hands) + 1}")
        with interrupts_wait():
            process.start()
        theirs.close()  # or the line would never be seen to end
        self._hands.append(_Worker(process, ours))
        return self._hands[-1]

    def _dismiss(self, hand: _Worker) -> None:
        self._hands.remove(hand)
        hand.line.close()
        hand.process.kill()
        hand.process.join()
        hand.process.close()


def _said(hand: _Worker) -> Any:
    """What a worker says: a report, an error, an unknown one in words; None if it died instead."""
    with contextlib.suppress(EOFError, OSError):
        if hand.line.poll():
            return hand.line.recv()
    return None


def _serve(line: Connection, work: Work, device: str) -> None:
    """What a worker does: one job after the other, until the line ends."""
    # Ctrl-C on a terminal reaches all processes; this one is told by its master, once.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=end_with_master, daemon=True).start()
    torch.set_num_threads(1)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            job: Job = line.recv()
            try:
                said: Any = work(job, torch.device(device))
            except (StatewiseError, OSError) as error:
                said = error
            except Exception:
                said = " ".join(traceback.format_exc().split())
            line.send(said)
