"""Machines as JSON text and files, with a version, and read back with care."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from statewise.automata.moore import MooreMachine
from statewise.errors import DataError, StatewiseError
from statewise.files import write_atomically

_KIND, _VERSION = "statewise.MooreMachine", 1
_FIELDS = {"alphabet": list, "classes": list, "start": int, "outputs": list, "transitions": list, "labels": list}


def to_json(machine: MooreMachine) -> str:
    """The machine as JSON: one line for each part, one for each row of the table.

    Args:
        machine: any.

    >>> from statewise.automata import from_regex
    >>> print(to_json(from_regex("a*")))
    {
     "kind": "statewise.MooreMachine",
     "version": 1,
     "alphabet": ["a"],
     "classes": ["reject", "accept"],
     "start": 0,
     "outputs": [1],
     "labels": [],
     "transitions": [
      [0]
     ]
    }
    """
    parts = {
        "kind": _KIND,
        "version": _VERSION,
        "alphabet": machine.alphabet,
        "classes": machine.classes,
        "start": machine.start,
        "outputs": machine.outputs.tolist(),
        "labels": machine.labels,
    }
    lines = [f" {json.dumps(name)}: {json.dumps(value)},\n" for name, value in parts.items()]
    rows = ",\n".join(f"  {json.dumps(row)}" for row in machine.transitions.tolist())
    return "{\n" + "".join(lines) + f' "transitions": [\n{rows}\n ]\n}}'


def from_json(text: str, *, where: str = "from_json") -> MooreMachine:
    """The machine that :func:`to_json` wrote.

    Args:
        text: of the JSON.
        where: what errors name as the place, e.g. the file.

    >>> from statewise.automata import from_regex
    >>> from_json(to_json(from_regex("a*b"))) == from_regex("a*b")
    True
    """
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{where}, line {error.lineno}"
        raise DataError(where=place, got=f"no JSON: {error.msg}", wanted="a machine that to_json wrote") from None
    except RecursionError:
        raise DataError(where=where, got="lists nested too deep", wanted="a machine that to_json wrote") from None
    except ValueError:  # Python turns no text of thousands of digits into a number
        raise DataError(where=where, got="a number of too many digits", wanted="a machine that to_json wrote") from None
    _check(content, where)
    try:
        return MooreMachine(
            alphabet=tuple(content["alphabet"]),
            transitions=_array(content["transitions"], f"{where}, field 'transitions'"),
            outputs=_array(content["outputs"], f"{where}, field 'outputs'"),
            start=content["start"],
            classes=tuple(content["classes"]),
            labels=tuple(content["labels"]),
        )
    except DataError:
        raise
    except StatewiseError as error:
        part = error.where.removeprefix("MooreMachine.")
        raise DataError(where=f"{where}, field '{part}'", got=error.got, wanted=error.wanted) from None


def save_machine(machine: MooreMachine, path: Path | str) -> None:
    """Write the machine into a JSON file, at once or not at all.

    Args:
        machine: any.
        path: the file to make or to replace; its folder exists.

    >>> import tempfile
    >>> from statewise.automata import from_regex
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_machine(from_regex("a*"), Path(folder) / "machine.json")
    ...     load_machine(Path(folder) / "machine.json")
    MooreMachine(1 state; alphabet a; classes reject accept)
    """
    write_atomically(Path(path), to_json(machine) + "\n")


def load_machine(path: Path | str) -> MooreMachine:
    """The machine of a JSON file.

    Args:
        path: a file that :func:`save_machine` wrote.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(where=str(path), got="bytes that are no UTF-8 text", wanted="a machine as JSON") from None
    except OSError as error:
        raise DataError(where=str(path), got=error.strerror or "no file", wanted="a machine as JSON") from None
    return from_json(text, where=str(path))


def _check(content: Any, where: str) -> None:
    if not isinstance(content, dict) or content.get("kind") != _KIND:
        kind = content.get("kind") if isinstance(content, dict) else type(content).__name__
        raise DataError(where=f"{where}, field 'kind'", got=repr(kind), wanted=repr(_KIND))
    if content.get("version") != _VERSION:
        remedy = "It may come from a newer statewise: update."
        raise DataError(
            where=f"{where}, field 'version'", got=repr(content.get("version")), wanted=str(_VERSION), remedy=remedy
        )
    for name, kind in _FIELDS.items():
        value = content.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            wanted = "a whole number" if kind is int else "a list"
            got = "nothing" if name not in content else type(value).__name__
            raise DataError(where=f"{where}, field '{name}'", got=got, wanted=wanted)
    for name in ("alphabet", "classes", "labels"):
        for entry in content[name]:
            if not isinstance(entry, str):
                raise DataError(where=f"{where}, field '{name}'", got=entry, wanted="texts")


def _array(rows: list[Any], where: str) -> np.ndarray:
    flat = [entry for row in rows for entry in (row if isinstance(row, list) else [row])]
    if any(type(entry) is not int for entry in flat):
        wrong = next(entry for entry in flat if type(entry) is not int)
        raise DataError(where=where, got=repr(wrong), wanted="whole numbers")
    try:
        return np.array(rows, dtype=np.int64)
    except (ValueError, OverflowError):
        raise DataError(where=where, got="rows of unequal lengths or huge numbers", wanted="a table") from None
