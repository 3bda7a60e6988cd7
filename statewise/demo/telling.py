"""What the regularized networks came to, as a person reads it."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from statewise.demo.networks import Outcome
from statewise.demo.tagging import Score


def tell(outcomes: Sequence[Outcome], bound: Score, console: Console) -> None:
    """Print the scores, their curves, and what they say.

    Args:
        outcomes: of the networks, the plain one first.
        bound: the best possible score.
        console: where to print.
    """
    console.print("", table_of(outcomes, bound), "", sep="\n")
    console.print(f"{engines_of(outcomes)}\n", highlight=False)
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


def table_of(outcomes: Sequence[Outcome], bound: Score) -> Table:
    """The scores of all networks.

    Args:
        outcomes: of the networks.
        bound: the best possible score.
    """
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


def engines_of(outcomes: Sequence[Outcome]) -> str:
    """Which engine each network ran on.

    Args:
        outcomes: of the networks.
    """
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
