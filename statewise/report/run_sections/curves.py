"""Learning curves: what was minimised, epoch by epoch, on training and on validation data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from statewise.report.html import Note, Section, Series, line_chart
from statewise.report.html.pieces import Figure, Part
from statewise.report.run_sections.run import FORECASTER, Run

#: For each chart: its title, the name of its axis, and the fields of a record by the name of their line.
_CHARTS: tuple[tuple[str, str, Mapping[str, tuple[str, ...]]], ...] = (
    (
        "Perplexity",
        "perplexity",
        {"train": ("train_perplexity",), "validation": ("valid_perplexity",)},
    ),
    ("Loss", "nats", {"train": ("train_loss",), "validation": ("valid_loss",)}),
    (
        "Errors on validation data",
        "share of errors",
        {"as it is": ("valid_error",), "at the nearest centroid": ("valid_argmax_error", "argmax_error")},
    ),
    ("Squared error on validation data", "squared deviations", {"validation": ("valid_squared_error",)}),
    ("F1 on validation data", "F1", {"validation": ("valid_f1",)}),
)


def learning_curves(run: Run) -> Section | None:
    """The curves of a run; none for one that was not trained in epochs.

    Args:
        run: any.
    """
    if not run.epochs:
        if run.told.get("training", {}).get("exact") is None:
            return Section("Learning curves", [Note(kind="missing", words="No epoch has ended yet.")])
        return None
    figures: list[Part] = [figure for chart in _CHARTS if (figure := _chart([run], *chart)) is not None]
    if not figures:
        return None
    best = run.final.get("best_epoch")
    kept = f" The weights after epoch {best} were kept." if best is not None else ""
    return Section(
        "Learning curves",
        figures,
        prose=f"Where the validation curve rises while the training curve falls, the network learns by heart.{kept}",
    )


def overlaid(runs: Sequence[Run]) -> list[Figure]:
    """The validation curves of several runs in one chart for each measure that two of them have.

    Args:
        runs: any.
    """
    found = []
    for title, axis, fields in _CHARTS:
        names = {key: value for key, value in fields.items() if key in ("validation", "as it is")}
        holders = [run for run in runs if _line(run, next(iter(names.values()))) is not None]
        if len(holders) > 1 and (figure := _chart(holders, title, axis, names)) is not None:
            found.append(figure)
    return found


def _chart(runs: Sequence[Run], title: str, axis: str, fields: Mapping[str, tuple[str, ...]]) -> Figure | None:
    several = len(runs) > 1
    series = []
    for run in runs:
        for name, keys in fields.items():
            line = _line(run, keys)
            if line is not None:
                series.append(Series(name=run.name if several else name, x=line[0], y=line[1]))
    if not series:
        return None
    values = [value for one in series for value in one.y if math.isfinite(value) and value > 0]
    wide = bool(values) and max(values) / min(values) > 30 and axis != "share of errors"
    named = f"{title} of the runs on validation data" if several and "validation" not in title else title
    return line_chart(
        series,
        title=named,
        x="epoch",
        y=axis,
        log_y=wide,
        caption="Equal distances are equal ratios." if wide else "",
    )


def _line(run: Run, keys: Sequence[str]) -> tuple[list[float], list[float]] | None:
    """The values that the epochs have under the first of the names that is there."""
    for key in (_renamed(run, key) for key in keys):
        held = [(record["epoch"], _number(record, key)) for record in run.epochs]
        held = [(epoch, value) for epoch, value in held if value is not None]
        if held:
            return [float(epoch) for epoch, _ in held], [float(value) for _, value in held if value is not None]
    return None


def _renamed(run: Run, key: str) -> str:
    """The name of a field in the records of a run: the error of a forecaster is no share of wrong answers."""
    if run.task != FORECASTER:
        return key
    return {"valid_squared_error": "valid_error", "valid_error": "", "valid_argmax_error": ""}.get(key, key)


def _number(record: Mapping[str, Any], key: str) -> float | None:
    value = record.get(key)
    if value is None and key.startswith("valid_") and isinstance(record.get("valid"), Mapping):
        value = record["valid"].get(key.removeprefix("valid_"))
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
