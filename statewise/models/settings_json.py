"""Frozen settings from JSON: every field there, of the right type, and none that nobody knows."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from statewise.errors import ModelFolderError

Settings = TypeVar("Settings")
_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def from_json(kind: type[Settings], found: Any, *, where: str) -> Settings:
    """Settings of a kind, from what JSON holds of them.

    A field that is not there has its default, for settings that were written before there was such a field.

    Args:
        kind: a dataclass whose fields are numbers, texts, truth values, tuples of these, or None.
        found: an object as JSON has it.
        where: its place, for errors.

    >>> from statewise.models import StepConfig
    >>> from_json(StepConfig, {"hidden": 8, "centroids": [4]}, where="config").centroids
    (4,)
    >>> from_json(StepConfig, {"hidden": "8"}, where="config")
    Traceback (most recent call last):
        ...
    statewise.errors.ModelFolderError: config.hidden: got the text '8', wanted a whole number.
    """
    assert dataclasses.is_dataclass(kind)
    if not isinstance(found, Mapping):
        raise ModelFolderError(where=where, got=_shown(found), wanted="an object with the settings")
    fields = {field.name: field for field in dataclasses.fields(kind)}
    unknown = [name for name in found if name not in fields]
    if unknown:
        raise ModelFolderError(
            where=f"{where}.{unknown[0]}"[:200],
            got="a field that is not known here",
            wanted=f"some of {', '.join(fields)}",
            remedy="If a newer statewise has written it: pip install -U statewise.",
        )
    absent = [field.name for field in fields.values() if field.name not in found and _required(field)]
    if absent:
        raise ModelFolderError(where=f"{where}.{absent[0]}", got="nothing", wanted="the field")
    types_of = _hints(kind)
    made: Settings = kind(**{name: _typed(value, types_of[name], f"{where}.{name}") for name, value in found.items()})
    return made


@functools.cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _typed(value: Any, hint: Any, where: str) -> Any:
    """A value, if it is of the type that the annotation says."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        options = typing.get_args(hint)
        if value is None and type(None) in options:
            return None
        return _typed(value, next(option for option in options if option is not type(None)), where)
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise ModelFolderError(where=where, got=_shown(value), wanted="a list")
        inside = typing.get_args(hint)[0]
        return tuple(_typed(entry, inside, f"{where}[{index}]") for index, entry in enumerate(value))
    if hint is float and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise ModelFolderError(where=where, got="a number without end", wanted="a number") from None
    if type(value) is not hint:
        raise ModelFolderError(where=where, got=_shown(value), wanted=_WORDS.get(hint, str(hint)))
    return value


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f"the text {value[:80]!r}"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int) and value.bit_length() > 200:
        return "a whole number of very many digits"
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return f"the number {value}"
