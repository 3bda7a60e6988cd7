"""How exactly products are made while a run trains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch


@contextmanager
def precisely(precision: str, device: torch.device) -> Iterator[None]:
    """A region with products of a precision; afterwards torch's settings are what they were.

    Args:
        precision: "single"; "tf32"; or "bf16", which is "tf32" under autocast to bfloat16.
        device: where autocast acts.

    >>> with precisely("tf32", torch.device("cpu")):
    ...     torch.get_float32_matmul_precision()
    'high'
    >>> torch.get_float32_matmul_precision()
    'highest'
    """
    mixed: AbstractContextManager[Any] = nullcontext()
    if precision == "bf16":
        mixed = torch.autocast(device.type, dtype=torch.bfloat16)
    before = _settings()
    torch.set_float32_matmul_precision("highest" if precision == "single" else "high")
    try:
        with mixed:
            yield
    finally:
        _restore(*before)


def while_evaluating(precision: str) -> str:
    """Products as in training, but nothing is rounded to bfloat16.

    >>> while_evaluating("bf16")
    'tf32'
    """
    return "single" if precision == "single" else "tf32"


def _settings() -> tuple[str, str, str]:
    """What torch's old interface says, and what its new one says, of CUDA and of CPUs."""
    try:
        old = torch.get_float32_matmul_precision()
    except RuntimeError:  # torch refuses to say when a program has used its new interface
        old = "highest"
    return old, torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision  # type: ignore[attr-defined]


def _restore(old: str, cuda: str, cpu: str) -> None:
    torch.set_float32_matmul_precision(old)  # changes what the new interface says, too
    torch.backends.cuda.matmul.fp32_precision = cuda
    torch.backends.mkldnn.matmul.fp32_precision = cpu  # type: ignore[attr-defined]
