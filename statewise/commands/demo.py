"""``statewise demo``: what acting on the state does, shown on embedded data."""

from __future__ import annotations

from typing import Any

from jsonargparse import ArgumentParser
from rich.console import Console

from statewise import demo
from statewise.commands.shared import command_parser


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser("Train a plain and three regularized LSTMs on an embedded task.", "statewise demo")
    made.add_argument("--seed", type=int, default=0, help="of the training data, the weights and the noise")
    made.add_argument("--steps", type=int, default=demo.STEPS, help="training steps of each network")
    return made


def run(arguments: Any, console: Console) -> None:
    """Train, and print how they compare.

    Args:
        arguments: as the parser gives them.
        console: where to print.
    """
    demo.run(seed=arguments.seed, steps=arguments.steps, console=console)
