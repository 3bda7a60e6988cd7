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

from statewise.engine.device.form import Form
from statewise.engine.device.operands import Facts
from statewise.native import cache_roots

_trying: ContextVar[Form | None] = ContextVar("trying", default=None)


def key_of(facts: Facts, *, dtype: torch.dtype, layers: int) -> str:
    """What the choice of a form depends on: not on the number of steps, and on the batch up to its power of two."""
    batch = 1 << (facts.layout.batch - 1).bit_length()
    chain = ", ".join(type(transform).__name__ for transform, _ in facts.chain)
    kind = str(dtype).removeprefix("torch.")
    precision = torch.get_float32_matmul_precision() if dtype == torch.float32 else ""
    return f"{facts.kind} hidden {facts.hidden} batch {batch} {kind} {precision} layers {layers} [{chain}]"


def look_up(facts: Facts, *, dtype: torch.dtype, device: torch.device, layers: int) -> Form | None:
    """The form that is being tried, or that was the fastest on such a device; None if nobody measured."""
    tried = _trying.get()
    if tried is not None:
        return tried
    if device.type != "cuda":
        return None
    return _table(_file(torch.cuda.get_device_name(device))).get(key_of(facts, dtype=dtype, layers=layers))


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
    path = _file(device_name)
    table = {**_read(path), key_of(facts, dtype=dtype, layers=layers): asdict(form)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False) as draft:
        json.dump(table, draft, indent=1)
        draft.flush()
        os.fsync(draft.fileno())
    Path(draft.name).replace(path)
    _table.cache_clear()
    return path


def _file(device_name: str) -> Path:
    return cache_roots()[0] / f"forms-{re.sub('[^A-Za-z0-9]+', '-', device_name).strip('-').lower()}.json"


@cache
def _table(path: Path) -> dict[str, Form]:
    return {key: Form(**entry) for key, entry in _read(path).items()}


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """What the file holds; one that cannot be read is as good as none, since all of it can be measured again."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    names = set(Form.__dataclass_fields__)
    return {key: entry for key, entry in found.items() if isinstance(entry, dict) and set(entry) == names}
