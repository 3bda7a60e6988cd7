"""The figures of the state-regularized paper, by what is on their axes."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from statewise.automata import PixelPrototypes, Reading, Usage, from_json, from_regex, read
from statewise.errors import ArgumentError
from statewise.models import ClassifierConfig
from statewise.report import (
    draw_machine,
    plot_centroids,
    plot_error_curves,
    plot_image_maps,
    plot_pixel_prototypes,
    plot_probabilities,
    plot_ranked,
    plot_states,
    save_drawing,
)

PNG = b"\x89PNG\r\n\x1a\n"


def reading(cell: str = "lstm", centroids: tuple[int, ...] = (3,)) -> Reading:
    config = ClassifierConfig(cell=cell, hidden=4, centroids=centroids)
    generator = torch.Generator().manual_seed(0)
    return read(config.build(tokens=2, classes=2, symbols=("a", "$"), generator=generator), "a$$a")


def test_probabilities_show_tokens_across_and_centroids_upwards(tmp_path: Path) -> None:
    first, second = reading(), reading("gru")
    figure = plot_probabilities({"one": first, "two": second}, tmp_path / "alpha.png")
    panels = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in panels] == ["one", "two"]
    assert first.probabilities is not None
    np.testing.assert_allclose(panels[0].images[0].get_array(), first.probabilities.T)
    assert [label.get_text() for label in panels[0].get_xticklabels()] == ["S", "a", r"\$", r"\$", "a"]
    assert (tmp_path / "alpha.png").read_bytes().startswith(PNG)


def test_states_and_memories_have_a_line_for_each_unit_and_the_counter_is_bold(tmp_path: Path) -> None:
    lstm, gru = reading(), reading("gru")
    figure = plot_states({"lstm": lstm, "gru": gru}, tmp_path / "states.svg", bold={"lstm": 2})
    state, memory, other, empty = figure.axes
    assert [len(axes.lines) for axes in figure.axes] == [4, 4, 4, 0]
    assert lstm.cells is not None
    np.testing.assert_allclose(memory.lines[2].get_ydata(), lstm.cells[:, 2])
    assert memory.lines[2].get_linewidth() > memory.lines[1].get_linewidth()
    assert state.lines[2].get_linewidth() == state.lines[1].get_linewidth()
    assert "gru" in other.get_title()
    assert not empty.axison
    ElementTree.parse(tmp_path / "states.svg")


def test_curves_have_their_names_and_the_baseline(tmp_path: Path) -> None:
    baseline = 10 * np.log(8) / 120
    curves = {"LSTM": [0.3, 0.2], "k = 5": [0.1]}
    figure = plot_error_curves(curves, tmp_path / "copy.png", baseline=baseline, every=100, ylabel="cross-entropy")
    (axes,) = figure.axes
    assert axes.lines[0].get_xdata().tolist() == [100, 200]
    assert axes.lines[1].get_marker() == "o"
    assert list(axes.lines[2].get_ydata()) == [baseline, baseline]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["LSTM", "k = 5", "baseline 0.1733"]


def test_prototypes_have_a_row_for_each_class_and_a_column_for_each_centroid() -> None:
    maps = np.random.default_rng(0).dirichlet(np.ones(4), (3, 5, 5)).transpose(0, 3, 1, 2)
    found = PixelPrototypes(maps=maps, counts=np.ones(3, dtype=int), classes=("0", "1", "2"))
    figure = plot_pixel_prototypes(found)
    assert len(figure.axes) == 12
    np.testing.assert_allclose(figure.axes[4 * 2 + 1].images[0].get_array(), maps[2, 1])
    assert [figure.axes[4 * row].get_ylabel() for row in range(3)] == ["0", "1", "2"]
    single = plot_pixel_prototypes(found, classes=[2])
    assert len(single.axes) == 4
    assert single.axes[0].get_ylabel() == "2"


@pytest.mark.usefixtures("as_users_have_it")
def test_pictures_stand_before_their_maps() -> None:
    pictures, maps = np.zeros((2, 3, 3)), np.ones((2, 4, 3, 3))
    figure = plot_image_maps(pictures, maps)
    assert len(figure.axes) == 10
    assert [axes.get_title() for axes in figure.axes[:3]] == ["input", "centroid 0", "centroid 1"]
    assert figure.axes[5].images[0].get_array().max() == 0
    with pytest.raises(ArgumentError, match="as many maps"):
        plot_image_maps(pictures, maps[:1])


def test_ranked_means_and_centroids_are_drawn_as_they_are() -> None:
    ranked = np.array([0.8, 0.15, 0.05])
    figure = plot_ranked({"SR-LSTM-P": Usage(steps=3, shares=ranked, means=ranked, ranked=ranked)})
    assert [bar.get_height() for bar in figure.axes[0].patches] == ranked.tolist()
    centroids = np.arange(-3.0, 3.0).reshape(2, 3)
    np.testing.assert_allclose(plot_centroids(centroids).axes[0].images[0].get_array(), centroids)


def test_a_drawing_on_axes_has_a_circle_for_each_state_and_its_texts() -> None:
    machine = from_regex("(ab)*")
    figure = draw_machine(machine, title="pairs")
    (axes,) = figure.axes
    kinds = [type(patch).__name__ for patch in axes.patches]
    assert kinds.count("Circle") == len(machine) + int(machine.outputs.sum())
    assert {"a", "b", "0", "1"} <= {text.get_text() for text in axes.texts}
    assert axes.get_title() == "pairs"


def test_classes_have_a_legend_in_the_drawing_too() -> None:
    text = '{"kind": "statewise.MooreMachine", "version": 1, "alphabet": ["$"], "classes": ["x", "y", "z"], "start": 0,'
    machine = from_json(text + ' "outputs": [0, 2], "labels": [], "transitions": [[1], [0]]}')
    (axes,) = draw_machine(machine).axes
    assert {"x", "y", "z", r"\$"} <= {shown.get_text() for shown in axes.texts}


def test_a_drawing_is_saved_as_its_ending_says(tmp_path: Path) -> None:
    machine = from_regex("a*b")
    assert save_drawing(machine, tmp_path / "m.png").read_bytes().startswith(PNG)
    ElementTree.parse(save_drawing(machine, tmp_path / "m.svg", title="t", hide_sinks=True))
    assert "digraph" in save_drawing(machine, tmp_path / "m.dot").read_text()
    assert from_json(save_drawing(machine, tmp_path / "m.json").read_text()) == machine
    assert "state" in save_drawing(machine, tmp_path / "m.txt").read_text()
    with pytest.raises(ArgumentError, match=r"\.gif"):
        save_drawing(machine, tmp_path / "m.gif")


def test_nothing_to_draw_and_unknown_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="at least one"):
        plot_probabilities({})
    with pytest.raises(ArgumentError, match="no points"):
        plot_error_curves({"a": []})
    with pytest.raises(ArgumentError, match="a layer with centroids"):
        plot_probabilities({"plain": reading(centroids=())})
    with pytest.raises(ArgumentError, match="one of"):
        plot_centroids(np.ones((2, 2)), tmp_path / "c.xyz")
