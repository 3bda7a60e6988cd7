"""What runs on this machine: versions, threads, and whether the fast engine has its kernel."""

from __future__ import annotations

import platform

import torch
from rich.console import Console
from rich.text import Text

import statewise
from statewise.files import cache_roots
from statewise.layers import LSTM
from statewise.native import load_native


def facts() -> dict[str, str]:
    """What is installed and what would run, by name.

    >>> facts()["statewise"] == statewise.__version__
    True
    """
    kernel = load_native()
    plan = LSTM(8, 32, generator=torch.Generator()).plan(torch.zeros(12, 4, 8))
    return {
        "statewise": statewise.__version__,
        "Python": platform.python_version(),
        "PyTorch": torch.__version__,
        "machine": f"{platform.system()} {platform.machine()}, {torch.get_num_threads()} threads",
        "CPU kernel": f"ready, for {kernel.instruction_set}" if kernel.available else f"not available: {kernel.reason}",
        "cache": str(cache_roots()[0]),
        "an LSTM runs on": str(plan),
    }


def report(console: Console | None = None) -> None:
    """Print the facts, one a line; nothing is wrapped, so that paths can be copied.

    Args:
        console: where to print; None means standard output.
    """
    console = console or Console()
    found = facts()
    width = max(map(len, found))
    for name, fact in found.items():
        console.print(Text(f"{name:<{width}}  ", style="bold") + Text(fact, style="none"), soft_wrap=True)
