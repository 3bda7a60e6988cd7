"""The demonstration: what acting on the state does for a network that has little data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from statewise.engine import Plan
from statewise.errors import ArgumentError
from statewise.layers import LSTM
from statewise.native import load_native
from statewise.transforms import Centroids, Noise, Transform, Zoneout

STEPS = 400
CLASSES, FEATURES, LENGTH, HIDDEN = 5, 8, 12, 32
STAY, SPREAD = 0.8, 1.5  # how often a label stays as it was; how far inputs scatter around their class
LOOKS = 40  # how often the test sequences are looked at while a network trains

# The strengths were set by hand, by the scores on held-out sequences of another seed than those that are shown.
NETWORKS: dict[str, tuple[Transform, ...]] = {
    "LSTM": (),
    "LSTM + noise": (Noise("gaussian", 2.0),),
    "LSTM + zoneout": (Zoneout(0.5, memory=0.7),),
    "LSTM + noise + centroids": (Noise("gaussian", 2.0), Centroids(5)),
}


class Tagging(NamedTuple):
    """Sequences whose every step has a label."""

    inputs: Float[Tensor, "length sequences features"]
    labels: Int[Tensor, "length sequences"]


class Score(NamedTuple):
    """How well labels are predicted: negative log-likelihood a label, in nats, and share of right ones."""

    nll: float
    accuracy: float


class Look(NamedTuple):
    """The test NLL of a network that is still training."""

    step: int
    nll: float


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A trained network's scores, its test NLL along the way, and what it cost."""

    name: str
    train: Score
    test: Score
    curve: tuple[Look, ...]
    plan: Plan
    seconds: float = field(compare=False)

    @property
    def best(self) -> Look:
        """The look at the lowest test NLL: where someone who knew the test sequences would have stopped."""
        return min(self.curve, key=lambda look: look.nll)


def run(*, seed: int = 0, steps: int = STEPS, console: Console | None = None) -> tuple[Outcome, ...]:
    """Train every network on the same sequences from the same weights, and print how they compare.

    Args:
        seed: of the training sequences, the weights and the noise; the test sequences are always the same.
        steps: training steps of each network.
        console: where to print; None means standard output.
    """
    for name, value, lowest in (("seed", seed, 0), ("steps", steps, 1)):
        if not lowest <= value < 2**63:
            raise ArgumentError(where=f"demo.{name}", got=value, wanted=f"a whole number from {lowest} to 2^63 - 1")
    console = console or Console()
    training, test = tagging(100, seed=seed), tagging(2000, seed=777)
    console.print(
        f"The task: give every step of a noisy sequence one of {CLASSES} labels. There are {training.labels.shape[1]} "
        f"sequences of {LENGTH} steps to learn from, in {steps} training steps on one thread (seed {seed}), and "
        f"{test.labels.shape[1]} others to be tested on.\n",
        highlight=False,
    )
    load_native()  # now, since compiling takes a while and says so: not into the progress bars
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[now]}"), TimeElapsedColumn())
    with _one_thread(), Progress(*columns, console=console) as progress:
        bars = {name: progress.add_task(name, total=steps, now="", start=False) for name in NETWORKS}
        outcomes = []
        for name in NETWORKS:
            progress.start_task(bars[name])

            def show(step: int, nll: float, bar: TaskID = bars[name]) -> None:
                progress.update(bar, completed=step, now=f"test NLL {nll:.3f}")

            outcomes.append(train(name, training, test, seed=seed, steps=steps, show=show))
    _print(outcomes, best_possible(test), console)
    return tuple(outcomes)


