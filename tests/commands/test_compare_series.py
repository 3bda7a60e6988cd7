"""``statewise compare`` on sequences of numbers, from the data to the forecasts of the best."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from commands.typing_commands import Typed
from statewise.data import Series, read_series, sample_bursts, sample_seasons, write_series
from statewise.train import RunFolder

QUICK = ["--epochs", "2", "--seeds", "2", "--hidden", "6", "--workers", "1", "--device", "cpu", "--json"]
LINEUP = ["--lineup", "none,dropout,noise"]


def test_bursts_are_compared_and_the_best_names_their_classes(typed: Typed, tmp_path: Path) -> None:
    document = json.loads(typed("compare", "sample-series", *LINEUP, *QUICK, "--out", "out"))
    assert document["kind"] == "series"
    assert {line["family"] for line in document["lines"]} == {"none", "dropout", "noise"}
    last = RunFolder(tmp_path / "out" / "best").metrics()[-1]
    best = document["lines"][0]
    own = 100 * (1 - last["tests"]["test"]["error"])
    assert best["seeds"][int(document["best_run"][-1])] == pytest.approx(own)
    write_series(tmp_path / "new.csv", sample_bursts(6, seed=9).unlabelled())
    said = typed("predict", "out/best", "new.csv").splitlines()
    assert len(said) == 6
    assert all({"sine", "sawtooth", "square"} & set(line.split()) for line in said), said
    assert f"accuracy {own:.2f} %" in typed("evaluate", "out/best")


def test_seasons_are_compared_and_the_best_foretells_them(typed: Typed, tmp_path: Path) -> None:
    document = json.loads(typed("compare", "sample-next", *LINEUP, *QUICK, "--out", "out"))
    assert document["kind"] == "forecast"
    assert [metric["name"] for metric in document["metrics"]] == ["RMSE", "NLL"]
    last = RunFolder(tmp_path / "out" / "best").metrics()[-1]
    seed = int(document["best_run"][-1])
    # What a window came to, added up, is what the run reports of itself.
    assert document["lines"][0]["seeds"][seed] == pytest.approx(math.sqrt(last["tests"]["test"]["error"]), rel=1e-5)
    rows = json.loads((tmp_path / "out" / "scores" / f"{document['best_run']}.json").read_text(encoding="utf-8"))[
        "rows"
    ]
    count, _, nll = np.array(rows).sum(0).tolist()
    assert nll / count == pytest.approx(last["tests"]["test"]["loss"], rel=1e-5)
    assert count == last["tests"]["test"]["count"]
    write_series(tmp_path / "new.csv", sample_seasons(2, steps=20, seed=9))
    said = typed("predict", "out/best", "new.csv", "--steps", "3")
    assert "season" in said
    assert "chaos" in said


def test_of_few_sequences_the_later_steps_are_held_back_and_scaled_by_the_first(typed: Typed, tmp_path: Path) -> None:
    """A value that rises forever: the scale of the later steps must not be known to those who learn the first."""
    rising = [np.arange(700.0), 5 + np.arange(700.0)]
    write_series(tmp_path / "rising.csv", Series.from_arrays(rising, features=["height"]))
    options = ["--lineup", "none,dropout", "--epochs", "1", "--seeds", "1", *QUICK[4:], "--out", "out"]
    document = json.loads(typed("compare", "rising.csv", "--kind", "forecast", *options))
    parts = {part: read_series(tmp_path / "out" / "data" / f"{part}.csv", form="long") for part in ("train", "test")}
    assert parts["train"].values.max() < parts["test"].values.min()
    about = json.loads((tmp_path / "out" / "best" / "examples.json").read_text(encoding="utf-8"))
    assert about["mean"] == pytest.approx(parts["train"].scale().mean)
    assert document["units"] == len(parts["test"]) == 4, "105 steps of each, in windows of 100"


def test_too_short_for_a_forecast_says_what_would_do(refused: Typed, tmp_path: Path) -> None:
    write_series(tmp_path / "short.csv", Series.from_arrays([np.arange(4.0)] * 3, features=["x"]))
    said = " ".join(refused("compare", "short.csv", "--kind", "forecast", "--device", "cpu", "--quiet").split())
    assert "no two steps in a row for valid" in said
    assert "Get longer sequences" in said


def test_a_sample_is_of_one_kind(refused: Typed) -> None:
    said = " ".join(refused("compare", "sample-series", "--kind", "forecast", "--device", "cpu").split())
    assert "--kind: got forecast with sample-series, wanted series" in said
    assert "sample-next" in said
