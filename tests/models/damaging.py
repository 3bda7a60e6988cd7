"""Damage to the files of a saved model, drawn at random: by chance, and by a forger who makes the checksum fit."""

from __future__ import annotations

import copy
import json
import struct
from pathlib import Path
from random import Random
from typing import Any

from statewise.files import read_tensors, write_tensors
from statewise.models.saving import seal

WEIGHTS, CONFIG = "model.safetensors", "config.json"
#: What a forger may write into any place of a document.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 7, 1 << 20, 1 << 31, 1 << 40, 1 << 63, 1 << 200, -(1 << 63), 10**4000),
    *(0.0, -0.5, 0.5, 1.5, 1e308, -1e308, 1e-320),
    *("", "a", "lstm", "rac", "rnn", "crf", "adaptive", "mixture", "sample", "\ud800", "x" * 10_000, "nan", "../../x"),
    *([], [0], [1, 2], [1] * 5000, ["a", "a"], ["a", "b"], [[]], {}, {"a": 1}),
)
for levels in (60, 300):
    deep: Any = 1
    for _ in range(levels):
        deep = [deep]
    VALUES = (*VALUES, deep, {"a": deep})
TEXTS = (
    b"[" * 900 + b"]" * 900,
    b"NaN",
    b"Infinity",
    b"1e999",
    b"-",
    b"[" * 3000,
    b'{"a":' * 3000,
    b"\x00",
    b"\xff",
    b'"',
    b"1" * 5000,
)


def damage(folder: Path, draw: Random) -> str:
    """Damage a folder in one of many ways; gives its name."""
    ways = (_flips, _cut, _header_length, _insert, _swap, _config_text, _config_value, _forge, _forge, _forge_tensors)
    way = draw.choice(ways)
    way(folder, draw)
    return way.__name__.strip("_")


def _flips(folder: Path, draw: Random) -> None:
    path = folder / draw.choice((WEIGHTS, WEIGHTS, CONFIG))
    content = bytearray(path.read_bytes())
    # Most of what can go wrong is in the header.
    most = draw.choice((len(content), min(len(content), 3000), 9))
    for _ in range(draw.choice((1, 1, 2, 8, 64))):
        content[draw.randrange(most)] ^= 1 << draw.randrange(8)
    path.write_bytes(bytes(content))


def _cut(folder: Path, draw: Random) -> None:
    path = folder / draw.choice((WEIGHTS, CONFIG))
    content = path.read_bytes()
    path.write_bytes(content[: draw.randrange(len(content))])


def _header_length(folder: Path, draw: Random) -> None:
    content = (folder / WEIGHTS).read_bytes()
    (own,) = struct.unpack("<Q", content[:8])
    length = draw.choice((0, 1, own - 1, own + 1, own + 8, len(content), 1 << 31, 1 << 40, (1 << 64) - 1))
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", length) + content[8:])


def _insert(folder: Path, draw: Random) -> None:
    path = folder / draw.choice((WEIGHTS, CONFIG))
    content, at = path.read_bytes(), 0
    at = draw.randrange(min(len(content), 4000))
    path.write_bytes(content[:at] + draw.choice((draw.randbytes(draw.randrange(1, 40)), *TEXTS)) + content[at:])


def _swap(folder: Path, draw: Random) -> None:
    """Two names or numbers of the header for each other."""
    content = (folder / WEIGHTS).read_bytes()
    (own,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + own])
    names = [name for name in header if name != "__metadata__"]
    one, other = draw.choice(names), draw.choice(names)
    change = draw.choice(("swap", "shape", "offset", "dtype", "drop"))
    if change == "swap":
        header[one], header[other] = header[other], header[one]
    elif change == "shape":
        header[one]["shape"] = draw.choice(([], [0], [1 << 40], [1 << 32, 1 << 32], [-1], ["a"], None, [1.5]))
    elif change == "offset":
        header[one]["data_offsets"] = draw.choice(([0, 0], [0, 1 << 60], [8, 4], [-1, 4], [0], "x"))
    elif change == "dtype":
        header[one]["dtype"] = draw.choice(("F64", "I8", "BOOL", "F8_E4M3", "Q", "", 3, None))
    else:
        del header[one]
    text = json.dumps(header).encode()
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text + content[8 + own :])


def _config_text(folder: Path, draw: Random) -> None:
    (folder / CONFIG).write_bytes(draw.choice((*TEXTS, b"", b"{}", b"[]", b"3", draw.randbytes(50))))


def _config_value(folder: Path, draw: Random) -> None:
    document = json.loads((folder / CONFIG).read_text())
    _change(document, draw)
    (folder / CONFIG).write_text(json.dumps(document))


def _forge(folder: Path, draw: Random) -> None:
    """Other values in the document, with a checksum that fits: only the checks of the values themselves help."""
    tensors, document = read_tensors(folder / WEIGHTS)
    document = copy.deepcopy(document)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        _change(document, draw)
    document["checksum"] = draw.choice((document.get("checksum"), seal(document, tensors)))
    write_tensors(folder / WEIGHTS, tensors, document)
    if draw.random() < 0.7:
        (folder / CONFIG).unlink()


def _forge_tensors(folder: Path, draw: Random) -> None:
    tensors, document = read_tensors(folder / WEIGHTS)
    tensors = dict(tensors)
    name = draw.choice(sorted(tensors))
    change = draw.choice(("drop", "more", "flat", "int", "cut", "double", "tie"))
    if change == "drop":
        del tensors[name]
    elif change == "tie":
        tensors[name] = tensors[draw.choice(sorted(tensors))]
    else:
        old = tensors[name]
        made = {"more": old.unsqueeze(0), "flat": old.reshape(-1), "int": old.int(), "double": old.double()}
        tensors[name] = made.get(change, old[: len(old) // 2] if old.dim() else old.reshape(1))
    if draw.random() < 0.5:
        _change(document, draw)
    document = {**document, "checksum": seal(document, tensors)}
    write_tensors(folder / WEIGHTS, tensors, document)
    (folder / CONFIG).unlink()


def _change(document: dict[str, Any], draw: Random) -> None:
    """One value somewhere in a document for another, or one more, or one less."""
    inner = [value for value in document.values() if isinstance(value, dict) and value]
    place = draw.choice((document, *inner, *inner))
    name = draw.choice(sorted(place))
    what = draw.random()
    if what < 0.1:
        del place[name]
    elif what < 0.2:
        place[draw.choice(("extra", "layers", "hidden", "__class__", ""))] = _value(draw)
    elif what < 0.4 and isinstance(place[name], list) and place[name]:
        place[name][draw.randrange(len(place[name]))] = _value(draw)
    else:
        place[name] = _value(draw)


def _value(draw: Random) -> Any:
    """A copy, since what is put into a document may be changed there."""
    return json.loads(json.dumps(draw.choice(VALUES)))