def tagging(sequences: int, *, seed: int) -> Tagging:
    """Sequences of a hidden label that tends to stay, seen through noise.

    ``y_1`` uniform; ``y_t = y_{t-1}`` with probability 0.8, else uniform; ``x_t = mu_{y_t} + 1.5 N(0, I)``.

    >>> tagging(3, seed=0).inputs.shape
    torch.Size([12, 3, 8])
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=(LENGTH, sequences))
    stays = rng.random((LENGTH, sequences)) < STAY
    for step in range(1, LENGTH):
        labels[step] = np.where(stays[step], labels[step - 1], labels[step])
    inputs = _centres()[labels] + SPREAD * rng.standard_normal((LENGTH, sequences, FEATURES))
    return Tagging(torch.from_numpy(inputs).float(), torch.from_numpy(labels))


def _centres() -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.random.default_rng(123).standard_normal((CLASSES, FEATURES))


def best_possible(data: Tagging) -> Score:
    """The score of the exact probabilities ``p(y_t | x_1 ... x_t)``, which no network can beat but by luck.

    Bayes' rule with the true centres: ``b_t(k) ~ p(x_t | k) (0.8 b_{t-1}(k) + 0.2 / 5)``.
    """
    centres = torch.from_numpy(_centres())
    log_likelihood = -(data.inputs.double().unsqueeze(2) - centres).square().sum(3) / (2 * SPREAD**2)
    belief = torch.full_like(log_likelihood[0], 1 / CLASSES)
    beliefs = []
    for step in log_likelihood:
        belief = torch.softmax(step + (STAY * belief + (1 - STAY) / CLASSES).log(), dim=1)
        beliefs.append(belief.log())
    return _score(torch.stack(beliefs), data.labels)


def train(
    name: str, training: Tagging, test: Tagging, *, seed: int, steps: int, show: Callable[[int, float], None]
) -> Outcome:
    """Train one of the networks on all sequences at once.

    Args:
        name: a key of ``NETWORKS``.
        training: what it learns from.
        test: what it is scored on; nothing is chosen by this score.
        seed: of the weights and the noise.
        steps: of Adam, at rate 0.01.
        show: is told the step and the test NLL at every look.
    """
    generator = torch.Generator().manual_seed(seed)
    head = nn.utils.skip_init(nn.Linear, HIDDEN, CLASSES)  # else it would draw from torch's global generator
    for parameter in head.parameters():
        nn.init.uniform_(parameter, -(HIDDEN**-0.5), HIDDEN**-0.5, generator=generator)
    lstm = LSTM(FEATURES, HIDDEN, transforms=NETWORKS[name], generator=generator)
    optimiser = torch.optim.Adam([*lstm.parameters(), *head.parameters()], lr=0.01)
    curve: list[Look] = []
    seconds = 0.0
    for step in range(1, steps + 1):
        started = time.perf_counter()
        optimiser.zero_grad()
        states, _ = lstm(training.inputs, generator=generator)
        cross_entropy(head(states).flatten(0, 1), training.labels.flatten()).backward()
        optimiser.step()
        seconds += time.perf_counter() - started
        if step * LOOKS // steps > (step - 1) * LOOKS // steps:
            curve.append(Look(step, _evaluate(lstm, head, test).nll))
            show(*curve[-1])
    return Outcome(
        name=name,
        train=_evaluate(lstm, head, training),
        test=_evaluate(lstm, head, test),
        curve=tuple(curve),
        plan=lstm.plan(training.inputs),
        seconds=seconds,
    )


@torch.no_grad()
def _evaluate(lstm: LSTM, head: nn.Module, data: Tagging) -> Score:
    lstm.eval()
    score = _score(head(lstm(data.inputs)[0]), data.labels)
    lstm.train()
    return score


def _score(logits: Float[Tensor, "length sequences classes"], labels: Int[Tensor, "length sequences"]) -> Score:
    nll = cross_entropy(logits.flatten(0, 1), labels.flatten())
    return Score(nll.item(), (logits.argmax(2) == labels).double().mean().item())


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run on one thread: for networks this small others cost more than they give, most of all on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _print(outcomes: Sequence[Outcome], bound: Score, console: Console) -> None:
    console.print("", _table(outcomes, bound), "", sep="\n")
    console.print(f"{_engines(outcomes)}\n", highlight=False)
    for reason in dict.fromkeys(reason for outcome in outcomes for reason in outcome.plan.why_not):
        console.print(f"Not on a faster engine, because {reason}.\n", highlight=False)
    seen = [look.nll for outcome in outcomes for look in outcome.curve]
    low, high = min(seen), max(seen)
    console.print(
        f"Test NLL while training, all from {low:.2f} (lowest mark) to {high:.2f} (highest):", highlight=False
    )
    marks = ".:-=+*#@" if console.options.ascii_only else "▁▂▃▄▅▆▇█"
    for o in outcomes:
        line = sparkline([look.nll for look in o.curve], low=low, high=high, marks=marks)
        console.print(f"{o.name:<24}  {line}", highlight=False)
    console.print(
        '\nThe second is LSTM(8, 32, transforms=Noise("gaussian", 2.0)). All strengths were set by hand, '
        "on other held-out sequences.",
        highlight=False,
    )
    console.print(f"\n{conclusion(outcomes)}", style="bold", highlight=False)


def _table(outcomes: Sequence[Outcome], bound: Score) -> Table:
    table = Table(
        title="NLL is the negative log-likelihood of a label, in nats: lower is better.",
        caption="Best on the way: the lowest test NLL while training (and its step), picked by\n"
        "the test sequences themselves, so it flatters every network a little.\n"
        "Best possible: exact probabilities, from knowing how the sequences are made.",
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("network")
    for heading, width in (
        ("train NLL", 9),
        ("test NLL", 8),
        ("best on\nthe way", 11),
        ("accuracy", 8),
        ("seconds", 7),
    ):
        table.add_column(heading, justify="right", no_wrap=True, min_width=width)  # never half a number
    best = min(outcomes, key=lambda outcome: outcome.test.nll)
    for o in outcomes:
        scores = (f"{o.train.nll:.3f}", f"{o.test.nll:.3f}", f"{o.best.nll:.3f} ({o.best.step})")
        row = (o.name, *scores, f"{o.test.accuracy:.1%}", f"{o.seconds:.1f}")
        table.add_row(*row, style="bold green" if o is best else None)
    table.add_row("best possible", "", f"{bound.nll:.3f}", "", f"{bound.accuracy:.1%}", "", style="dim")
    return table


def _engines(outcomes: Sequence[Outcome]) -> str:
    names: dict[str, list[str]] = {}
    for o in outcomes:
        names.setdefault(f"{o.plan.engine} ({o.plan.form})", []).append(o.name)
    if len(names) == 1:
        return f"Engine: {next(iter(names))} for all."
    return "Engine: " + "; ".join(f"{engine} for {', '.join(used)}" for engine, used in names.items()) + "."


def sparkline(values: Sequence[float], *, low: float, high: float, marks: str = "▁▂▃▄▅▆▇█") -> str:
    """Numbers as a line of marks, the first of which stands for ``low`` and the last for ``high``.

    >>> sparkline([0, 1, 2, 3], low=0, high=3, marks="abc")
    'abcc'
    """
    width = (high - low) or 1.0
    return "".join(marks[min(int((value - low) / width * len(marks)), len(marks) - 1)] for value in values)


def conclusion(outcomes: Sequence[Outcome]) -> str:
    """What the numbers say, at the end of training and at the best moments; the first outcome is the plain network."""
    plain, *others = outcomes
    last = min(others, key=lambda outcome: outcome.test.nll)
    gain = plain.test.nll - last.test.nll
    if gain > 0:
        said = (
            f"At the end of training {last.name} has {gain / plain.test.nll:.0%} less NLL on new sequences than the "
            f"plain {plain.name} ({last.test.nll:.3f} against {plain.test.nll:.3f}), with {last.test.accuracy:.1%} of "
            f"the labels right against {plain.test.accuracy:.1%}."
        )
    else:
        said = (
            f"Nothing helped this time: at the end of training the plain {plain.name} has the lowest NLL on new "
            f"sequences, {plain.test.nll:.3f}, and the closest, {last.name}, has {last.test.nll:.3f}."
        )
    stopped = min(others, key=lambda outcome: outcome.best.nll)
    return (
        f"{said} Stopped at its best moment the plain {plain.name} reaches {plain.best.nll:.3f}, {stopped.name} "
        f"{stopped.best.nll:.3f}: {_verdict(gain, plain.best.nll - stopped.best.nll)}"
    )


def _verdict(at_the_end: float, at_the_best: float) -> str:
    """What two gains over the plain network mean together."""
    if at_the_end <= 0:
        return "nor did it help there." if at_the_best <= 0 else "it would have helped to stop there."
    if at_the_best <= 0:
        return "acting on the state only spares you from stopping in time."
    if at_the_best < at_the_end / 2:
        return "acting on the state mainly spares you from stopping in time."
    return "most of the gain is there even if both are stopped in time."
