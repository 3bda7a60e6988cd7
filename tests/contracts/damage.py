"""What happens to files: bytes that flip, ends that are cut off, signs that sneak in, values of the wrong kind.

Everything is chosen by a `random.Random` that the caller gives: one of hypothesis, which can then find a smallest file
that shows a fault, or a plain one, which is twenty times as fast.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any

#: What sneaks into files: other ends of lines, marks of encodings, halves of characters, numbers that are none.
SIGNS = (
    *(b"\0", b"\r", b"\n", b"\r\n", b"\t", b" ", b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\xa8", b"\xc2\x85", b"\x0b"),
    *(b"\xed\xa0\x80", b"\xff", b"\xe9", b"\xf0\x9f", b"\\ud800", b'"', b"'", b"\\", b",", b"#", b"{", b"[", b"}"),
    *(b"]", b"NaN", b"Infinity", b"-1", b"1e400", b"null", b"0" * 25, b"9" * 20, b"1" * 5000, b"-DOCSTART-"),
    *(b"\xd9\xa3", b"x" * 3000, b"[" * 3000, b'{"a":' * 3000, b"x " * 2000),
)
_DEEP, _LONG = "@deep@", "@long@"
#: What may stand in a JSON document where something else was.
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 255, 2**31, 2**63, -(2**63) - 1, 10**30, 0.5, -0.0, 1e308, float("nan")),
    *(float("inf"), "", "x", "0", "\ud800", "\0", "a b", "\u2028", [], {}, [[]], [None], ["x"], [0], {"": None}),
    *({"x": 1}, [[], [1]], _DEEP, _LONG, "x" * 3000),
)
_HAPPENS = ("flip", "set", "cut", "drop", "insert", "insert", "repeat", "overwrite")


def any_bytes(chance: Random) -> bytes:
    """Up to 200 bytes, of all kinds or of those that texts are made of."""
    signs = chance.choice((range(256), b'abc 019\t\n,;:{}[]"\\#-.'))
    return bytes(chance.choice(signs) for _ in range(chance.randint(0, 200)))


def damaged(chance: Random, contents: Sequence[bytes]) -> bytes:
    """A file that was right before something happened to it, up to four times.

    Args:
        chance: chooses.
        contents: files that are right.
    """
    content = bytearray(chance.choice(contents))
    for _ in range(chance.randint(1, 4)):
        at, length = chance.randint(0, max(len(content) - 1, 0)), chance.randint(1, 40)
        what = chance.choice(_HAPPENS)
        if what == "cut":
            del content[at:]
        elif what == "drop":
            del content[at : at + length]
        elif what == "insert":
            content[at:at] = chance.choice(SIGNS)
        elif what == "repeat":
            content[at:at] = content[at : at + length]
        elif what == "overwrite":
            sign = chance.choice(SIGNS)
            content[at : at + len(sign)] = sign
        elif content:
            content[at] = content[at] ^ (1 << chance.randint(0, 7)) if what == "flip" else chance.randint(0, 255)
    return bytes(content)


def altered(chance: Random, documents: Sequence[Any]) -> bytes:
    """A JSON document of the right form in which some values are others, are missing, or come twice.

    Args:
        chance: chooses.
        documents: that are right, as ``json.loads`` gives them.
    """
    document = json.loads(json.dumps(chance.choice(documents)))
    for _ in range(chance.randint(1, 3)):
        places = list(_places(document))
        if not places:
            break
        holder, key = chance.choice(places)
        what = chance.choice(("value", "value", "value", "missing", "another's"))
        if what == "missing":
            del holder[key]
        elif what == "another's":
            other, name = chance.choice(places)
            holder[key] = json.loads(json.dumps(other[name]))
        else:
            holder[key] = deepcopy(chance.choice(_VALUES))  # what is in it may be altered next
    text = json.dumps(document, ensure_ascii=chance.random() < 0.5)
    text = text.replace(f'"{_DEEP}"', "[" * 100_000).replace(f'"{_LONG}"', "1" * 5000)
    if isinstance(document, dict) and document and chance.random() < 0.3:
        name, value = chance.choice(sorted(document)), chance.choice(_VALUES[:20])
        text = text[:-1] + f", {json.dumps(name)}: {json.dumps(value)}" + "}"  # the same name twice
    return text.encode("utf-8", "surrogatepass")


def altered_lines(chance: Random, files: Sequence[Sequence[Any]]) -> bytes:
    """A file with a JSON value a line, one of which is altered.

    Args:
        chance: chooses.
        files: the lines of files that are right, as ``json.loads`` gives them.
    """
    lines = list(chance.choice(files))
    texts = [json.dumps(each).encode() for each in lines]
    at = chance.randrange(len(lines))
    texts[at] = altered(chance, [lines[at]])
    return b"\n".join(texts) + b"\n"


def table(chance: Random, words: Sequence[str], between: str) -> bytes:
    """Rows of words that such files have, in any number and order.

    Args:
        chance: chooses.
        words: that may stand in a field.
        between: the fields.
    """
    rows = ([chance.choice(words) for _ in range(chance.randint(0, 5))] for _ in range(chance.randint(0, 8)))
    return "".join(between.join(row) + chance.choice(("\n", "\r\n", "\n\n")) for row in rows).encode()


def packed(header: bytes, body: bytes) -> bytes:
    """A file of safetensors: the length of its header, the header, and what follows."""
    return len(header).to_bytes(8, "little") + header + body


def unpacked(whole: bytes) -> tuple[Any, bytes]:
    """The header of a file of safetensors, as ``json.loads`` gives it, and what follows."""
    end = 8 + int.from_bytes(whole[:8], "little")
    return json.loads(whole[8:end]), whole[end:]


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Each holder and key of a document."""
    pairs = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in list(pairs):
        yield document, key
        yield from _places(value)
