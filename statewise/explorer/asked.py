"""What a request says, taken field by field; whatever is not as it should be is refused by name."""

from __future__ import annotations

import json
import math
from typing import Any

from statewise.errors import ArgumentError, DtypeError
from statewise.explorer.disturbance import COLDEST, HOTTEST, LARGEST_SEED, MODES, MOST_DRAWS, NOISIEST, Setting
from statewise.files import read_json

MOST_TEXT = 8_000  # bytes of a text
SHOWN = 80  # characters of what was got that an error repeats


class BadJSONError(ArgumentError):
    """The body of a request is no JSON object."""


class Asked:
    """The fields of a request.

    Args:
        body: a JSON object in UTF-8.

    >>> asked = Asked(b'{"run": 0, "text": "ab"}')
    >>> asked.whole("run", 0, 1), asked.text(), asked.done()
    (0, 'ab', None)
    """

    def __init__(self, body: bytes) -> None:
        try:
            found = read_json(body.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise BadJSONError(where="body", got=f"bytes that are no UTF-8 at {error.start}", wanted="JSON") from None
        except json.JSONDecodeError as error:
            raise BadJSONError(where="body", got=f"no JSON at character {error.pos}", wanted="a JSON object") from None
        except ValueError as error:  # too deep, a name twice, NaN, or a number out of reach
            raise BadJSONError(where="body", got=str(error)[:SHOWN], wanted="a JSON object") from None
        if not isinstance(found, dict):
            raise BadJSONError(where="body", got=f"a JSON {type(found).__name__}", wanted="a JSON object")
        self._left: dict[str, Any] = found

    def done(self) -> None:
        """Refuse fields that nobody has asked for."""
        if self._left:
            name = next(iter(self._left))
            raise ArgumentError(where=name[:SHOWN], got="a field", wanted="no such field", remedy="Leave it out.")

    def whole(self, name: str, low: int, high: int, default: int | None = None) -> int:
        """A whole number.

        Args:
            name: of the field.
            low: the least.
            high: the most.
            default: where it is not said; None for one that must be.
        """
        wanted = f"a whole number from {low} to {high}"
        value = self._take(name, default, wanted)
        if type(value) is not int or not low <= value <= high:
            raise ArgumentError(where=name, got=_short(value), wanted=wanted)
        return value

    def number(self, name: str, low: float, high: float, default: float) -> float:
        """A finite number.

        Args:
            name: of the field.
            low: the least.
            high: the most.
            default: where it is not said.
        """
        value = self._take(name, default, "a number")
        if type(value) not in (int, float) or not low <= value <= high or not math.isfinite(value):
            raise ArgumentError(where=name, got=_short(value), wanted=f"a number from {low:g} to {high:g}")
        return float(value)

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of some words; the first where it is not said.

        Args:
            name: of the field.
            choices: the words.
        """
        value = self._take(name, choices[0], "a word")
        if value not in choices:
            raise ArgumentError(where=name, got=_short(value), wanted=f"one of {', '.join(choices)}")
        return str(value)

    def text(self) -> str:
        """What was typed."""
        value = self._take("text", None, "a text")
        if not isinstance(value, str):
            raise DtypeError(where="text", got=_short(value), wanted="a text")
        try:
            size = len(value.encode("utf-8"))
        except UnicodeEncodeError:
            raise ArgumentError(where="text", got="half of a surrogate pair", wanted="whole characters") from None
        if size > MOST_TEXT:
            got = f"{size:,} bytes"
            raise ArgumentError(where="text", got=got, wanted=f"at most {MOST_TEXT:,}", remedy="Explore a part of it.")
        return value

    def setting(self) -> Setting:
        """Temperature and noise."""
        warm = self._left.get("temperature") is not None
        if not warm:
            self._left.pop("temperature", None)
        return Setting(
            temperature=self.number("temperature", COLDEST, HOTTEST, 1.0) if warm else None,
            gamma=self.number("gamma", 0, NOISIEST, 0.0),
            mode=self.choice("mode", MODES),
            draws=self.whole("draws", 1, MOST_DRAWS, 8),
            seed=self.whole("seed", 0, LARGEST_SEED, 0),
        )

    def _take(self, name: str, default: Any, wanted: str) -> Any:
        if name not in self._left and default is None:
            raise ArgumentError(where=name, got="nothing", wanted=wanted)
        return self._left.pop(name, default)


def _short(value: Any) -> str:
    """What was got, no longer than an error should be.

    >>> len(_short("x" * 10**6))
    81
    """
    if isinstance(value, int) and value.bit_length() > 256:
        return "a number of many digits"
    told = repr(value)
    return told if len(told) <= SHOWN else told[:SHOWN] + "…"
