"""JSON and DOT: there and back, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.machines import machines, same_labels, tomita
from statewise.automata import MooreMachine, from_dot, from_json, load_machine, save_machine, to_dot, to_json
from statewise.errors import DataError

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4) | st.sampled_from(
    ['"', "\\", "\\n", ", ", ",", " ", "\n", "->", "];", "\u2028", "a b", '", "']
)


@given(
    machine=machines(states=4, classes=3),
    symbols=st.lists(TEXTS, min_size=3, max_size=3, unique=True),
    classes=st.lists(TEXTS, min_size=3, max_size=3, unique=True),
    labels=st.lists(TEXTS, min_size=4, max_size=4),
)
def test_any_names_come_back_from_json_and_dot(
    machine: MooreMachine, symbols: list[str], classes: list[str], labels: list[str]
) -> None:
    named = replace(
        machine,
        alphabet=tuple(symbols[: len(machine.alphabet)]),
        classes=tuple(classes),
        labels=tuple(labels[: len(machine)]),
    )
    assert same_labels(from_json(to_json(named)), named)
    assert from_dot(to_dot(named)) == named
    numbered = tuple(map(str, range(len(machine))))
    assert from_dot(to_dot(named)).labels == (() if named.labels == numbered else named.labels)


def test_a_file_comes_back_and_replaces_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    save_machine(tomita(1), path)
    save_machine(tomita(3), str(path))
    assert load_machine(path) == tomita(3)
    assert json.loads(path.read_text())["version"] == 1


@pytest.mark.parametrize(
    ("changes", "field", "text"),
    [
        ({"kind": "other"}, "kind", "got 'other'"),
        ({"version": 2}, "version", "got 2, wanted 1"),
        ({"start": "0"}, "start", "got str, wanted a whole number"),
        ({"start": True}, "start", "got bool"),
        ({"start": 9}, "start", "got 9"),
        ({"alphabet": None}, "alphabet", "got NoneType, wanted a list"),
        ({"alphabet": [1, 2]}, "alphabet", "got 1, wanted texts"),
        ({"transitions": [[0, 1], [1]]}, "transitions", "rows of unequal lengths"),
        ({"transitions": [[0, 1], [1, 2]]}, "transitions", "got 2"),
        ({"transitions": [[0, 1.5], [1, 1]]}, "transitions", "got 1.5, wanted whole numbers"),
        ({"transitions": [[0, 1], [1, 10**30]]}, "transitions", "huge"),
        ({"outputs": [0, "x"]}, "outputs", "got 'x'"),
        ({"outputs": [0, 5]}, "outputs", "got 5"),
        ({"labels": ["one"]}, "labels", "got 1 labels"),
    ],
)
def test_a_damaged_file_is_refused_by_name_and_field(
    tmp_path: Path, changes: dict[str, Any], field: str, text: str
) -> None:
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(json.loads(to_json(tomita(1))) | changes))
    with pytest.raises(DataError, match=rf"machine\.json, field '{field}': .*{text}"):
        load_machine(path)


def test_a_file_that_is_missing_or_no_json_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.json: got No such file"):
        load_machine(tmp_path / "absent.json")
    (tmp_path / "torn.json").write_text(to_json(tomita(1))[:-20])
    with pytest.raises(DataError, match=r"torn\.json, line \d+: got no JSON"):
        load_machine(tmp_path / "torn.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"bytes\.json: got bytes that are no UTF-8"):
        load_machine(tmp_path / "bytes.json")
    with pytest.raises(DataError, match="field 'kind'"):
        from_json("[1]")
    with pytest.raises(DataError, match="from_json: got a number of too many digits"):
        from_json(f'{{"start": {"9" * 5000}}}')
    parts = json.loads(to_json(tomita(1)))
    with pytest.raises(DataError, match="field 'labels': got nothing"):
        from_json(json.dumps({name: parts[name] for name in parts if name != "labels"}))


def test_a_byte_order_mark_before_the_text_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "machine.json").write_text(to_json(tomita(1)), encoding="utf-8-sig")
    assert load_machine(tmp_path / "machine.json") == tomita(1)


def test_parallel_edges_are_one() -> None:
    dot = to_dot(tomita(1))
    assert dot.count("->") == 1 + 3
    assert '1 -> 1 [label="0, 1"];' in dot
    assert '0 [label="0", class="accept", shape=doublecircle];' in dot


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('  1 -> 1 [label="0, 1"];', "", "no edge from state 1 for symbol '0'"),
        ('1 -> 1 [label="0, 1"];', '1 -> 1 [label="0, 2"];', "line 11: got state 1 and symbol '2'"),
        ('1 -> 1 [label="0, 1"];', '1 -> 7 [label="0, 1"];', "transitions: got 7"),
        ('1 -> 1 [label="0, 1"];', '1 -> 12345678901234567890123 [label="0, 1"];', "line 11: got '  1 -> 1234567"),
        ('1 -> 1 [label="0, 1"];', r'1 -> 1 [label="\"\\q\""];', "line 11: .*as JSON writes"),
        ("rankdir=LR;", "rankdir=TB;", "line 2: got '  rankdir=TB;'"),
        ('class="accept"', 'class="maybe"', "class 'maybe'"),
        ("// alphabet", "// letters", "line 3"),
        ('// classes ["reject"', "// classes [reject", "line 4"),
        ("  1 [label", "  2 [label", "state 2, wanted state 1"),
        ("start -> 0", "start -> 5", "start: got 5"),
        ("start -> 0", f"start -> {'9' * 5000}", "line 6"),
        ('// classes ["reject", "accept"]', f"// classes [{'[' * 100_000}]", "line 4"),
    ],
)
def test_dot_that_is_not_ours_is_refused_by_its_line(old: str, new: str, text: str) -> None:
    dot = to_dot(tomita(1))
    assert old in dot
    with pytest.raises(DataError, match=text):
        from_dot(dot.replace(old, new))


def test_a_large_machine_is_written_and_read_whole() -> None:
    rows = np.random.default_rng(0).integers(0, 500, (500, 40))
    machine = MooreMachine(alphabet=tuple(f"t{i}" for i in range(40)), transitions=rows, outputs=np.arange(500) % 2)
    assert from_dot(to_dot(machine)) == machine == from_json(to_json(machine))
