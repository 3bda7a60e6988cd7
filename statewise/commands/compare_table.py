"""A comparison of regularizers as tables, as a picture made of signs, and as sentences about who fell out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import Console

from statewise.lineup import Comparison, Interval, Line, Metric
from statewise.report import Table
from statewise.train.telling import say

NARROW = 100  # columns of a terminal, below which each candidate gets lines of its own
_NOT_KNOWN = "-"


def table_of(found: Comparison) -> Table:
    """The finalists, with intervals, differences to the plain network, calibration and costs.

    Args:
        found: what a comparison came to.
    """
    columns = ["candidate", "valid"]
    for metric in found.metrics:
        columns += [f"test {metric.name}", f"against none{f', {metric.unit}' if metric.unit else ''}"]
    columns += ["p", "verdict", *(["ECE %"] if _calibrated(found) else []), "time", "parameters"]
    rows = [[cell for _, cell in _cells(line, found)] for line in found.lines]
    seeds, epochs, head = len(found.seeds), found.epochs, found.metrics[0].name
    over = f"{found.called} and seeds" if seeds > 1 else found.called
    better = "higher" if found.metrics[0].higher else "lower"
    notes = [
        f"{head}, {better} is better; the mean of {seeds} seed{'s' * (seeds != 1)} after {epochs} "
        f"epoch{'s' * (epochs != 1)}, tested on {found.units:,} {found.called}. Intervals of 95 % are over "
        f"{over}; p is raised for the number of comparisons (Holm). The order is that of the validation, which also "
        "chose the strengths, and of each run the epoch that is tested.",
        *found.says,
        *about_the_rest(found),
    ]
    return Table(columns=columns, rows=rows, notes=notes)


def print_comparison(found: Comparison, console: Console) -> None:
    """Print the table, as it fits; where it does not, a few lines for each candidate.

    Args:
        found: what a comparison came to.
        console: where.
    """
    table = table_of(found)
    if console.width >= NARROW:
        table.print(console)
        return
    for line in found.lines:
        (_, name), *cells = _cells(line, found)
        say(console, name)
        for what, cell in cells:
            if cell != _NOT_KNOWN:
                _folded(console, f"  {what}: {cell}")
    for note in table.notes:
        _folded(console, note)


def _folded(console: Console, text: str) -> None:
    console.print(text, markup=False, emoji=False, highlight=False)


def drawn(found: Comparison, *, width: int) -> Iterator[str]:
    """The differences to the plain network with their intervals, in signs: a line for each candidate.

    Args:
        found: what a comparison came to.
        width: of the terminal.
    """
    metric = found.metrics[0]
    differences = {line.name: line.differences[metric.name] for line in found.lines if line.differences}
    names = max((len(name) for name in differences), default=0)
    room = min(width - names - 2, 60)
    if not differences or room < 15:
        return
    low = min(0.0, *(each.low for each in differences.values()))
    high = max(0.0, *(each.high for each in differences.values()))
    if not (math.isfinite(low) and math.isfinite(high) and high > low):
        return
    for name, each in differences.items():
        yield f"{name:>{names}}  {_bar(each, low, high, room)}"
    ends = f"{low:+.3g}".ljust(room - len(f"{high:+.3g}")) + f"{high:+.3g}"
    better = "right" if metric.higher else "left"
    yield f"{'':>{names}}  {ends}"
    yield f"{'':>{names}}  {metric.name} against none ({metric.unit or 'difference'}); {better} is better"


def about_the_rest(found: Comparison) -> list[str]:
    """Who is not in the table, and why.

    Args:
        found: what a comparison came to.
    """
    told, by_epochs = [], dict[int, list[str]]()
    for name, (epochs, valid) in found.dropped.items():
        by_epochs.setdefault(epochs, []).append(f"{name} ({valid:.4g})")
    for epochs, names in by_epochs.items():
        told.append(f"Dropped after epoch {epochs}, by validation: {', '.join(names)}.")
    if found.no_time:
        told.append(f"No time for: {', '.join(found.no_time)}.")
    told += [f"{name} came to nothing: {why}" for name, why in found.failed.items()]
    return [*told, *(f"{name} cannot take part: {why}." for name, why in found.unavailable.items())]


def _cells(line: Line, found: Comparison) -> Iterator[tuple[str, str]]:
    first, *_ = metrics = found.metrics
    yield "candidate", line.name
    yield "valid", _number(line.valid, first)
    for metric in metrics:
        score = line.scores[metric.name]
        yield f"test {metric.name}", _interval(score, metric) if metric is first else _number(score.value, metric)
        apart = line.differences.get(metric.name)
        unit = f", {metric.unit}" if metric.unit else ""
        yield f"{metric.name} against none{unit}", _NOT_KNOWN if apart is None else _difference(apart)
    yield "p", _NOT_KNOWN if line.p_holm is None else f"{line.p_holm:.2g}"
    yield "verdict", line.says or _NOT_KNOWN
    if _calibrated(found):
        yield "ECE %", _NOT_KNOWN if line.ece is None else f"{100 * line.ece:.1f}"
    yield "time", f"x{line.cost:.2f}"
    yield "parameters", f"{line.parameters:,}"


def _calibrated(found: Comparison) -> bool:
    return any(line.ece is not None for line in found.lines)


def _number(value: float, metric: Metric) -> str:
    return f"{value:.{metric.digits}f}"


def _interval(found: Interval, metric: Metric) -> str:
    value, low, high = (_number(each, metric) for each in (found.value, found.low, found.high))
    return f"{value} [{low}, {high}]"


def _difference(found: Interval) -> str:
    value, low, high = (_signed(each) for each in (found.value, found.low, found.high))
    return f"{value} [{low}, {high}]"


def _signed(value: float) -> str:
    """A difference with its sign.

    >>> _signed(-12.0), _signed(0.0444), _signed(5.6e-15)
    ('-12.00', '+0.044', '+0.00')
    """
    value = round(value, 9) + 0.0  # two means of the same scores may differ in their last bits
    return f"{value:+.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:+.2g}"


def _bar(found: Interval, low: float, high: float, room: int) -> str:
    def place(value: float) -> int:
        return min(room - 1, max(0, round((value - low) / (high - low) * (room - 1))))

    signs = [" "] * room
    for at in range(place(found.low), place(found.high) + 1):
        signs[at] = "-"
    signs[place(0.0)] = "|"
    signs[place(found.value)] = "o"
    return "".join(signs).rstrip()


def next_steps(kind: str, best: str, *, automaton: bool) -> Sequence[str]:
    """What can be typed next, about the best model.

    Args:
        kind: of the data.
        best: its folder, as a shell reads it.
        automaton: whether its states can be read.

    >>> next_steps("tag", "runs/x/best", automaton=False)[0]
    'statewise predict runs/x/best FILE'
    """
    if kind == "lm":
        return [f"statewise evaluate {best} --text FILE", f"statewise generate {best} --length 30"]
    told = [f"statewise predict {best} FILE"]
    if kind == "tag":
        told.append(f"statewise evaluate {best} --data FILE")
    if automaton:
        told.append(f"statewise extract {best}")
    return told
