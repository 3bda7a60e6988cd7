"""What a person sees of a run while it trains."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from rich import progress as bars
from rich.console import Console
from torch import Tensor

from statewise.errors import ArgumentError
from statewise.train.telling import say

Item = TypeVar("Item")


class Progress:
    r"""Epoch, loss, speed and time left: a live bar on a terminal, a line an epoch elsewhere.

    Nothing is written without a console. A loss may stay on its device: it is read only when the bar is drawn anew, a
    few times a second, and never where there is no bar.

    Args:
        console: where to write; None writes nothing.
        epochs: how many there are at most.
        quiet: write nothing to the console either.
        perplexity: show ``exp`` of a loss beside it.
        unit: what is counted for the speed.
        interval: seconds between two drawings of the bar.
        clock: gives the time in seconds.

    >>> import io
    >>> page = Console(file=io.StringIO(), width=100)
    >>> with Progress(page, epochs=2, clock=iter(range(100)).__next__) as progress:
    ...     progress.begin_epoch(1, steps=10)
    ...     for _ in range(10):
    ...         progress.advance(tokens=70)
    ...     progress.end_epoch(loss=4.5, validation=4.0)
    >>> page.file.getvalue()
    'epoch 1/2  loss 4.500 (perplexity 90.0)  validation 4.000 (perplexity 54.6)  700 tokens/s  0:01 left\n'
    """

    def __init__(
        self,
        console: Console | None = None,
        *,
        epochs: int,
        quiet: bool = False,
        perplexity: bool = True,
        unit: str = "tokens",
        interval: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if epochs < 1:
            raise ArgumentError(where="Progress.epochs", got=epochs, wanted="a whole number >= 1")
        self.epochs, self.perplexity, self.unit, self.interval = epochs, perplexity, unit, interval
        self._console = None if quiet else console
        self._clock = clock
        self._bar = _bar(self._console) if self._console is not None and self._console.is_terminal else None
        self._task: bars.TaskID | None = None
        self._epoch = self._steps = self._done = self._tokens = self._past = 0
        self._began = self._drawn = 0.0
        self._past_seconds = 0.0

    def begin_epoch(self, epoch: int, *, steps: int) -> None:
        """Start the clock of an epoch.

        Args:
            epoch: its number, from 1; a run that goes on begins where it left off.
            steps: how many steps it has, as far as is known; 0 if it is not.
        """
        self._epoch, self._steps, self._done, self._tokens = epoch, steps, 0, 0
        self._began = self._drawn = self._clock()
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task(f"epoch {epoch}/{self.epochs}", total=steps or None, told="")

    def advance(self, *, tokens: int, loss: Tensor | float | None = None) -> None:
        """Count one step.

        Args:
            tokens: how many the step was trained on.
            loss: of the step.
        """
        self._done += 1
        self._tokens += tokens
        if self._bar is None or self._task is None:
            return
        now = self._clock()
        if now - self._drawn >= self.interval:
            self._drawn = now
            told = [] if loss is None else [self._loss("loss", float(loss))]
            told += self._pace(now - self._began, self._past_seconds + now - self._began, self._fraction())
            self._bar.update(self._task, completed=self._done, told="  ".join(told))
            self._bar.refresh()

    def end_epoch(self, *, note: str = "", **losses: float) -> None:
        """Stop the clock of an epoch, and write a line about it.

        Args:
            note: what else is to be said.
            **losses: what the epoch came to, by name.
        """
        seconds = self._clock() - self._began
        self._past, self._past_seconds = self._past + 1, self._past_seconds + seconds
        if self._bar is not None and self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None
        if self._console is None:
            return
        parts = [f"epoch {self._epoch}/{self.epochs}", *(self._loss(name, value) for name, value in losses.items())]
        parts += self._pace(seconds, self._past_seconds, float(self._past), at=self._epoch)
        say(self._console, "  ".join([*parts, *([note] if note else [])]))

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _fraction(self) -> float:
        """How many epochs of this process are done, the present one in part."""
        return self._past + (min(self._done / self._steps, 1.0) if self._steps else 0.0)

    def _loss(self, name: str, value: float) -> str:
        if not self.perplexity:
            return f"{name} {value:.4g}"
        return f"{name} {value:.3f} (perplexity {math.exp(value) if value < 700 else math.inf:.1f})"

    def _pace(self, seconds: float, total: float, done: float, at: int | None = None) -> list[str]:
        """Speed, and the time left if the epochs to come are like those of this process."""
        told = [f"{self._tokens / seconds:,.0f} {self.unit}/s"] if seconds > 0 and self._tokens else []
        left = self.epochs - (at if at is not None else self._epoch - 1 + done - self._past)
        if done > 0 and left > 0:
            told.append(f"{_clock_time(total / done * left)} left")
        return told


def watched(
    items: Iterable[Item],
    what: str,
    *,
    total: int,
    console: Console | None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Item]:
    r"""The same items, with a bar on a terminal while they are walked through, and a line at the end elsewhere.

    Args:
        items: what is walked through.
        what: is done with them.
        total: how many they are.
        console: where to write; None writes nothing.
        clock: gives the time in seconds.

    >>> import io
    >>> page = Console(file=io.StringIO())
    >>> sum(watched([1, 2], "adding", total=2, console=page, clock=iter([0, 61]).__next__))
    3
    >>> page.file.getvalue()
    'adding: 1:01\n'
    """
    if console is None:
        yield from items
        return
    began = clock()
    if console.is_terminal:
        columns = (*_columns(), bars.TimeRemainingColumn())
        with bars.Progress(*columns, console=console, transient=True) as bar:
            yield from bar.track(items, total=total, description=what)
    else:
        yield from items
    say(console, f"{what}: {_clock_time(clock() - began)}")


def _bar(console: Console) -> bars.Progress:
    columns = (*_columns(), bars.TextColumn("{task.fields[told]}", markup=False))
    # Drawn by the loop itself: a thread would draw while the loop waits for the interpreter.
    return bars.Progress(*columns, console=console, auto_refresh=False, transient=True)


def _columns() -> tuple[bars.ProgressColumn, ...]:
    return bars.TextColumn("{task.description}"), bars.BarColumn(bar_width=20), bars.TaskProgressColumn()


def _clock_time(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> _clock_time(59.6), _clock_time(3725)
    ('1:00', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
