"""What a classifier does on sets, for a person."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from statewise.train import Judged
from statewise.train.telling import say

MOST_CLASSES = 12  # of a table on a page


def tell_sets(console: Console, sets: Mapping[str, Judged], classes: tuple[str, ...]) -> None:
    """Print a line for each set, and of the last one which class was answered for which.

    Args:
        console: where to print.
        sets: by name.
        classes: their names.
    """
    for name, judged in sets.items():
        say(console, f"{name}: {_accuracy(judged)}")
    if len(classes) <= MOST_CLASSES:
        name, judged = list(sets.items())[-1]
        say(console, confusion(name, judged, classes))


def confusion(name: str, judged: Judged, classes: tuple[str, ...]) -> str:
    """Which class was answered for which, as lines.

    Args:
        name: of the set.
        judged: what the model does there.
        classes: their names.
    """
    table = [
        ["", *classes],
        *([true, *map(str, row)] for true, row in zip(classes, judged.soft.confusion, strict=True)),
    ]
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
    return "\n".join([f"{name}, what was answered (a row for each true class):", *(f"  {line}" for line in lines)])


def _accuracy(judged: Judged) -> str:
    parts = [f"accuracy {100 * judged.soft.accuracy:.2f} %, loss {judged.soft.loss:.4f}"]
    if judged.hard is not None:
        parts.append(f"with the nearest centroid at each step {100 * judged.hard.accuracy:.2f} %")
    # Where one class is rare, an accuracy may be high for an answer that is always the same.
    balanced, correlation = judged.soft.balanced_accuracy, judged.soft.correlation
    parts.append(f"balanced {100 * balanced:.2f} %, Matthews' correlation {correlation:.3f}")
    return "; ".join(parts)
