"""The automaton beside the network: drawn, followed, or a reason why there is none."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import torch

from statewise.automata import MooreMachine, extract, random_words
from statewise.automata.drawing.compose import compose
from statewise.explorer import Explorer, Setting
from statewise.explorer.classifying import ClassifierSubject
from statewise.explorer.machines import ShownMachine, machine_of, plain_svg

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def subject(explorers: dict[str, Explorer]) -> ClassifierSubject:
    found = explorers["automaton"].runs[0].subject
    assert isinstance(found, ClassifierSubject)
    return found


@pytest.fixture(scope="module")
def shown(subject: ClassifierSubject) -> ShownMachine:
    found = machine_of(subject)
    assert isinstance(found, ShownMachine)
    return found


def test_the_machine_is_the_one_that_extract_reads(subject: ClassifierSubject, shown: ShownMachine) -> None:
    truth = extract(subject.model, classes=subject.outcomes).machine
    assert shown.machine == truth
    assert shown.description in shown.svg


def test_a_cold_network_is_where_the_machine_is(subject: ClassifierSubject, shown: ShownMachine) -> None:
    """At a low temperature each state is a centroid, and the machine is exact."""
    words = [tuple(word) for word in random_words("01", 40, max_length=20, seed=0)]
    followed = subject.follow(words, Setting(temperature=0.001))
    for word, visited in zip(words, shown.visited(followed), strict=True):
        assert visited == shown.path(word, has_start=True)
        assert len(visited) == len(word) + 1


def test_combinations_of_centroids_are_merged_as_the_labels_say(shown: ShownMachine) -> None:
    for centroids, state in shown.of_centroids.items():
        assert ",".join(map(str, centroids)) in re.split(r"[^0-9,]+", shown.names[state])
    assert set(shown.of_centroids.values()) == set(range(len(shown.machine)))


def test_circles_and_arrows_are_numbered_as_they_are_drawn(shown: ShownMachine) -> None:
    root = ElementTree.fromstring(shown.svg)
    circles = [each for each in root.iter(f"{SVG}circle") if each.get("class", "").startswith("sw-state")]
    assert len(circles) == len(shown.drawn) == len(shown.machine)
    groups = [group for group in root.iter(f"{SVG}g") if group.find(f"{SVG}circle") is not None]
    for group, state in zip(groups, shown.drawn, strict=True):
        text = group.find(f"{SVG}text")
        assert text is not None
        assert text.text == shown.names[state]
    assert len(shown.arrows) == sum(each.get("class") == "sw-line" for each in root.iter(f"{SVG}path"))
    assert {ends for ends in shown.arrows if ends[0] >= 0} == {
        (state, int(target)) for state, row in enumerate(shown.machine.transitions) for target in row
    }


def test_a_drawing_has_no_style_of_its_own_and_escapes_its_symbols() -> None:
    machine = MooreMachine(
        alphabet=("<script>alert(1)</script>", "&"),
        transitions=torch.tensor([[0, 1], [1, 2], [2, 0]]).numpy(),
        outputs=torch.tensor([0, 1, 2]).numpy(),
        classes=("<b>", "two", "three"),
    )
    drawn = plain_svg(compose(machine), machine)
    assert "style" not in drawn
    assert "<script" not in drawn
    assert "&lt;script&gt;" in drawn
    assert drawn.count("sw-legend") == 3


def test_why_there_is_no_automaton(explorers: dict[str, Explorer]) -> None:
    wanted = {
        "lstm": "No automaton equals this network: the LSTM carries a memory c besides its state.",
        "speaker": "A language model gives no class to a word, so that no automaton can be read off it.",
        "tagger": "A tagger gives no class to a word, so that no automaton can be read off it.",
    }
    for name, reason in wanted.items():
        about = explorers[name].about()["runs"][0]
        assert (about["machine"], about["why_no_machine"]) == (None, reason)
        assert explorers[name].trace(0, "0" if name == "lstm" else "a", Setting())["machine"] is None


def test_a_path_under_noise_is_told_in_shares(explorers: dict[str, Explorer]) -> None:
    told = explorers["automaton"].trace(0, "110010", Setting(gamma=1.0, draws=16))
    places = told["variation"]["places"]
    assert len(places) == len(told["steps"]) == 7
    assert all(sum(share for _, share in step) == pytest.approx(1, abs=1e-3) for step in places)
    calm = explorers["automaton"].trace(0, "110010", Setting(gamma=1e-9, draws=4))
    assert [step[0][0] for step in calm["variation"]["places"]] == calm["machine"]["network"]


def test_about_names_the_folder_and_not_its_place(explorers: dict[str, Explorer], runs: dict[str, Path]) -> None:
    for name, explorer in explorers.items():
        about = explorer.about()["runs"][0]
        assert about["name"] == name
        source = json.loads((runs[name] / "config.json").read_text())["source"]["data"]
        for folder in (runs[name].parent, Path(source).parent):
            assert str(folder) not in str(about)
