"""A person sees where a run is; a program sees nothing that it did not ask for."""

from __future__ import annotations

import io
import math
import sys
from typing import Any

import pytest
import torch
from rich.console import Console

from statewise.errors import ArgumentError, MissingExtraError
from statewise.train.progress import Progress, watched
from statewise.train.tensorboard import TensorBoard


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Loss(torch.Tensor):
    """A loss that counts how often it is read, which on a device is a wait."""

    reads = 0

    def __float__(self) -> float:
        Loss.reads += 1
        return float(self.item())


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def loss() -> torch.Tensor:
    Loss.reads = 0
    return torch.tensor(4.5).as_subclass(Loss)


def train(progress: Progress, clock: Clock, *, epochs: Any, loss: Any = None, note: str = "") -> None:
    for epoch in epochs:
        progress.begin_epoch(epoch, steps=10)
        for _ in range(10):
            clock.now += 0.25
            progress.advance(tokens=100, loss=loss)
        progress.end_epoch(loss=4.5, note=note)


def page(*, terminal: bool, width: int = 120) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=terminal, width=width, color_system=None), text


def test_where_there_is_no_terminal_each_epoch_has_a_line(clock: Clock, loss: Any) -> None:
    console, text = page(terminal=False, width=40)  # a line is a line however narrow the page
    with Progress(console, epochs=4, clock=clock) as progress:
        train(progress, clock, epochs=(1, 2), loss=loss, note="[lr] 30")
    assert text.getvalue() == (
        "epoch 1/4  loss 4.500 (perplexity 90.0)  400 tokens/s  0:08 left  [lr] 30\n"
        "epoch 2/4  loss 4.500 (perplexity 90.0)  400 tokens/s  0:05 left  [lr] 30\n"
    )
    assert Loss.reads == 0


def test_a_run_that_goes_on_counts_only_what_is_left(clock: Clock) -> None:
    console, text = page(terminal=False)
    with Progress(console, epochs=40, perplexity=False, unit="words", clock=clock) as progress:
        train(progress, clock, epochs=(39, 40))
    assert text.getvalue() == ("epoch 39/40  loss 4.5  400 words/s  0:02 left\nepoch 40/40  loss 4.5  400 words/s\n")


def test_a_terminal_has_a_bar_with_loss_speed_and_time_left(clock: Clock, loss: Any) -> None:
    console, text = page(terminal=True)
    with Progress(console, epochs=4, interval=1.0, clock=clock) as progress:
        train(progress, clock, epochs=(1, 2), loss=loss)
    shown = text.getvalue()
    assert "epoch 2/4" in shown
    assert "40%" in shown
    assert "loss 4.500 (perplexity 90.0)  400 tokens/s  0:09 left" in shown  # epoch 1, step 4: 9 of 10 seconds left
    assert Loss.reads == 4  # 20 steps of a quarter second, looked at once a second, from the start of each epoch


@pytest.mark.parametrize("silent", ["quiet", "no console"])
def test_nothing_is_written_unless_it_is_asked_for(
    silent: str, clock: Clock, loss: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    console, text = page(terminal=True)
    with Progress(None if silent == "no console" else console, epochs=4, quiet=True, clock=clock) as progress:
        train(progress, clock, epochs=(1, 2), loss=loss)
    with Progress(epochs=4, clock=clock) as progress:
        train(progress, clock, epochs=(1, 2), loss=loss)
    assert (text.getvalue(), capsys.readouterr(), Loss.reads) == ("", ("", ""), 0)


def test_the_bar_goes_when_the_run_fails(clock: Clock) -> None:
    console, _ = page(terminal=True)
    progress = Progress(console, epochs=4, clock=clock)

    def fail() -> None:
        with progress:
            progress.begin_epoch(1, steps=0)
            progress.advance(tokens=1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert progress._bar is not None
    assert not progress._bar.live.is_started


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e6])
def test_losses_beyond_all_bounds_can_be_shown(value: float, clock: Clock) -> None:
    console, text = page(terminal=False)
    with Progress(console, epochs=1, clock=clock) as progress:
        progress.begin_epoch(1, steps=1)
        progress.end_epoch(loss=value)
    assert text.getvalue().startswith("epoch 1/1  loss ")


def test_a_run_has_epochs() -> None:
    with pytest.raises(ArgumentError, match=r"Progress\.epochs: got 0"):
        Progress(epochs=0)


class TestTensorBoard:
    def test_without_the_extra_the_error_names_it(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
        monkeypatch.setitem(sys.modules, "tensorboard", None)
        monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
        with pytest.raises(MissingExtraError, match=r"wanted the extra 'track'\. Install it: pip install"):
            TensorBoard(tmp_path)

    def test_only_finite_numbers_become_points(self) -> None:
        class Writer:
            points: list[Any] = []  # noqa: RUF012  one test, one list
            closed = False

            def add_scalar(self, *point: Any) -> None:
                self.points.append(point)

            def close(self) -> None:
                self.closed = True

        record = {"loss": 1.5, "epoch": 3, "note": "x", "bad": math.nan, "on": True, "none": None}
        with TensorBoard("nowhere", writer=Writer()) as board:
            board.write(record, step=7)
        assert board.writer.points == [("loss", 1.5, 7), ("epoch", 3, 7)]
        assert board.writer.closed


def test_what_is_watched_has_a_bar_on_a_terminal_which_goes_away_when_the_walk_does() -> None:
    console, text = page(terminal=True)
    half = watched("abcd", "reading", total=4, console=console)
    seen = [next(half), next(half)]
    half.close()  # type: ignore[attr-defined]
    assert "reading" in text.getvalue()
    assert "reading:" not in text.getvalue()  # the line at the end belongs to what came to its end
    assert list(watched("abcd", "reading", total=4, console=console)) == list("abcd")
    assert text.getvalue().rstrip().endswith("reading: 0:00")
    assert seen == ["a", "b"]


def test_what_is_watched_without_a_console_is_only_walked_through() -> None:
    assert list(watched(range(3), "reading", total=3, console=None)) == [0, 1, 2]
