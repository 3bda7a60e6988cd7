"""Floors, widths and residuals: what is asked and what is refused; their values are among the papers."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from statewise.errors import ArgumentError
from statewise.mixup import (
    NarrowStateWarning,
    check_width,
    class_frequencies,
    expected_minority,
    mixup_floor,
    unlike_share,
)
from statewise.mixup.quadrature import symmetric_nodes


@given(alpha=st.floats(0.01, 50), degree=st.integers(0, 12))
def test_the_quadrature_is_exact_for_polynomials(alpha: float, degree: int) -> None:
    """E[lambda^k] = prod (alpha + i) / (2 alpha + i)."""
    lam, weight = symmetric_nodes(alpha, 8)
    moment = math.prod((alpha + i) / (2 * alpha + i) for i in range(degree))
    assert float((weight * lam**degree).sum()) == pytest.approx(moment, rel=1e-10)


def test_the_quadrature_has_its_limits() -> None:
    assert symmetric_nodes(0.0, 8)[0].tolist() == [0, 1]
    assert symmetric_nodes(math.inf, 8)[0].tolist() == [0.5]


@pytest.mark.parametrize(
    ("width", "level"), [(15, "error"), (16, "warning"), (17, "info"), (32, "info"), (33, "ok"), (256, "ok")]
)
def test_widths_are_judged(width: int, level: str) -> None:
    if level in ("error", "warning"):
        with pytest.warns(NarrowStateWarning, match=f"a state of {width} units for 17 classes"):
            assert check_width(width, 17).level == level
    assert check_width(width, 17, warn=False).level == level


def test_without_mixing_there_is_no_floor() -> None:
    found = mixup_floor(0.0, 3)
    assert (found.value, found.p_pure, float(found), found.gap) == (0, 1, 0, math.inf)
    assert found.logits[~torch.eye(3, dtype=torch.bool)].tolist() == [0] * 6


@pytest.mark.parametrize("alpha", [0.3, 1.0, 20.0, 9999.0, 10001.0, 1e6, 1e15, 1e300])
def test_the_lesser_members_mean_share_keeps_its_digits(alpha: float) -> None:
    """Of 1/2 it lacks Gamma(alpha + 1/2) / (2 sqrt(pi) Gamma(alpha + 1)), about 1 / (2 sqrt(pi alpha))."""
    if alpha < 100:
        ratio = math.gamma(alpha + 0.5) / math.gamma(alpha + 1)
    else:
        ratio = math.exp(-math.log(alpha) / 2 - 1 / (8 * alpha))  # up to the third power of 1 / alpha
    assert expected_minority(alpha) == pytest.approx(0.5 - ratio / (2 * math.sqrt(math.pi)), abs=1e-13)


def test_with_halves_the_floor_is_finite() -> None:
    assert math.log(2) / 2 < mixup_floor(math.inf, 2).value < math.log(2)


@pytest.mark.parametrize("classes", [1, [0.5, 0.0, 0.5], [0.5, math.nan], [1.0]])
def test_classes_that_do_not_occur_are_refused(classes: int | list[float]) -> None:
    with pytest.raises(ArgumentError, match=r"mixup_floor\.classes"):
        mixup_floor(1.0, classes)


def test_frequencies_are_counted() -> None:
    tags = torch.tensor([[0, 2], [2, -100]])
    assert class_frequencies(tags, classes=4).tolist() == pytest.approx([1 / 3, 0, 2 / 3, 0])
    assert unlike_share([3, 1]) == pytest.approx(1 - 9 / 16 - 1 / 16)
