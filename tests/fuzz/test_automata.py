"""Readers of machines: JSON, DOT and regular expressions, given every kind of bad text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np

from contracts.damage import altered
from contracts.readers import ReaderContract
from statewise.automata import (
    MooreMachine,
    ProbabilisticMachine,
    from_dot,
    from_json,
    from_regex,
    load_machine,
    to_dot,
    to_json,
    to_table,
)
from statewise.errors import DataError

_MACHINE = from_regex("a*b(a|c)?")
_THREE = MooreMachine(
    alphabet=("go", "a b", '"'),
    transitions=np.array([[0, 1, 2], [1, 1, 1], [2, 0, 1]]),
    outputs=np.array([0, 1, 2]),
    classes=("no", "perhaps", "yes"),
    labels=("first, one", "x\\y", "z\n"),
)


def _text(path: Path) -> str:
    """What a reader of texts is given; what is no text is another reader's business."""
    try:
        return path.read_bytes().decode("utf-8", "surrogatepass")
    except (UnicodeDecodeError, OSError) as error:
        raise DataError(where=str(path), got=str(error), wanted="text") from error


class TestMachineFile(ReaderContract):
    name = "machine.json"

    def right(self) -> Sequence[bytes]:
        return [to_json(machine).encode() for machine in (_MACHINE, _THREE)]

    def nearly_right(self, chance: Random) -> bytes:
        return altered(chance, [json.loads(content) for content in self.files])

    def read(self, path: Path) -> object:
        machine = load_machine(path)
        return to_table(machine), to_json(machine), machine.minimise(), repr(machine)


class TestMachineText(TestMachineFile):
    names_file = False

    def read(self, path: Path) -> object:
        machine = from_json(_text(path))
        assert from_json(to_json(machine)) == machine
        return machine


class TestDot(TestMachineFile):
    name, names_file = "machine.dot", False

    def right(self) -> Sequence[bytes]:
        return [to_dot(machine).encode() for machine in (_MACHINE, _THREE)]

    def nearly_right(self, chance: Random) -> bytes:
        lines = [line for content in self.files for line in content.decode().split("\n")]
        lines += ['  0 -> 99 [label="a"];', "  start -> 7;", "  // alphabet [[], 1, null]", "  // classes []"]
        lines += ["  // alphabet " + "[" * 5000 + "]" * 5000, '  \u0663 -> 0 [label="a"];']
        return "\n".join(chance.choice(lines) for _ in range(chance.randint(0, 20))).encode()

    def read(self, path: Path) -> object:
        machine = from_dot(_text(path))
        return to_table(machine), to_dot(machine)


class TestRegex(ReaderContract):
    name, names_file = "pattern.txt", False

    def right(self) -> Sequence[bytes]:
        return [rb"a*b(a|1)?", rb"(?:1b){2,3}[a-b]+", b""]

    def nearly_right(self, chance: Random) -> bytes:
        parts = (
            "a",
            "b",
            "(",
            ")",
            "|",
            "*",
            "+",
            "?",
            "{2}",
            "{,3}",
            "{2,}",
            "[",
            "]",
            "^",
            "-",
            "\\",
            ".",
            "$",
            "\\d",
        )
        more = ("{1000}", "{", "}", "(?:", "[a-f]", "[^a]", "\\n", "é", "{" + "9" * 5000 + "}", "(" * 60, "(a|b)*a")
        return "".join(chance.choice(parts + more) for _ in range(chance.randint(0, 10))).encode()

    def read(self, path: Path) -> object:
        pattern = _text(path)[:200]
        return len(from_regex(pattern)), len(from_regex(pattern, alphabet=("a", "b", "1")))


class TestProbabilistic(ReaderContract):
    name, names_file = "machine.json", False

    def right(self) -> Sequence[bytes]:
        laws = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.5, 0.5]]])
        start, outputs = np.array([1.0, 0.0]), np.array([0, 1])
        return [ProbabilisticMachine(alphabet=("0", "1"), start=start, laws=laws, outputs=outputs).to_json().encode()]

    def nearly_right(self, chance: Random) -> bytes:
        return altered(chance, [json.loads(content) for content in self.files])

    def read(self, path: Path) -> object:
        try:
            document = json.loads(_text(path))
        except (ValueError, RecursionError) as error:
            raise DataError(where=str(path), got=str(error), wanted="JSON") from error
        machine = ProbabilisticMachine.from_dict(document)
        return machine.nearest().gap, machine.to_json()
