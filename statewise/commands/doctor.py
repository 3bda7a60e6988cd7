"""``statewise doctor``: what runs on this machine."""

from __future__ import annotations

from typing import Any

from jsonargparse import ArgumentParser
from rich.console import Console

from statewise import doctor
from statewise.commands.shared import JSON, command_parser


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser("Tell what runs here: versions, threads, engine, CPU kernel.", "statewise doctor")
    made.add_argument("--json", **JSON)
    return made


def run(arguments: Any, console: Console) -> dict[str, Any]:
    """Print the facts.

    Args:
        arguments: as the parser gives them.
        console: where to print.
    """
    found = doctor.facts()
    if not arguments.json:
        doctor.report(console)
    return dict(found)
