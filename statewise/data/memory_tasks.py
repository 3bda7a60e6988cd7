"""The tasks of long-term memory by their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from statewise.data.copying_memory import CopyingMemory
from statewise.data.memory_task import MemoryTask
from statewise.data.similarity import StartEndSimilarity
from statewise.errors import ArgumentError

KINDS: dict[str, type[MemoryTask]] = {kind.kind: kind for kind in (CopyingMemory, StartEndSimilarity)}


def memory_task(document: Mapping[str, Any]) -> MemoryTask:
    """The task that was described: the inverse of :meth:`MemoryTask.describe`.

    Args:
        document: its kind and its fields.

    >>> memory_task({"kind": "start-end-similarity", "length": 60, "m": 30, "n": 32})
    StartEndSimilarity(length=60, m=30, n=32, inclusive=False)
    >>> memory_task({"kind": "adding"})
    Traceback (most recent call last):
    statewise.errors.ArgumentError: memory_task kind: got adding, wanted one of copying-memory, start-end-similarity.
    """
    values = dict(document)
    name = values.pop("kind", None)
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ArgumentError(where="memory_task kind", got=name, wanted=f"one of {', '.join(KINDS)}")
    known = [field.name for field in fields(kind)]
    if unknown := sorted(set(values) - set(known)):
        raise ArgumentError(
            where=f"memory_task {name}", got=f"a field {unknown[0]!r}", wanted=f"among {', '.join(known)}"
        )
    try:
        return kind(**values)
    except TypeError as error:
        missing = [each.name for each in fields(kind) if each.default is MISSING and each.name not in values]
        got, wanted = f"nothing for {', '.join(missing)}", "all fields without a default"
        if not missing:
            got, wanted = f"{values} ({error})", "whole numbers and names"
        raise ArgumentError(where=f"memory_task {name}", got=got, wanted=wanted) from error
