"""Several runs of a recipe at a time, each in a process of its own with one thread."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from rich.console import Console

from statewise.errors import ArgumentError, DivergedError, RunFolderError, StatewiseError
from statewise.recipes.recipe import Recipe
from statewise.recipes.request import Request
from statewise.train.telling import say

AGAIN = "The same command goes on: finished runs are found, interrupted ones continue."


def make_together(
    recipe: Recipe,
    request: Request,
    folder: Path | str,
    *,
    jobs: int,
    data: Path | str | None = None,
    device: torch.device | str = "cpu",
    console: Console | None = None,
) -> dict[str, str]:
    """Make the runs of a recipe that wait for no other, some at a time; gives why some came to nothing, by name.

    Whoever asks for the table finds the others made. Ctrl-C ends the runs under way after they have written where they
    are; those that wait are not begun. An error of one is told at once, and the others under way are finished.

    Args:
        recipe: of the table.
        request: what of it.
        folder: where the runs go, each in a folder of its own.
        jobs: how many at a time.
        data: where the data set is; None for the usual places.
        device: where to compute. An accelerator is shared by the processes: small networks leave most of it idle.
        console: where to tell of the progress; None for silence.
    """
    if type(jobs) is not int or jobs < 1:
        raise ArgumentError(where="--jobs", got=jobs, wanted="a whole number >= 1")
    request = recipe.complete(request)
    alone = {number: step.name for number, step in enumerate(recipe.planned(request)) if step.after is None}
    # A fresh interpreter: threads of torch do not survive a fork.
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)
    try:
        with _interrupts_wait():
            told = (recipe, request, Path(folder), data, str(device))
            asked = {pool.submit(_make, *told, number): alone[number] for number in alone}
        return _gather(asked, console)
    except KeyboardInterrupt:
        say(console, f"Stopping: the runs under way write where they are. {AGAIN}")
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _gather(asked: Mapping[Future[tuple[str, bool]], str], console: Console | None) -> dict[str, str]:
    """What the processes say, as soon as they do; gives those that came to nothing."""
    failed: dict[str, str] = {}
    for future in as_completed(asked):
        name = asked[future]
        try:
            told, diverged = future.result()
        except BrokenProcessPool:
            raise RunFolderError(
                where="--jobs",
                got="a process that was killed from outside, often for want of memory",
                wanted="memory for all runs that are made at a time",
                remedy=f"Use fewer --jobs. {AGAIN}",
            ) from None
        except StatewiseError as error:
            say(console, f"{name}: {error}\nThe runs under way are finished, and no other is begun; Ctrl-C stops them.")
            raise
        say(console, f"{name} came to nothing: {told}" if diverged else f"{name}: {told}")
        if diverged:
            failed[name] = told
    return failed


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """A region in which Ctrl-C waits; processes that begin in it wait too, until :func:`_begin` can hear it."""
    before = _masked(signal.SIG_BLOCK) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _masked(how: int) -> Any:
    return signal.pthread_sigmask(how, {signal.SIGINT})


class _Worker:
    """What a process that makes runs knows of itself."""

    busy = False
    stopped = False

    @classmethod
    def stop(cls, number: int, frame: FrameType | None) -> None:
        """End the run that is under way; between two an error would be that of the pool."""
        cls.stopped = True
        if cls.busy:
            raise KeyboardInterrupt


def _begin() -> None:
    """Let Ctrl-C end the run of this process; without this the pool would hand it the next."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, _Worker.stop)
    if hasattr(signal, "pthread_sigmask"):
        _masked(signal.SIG_UNBLOCK)


def _make(
    recipe: Recipe, request: Request, folder: Path, data: Path | str | None, device: str, number: int
) -> tuple[str, bool]:
    """What a run came to, in words, and whether that is nothing."""
    _Worker.busy = True
    try:
        if _Worker.stopped:
            raise KeyboardInterrupt
        maker = recipe.maker(request, folder, data=data, device=torch.device(device), console=None)
        try:
            measured, _ = maker.make(recipe.planned(request)[number], "")
        except DivergedError as error:
            return str(error), True
        return str(measured), False
    finally:
        _Worker.busy = False
