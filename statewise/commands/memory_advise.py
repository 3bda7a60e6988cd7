"""``statewise memory advise``: which depths and widths a budget allows, and what each can remember."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands.shared import command_parser
from statewise.commands.whole_numbers import whole_numbers
from statewise.errors import ArgumentError
from statewise.memory.advise import DEPTHS, Advice, advise, rank_text
from statewise.memory.budget import COUNTS
from statewise.memory.telling import told_in_json
from statewise.report.tables import Table
from statewise.train.telling import say


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "List the depths and widths of orthogonal networks within a budget of parameters, each with what almost all "
        "circuits of that shape remember: bounds on the Start-End separation rank, from below and from above.",
        "statewise memory advise --budget 8192 --steps 60 --inputs 34 --classes 34",
        "statewise memory advise --budget 4096 --steps 20 --inputs 8 --depths 1-4 --json",
    )
    add = made.add_argument
    add("--budget", type=int, required=True, help="the most parameters")
    add("--steps", type=int, required=True, help="T, the length of the sequences")
    add("--inputs", type=int, required=True, help="M, how many symbols there are: the width of a one-hot input")
    add("--classes", type=int, default=1, help="C, how many outputs there are")
    add("--depths", type=str, default=",".join(map(str, DEPTHS)), help="such as 1,2,3 or 1-6")
    add("--split", type=int, help="how many steps are the Start; else half of an even T")
    add("--count", choices=COUNTS, default="true", help="of parameters: as they are trained, or as the thesis counts")
    add("--format", choices=("table", "json"), default="table", help="how the answer is printed")
    add("--json", action="store_true", help="the same as --format json")
    return made


def run(arguments: Any, console: Console) -> None:
    """Print the pairs and the advice.

    Args:
        arguments: as the parser gives them.
        console: where to print.
    """
    try:
        found = advise(
            budget=arguments.budget,
            steps=arguments.steps,
            inputs=arguments.inputs,
            classes=arguments.classes,
            count=arguments.count,
            depths=whole_numbers(arguments.depths, where="--depths"),
            split=arguments.split,
        )
    except ArgumentError as error:
        name = error.where.removeprefix("advise.")
        raise error.told(where=f"--{name}".replace("----", "--")) from None
    if arguments.json or arguments.format == "json":
        told = {
            "budget": found.budget,
            "count": found.count,
            "pairs": [{**asdict(pair), "most": pair.most, "known": pair.known} for pair in found.pairs],
            "left_out": found.left_out,
            "best": found.best.depth,
            "may_have_more": found.rivals,
            "sentence": found.sentence,
        }
        say(console, json.dumps(told_in_json(told), indent=2))
        return
    notes = [
        "at least: proved for one layer and for two (Theorem 1); * by the repaired conjecture, which is not proved. "
        "U1: what the state can hold; U2: what the End can tell apart. No weights reach more than the lesser of them, "
        "or than U1 made sharper, if that is less. Numbers from a thousand million on are rounded down.",
        *(f"Depth {pair.depth}: {pair.warning}." for pair in found.pairs if pair.warning),
        *(f"Depth {depth}: the budget has not one channel for it." for depth in found.left_out),
        found.sentence,
    ]
    columns = ("depth", "width", "parameters", "at least", "at most", "U1", "U2")
    Table(columns=columns, rows=[_row(pair) for pair in found.pairs], left=0, notes=notes).print(console)


def _row(pair: Advice) -> tuple[str, ...]:
    least = rank_text(pair.least) + ("" if pair.proved else "*")
    bounds = (pair.most, pair.state_bound, pair.end_cap)
    return str(pair.depth), f"{pair.width:,}", f"{pair.parameters:,}", least, *map(rank_text, bounds)
