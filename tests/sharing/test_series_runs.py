"""Runs of numeric sequences, which every tool for trained models must know or refuse in words that are true."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import statewise
from statewise.cli import main
from statewise.commands.report_sources import CommandSources
from statewise.errors import RunFolderError
from statewise.explorer import load_subject
from statewise.models import Forecaster, SequenceClassifier
from statewise.report.run_page import _ranked
from statewise.report.run_sections import read_run, sections_of
from statewise.train import load_classifier, load_forecaster

KINDS: dict[str, Any] = {
    "label": (SequenceClassifier, load_classifier),
    "next": (Forecaster, load_forecaster),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier and a forecaster of numbers, each with zoneout."""
    place = tmp_path_factory.mktemp("series")
    values = np.random.default_rng(0).normal(20.0, 2.0, size=(24, 6))
    rows = [f"{'ab'[at % 2]},{','.join(f'{value:.3f}' for value in row)}" for at, row in enumerate(values)]
    (place / "data.csv").write_text("label," + ",".join(f"v{step}" for step in range(6)) + "\n" + "\n".join(rows))
    for target in KINDS:
        typed = ["--data", str(place / "data.csv"), "--form", "wide", "--target", target, "--out", str(place / target)]
        settings = ["--epochs", "1", "--hidden", "4", "--zoneout", "0.2", "--quiet", "--device", "cpu"]
        main(["train", "series", *typed, *settings])
    return place


@pytest.mark.parametrize("target", KINDS)
class TestSeriesRun:
    def test_statewise_load_gives_the_model_that_the_run_s_own_loader_gives(self, runs: Path, target: str) -> None:
        kind, load = KINDS[target]
        model: Any = statewise.load(runs / target)
        own = load(runs / target)[0]
        assert type(model) is kind
        assert model.config == own.config
        inputs = torch.linspace(15, 25, 12).view(2, 6, 1)
        asked = [each.predict(inputs) if target == "next" else (each(inputs),) for each in (model, own)]
        for one, other in zip(*asked, strict=True):
            assert torch.equal(one, other)

    def test_it_knows_its_features_and_classes_when_it_is_shared(
        self, runs: Path, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        main(["export", str(runs / target), "--out", str(tmp_path / "shared"), "--json"])
        model = statewise.load(tmp_path / "shared")
        assert model.reading is not None
        assert model.reading.unit == "numbers"
        assert model.reading.classes == {"label": ("a", "b"), "next": None}[target]
        card = (tmp_path / "shared" / "README.md").read_text()
        assert "pipeline_tag" not in card, "the hub's words for tasks are of texts"
        assert "numbers" in card

    def test_its_papers_are_cited(self, runs: Path, target: str) -> None:
        assert "krueger" in statewise.cite(str(runs / target)).lower(), "the paper of zoneout"

    def test_the_explorer_refuses_it_in_words_that_are_true(self, runs: Path, target: str) -> None:
        with pytest.raises(RunFolderError, match=r"a (classifier of numbers|run of the task 'forecaster')"):
            load_subject(runs / target)

    def test_the_report_has_all_of_its_sections(self, runs: Path, target: str) -> None:
        run = read_run(runs / target, sources=CommandSources())
        made = sections_of(run)
        assert made.failed == {}
        assert run.sources is not None
        assert run.sources.command(run).startswith("statewise train series --data")
        assert run.sources.resume(run).startswith("statewise train series --resume")

    def test_a_damaged_scale_is_a_named_error(self, runs: Path, target: str, tmp_path: Path) -> None:
        for name in ("config.json", "model.safetensors", "metrics.jsonl"):
            (tmp_path / name).write_bytes((runs / target / name).read_bytes())
        whole = (runs / target / "examples.json").read_text()
        for old, new in (('"mean"', '"median"'), ('"mean": [', '"mean": ["x", '), ('"mean": [', '"mean": [1.0, ')):
            (tmp_path / "examples.json").write_text(whole.replace(old, new))
            with pytest.raises(RunFolderError, match=r"examples\.json"):
                statewise.load(tmp_path)
            with pytest.raises(RunFolderError, match=r"examples\.json"):
                KINDS[target][1](tmp_path)


def test_of_two_forecasters_that_of_the_smaller_error_is_the_best(runs: Path, tmp_path: Path) -> None:
    worse = Path(shutil.copytree(runs / "next", tmp_path / "worse"))
    *epochs, last = (worse / "metrics.jsonl").read_text().splitlines()
    record = json.loads(last)
    record["valid"]["error"] *= 4
    (worse / "metrics.jsonl").write_text("\n".join([*epochs, json.dumps(record), ""]))
    found = _ranked([read_run(worse), read_run(runs / "next")])
    assert found is not None
    assert [run.name for run in found[0]] == ["next"]


def test_a_page_of_a_forecaster_says_errors_and_no_accuracy(runs: Path, tmp_path: Path) -> None:
    main(["report", str(runs / "next"), "--out", str(tmp_path / "page.html")])
    page = (tmp_path / "page.html").read_text()
    assert "RMSE" in page
    assert "of the last value" in page
    assert "accuracy" not in page.lower().partition("</style>")[2]
