"""JSON as its standard has it: no NaN, no infinity, and errors that are named."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NoReturn

from statewise.errors import DtypeError

DEPTH = 64  # lists and objects in each other; nothing that is written here has more than five
_TOO_DEEP = "lists and objects that are too deep in each other"


def encode_number(value: float) -> float | str | None:
    """A number as strict JSON has it: NaN is null, infinity the text ``"inf"``, which ``float`` reads back.

    >>> encode_number(1.5), encode_number(-math.inf), encode_number(math.nan)
    (1.5, '-inf', None)
    """
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(float(value))


def strict(value: Any, where: str = "record") -> Any:
    """What JSON can hold of a value made of mappings, sequences, texts and numbers, those of numpy and torch included.

    Args:
        value: what is to be written.
        where: its name, for the error that says which field has no form in JSON.

    >>> strict({"loss": float("inf"), "rates": (1, 2.5)})
    {'loss': 'inf', 'rates': [1, 2.5]}
    """
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): strict(part, f"{where}.{key}") for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [strict(part, f"{where}[{index}]") for index, part in enumerate(value)]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return encode_number(float(value))
    from torch import Tensor  # late, because most of what is written is no tensor, and some commands need no torch

    if isinstance(value, Tensor) and value.numel() == 1:
        return strict(value.item(), where)
    raise DtypeError(
        where=where,
        got=type(value).__name__,
        wanted="a number, a text, or a list or dict of them",
        remedy="Tensors belong into a file of tensors.",
    )


def read_json(text: str | bytes) -> Any:
    """What a text of strict JSON says; every text that is none raises ValueError, however deep or strange it is.

    Args:
        text: as it was read, bytes in UTF-8.

    >>> read_json('{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    >>> read_json("[" * 100_000)
    Traceback (most recent call last):
        ...
    ValueError: lists and objects that are too deep in each other
    """
    try:
        found = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_once)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    _check_depth(found)
    return found


def _check_depth(found: Any) -> None:
    """Refuse what is so deep that comparing or printing it could exceed the stack; without a stack of its own."""
    level = [found]
    for _ in range(DEPTH):
        level = [
            part
            for each in level
            if isinstance(each, dict | list)
            for part in (each.values() if isinstance(each, dict) else each)
            if isinstance(part, dict | list)
        ]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}, which is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:20]}, which is too large")
    return number


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, no name of which may occur twice: readers would differ in which one they take."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the name {name!r} twice in an object")
        found[name] = value
    return found
