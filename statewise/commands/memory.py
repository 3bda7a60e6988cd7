"""``statewise memory``: how much a recurrent network can remember, in exact numbers."""

from __future__ import annotations

from typing import Any

from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands import memory_advise, memory_capacity, memory_rank
from statewise.commands.shared import command_parser

_KINDS = {"rank": memory_rank, "advise": memory_advise, "capacity": memory_capacity}


def parser() -> ArgumentParser:
    """The command itself, which has no options but only kinds of questions."""
    return command_parser("Ask how much a recurrent network can remember.")


def add_kinds(command: ArgumentParser) -> None:
    """Add the kinds of questions, each with its options; jsonargparse wants it done after the command was added.

    Args:
        command: what :func:`parser` gave.
    """
    kinds = command.add_subcommands(dest="kind")
    kinds.add_subcommand("rank", memory_rank.parser(), help="the exact separation rank of almost all circuits")
    kinds.add_subcommand("advise", memory_advise.parser(), help="depths and widths within a budget, and their bounds")
    kinds.add_subcommand("capacity", memory_capacity.parser(), help="the hardest task that trained networks solve")


def run(arguments: Any, console: Console) -> None:
    """Answer.

    Args:
        arguments: as the parser gives them.
        console: where to print.
    """
    _KINDS[arguments.kind].run(arguments[arguments.kind], console)
