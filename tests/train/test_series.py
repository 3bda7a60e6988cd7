"""Training on numeric sequences: their classes are learnt, the last value is beaten, and a run that stops goes on."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from statewise.data import Scale, Series, sample_bursts, sample_seasons
from statewise.errors import ArgumentError, DataError, LengthError, RunFolderError
from statewise.heads import Normal
from statewise.models import ClassifierConfig, ForecastConfig
from statewise.train import (
    Checkpoints,
    ClassifierSettings,
    ForecastMeasured,
    ForecastResult,
    load_classifier,
    load_forecaster,
    measure_forecasts,
    train_classifier,
    train_forecaster,
)
from statewise.train.classify_data import OnDevice
from statewise.train.classify_folder import about_examples, read_about, write_about
from statewise.train.examples import ExampleTraining
from statewise.train.forecast_data import NextSteps
from statewise.train.forecast_measure import FORECASTS
from statewise.train.tasks import measure
from support import tolerance
from train.killed import outcome

CPU = torch.device("cpu")
UNIT = Scale((0.0,), (1.0,))
SMALL = ForecastConfig(hidden=6, dropout=0.1)
SETTINGS = ClassifierSettings(epochs=3, batch=2, lr=0.02, bucket=2)


def few() -> Series:
    """Some sequences of several lengths."""
    whole = sample_seasons(8, steps=12, seed=5)
    return Series.from_arrays([whole.sequence(at)[: 4 + at] for at in range(8)], features=whole.features)


@pytest.fixture(scope="module")
def forecasts(tmp_path_factory: pytest.TempPathFactory) -> ForecastResult:
    """A forecaster of the sample."""
    train, rest = sample_seasons(60).split(0.7, seed=0)
    valid, test = rest.split(0.5, seed=0)
    settings = ClassifierSettings(epochs=15, batch=8, lr=0.01)
    folder = tmp_path_factory.mktemp("forecaster") / "run"
    return train_forecaster(ForecastConfig(hidden=16), settings, train, valid, {"test": test}, folder)


class TestClasses:
    def test_bursts_of_three_waves_are_told_apart_whatever_their_scale_and_length(self, tmp_path: Path) -> None:
        train, valid = sample_bursts(120, noise=0.1).split(0.8, seed=0)
        settings = ClassifierSettings(epochs=8, batch=12, lr=0.02)
        config = ClassifierConfig(hidden=12, readout="h")
        result = train_classifier(config, settings, train, valid, {"again": valid}, tmp_path / "run")
        assert result.valid.soft.error < 0.3, "two of three answers by chance are wrong"
        model, told = load_classifier(tmp_path / "run")
        about = told["examples"]
        assert about["kind"] == "series"
        assert about["features"] == ["signal", "load"]
        assert model.scale_mean.tolist() == pytest.approx(train.scale().mean)
        found = measure(model, OnDevice(valid, CPU), batch=7)
        assert found.confusion == result.valid.soft.confusion
        assert found.loss == pytest.approx(result.valid.soft.loss, rel=1e-5)

    def test_a_model_reads_values_as_they_are_and_standardises_them(self) -> None:
        model = ClassifierConfig(hidden=4, readout="h").build(features=2, classes=3)
        batch = torch.randn(3, 5, 2) * 7 + 100
        mean, deviation = torch.tensor([100.0, 90.0]), torch.tensor([7.0, 0.5])
        plain = model((batch - mean) / deviation)
        model.standardise(mean.tolist(), deviation.tolist())
        torch.testing.assert_close(model(batch), plain, **tolerance(plain.dtype))
        lengths = torch.tensor([5, 2, 3])
        for row, length in enumerate(lengths.tolist()):
            alone = model(batch[row : row + 1, :length])
            torch.testing.assert_close(model(batch, lengths)[row : row + 1], alone, **tolerance(alone.dtype))

    def test_batches_have_padded_values_their_lengths_and_classes(self) -> None:
        series = Series.from_arrays([[[1, 2], [3, 4]], [[5, 6]]], labels=["b", "a"])
        batch = OnDevice(series, CPU).batch(torch.tensor([1, 0]), np.array([1, 0]))
        assert batch.inputs.tolist() == [[[5, 6], [0, 0]], [[1, 2], [3, 4]]]
        assert batch.lengths is not None
        assert batch.lengths.tolist() == [1, 2]
        assert batch.targets.tolist() == [0, 1]

    def test_sets_that_nothing_can_be_learnt_from_are_refused(self, tmp_path: Path) -> None:
        config, data = ClassifierConfig(hidden=4, readout="h"), sample_bursts(9)
        with pytest.raises(DataError, match="no labels"):
            train_classifier(config, SETTINGS, data.unlabelled(), data, {}, tmp_path / "a")
        one = data.select(data.labels == 1)  # type: ignore[arg-type]
        with pytest.raises(DataError, match="3 of 'sine'"):
            train_classifier(config, SETTINGS, one, data, {}, tmp_path / "b")
        with pytest.raises(ArgumentError, match="other features"):
            train_classifier(config, SETTINGS, data, data.with_features(["signal"]), {}, tmp_path / "c")


class TestForecasts:
    def test_the_forecaster_beats_the_last_value_and_knows_how_sure_it_is(self, forecasts: ForecastResult) -> None:
        test = forecasts.tests["test"]
        assert test.rmse < 0.4 * math.sqrt(test.last_error)
        assert test.skill > 0.8
        assert all(each.rmse < each.last_rmse and each.mae < each.last_mae for each in test.features)
        assert test.loss < 0.5, "a normal law of the training set alone has 1.42"
        assert test.within_50 == pytest.approx(0.5, abs=0.1)
        assert test.within_90 == pytest.approx(0.9, abs=0.06)
        assert sum(test.pit) == pytest.approx(1)
        assert max(test.pit) < 0.2

    def test_a_loaded_forecaster_does_what_the_run_told(self, forecasts: ForecastResult) -> None:
        model, told = load_forecaster(forecasts.folder)
        _, rest = sample_seasons(60).split(0.7, seed=0)
        valid, _ = rest.split(0.5, seed=0)
        about = told["examples"]
        steps = NextSteps(valid, CPU, Scale(tuple(about["mean"]), tuple(about["deviation"])))
        found = measure_forecasts(model, steps, batch=4)
        assert found.loss == pytest.approx(forecasts.valid.loss, rel=1e-5)
        assert found.features[0] == pytest.approx(forecasts.valid.features[0], rel=1e-4)
        assert "best after epoch" in str(forecasts)
        with pytest.raises(RunFolderError, match="forecaster"):
            load_classifier(forecasts.folder)

    def test_every_figure_is_that_of_a_computation_by_hand(self) -> None:
        series = Series.from_arrays([[[1.0, 50.0], [2.0, 40.0], [4.0, 45.0]], [[0.0, 10.0], [1.0, 30.0]]])
        scale = Scale((1.0, 30.0), (2.0, 10.0))
        model = ForecastConfig(hidden=3).build(features=2, mean=scale.mean, deviation=scale.deviation)
        measured = measure_forecasts(model, NextSteps(series, CPU, scale), batch=1)
        pairs = [(at, step) for at in range(2) for step in range(int(series.lengths[at]) - 1)]
        laws, seen, last = [], [], []
        for at, step in pairs:
            values = torch.tensor(series.sequence(at))
            told = model.predict(values[: step + 1].unsqueeze(0))
            laws.append(torch.stack((told.mean[0, -1], told.deviation[0, -1])))
            seen.append(values[step + 1])
            last.append(values[step])
        (means, deviations), observed, before = torch.stack(laws, 1), torch.stack(seen), torch.stack(last)
        truth = torch.distributions.Normal(means, deviations)
        units = torch.tensor(scale.deviation)
        # The density of a number that is divided by its unit is higher by the unit.
        assert measured.loss == pytest.approx(float(-(truth.log_prob(observed) + units.log()).mean()), rel=1e-5)
        assert measured.error == pytest.approx(float(((observed - means) / units).square().mean()), rel=1e-5)
        assert measured.mae == pytest.approx(float(((observed - means) / units).abs().mean()), rel=1e-5)
        assert measured.last_error == pytest.approx(float(((observed - before) / units).square().mean()), rel=1e-5)
        for at, errors in enumerate(measured.features):
            off, behind = (observed - means)[:, at], (observed - before)[:, at]
            by_hand = (off.square().mean().sqrt(), off.abs().mean(), behind.square().mean().sqrt(), behind.abs().mean())
            assert list(errors) == pytest.approx([float(number) for number in by_hand], rel=1e-5)
        places = truth.cdf(observed)
        assert measured.within_50 == pytest.approx(float(((places - 0.5).abs() <= 0.25).float().mean()))
        assert measured.within_90 == pytest.approx(float(((places - 0.5).abs() <= 0.45).float().mean()))
        tenths = torch.histc(places, bins=10, min=0, max=1) / places.numel()
        assert list(measured.pit) == pytest.approx(tenths.tolist())
        assert measured.count == 6
        assert ForecastMeasured.of(measured.record()) == measured

    def test_the_loss_of_a_batch_counts_each_foretold_number_once(self) -> None:
        targets = torch.tensor([[[1.0], [2.0]], [[3.0], [math.nan]]])
        mean = torch.zeros(2, 2, 1, requires_grad=True)
        loss, squared = FORECASTS.loss(Normal(mean, torch.full((2, 2, 1), 2.0)), targets)
        by_hand = [math.log(2) + 0.5 * math.log(2 * math.pi) + (x / 2) ** 2 / 2 for x in (1, 2, 3)]
        assert float(loss.detach()) == pytest.approx(sum(by_hand) / 3)
        assert float(squared) == pytest.approx(14)
        loss.backward()
        assert mean.grad is not None
        assert mean.grad.flatten().tolist() == pytest.approx([-1 / 12, -2 / 12, -3 / 12, 0])

    @pytest.mark.parametrize("at", [3, 8])
    def test_a_run_that_stops_at_any_update_goes_on_with_the_same_bits(
        self, at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        data = few()

        def train(name: str, **options: Any) -> ForecastResult:
            often = Checkpoints(updates=1)
            return train_forecaster(SMALL, SETTINGS, data, data, {}, tmp_path / name, checkpoints=often, **options)

        train("whole")
        update, seen = ExampleTraining._update, [0]

        def stopped(self: Any, *arguments: Any) -> Any:
            seen[0] += 1
            if seen[0] > at:
                raise KeyboardInterrupt
            return update(self, *arguments)

        with monkeypatch.context() as patched:
            patched.setattr(ExampleTraining, "_update", stopped)
            with pytest.raises(KeyboardInterrupt):
                train("stopped")
        train("stopped", resume=True)
        assert outcome(tmp_path / "stopped") == outcome(tmp_path / "whole")

    def test_more_epochs_continue_a_run_and_other_data_is_refused(self, tmp_path: Path) -> None:
        data = few()
        longer = replace(SETTINGS, epochs=5)
        train_forecaster(SMALL, longer, data, data, {}, tmp_path / "at once")
        train_forecaster(SMALL, SETTINGS, data, data, {}, tmp_path / "later")
        result = train_forecaster(SMALL, longer, data, data, {}, tmp_path / "later", resume=True)
        assert result.epochs == 5
        assert outcome(tmp_path / "later") == outcome(tmp_path / "at once")
        with pytest.raises(RunFolderError, match="other"):
            train_forecaster(SMALL, longer, data.select([1, 0, 2]), data, {}, tmp_path / "later", resume=True)

    def test_centroids_and_schedules_work_as_for_classifiers(self, tmp_path: Path) -> None:
        data = few()
        config = ForecastConfig(hidden=6, centroids=(4,), transition="noisy")
        settings = replace(SETTINGS, schedule="cosine", temperature_end=0.5, curriculum_start=3, curriculum_every=1)
        result = train_forecaster(config, settings, data, data, {"again": data}, tmp_path / "run")
        assert math.isfinite(result.tests["again"].loss)
        model, _ = load_forecaster(tmp_path / "run")
        assert model.config.temperature < 1

    def test_a_sequence_without_a_next_step_is_refused_by_its_name(self, tmp_path: Path) -> None:
        short = Series.from_arrays([[1.0, 2.0], [3.0]], names=["long", "short"])
        with pytest.raises(LengthError, match="sequence 'short'"):
            train_forecaster(SMALL, SETTINGS, short, short, {}, tmp_path / "run")
        assert not (tmp_path / "run").exists(), "a folder becomes a run only when it can be one"

    def test_targets_count_by_sequence_and_feature(self) -> None:
        steps = NextSteps(Series.from_arrays([[1.0, 2.0, 3.0], [5.0, 7.0]]), CPU, UNIT)
        assert steps.counted(np.array([0, 1])) == 3
        assert steps.counted(np.array([1])) == 1


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("features", [], "the names of the numbers"),
        ("mean", [0.0], "a finite number for each feature"),
        ("mean", [0.0, 10**400], "a finite number for each feature"),
        ("deviation", [1.0, 0.0], "above 0 for each feature"),
        ("classes", None, "texts"),
    ],
)
def test_a_scale_that_a_person_has_spoilt_is_named(tmp_path: Path, field: str, value: object, wanted: str) -> None:
    about = about_examples(sample_bursts(6))
    write_about(tmp_path, about)
    assert read_about(tmp_path) == about
    write_about(tmp_path, {**about, field: value})
    with pytest.raises(RunFolderError, match=f"field '{field}'.*{wanted}"):
        read_about(tmp_path)


def test_a_forecaster_has_nothing_to_mix_and_says_so_before_it_begins(tmp_path: Path) -> None:
    data = sample_seasons(4, steps=8)
    with pytest.raises(ArgumentError, match="no labels that could be mixed"):
        train_forecaster(
            ForecastConfig(hidden=4), ClassifierSettings(mixup="input", epochs=1), data, data, {}, tmp_path / "run"
        )
    assert not (tmp_path / "run").exists()
