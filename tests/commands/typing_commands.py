"""What the tests of the commands share: a small model, and the type of what types a command."""

from __future__ import annotations

from collections.abc import Callable

#: A network that learns the embedded text within a second.
SMALL = ["--data", "sample", "--hidden", "16", "--batch", "10", "--bptt", "20", "--device", "cpu"]
Typed = Callable[..., str]
