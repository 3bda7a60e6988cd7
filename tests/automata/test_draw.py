"""Machines as SVG and as a table of text."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from statewise.automata import MooreMachine, from_regex, to_svg, to_table

SVG = "{http://www.w3.org/2000/svg}"


def parity(**changes: object) -> MooreMachine:
    settings = {"alphabet": ("0", "1"), "transitions": np.array([[0, 1], [1, 0]]), "outputs": np.array([1, 0])}
    return MooreMachine(**{**settings, **changes})  # type: ignore[arg-type]


def classes_of(root: ElementTree.Element, tag: str) -> list[str]:
    return [element.get("class", "") for element in root.iter(f"{SVG}{tag}")]


def test_the_svg_has_a_circle_for_each_state_and_a_second_ring_for_each_that_accepts() -> None:
    root = ElementTree.fromstring(to_svg(parity()))
    assert classes_of(root, "circle").count("sw-state") == 2
    assert classes_of(root, "circle").count("sw-ring") == 1
    assert classes_of(root, "path").count("sw-line") == 5  # two loops, two arrows, the entry


def test_the_svg_has_a_title_and_a_description_for_those_who_do_not_see_it() -> None:
    root = ElementTree.fromstring(to_svg(parity(), title="Even number of ones"))
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "Even number of ones"
    assert root.findtext(f"{SVG}desc") == "A machine of 2 states over 2 symbols; it starts in state 0; accept: 0."


def test_the_svg_needs_nothing_from_elsewhere_and_knows_dark_paper() -> None:
    text = to_svg(parity())
    assert "prefers-color-scheme:dark" in text
    assert "href" not in text
    assert "url(" not in text
    assert "id=" not in text  # several drawings may stand on one page


@settings(max_examples=10)
@given(
    st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=3, unique=True),
    st.text(max_size=12),
    st.text(max_size=12),
)
def test_whatever_symbols_and_names_contain_the_svg_is_valid_xml(symbols: list[str], label: str, title: str) -> None:
    table = np.zeros((1, len(symbols)), dtype=int)
    machine = MooreMachine(alphabet=tuple(symbols), transitions=table, outputs=np.array([0]), labels=(label,))
    ElementTree.fromstring(to_svg(machine, title=title))


def test_signs_of_xml_are_escaped_and_read_back_the_same() -> None:
    root = ElementTree.fromstring(to_svg(parity(alphabet=("<", "&")), title='a < b & "c"'))
    texts = {element.text for element in root.iter(f"{SVG}text")}
    assert {"<", "&", 'a < b & "c"'} <= texts


def test_a_long_label_is_shortened_and_whole_in_its_title() -> None:
    words = ("excellent", "wonderful", "brilliant")
    table = np.array([[1, 1, 1], [1, 1, 1]])
    machine = MooreMachine(alphabet=words, transitions=table, outputs=np.array([0, 1]))
    root = ElementTree.fromstring(to_svg(machine, label_width=12))
    assert "excellent,w…" in {element.text for element in root.iter(f"{SVG}text")}
    assert ",".join(words) in {element.text for element in root.iter(f"{SVG}title")}


def test_more_than_two_classes_have_colours_and_a_legend() -> None:
    machine = parity(classes=("low", "middle", "high"), outputs=np.array([0, 2]))
    root = ElementTree.fromstring(to_svg(machine))
    assert "sw-ring" not in classes_of(root, "circle")
    assert classes_of(root, "circle").count("sw-state sw-k2") == 2  # the state and the legend
    assert {"low", "middle", "high"} <= {element.text for element in root.iter(f"{SVG}text")}


def test_everything_lies_inside_the_picture() -> None:
    root = ElementTree.fromstring(to_svg(from_regex("(ab|ba)*a"), title="words"))
    width, height = (float(root.get(name, "0")) for name in ("width", "height"))
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.get("x", "-1")) <= width
        assert 0 <= float(text.get("y", "-1")) <= height


def test_the_same_machine_gives_the_same_svg() -> None:
    assert to_svg(from_regex("(ab|ba)*")) == to_svg(from_regex("(ab|ba)*"))


def test_the_table_marks_start_and_acceptance() -> None:
    machine = parity(start=1, labels=("seven", "3"))
    assert to_table(machine).splitlines() == [
        "   state   |     0     1",
        "-----------+------------",
        "   seven * | seven     3",
        "-> 3       |     3 seven",
    ]


def test_the_table_names_the_class_where_there_are_more_than_two() -> None:
    lines = to_table(parity(classes=("low", "middle", "high"), outputs=np.array([0, 2]))).splitlines()
    assert lines[0].split() == ["state", "|", "0", "1", "class"]
    assert lines[3].split() == ["1", "|", "1", "0", "high"]
