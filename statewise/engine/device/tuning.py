"""Which form was the fastest when it was measured: kept in a file for each kind of device."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import torch

from statewise.engine.device.form import Form, power_of_two
from statewise.engine.device.precision import tf32_allowed
from statewise.engine.operands import Facts
from statewise.files import cache_roots
from statewise.transforms import Centroids

_trying: ContextVar[Form | None] = ContextVar("trying", default=None)


def key_of(facts: Facts, *, dtype: torch.dtype, layers: int) -> str:
    """What the choice of a form depends on: not on the number of steps, and on the batch up to its power of two."""
    batch = power_of_two(facts.layout.batch)
    chain = ", ".join(
        f"{type(transform).__name__} {transform.k}" if isinstance(transform, Centroids) else type(transform).__name__
        for transform, _ in facts.chain
    )
    inside = f"mask {facts.mask} mixed {facts.coefficients is not None}"
    kind = str(dtype).removeprefix("torch.")
    precision = ("high" if tf32_allowed() else "highest") if dtype == torch.float32 else ""
    return f"{facts.kind} hidden {facts.hidden} batch {batch} {kind} {precision} layers {layers} {inside} [{chain}]"


def tried() -> Form | None:
    """The form that is being tried, if one is."""
    return _trying.get()


def look_up(facts: Facts, *, dtype: torch.dtype, device: torch.device, layers: int) -> Form | None:
    """The form that was the fastest on such a device; None if nobody measured."""
    if device.type != "cuda":
        return None
    key, name = key_of(facts, dtype=dtype, layers=layers), torch.cuda.get_device_name(device)
    return next((found for root in cache_roots() if (found := _table(_file(root, name)).get(key)) is not None), None)


@contextlib.contextmanager
def trying(form: Form) -> Iterator[None]:
    """Within, every recurrence runs in this form."""
    token = _trying.set(form)
    try:
        yield
    finally:
        _trying.reset(token)


def remember(form: Form, facts: Facts, *, dtype: torch.dtype, device_name: str, layers: int) -> Path:
    """Keep a form as the fastest; gives the file in which it is kept."""
    first, last = cache_roots()[0], cache_roots()[-1]
    try:
        path = _write(_file(first, device_name), key_of(facts, dtype=dtype, layers=layers), form)
    except OSError:  # a home that cannot be written
        path = _write(_file(last, device_name), key_of(facts, dtype=dtype, layers=layers), form)
    _table.cache_clear()
    return path


def _write(path: Path, key: str, form: Form) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = {**_read(path), key: asdict(form)}
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False) as draft:
        json.dump(table, draft, indent=1)
        draft.flush()
        os.fsync(draft.fileno())
    return Path(draft.name).replace(path)


def _file(root: Path, device_name: str) -> Path:
    return root / f"forms-{re.sub('[^A-Za-z0-9]+', '-', device_name).strip('-').lower()}.json"


@cache
def _table(path: Path) -> dict[str, Form]:
    return {key: Form(**entry) for key, entry in _read(path).items()}


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """What the file holds; one that cannot be read is as good as none, since all of it can be measured again."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    names = set(Form.__dataclass_fields__)
    return {key: entry for key, entry in found.items() if isinstance(entry, dict) and set(entry) == names}
