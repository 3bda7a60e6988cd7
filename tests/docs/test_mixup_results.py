"""What the page of the Sequence Mixup results says is what the files of the runs say."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from statewise.recipes import find_recipe

RESULTS = Path(__file__).parents[2] / "docs" / "results"
KEPT: list[dict[str, Any]] = json.loads((RESULTS / "sequence-mixup.json").read_text())["results"]
PAGE = (RESULTS / "sequence-mixup.md").read_text()


def cells(section: str) -> list[list[str]]:
    """The rows of the one table of a section."""
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def tables() -> dict[str, list[list[str]]]:
    """The rows of the table under each heading that has one."""
    found = {}
    for section in PAGE.split("\n## ")[1:]:
        heading = section.partition("\n")[0].strip()
        found[heading] = cells(section.partition("\n### ")[0])
    return found


def results(recipe: str, *, changed: bool) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """What was asked of a recipe and each of its runs: those with its own settings, or those with others."""
    epochs = find_recipe(f"sequence-mixup/{recipe}").epochs or None
    found = []
    for result in (one for one in KEPT if one["recipe"] == f"sequence-mixup/{recipe}"):
        otherwise = bool(result["request"]["overrides"]) or result["request"]["epochs"] != epochs
        found += [(result["request"], run) for run in result["runs"] if otherwise == changed]
    return found


def of(recipe: str) -> list[dict[str, Any]]:
    """The runs of a recipe with its own settings."""
    return [run for _, run in results(recipe, changed=False)]


def text(values: list[float], digits: int) -> str:
    spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{spread}"


def numbers(runs: list[dict[str, Any]], name: str, factor: float = 1.0) -> list[float]:
    return [factor * run["tests"]["test"][name] for run in runs]


@pytest.mark.parametrize(
    ("heading", "recipe"),
    [("Table 1: three cells, mixed in three places", "table1"), ("Table 2: a bidirectional LSTM with a CRF", "table2")],
)
def test_every_row_is_what_its_runs_came_to(heading: str, recipe: str) -> None:
    runs, rows = of(recipe), tables()[heading]
    assert {(row[0], row[1]) for row in rows} == {(run["size"], run["row"]) for run in runs}
    beside = find_recipe(f"sequence-mixup/{recipe}").beside  # type: ignore[attr-defined]
    for size, name, published, f1, gain, _, loss, share, ece, count in rows:
        own = [run for run in runs if (run["size"], run["row"]) == (size, name)]
        assert count == str(len(own))
        assert published == f"{beside(size, name)[0]:.2f}"
        assert f1 == text(numbers(own, "f1", 100), 2)
        assert loss == text(numbers(own, "loss"), 3)
        assert ece == text(numbers(own, "ece", 100), 2)
        if name == "standard":
            continue
        standard = {run["seed"]: run for run in runs if (run["size"], run["row"]) == (size, "standard")}
        others = [standard[run["seed"]] for run in own]
        differences = [a - b for a, b in zip(numbers(own, "f1", 100), numbers(others, "f1", 100), strict=True)]
        assert gain == f"{statistics.fmean(differences):+.2f}"
        assert share == f"{statistics.fmean(numbers(own, 'loss')) / statistics.fmean(numbers(others, 'loss')):.3f}"


def test_the_half_moons_are_what_their_runs_came_to() -> None:
    runs, rows = of("halfmoons"), tables()["Figure 1: half moons"]
    assert len(rows) == 8
    for noise, name, *cells in rows:
        own = [run for run in runs if (run["size"], run["row"]) == (noise, name)]
        assert len(own) == 5
        columns = (("accuracy", 4), ("nll", 4), ("confidence", 4), ("band", 3))
        for (column, digits), cell in zip(columns, cells, strict=True):
            assert cell == text([run[column] for run in own], digits), (noise, name, column)


def test_the_points_of_figure_4_are_what_the_runs_came_to() -> None:
    for place, *shown in tables()["Figure 4: two points of it"]:
        (one,) = (run for run in of("figure4") if run["row"] == f"{place}-1")
        same = [run for run in of("table1") if (run["row"], run["size"]) == (f"{place}-0.5", "lstm")]
        kept = [next(run for run in same if run["seed"] == one["seed"]), one]
        assert shown == [f"{value:.2f}" for value in numbers(kept, "f1", 100)] + [
            f"{value:.3f}" for value in numbers(kept, "loss")
        ]


def test_the_spectra_are_what_the_runs_came_to() -> None:
    runs, rows = of("figure5"), tables()["Figure 5: the states of two classes"]
    assert [(row[0], row[1]) for row in rows] == [(run["row"], name) for run in runs for name in run["spectra"]]
    for training, name, first, fifth, twentieth, *others in rows:
        spectrum = next(run["spectra"][name] for run in runs if run["row"] == training)
        values = spectrum["centred, sqrt_n"]
        assert [first, fifth, twentieth] == [f"{values[place - 1]:.3f}" for place in (1, 5, 20)]
        digits = {"variance": 1, "effective_rank": 1, "leakage": 3}
        assert others == [f"{spectrum[column]:.{places}f}" for column, places in digits.items()]


def test_what_else_was_tried_of_table_2_is_told_as_it_was() -> None:
    """Each row of the second table of that section names what was set otherwise, F1 and loss."""
    rows = cells(PAGE.partition("### What else was tried")[2].partition("\n## ")[0])
    tried = results("table2", changed=True)
    assert len(rows) == len(tried)
    for (epochs, name, otherwise, f1, loss), (asked, run) in zip(rows, tried, strict=True):
        found = run["tests"]["test"]
        assert (epochs, name) == (str(run["epochs"]), run["row"])
        assert otherwise == (", ".join(f"{key} {str(value).lower()}" for key, value in asked["overrides"]) or "-")
        assert (f1, loss) == (f"{100 * found['f1']:.2f}", f"{found['loss']:.3f}")


@pytest.mark.parametrize(("machine", "file"), [("CPU", "tagger_epoch"), ("H200", "tagger_epoch_h200")])
def test_an_epoch_of_tagging_takes_what_its_file_says(machine: str, file: str) -> None:
    page = (RESULTS.parent / "performance.md").read_text().partition("## An epoch of tagging")[2]
    kept = json.loads((RESULTS / f"{file}.json").read_text())
    rows = cells(
        f"| {kept['batches']} batches, {machine}"
        + page.partition(f"| {kept['batches']} batches, {machine}")[2].partition("\n\n")[0]
    )
    seconds = [statistics.median(turns) for turns in kept["seconds"].values()]
    assert [row[1:] for row in rows] == [
        [f"{median:.2f}", f"{ratio:.2f}"] for median, ratio in zip(seconds, kept["ratios"].values(), strict=True)
    ]


def test_mixing_halves_the_loss_on_noisy_half_moons() -> None:
    losses = {name: [run["nll"] for run in of("halfmoons") if (run["size"], run["row"]) == ("noisy", name)]
              for name in ("standard", "pre-output", "through-time")}  # fmt: skip
    standard = statistics.fmean(losses["standard"])
    assert all(statistics.fmean(losses[name]) <= 0.5 * standard for name in ("pre-output", "through-time"))


def test_no_file_names_a_place_of_the_machine() -> None:
    assert all(word not in json.dumps(KEPT) for word in ("/work", "scratch", "/tmp"))


def test_the_readme_says_of_the_lstm_what_its_runs_say() -> None:
    readme = " ".join((RESULTS.parents[1] / "README.md").read_text().split())
    runs = {row: [run for run in of("table1") if (run["size"], run["row"]) == ("lstm", row)]
            for row in ("standard", "input-0.5")}  # fmt: skip
    before, after = (statistics.fmean(numbers(some, "f1", 100)) for some in runs.values())
    losses = [statistics.fmean(numbers(some, "loss")) for some in runs.values()]
    assert f"from {before:.1f} to {after:.1f} F1" in readme
    assert f"its loss to {losses[1] / losses[0]:.2f}" in readme
