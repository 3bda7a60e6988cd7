"""What a forecaster does on sets, for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console

from statewise.report import Table
from statewise.train import ForecastMeasured


def tell_forecasts(console: Console, sets: Mapping[str, ForecastMeasured], features: Sequence[str]) -> None:
    """Print a table for each set: the errors of each feature in its own units, and how far its laws can be trusted.

    Args:
        console: where to print.
        sets: by name.
        features: their names.
    """
    for name, measured in sets.items():
        forecast_table(name, measured, features).print(console)


def forecast_table(name: str, measured: ForecastMeasured, features: Sequence[str]) -> Table:
    """What a forecaster does on a set, as a table.

    Args:
        name: of the set.
        measured: what it does there.
        features: their names.
    """
    columns = ("feature", "RMSE", "last value's", "MAE", "last value's MAE")
    rows = [
        [feature, *(f"{number:.4g}" for number in (each.rmse, each.last_rmse, each.mae, each.last_mae))]
        for feature, each in zip(features, measured.features, strict=True)
    ]
    tenths = " ".join(f"{100 * share:.0f}" for share in measured.pit)
    notes = [
        f"loss {measured.loss:.4f} nats a number, standardised; {100 * measured.skill:.1f} % of the last value's "
        f"squared error is gone; {measured.count:,} numbers",
        f"within the middle 50 % of the laws {100 * measured.within_50:.1f} %, within 90 % "
        f"{100 * measured.within_90:.1f} %; in each tenth of them, from the lowest: {tenths} %",
    ]
    return Table(columns=columns, rows=rows, title=name, notes=notes)
