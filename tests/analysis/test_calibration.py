"""Calibration errors by hand, by their properties, and the temperature that repairs them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from statewise.analysis import CalibrationTally, calibration, fit_temperature
from statewise.errors import ArgumentError, DtypeError, LengthError, NonFiniteError, ShapeError

SEEDS = st.integers(0, 2**31)
PROBABILITIES = torch.tensor([[0.9, 0.1], [0.85, 0.15], [0.3, 0.7], [0.45, 0.55]], dtype=torch.float64)
LABELS = torch.tensor([0, 1, 1, 1])


def drawn(seed: int, rows: int = 500, classes: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits, and labels drawn from the probabilities that they mean."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(rows, classes, generator=generator, dtype=torch.float64)
    return logits, torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]


def test_numbers_worked_by_hand() -> None:
    """In five bins: 0.55 alone in (0.4, 0.6], 0.7 in (0.6, 0.8], 0.9 and 0.85 in (0.8, 1]."""
    found = calibration(PROBABILITIES, LABELS, bins=5)
    assert found.counts.tolist() == [0, 0, 1, 1, 2]
    np.testing.assert_allclose(found.confidences[2:], [0.55, 0.7, 0.875])
    np.testing.assert_allclose(found.accuracies[2:], [1.0, 1.0, 0.5])
    assert np.isnan(found.accuracies[:2]).all()
    assert found.ece == pytest.approx((0.45 + 0.3 + 2 * 0.375) / 4)
    assert found.mce == pytest.approx(0.45)
    assert found.brier == pytest.approx(2 * (0.1**2 + 0.85**2 + 0.3**2 + 0.45**2) / 4)
    assert found.nll == pytest.approx(-(math.log(0.9) + math.log(0.15) + math.log(0.7) + math.log(0.55)) / 4)
    assert (found.count, found.accuracy) == (4, 0.75)
    assert found.mean_confidence == pytest.approx(0.75)
    assert found.overconfidence == pytest.approx(0)
    assert "0.800 to 1.000" in str(found)


def test_bins_of_equal_mass_keep_equal_confidences_together() -> None:
    found = calibration(PROBABILITIES, LABELS, bins=2, equal="mass")
    assert found.counts.tolist() == [2, 2]
    np.testing.assert_allclose(found.confidences, [0.625, 0.875])
    assert found.ece == pytest.approx((2 * 0.375 + 2 * 0.375) / 4)
    same = PROBABILITIES[:1].repeat(9, 1)
    tied = calibration(same, torch.tensor([0] * 8 + [1]), bins=3, equal="mass")
    assert sorted(tied.counts) == [0, 0, 9]
    assert tied.ece == pytest.approx(0.9 - 8 / 9)


@given(SEEDS, st.sampled_from(["width", "mass"]))
def test_logarithms_order_and_batches_make_no_difference(seed: int, equal: str) -> None:
    logits, labels = drawn(seed, rows=60)
    whole = calibration(logits.softmax(1), labels, bins=7, equal=equal)
    tally = CalibrationTally(bins=7, equal=equal)
    order = torch.randperm(60, generator=torch.Generator().manual_seed(seed))
    for part in order.split(13):
        tally.add(logits.log_softmax(1)[part], labels[part])
    found = tally.result()
    for name in ("ece", "mce", "brier", "nll", "accuracy", "mean_confidence"):
        assert getattr(found, name) == pytest.approx(getattr(whole, name), rel=1e-9)
    assert found.counts.tolist() == whole.counts.tolist()
    assert found.ece <= found.mce + 1e-12
    assert abs(found.overconfidence) <= found.ece + 1e-12, "the whole is never further off than the bins"


@pytest.mark.parametrize("equal", ["width", "mass"])
def test_predictions_that_are_drawn_from_themselves_are_calibrated(equal: str) -> None:
    few, many = (calibration(drawn(3, rows)[0].softmax(1), drawn(3, rows)[1], equal=equal) for rows in (500, 100_000))
    assert many.ece < 0.01 < few.ece
    assert abs(many.overconfidence) < 0.005


def test_padding_is_left_out_and_certainty_is_allowed() -> None:
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.2, 0.8]])
    found = calibration(rows, torch.tensor([0, 1, -100]))
    assert (found.count, found.ece, found.nll, found.brier) == (2, 0, 0, 0)
    assert calibration(rows, torch.tensor([1, 1, 1])).nll == math.inf
    half = calibration(drawn(0)[0].float().softmax(1).bfloat16(), drawn(0)[1])
    assert half.nll == pytest.approx(calibration(drawn(0)[0].softmax(1), drawn(0)[1]).nll, rel=0.02)


def test_what_is_no_distribution_is_refused() -> None:
    for wrong in (torch.tensor([[2.0, -1.0]]), torch.tensor([[-0.1, -0.2]]), torch.tensor([[math.nan, 1.0]])):
        with pytest.raises(ArgumentError, match="log_softmax"):
            calibration(wrong, torch.tensor([0]))
    with pytest.raises(LengthError, match="no predictions"):
        calibration(PROBABILITIES, torch.full((4,), -100))
    with pytest.raises(ArgumentError, match="from 0 to 1"):
        calibration(PROBABILITIES, LABELS + 1)
    with pytest.raises(ArgumentError, match="'width' or 'mass'"):
        calibration(PROBABILITIES, LABELS, equal="size")
    with pytest.raises(ArgumentError, match="bins"):
        calibration(PROBABILITIES, LABELS, bins=0)


@given(SEEDS, st.floats(0.05, 20))
def test_the_temperature_undoes_a_scaling_and_is_a_minimum(seed: int, scale: float) -> None:
    logits, labels = drawn(seed)
    plain, scaled = fit_temperature(logits, labels), fit_temperature(scale * logits, labels)
    assert scaled.temperature == pytest.approx(scale * plain.temperature, rel=1e-7)
    assert scaled.after.nll == pytest.approx(plain.after.nll, rel=1e-10)
    assert scaled.after.accuracy == scaled.before.accuracy
    for factor in (0.99, 1.01):
        beside = calibration((logits / (factor * plain.temperature)).log_softmax(1), labels)
        assert beside.nll >= plain.after.nll


def test_the_temperature_of_a_known_scaling_is_found() -> None:
    logits, labels = drawn(1, rows=100_000)
    found = fit_temperature(2.5 * logits, labels)
    assert found.temperature == pytest.approx(2.5, rel=0.02)
    assert found.after.ece < 0.01 < 0.1 < found.before.ece
    assert "2.5" in str(found).splitlines()[0]


def test_two_classes_have_the_temperature_of_their_odds() -> None:
    """Logit 4, right 8 times of 10: the best logit is log 4."""
    labels = torch.tensor([0] * 8 + [1] * 2 + [-100])
    found = fit_temperature(torch.tensor([[4.0, 0.0]] * 11), labels)
    assert found.temperature == pytest.approx(4 / math.log(4), rel=1e-12)
    assert found.before.count == 10
    assert found.after.ece == pytest.approx(0, abs=1e-12)


def test_data_that_has_no_temperature_is_refused() -> None:
    logits = torch.tensor([[3.0, 0.0], [0.0, 3.0]])
    with pytest.raises(ArgumentError, match="every prediction right"):
        fit_temperature(logits, torch.tensor([0, 1]))
    with pytest.raises(ArgumentError, match="the best T is infinite"):
        fit_temperature(logits, torch.tensor([1, 0]))
    with pytest.raises(ArgumentError, match="the largest of its row, some beside an equal one"):
        fit_temperature(torch.tensor([[3.0, 0.0], [3.0, 3.0]]), torch.tensor([0, 1]))
    with pytest.raises(ArgumentError, match="every T is as good"):
        fit_temperature(torch.ones(2, 2), torch.tensor([0, 1]))
    with pytest.raises(NonFiniteError):
        fit_temperature(logits / 0, torch.tensor([1, 0]))
    with pytest.raises(LengthError):
        fit_temperature(logits, torch.tensor([-100, -100]))


@pytest.mark.usefixtures("as_users_have_it")
def test_lengths_that_do_not_fit_are_told_to_users_too() -> None:
    for measure in (calibration, fit_temperature):
        with pytest.raises(ShapeError, match="labels"):
            measure(PROBABILITIES, LABELS[:2])


@pytest.mark.usefixtures("as_users_have_it")
def test_arrays_labels_in_parts_and_parts_of_bins_are_refused_by_name() -> None:
    array: Any = PROBABILITIES.numpy()
    numbers: Any = LABELS.numpy()
    for measure in (calibration, fit_temperature):
        with pytest.raises(DtypeError, match=r"got ndarray, wanted a tensor of real numbers.*torch\.as_tensor"):
            measure(array, LABELS)
        with pytest.raises(
            DtypeError, match=r"labels: got ndarray, wanted a tensor of whole numbers.*torch\.as_tensor"
        ):
            measure(PROBABILITIES, numbers)
        with pytest.raises(DtypeError, match=r"labels: got a tensor of torch\.float32"):
            measure(PROBABILITIES, LABELS.float())
        with pytest.raises(ShapeError, match=r"two dimensions"):
            measure(PROBABILITIES[:, 0], LABELS)
    half: Any = 2.5
    with pytest.raises(ArgumentError, match=r"bins: got 2\.5, wanted a whole number"):
        calibration(PROBABILITIES, LABELS, bins=half)
