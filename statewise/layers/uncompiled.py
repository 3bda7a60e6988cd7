"""A way out of a compiled graph, in a file of its own: importing it imports torch's compiler, which takes a second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


@torch.compiler.disable  # type: ignore[untyped-decorator]
def eagerly(run: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function that torch.compile must not look into."""
    return run(*arguments, **options)
