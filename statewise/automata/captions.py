"""What stands beside an arrow and inside a circle: symbols as text, runs of them as ranges, long texts shortened."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

_RUN = 3  # characters in a row from which on a range is shorter to read than a list
_NAMES = {"": "ε", " ": "␣", "\t": "⇥", "\n": "⏎", ",": "','", "-": "'-'"}


def symbol_text(symbol: str) -> str:
    r"""A symbol as one can see it: blanks get a sign, and what separates symbols gets quotes.

    Args:
        symbol: of an alphabet.

    >>> [symbol_text(symbol) for symbol in ("a", " ", ",", "x\x00")]
    ['a', '␣', "','", 'x\\x00']
    """
    if symbol in _NAMES:
        return _NAMES[symbol]
    return "".join(_NAMES.get(sign, sign) if sign == " " or sign.isprintable() else repr(sign)[1:-1] for sign in symbol)


def symbols_text(symbols: Iterable[str], alphabet: Sequence[str]) -> str:
    """Several symbols as one text: runs of characters as ranges, most of a large alphabet by what it lacks.

    Args:
        symbols: those of an arrow.
        alphabet: all there are, in their order.

    >>> letters = [*"abcdefghijklmnopqrstuvwxyz()"]
    >>> symbols_text("abcdz", letters), symbols_text(letters, letters), symbols_text(letters[:-2], letters)
    ('a-d,z', 'any', 'a-z')
    >>> symbols_text([symbol for symbol in letters if symbol not in "kx"], letters)
    'any but k,x'
    """
    chosen = set(symbols)
    held = [symbol for symbol in alphabet if symbol in chosen]
    lacking = [symbol for symbol in alphabet if symbol not in chosen]
    if not lacking and len(held) > _RUN:
        return "any"
    text = _listed(held)
    if lacking and len(lacking) <= 3 and len(held) > 2 * len(lacking) + 2:
        complement = f"any but {_listed(lacking)}"
        return min(text, complement, key=len)
    return text


def shortened(text: str, width: int) -> str:
    """The text, or its beginning and an ellipsis if it is longer than so many characters.

    Args:
        text: whatever it is.
        width: in characters, at least 2.

    >>> shortened("good,bad,ugly", 10), shortened("good", 10)
    ('good,bad,…', 'good')
    """
    return text if len(text) <= width else f"{text[: width - 1]}…"


def text_width(text: str, size: float) -> float:
    """About how wide a text is in a common sans-serif font, in the unit of its size.

    Args:
        text: on one line.
        size: of the font.

    >>> text_width("abc", 10) < text_width("abcd", 10) < text_width("漢字漢字", 10)
    True
    """
    return size * sum(_advance(sign) for sign in text)


def _advance(sign: str) -> float:
    if unicodedata.east_asian_width(sign) in "WF":
        return 1.0
    if sign in "il.,:;'|!()[]jft ":
        return 0.36
    return 0.78 if sign in "mwMW@…" else 0.6


def _listed(symbols: Sequence[str]) -> str:
    """Symbols in their order, with runs of neighbouring characters of one kind as first-last."""
    runs: list[list[str]] = []
    for symbol in symbols:
        if runs and _follows(runs[-1][-1], symbol):
            runs[-1].append(symbol)
        else:
            runs.append([symbol])
    parts = []
    for run in runs:
        if len(run) > _RUN:
            parts.append(f"{run[0]}-{run[-1]}")
        else:
            parts.extend(map(symbol_text, run))
    return ",".join(parts)


def _follows(before: str, after: str) -> bool:
    if len(before) != 1 or len(after) != 1 or ord(after) != ord(before) + 1:
        return False
    kinds = [(sign.isdigit(), sign.islower(), sign.isupper()) for sign in (before, after)]
    return kinds[0] == kinds[1] and any(kinds[0])
