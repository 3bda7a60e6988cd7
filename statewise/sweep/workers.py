"""What processes that do work for another one have in common: how they begin, are stopped, and end with it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from multiprocessing.connection import wait

#: Seconds that a worker gets to end by itself before it is killed.
GRACE = 30.0
# A fresh interpreter: threads of torch and the state of an accelerator do not survive a fork.
SPAWN = multiprocessing.get_context("spawn")


@contextlib.contextmanager
def interrupts_wait() -> Iterator[None]:
    """A region in which Ctrl-C waits; a process that begins in it waits too, until it has said that it ignores it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_master() -> None:
    """Wait for the end of the process that started this one; then end, by force if need be."""
    master = multiprocessing.parent_process()
    if master is None:
        return
    wait([master.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)


def death_of(code: int | None) -> str:
    """How a process ended, in words.

    Args:
        code: as :mod:`multiprocessing` has it.

    >>> death_of(-9)
    'the worker process was ended by signal 9 (SIGKILL): killed from outside, often for want of memory'
    >>> death_of(3)
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


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
