"""Drawings of tensor networks: nothing lies on anything else, and all that is there is drawn."""

from __future__ import annotations

from dataclasses import asdict
from xml.etree import ElementTree

import pytest

from statewise.errors import ArgumentError
from statewise.memory.drawing_figures import FIGURES, figure_picture, figure_svg
from statewise.memory.drawing_layout import lay_out
from statewise.memory.drawing_legibility import legibility
from statewise.memory.drawing_picture import Caption, Mark, Picture, Wire, below, beside
from statewise.memory.drawing_svg import network_svg, picture_svg
from statewise.memory.tensor_network_build import cell_network, circuit_network, unit_network
from statewise.memory.tensor_network_counts import network_counts

SVG = "{http://www.w3.org/2000/svg}"


def mark(at: complex, text: str = "") -> Mark:
    return Mark(at=at, shape="box", text=text, title="", colour=None, half=10 + 10j)


def wire(*points: complex, between: tuple[int, int], text: str = "", at: complex = 0j) -> Wire:
    return Wire(points=points, between=between, text=text, at=at, title="")


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_legible(name: str) -> None:
    faults = asdict(legibility(figure_picture(name)))
    assert not any(faults.values()), faults


@pytest.mark.parametrize(("steps", "depth"), [(1, 1), (8, 1), (7, 2), (5, 3), (4, 4), (3, 5), (1, 4)])
def test_circuits_of_any_shape_are_legible(steps: int, depth: int) -> None:
    faults = asdict(legibility(lay_out(circuit_network(inputs=2, width=2, steps=steps, depth=depth), steps=steps)))
    assert not any(faults.values()), faults


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_xml_and_stays_inside_its_paper(name: str) -> None:
    root = ElementTree.fromstring(figure_svg(name))
    wide, high = float(root.attrib["width"]), float(root.attrib["height"])
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.attrib["x"]) <= wide
        assert 0 <= float(text.attrib["y"]) <= high
    assert root.findtext(f"{SVG}title") == FIGURES[name].title


@pytest.mark.parametrize(("name", "steps", "depth"), [("A.2b", 6, 1), ("A.3a", 4, 2), ("A.3c", 3, 3), ("2.1", 6, 3)])
def test_a_figure_of_a_circuit_shows_every_copy(name: str, steps: int, depth: int) -> None:
    counts, picture = network_counts(steps=steps, depth=depth), figure_picture(name)
    assert sum(one.shape == "triangle" for one in picture.marks) == sum(counts.recurrent_weights)
    assert sum(one.shape == "circle" for one in picture.marks) == sum(counts.inputs)
    assert sum(one.text.startswith("Wᴵ") for one in picture.marks) == sum(counts.input_weights)
    assert sum(one.text == "M" for one in picture.wires) == sum(counts.inputs)
    root = ElementTree.fromstring(figure_svg(name))
    assert len(list(root.iter(f"{SVG}polygon"))) == sum(counts.recurrent_weights)


def test_the_product_shows_units_and_powers() -> None:
    picture = figure_picture("A.4")
    assert sum(one.shape == "circle" for one in picture.marks) == 4 + 5 + 6 + 4
    assert [one.text for one in picture.captions if one.text.isdigit()] == ["3", "2", "1", "6"]


def test_start_and_end_have_two_colours() -> None:
    picture = lay_out(circuit_network(inputs=2, width=2, steps=4, depth=1), steps=4)
    assert [one.colour for one in picture.marks if one.shape == "circle"] == [0, 0, 1, 1]


def test_dimensions_stand_under_the_picture() -> None:
    assert "M = 3, R = 5, C = 2; 7 nodes" in network_svg(
        circuit_network(inputs=3, width=5, steps=2, depth=1, classes=2)
    )


def test_texts_are_escaped() -> None:
    root = ElementTree.fromstring(network_svg(unit_network(inputs=2, width=2, steps=2), title="a < b & c"))
    assert root.findtext(f"{SVG}title") == "a < b & c"


def test_what_stands_on_nothing_needs_places() -> None:
    with pytest.raises(ArgumentError, match="or places"):
        lay_out(cell_network(inputs=2, width=2))


def test_an_unknown_figure_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"A\.3a"):
        figure_svg("A.9")


def test_faults_are_found() -> None:
    marks = (mark(0j), mark(5 + 0j), mark(100 + 0j), mark(50 + 50j))
    lines = (
        wire(10 + 0j, 90 + 0j, between=(0, 2), text="R", at=60 + 0j),
        wire(50 - 40j, 50 + 40j, between=(-1, 3)),
    )
    found = legibility(Picture(marks=marks, wires=lines, captions=(Caption(text="on it", at=50 + 50j),)))
    assert asdict(found) == {
        "touching": 1,
        "struck": 1,  # the first line runs through the second box
        "crossings": 1,
        "hidden": 1,
        "mixed": 0,
        "crossed_out": 1,
    }


def test_pictures_are_put_beside_and_below_each_other() -> None:
    one = Picture(marks=(mark(0j), mark(40 + 0j)), wires=(wire(10 + 0j, 30 + 0j, between=(0, 1)),))
    across, down = beside([one, one], gap=8), below([one, one], gap=8)
    assert across.box == (0, -20, 128, 0)
    assert down.box == (0, 0, 60, 48)
    assert [line.between for line in across.wires] == [(0, 1), (2, 3)]
    assert picture_svg(across) == picture_svg(beside([one, one], gap=8))
