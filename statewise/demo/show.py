"""The demonstration from beginning to end: learn, read, prove, measure, compare, and write it down."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from statewise.demo.language import DESCRIBED, EPOCHS, Learnt, learn
from statewise.demo.networks import NETWORKS, STEPS, Outcome, train
from statewise.demo.remembering import Remembered, architecture, remembered
from statewise.demo.tagging import CLASSES, LENGTH, Score, best_possible, tagging
from statewise.demo.telling import tell
from statewise.engine.threads import one_thread
from statewise.errors import ArgumentError
from statewise.memory.advise import Advised
from statewise.memory.certificate import GenericRank
from statewise.report.html import may_replace, write_page
from statewise.train.telling import say


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What the demonstration came to.

    Args:
        seed: of all that was drawn.
        learnt: two networks and a language.
        remembered: the two halves of words, in the state-regularized network and in the plain one.
        rank: the exact rank of an architecture.
        advised: depths and widths within a budget.
        outcomes: of the networks that were trained on few sequences, the plain one first.
        best_possible: the score that none of them can beat.
        seconds: of the clock.
    """

    seed: int
    learnt: Learnt
    remembered: tuple[Remembered, Remembered]
    rank: GenericRank
    advised: Advised
    outcomes: tuple[Outcome, ...]
    best_possible: Score
    seconds: float = field(compare=False)


def run(
    *,
    seed: int = 0,
    steps: int = STEPS,
    epochs: int = EPOCHS,
    out: Path | str = "report.html",
    force: bool = False,
    console: Console | None = None,
) -> Shown:
    """Show what the library is for, on embedded data, and write a page about it.

    Args:
        seed: of words, sequences, weights and noise; the test sequences of the second part are always the same.
        steps: training steps of each network of the second part.
        epochs: of the plain network of the first part.
        out: the page.
        force: replace a file there that is no page of this library.
        console: where to print; None means standard output.
    """
    for name, value, lowest in (("seed", seed, 0), ("steps", steps, 1), ("epochs", epochs, 1)):
        if not lowest <= value < 2**63:
            raise ArgumentError(where=f"demo.{name}", got=value, wanted=f"a whole number from {lowest} to 2^63 - 1")
    page, console = Path(out), console or Console()
    may_replace(page, force=force)
    page.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with one_thread(), torch.random.fork_rng(devices=[]):  # weights that are replaced at once are drawn too
        learnt = read_a_language(seed, epochs, console)
        rank, advised = architecture()
        measured = remembered(learnt.automaton.model), remembered(learnt.plain)
        outcomes, bound = compare_networks(seed, steps, console)
    seconds = time.monotonic() - began
    shown = Shown(
        seed=seed,
        learnt=learnt,
        remembered=measured,
        rank=rank,
        advised=advised,
        outcomes=outcomes,
        best_possible=bound,
        seconds=seconds,
    )
    from statewise.demo.page import page_of  # which reads what is made here

    write_page(page, page_of(shown))
    say(console, f"\nAll of it, with pictures: {page.resolve()} (open it in a browser; it needs no network)")
    return shown


def read_a_language(seed: int, epochs: int, console: Console) -> Learnt:
    """Two networks learn a language; tell what each has learnt, and how far it can be trusted.

    Args:
        seed: of words and weights.
        epochs: of the plain network.
        console: where to print.
    """
    say(console, f"1. What has it learnt? Two networks learn a language: {DESCRIBED}.\n")
    with _bars(console) as show:
        learnt = learn(seed=seed, epochs=epochs, show=lambda what, done, total: show(what, done, total, ""))
    say(console, "\nRight answers on new words of growing length:")
    say(console, f"  {'symbols':<18}" + "".join(f"{length:>6}" for length in learnt.lengths))
    for name, shares in learnt.right.items():
        say(console, f"  {name:<18}" + "".join(f"{share:>6.0%}" for share in shares))
    say(console, f"\n{learnt.automaton.message}")
    say(console, "" if learnt.verified.proof is None else learnt.verified.proof.sentence)
    say(console, f"\n2. How far can it be trusted? {learnt.trust[0].sentence}")
    say(console, f"   The plain LSTM: {learnt.trust[1].sentence}\n")
    return learnt


def compare_networks(seed: int, steps: int, console: Console) -> tuple[tuple[Outcome, ...], Score]:
    """Train networks that have little data, with and without something done to their state, and tell how they compare.

    Args:
        seed: of sequences, weights and noise.
        steps: training steps of each.
        console: where to print.
    """
    training, test = tagging(100, seed=seed), tagging(2000, seed=777)
    say(
        console,
        f"3. Does it generalize better? The task: give every step of a noisy sequence one of {CLASSES} labels. There "
        f"are {training.labels.shape[1]} sequences of {LENGTH} steps to learn from, in {steps} training steps on one "
        f"thread (seed {seed}), and {test.labels.shape[1]} others to be tested on.\n",
    )
    outcomes = []
    with _bars(console) as show:
        for name in NETWORKS:

            def look(step: int, nll: float, name: str = name) -> None:
                show(name, step, steps, f"test NLL {nll:.3f}")

            outcomes.append(train(name, training, test, seed=seed, steps=steps, show=look))
    bound = best_possible(test)
    tell(outcomes, bound, console)
    return tuple(outcomes), bound


@contextmanager
def _bars(console: Console) -> Iterator[Callable[[str, int, int, str], None]]:
    """A bar for each thing that is done, made when it is first heard of; elsewhere than on a terminal, at the end."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[now]}"), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bars: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int, now: str) -> None:
            if what not in bars:
                bars[what] = progress.add_task(what, total=total, now="")
            progress.update(bars[what], completed=done, total=total, now=now)

        yield show
