"""``statewise demo``: what the library is for, shown on embedded data."""

from __future__ import annotations

from typing import Any

from jsonargparse import ArgumentParser
from rich.console import Console

from statewise import demo
from statewise.commands.shared import JSON, command_parser
from statewise.demo.language import EPOCHS
from statewise.demo.networks import STEPS


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "Train a state-regularized network next to a plain one on an embedded language, read and verify its automaton, "
        "certify it, measure its memory, and show what noise, mixup and others do on a small task. Writes one page "
        "with all of it, within three minutes on two cores.",
        "statewise demo",
        "statewise demo --seed 1 --out demo/report.html",
    )
    add = made.add_argument
    add("--out", type=str, default="report.html", help="the page")
    add("--seed", type=int, default=0, help="of the data, the weights and the noise")
    add("--steps", type=int, default=STEPS, help="training steps of each network of the small task")
    add("--epochs", type=int, default=EPOCHS, help="of the plain network of the language")
    add("--force", action="store_true", help="replace a file that is no page of statewise")
    add("--json", **JSON)
    return made


def run(arguments: Any, console: Console) -> dict[str, Any]:
    """Train, print and write.

    Args:
        arguments: as the parser gives them.
        console: where to print.
    """
    options = {name: getattr(arguments, name) for name in ("seed", "steps", "epochs", "out", "force")}
    shown = demo.run(**options, console=console)
    learnt = shown.learnt
    return {
        "report": arguments.out,
        "seconds": shown.seconds,
        "right": {name: dict(zip(learnt.lengths, shares, strict=True)) for name, shares in learnt.right.items()},
        "states": len(learnt.automaton.machine),
        "proof": None if learnt.verified.proof is None else learnt.verified.proof.sentence,
        "certificate": {"value": learnt.trust[0].value, "sentence": learnt.trust[0].sentence},
        "separation_rank": [found.spectrum.rank(1e-6) for found in shown.remembered],
        "test_nll": {outcome.name: outcome.test.nll for outcome in shown.outcomes},
    }
