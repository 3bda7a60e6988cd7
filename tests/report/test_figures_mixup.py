"""The figures of the mixup paper, by what is on their axes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from statewise.analysis import Spectrum, calibration, every_spectrum
from statewise.errors import ArgumentError, ShapeError
from statewise.report import Boundary, plot_against_rho, plot_boundaries, plot_reliability, plot_singular_values

PNG = b"\x89PNG\r\n\x1a\n"


def boundary(slope: float = 2.0) -> Boundary:
    across = np.linspace(-2, 3, 21)
    probabilities = np.tile(1 / (1 + np.exp(-slope * across)), (15, 1))
    points = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, -1.0]])
    return Boundary(
        probabilities=probabilities,
        left=-2.0,
        right=3.0,
        bottom=-1.5,
        top=2.0,
        points=points,
        labels=np.array([0, 1, 1]),
    )


def spectra(seed: int) -> tuple[Spectrum, ...]:
    generator = torch.Generator().manual_seed(seed)
    return every_spectrum(
        torch.randn(30, 4, generator=generator), torch.arange(30) % 3, classes=("O", "B-PER", "S-LOC")
    )


def test_a_boundary_has_its_map_its_points_and_the_lines_of_the_band() -> None:
    panel = boundary()
    figure = plot_boundaries({"clean": panel, "noisy": boundary(3.0), "flat": boundary(0.0)}, columns=2)
    first, _, flat, empty = figure.axes[:4]
    assert [axes.get_title() for axes in figure.axes[:3]] == ["clean", "noisy", "flat"]
    np.testing.assert_allclose(first.images[0].get_array(), panel.probabilities)
    assert first.images[0].get_extent() == pytest.approx([-2.125, 3.125, -1.625, 2.125])
    contours = [each for each in first.collections if type(each).__name__ == "QuadContourSet"]
    assert [float(each.levels[0]) for each in contours] == [0.1, 0.5, 0.9]
    middle = contours[1].get_paths()[0].vertices
    np.testing.assert_allclose(middle[:, 0], 0, atol=1e-12)
    drawn = [each.get_offsets() for each in first.collections if type(each).__name__ == "PathCollection"]
    np.testing.assert_allclose(np.concatenate(drawn), panel.points)
    assert not [each for each in flat.collections if type(each).__name__ == "QuadContourSet"], "it never changes"
    assert not empty.axison


def test_singular_values_have_a_row_for_each_class_and_a_column_for_each_way() -> None:
    found = {"standard": spectra(0), "pre-output": spectra(1)}
    figure = plot_singular_values(found, classes=("B-PER", "S-LOC"))
    assert len(figure.axes) == 2 * 6
    assert [figure.axes[at].get_ylabel() for at in (0, 6)] == ["class B-PER", "class S-LOC"]
    np.testing.assert_allclose(figure.axes[6 + 4].lines[1].get_ydata(), found["pre-output"][4].values[2])
    assert ["not centred" in axes.get_title() for axes in figure.axes[:6]] == [False] * 3 + [True] * 3
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == list(found)
    assert len(plot_singular_values({"standard": spectra(0)[:1]}).axes) == 3


def test_numbers_against_rho_are_means_with_bars_beside_the_standard() -> None:
    measures = {
        "test F1": {"pre-output": {0.5: [72.0, 74.0], 0.0: [75.0]}, "through-time": {0.0: [74.0]}},
        "test loss": {"pre-output": {0.0: [1.0], 0.5: [3.0]}},
    }
    figure = plot_against_rho(measures, standard={"test F1": [70.0, 72.0]})
    first, second = figure.axes
    assert first.containers[0].lines[0].get_xdata().tolist() == [0.0, 0.5]
    assert first.containers[0].lines[0].get_ydata().tolist() == [75.0, 73.0]
    (segments,) = (each.get_segments() for each in first.containers[0].lines[2])
    np.testing.assert_allclose(segments[1][:, 1], [73 - 2**0.5, 73 + 2**0.5])
    assert {text.get_text() for text in first.get_legend().get_texts()} == {"pre-output", "through-time", "standard"}
    assert 71.0 in [line.get_ydata()[0] for line in first.lines]
    assert second.get_ylabel() == "test loss"


def test_reliability_has_a_bar_for_each_bin_that_is_not_empty() -> None:
    probabilities = torch.tensor([[0.9, 0.1], [0.85, 0.15], [0.3, 0.7]], dtype=torch.float64)
    found = calibration(probabilities, torch.tensor([0, 1, 1]), bins=5)
    figure = plot_reliability({"standard": found, "pre-output": found})
    above, _, below, _ = figure.axes
    assert [(bar.get_x(), bar.get_height()) for bar in above.patches] == [(pytest.approx(0.6), 1.0), (0.8, 0.5)]
    assert [bar.get_height() for bar in below.patches] == pytest.approx([1 / 3, 2 / 3])
    assert f"ECE {found.ece:.3f}" in above.texts[0].get_text()
    assert above.get_title() == "standard"


def test_the_same_numbers_give_the_same_file(tmp_path: Path) -> None:
    for name in ("one.png", "two.png"):
        plot_boundaries({"clean": boundary()}, tmp_path / name)
    assert (tmp_path / "one.png").read_bytes().startswith(PNG)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.png", "two.png"]


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    for draw in (plot_boundaries, plot_reliability, plot_singular_values, plot_against_rho):
        with pytest.raises(ArgumentError, match="at least one"):
            draw({})
    with pytest.raises(ArgumentError, match=r"B-PER"):
        plot_singular_values({"standard": spectra(0)}, classes=("I-PER",))
    with pytest.raises(ArgumentError, match="the ways and classes"):
        plot_singular_values({"standard": spectra(0), "other": spectra(0)[:2]})
    with pytest.raises(ArgumentError, match="between 0 and"):
        plot_boundaries({"clean": boundary()}, band=0.5)
    with pytest.raises(ArgumentError, match="one of"):
        plot_boundaries({"clean": boundary()}, tmp_path / "picture.xyz")


@pytest.mark.usefixtures("as_users_have_it")
def test_points_and_labels_must_fit() -> None:
    panel = boundary()
    with pytest.raises(ShapeError, match="one a point"):
        Boundary(
            probabilities=panel.probabilities,
            left=0.0,
            right=1.0,
            bottom=0.0,
            top=1.0,
            points=panel.points,
            labels=np.array([0]),
        )
