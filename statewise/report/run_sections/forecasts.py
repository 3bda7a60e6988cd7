"""How well a forecaster foretells: its errors beside those of the last value, and how far its laws can be believed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from statewise.report.html import Bar, DataTable, Note, Section, bar_chart, shown
from statewise.report.html.pieces import Part
from statewise.report.run_sections.run import Run
from statewise.report.run_sections.words import percent
from statewise.train.classify_folder import read_about


def forecasts(run: Run) -> Section:
    """The scores of a forecaster.

    Args:
        run: of a forecaster.
    """
    rows = [(name, *_told(record)) for name, record in run.tests.items()]
    headings = ("set", "RMSE", "of the last value", "loss", "within 50 %", "within 90 %", "numbers")
    parts: list[Part] = [DataTable(headings=headings, rows=rows, caption="The best model on each set")]
    if worse := [name for name, record in run.tests.items() if record["error"] >= record["last_error"]]:
        words = f"On {' and '.join(worse)} the last value is no worse a forecast than that of the network."
        parts.append(Note(kind="care", words=words))
    name, last = list(run.tests.items())[-1]
    parts += [_each_feature(run, name, last), _tenths(name, last)]
    prose = (
        "Errors are those of the next step, in deviations of the training set; “of the last value” is the error of who "
        "always answers that nothing changes. Of a calibrated forecaster half of the numbers lie within the middle "
        "half of their laws, and nine tenths within the middle nine tenths. The loss is the mean negative "
        "log-likelihood of a number, in nats."
    )
    return Section("Scores", parts, prose=prose)


def _told(record: Mapping[str, Any]) -> tuple[str, ...]:
    errors = (math.sqrt(record[name]) for name in ("error", "last_error"))
    shares = (percent(record[name], 1) for name in ("within_50", "within_90"))
    return (*map(shown, errors), shown(record["loss"]), *shares, f"{record['count']:,}")


def _each_feature(run: Run, name: str, record: Mapping[str, Any]) -> Part:
    kinds = ("rmse", "last_rmse", "mae", "last_mae")
    rows = [
        (feature, *(shown(errors[kind]) for kind in kinds))
        for feature, errors in zip(read_about(run.folder)["features"], record["features"], strict=True)
    ]
    headings = ("feature", "RMSE", "RMSE of the last value", "mean absolute error", "that of the last value")
    return DataTable(headings=headings, rows=rows, caption=f"Each feature on {name}, in its own units")


def _tenths(name: str, record: Mapping[str, Any]) -> Part:
    bars = [Bar(label=f"{10 * place} to {10 * place + 10} %", value=share) for place, share in enumerate(record["pit"])]
    caption = (
        "A tenth in each says that the laws are right. More at both ends than in the middle: the network is too sure "
        "of itself; more in the middle: too modest."
    )
    title = f"In which tenth of its law each number lies, on {name}"
    return bar_chart(bars, title=title, value="share of the numbers", caption=caption, heading="tenth")
