"""``statewise memory rank``: exact separation ranks, of one shape or of many, beside what was conjectured."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands.memory_rank_options import (
    ALL,
    SIZES,
    check_alone,
    check_given,
    shapes_of_batches,
    smaller,
    split_asked,
)
from statewise.commands.shared import command_parser
from statewise.commands.whole_numbers import whole_numbers
from statewise.errors import ArgumentError
from statewise.files import write_atomically
from statewise.memory.advise import MOST_STEPS, Advice, rank_text, shape_advice
from statewise.memory.drawing_svg import network_svg
from statewise.memory.elimination import BACKENDS
from statewise.memory.generic import STARTS, GenericRank, generic_rank
from statewise.memory.rank_table import rank_table
from statewise.memory.rank_table_cases import BATCHES, Shape
from statewise.memory.rank_table_rows import RankRow
from statewise.memory.row_space import shallow_rank
from statewise.memory.sampled import sampled_rank
from statewise.memory.telling import told_in_json
from statewise.memory.tensor_network_build import circuit_network
from statewise.memory.tensor_network_counts import network_counts
from statewise.memory.tensor_network_dot import network_dot
from statewise.report.tables import Table
from statewise.train.telling import say

MOST_DRAWN = 3000  # nodes of a drawing
MOST_SHAPES = 10_000  # of a table
#: Whose arguments the options are.
_ASKED = ("generic_rank", "shallow_rank", "sampled_rank", "rank_table", "shape_advice")


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "The Start-End separation rank of almost all recurrent arithmetic circuits of a shape, exactly: an integer "
        "with a certificate. Lists such as 2,3 or 2-6 give a table of all combinations.",
        "statewise memory rank --inputs 6 --width 5 --steps 4 --depth 3",
        "statewise memory rank --inputs 2-4 --width 3 --steps 4 --depth 2 --json",
        "statewise memory rank --inputs 3 --width 2 --steps 4 --depth 2 --draw network.svg",
    )
    add = made.add_argument
    add("--inputs", type=str, help="M, how many symbols there are, one-hot")
    add("--width", type=str, help="R, the channels of each layer")
    add("--steps", type=str, help="T, the length of the sequences")
    add("--depth", type=int, help="L, the number of layers; always needed")
    add(
        "--split",
        type=str,
        help=f"how many steps are the Start, or {ALL}, or which steps, from 0, are set "
        "against the others, such as 0,2,4; else half of an even T",
    )
    add("--batch", type=str, help=f"a table of shapes instead: {', '.join(BATCHES)}, or several")
    add("--samples", type=int, help="continuous inputs instead of symbols: a lower bound from a table of so many drawn "
        "Starts and Ends, for any T")  # fmt: skip
    add("--runs", type=int, default=2, help="with other primes and weights, until the rank is proved")
    add("--seed", type=int, default=0, help="of the weights of the first run")
    add("--start", choices=STARTS, default="ones", help="WH h0 = 1, or a start that is drawn")
    add("--backend", choices=BACKENDS, default="auto", help="of the elimination; one layer alone has none")
    add("--jobs", type=int, help="of a table: processes, each with one thread; else 1")
    add("--out", type=str, help="of a table: a file of JSON lines, in which the same command goes on")
    add("--draw", type=str, help="of one shape: a file.svg or file.dot for its tensor network")
    add("--format", choices=("text", "json"), default="text", help="how the answer is printed")
    add("--json", action="store_true", help="the same as --format json")
    return made


def run(arguments: Any, console: Console) -> None:
    """Print the rank, or the table of ranks.

    Args:
        arguments: as the parser gives them.
        console: where to print.
    """
    if arguments.json:
        arguments.format = "json"
    try:
        _run(arguments, console)
    except ArgumentError as error:
        place, _, name = error.where.rpartition(".")
        if place in _ASKED and name in vars(arguments):
            raise error.told(where=f"--{name}") from None
        if error.where == "the table of Start and End":
            raise error.told(remedy=smaller(arguments)) from None
        raise


def _run(asked: Any, console: Console) -> None:
    check_given(asked)
    if asked.batch is not None:
        _table(asked, shapes_of_batches(asked.batch), console)
        return
    sizes = [whole_numbers(getattr(asked, name), where=f"--{name}") for name in SIZES]
    for name, numbers in zip(SIZES, sizes, strict=True):
        if min(numbers) < 1:
            raise ArgumentError(where=f"--{name}", got=min(numbers), wanted="whole numbers of at least 1")
    count = math.prod(map(len, sizes))
    if count > MOST_SHAPES:
        raise ArgumentError(where="--inputs", got=f"{count:,} shapes in all", wanted=f"at most {MOST_SHAPES:,}")
    shapes = [Shape(*shape) for shape in product(*sizes)]
    if count > 1:
        for name in ("split", "samples"):
            if getattr(asked, name) is not None:
                got = getattr(asked, name)
                raise ArgumentError(where=f"--{name}", got=got, wanted="one shape: tables are of halves of words")
        if odd := [steps for steps in sizes[2] if steps % 2]:
            raise ArgumentError(where="--steps", got=odd[0], wanted="even numbers, or one shape with --split")
        _table(asked, shapes, console)
        return
    check_alone(asked)
    if asked.split == ALL:
        _profile(asked, shapes[0], console)
    else:
        _single(asked, shapes[0], console)


def _rank(asked: Any, shape: Shape, split: int | list[int] | None) -> GenericRank:
    sizes: dict[str, Any] = {**shape._asdict(), "split": split, "seed": asked.seed, "runs": asked.runs}
    if asked.samples is not None:
        return sampled_rank(**sizes, depth=asked.depth, samples=asked.samples, start=asked.start, backend=asked.backend)
    if asked.depth == 1 and not isinstance(split, list):  # which needs no table of words
        return shallow_rank(**sizes, start=asked.start)
    return generic_rank(**sizes, depth=asked.depth, start=asked.start, backend=asked.backend)


def _single(asked: Any, shape: Shape, console: Console) -> None:
    split = split_asked(asked.split)
    if asked.draw is not None:
        _check_drawn(Path(asked.draw), shape, asked.depth)
    found = _rank(asked, shape, split)
    bounds = None  # they are of a Start and an End, all but U1 of words, and over many steps have millions of digits
    if asked.samples is None and shape.steps <= MOST_STEPS and isinstance(found.split, int):
        bounds = shape_advice(**shape._asdict(), depth=asked.depth, split=found.split)
    if asked.draw is not None:
        _draw(Path(asked.draw), shape, asked.depth)
    if asked.format == "json":
        told = {
            **_told(found),
            "bounds": None if bounds is None else _told_bounds(found, bounds),
            "drawing": asked.draw,
        }
        say(console, json.dumps(told_in_json(told), indent=2))
        return
    say(console, found.describe())
    if bounds is not None:
        say(console, "\n".join(_compared(found, bounds)))
    if asked.draw is not None:
        say(console, f"Tensor network: {asked.draw}")


def _told(found: GenericRank) -> dict[str, Any]:
    """A rank for programs."""
    return {**asdict(found), "proved": found.proved, "sentence": found.sentence}


def _told_bounds(found: GenericRank, bounds: Advice) -> dict[str, Any]:
    """The bounds for programs, with the same words on them as people get."""
    numbers = {**asdict(bounds), "most": bounds.most, "least_is": _held(found.rank, bounds.least, bounds)}
    del numbers["parameters"]  # nobody counted them
    return {**numbers, "printed_is": _held(found.rank, bounds.printed, bounds)}


def _compared(found: GenericRank, bounds: Advice) -> list[str]:
    """The rank beside what is proved and conjectured."""
    lines = [
        f"  U1           {rank_text(bounds.state_bound)}: monomials of the states between Start and End",
        f"  U2           {rank_text(bounds.end_cap)}: words that the End, or the Start if it is less, can tell apart",
    ]
    if bounds.sharper < bounds.state_bound:
        lines.insert(
            1, f"  U1, sharper  {rank_text(bounds.sharper)}: less what the first step of the End cannot change"
        )
    if bounds.proved:
        lines.append(f"  Theorem 1    {rank_text(bounds.least)}: {_held(found.rank, bounds.least, bounds)}")
    else:
        # The thesis speaks of halves only; at other splits it is what the same argument would ask for.
        whose = "as printed" if 2 * bounds.split == bounds.steps else "as printed, carried over to this split"
        lines.append(f"  conjecture   {rank_text(bounds.printed)} {whose}: {_held(found.rank, bounds.printed, bounds)}")
        lines.append(f"  repaired     {rank_text(bounds.least)}: {_held(found.rank, bounds.least, bounds)}")
    return lines


def _held(rank: int, asked: int, bounds: Advice) -> str:
    if rank == asked:
        return "met with equality"
    if rank > asked:
        return "exceeded"
    return "FALSE here: no circuit reaches it" if bounds.most < asked else "not reached by any run"


def _profile(asked: Any, shape: Shape, console: Console) -> None:
    """The rank at every split."""
    ranks = [_rank(asked, shape, split) for split in range(1, shape.steps)]
    if asked.format == "json":
        say(console, json.dumps(told_in_json([_told(one) for one in ranks]), indent=2))
        return
    rows = [(str(one.split), str(one.rank), rank_text(one.upper), "yes" if one.proved else "no") for one in ranks]
    title = f"M = {shape.inputs}, R = {shape.width}, T = {shape.steps}, L = {asked.depth}"
    Table(columns=("Start", "rank", "at most", "proved"), rows=rows, left=0, title=title).print(console)


def _table(asked: Any, shapes: list[Shape], console: Console) -> None:
    if asked.draw is not None:
        raise ArgumentError(where="--draw", got="several shapes", wanted="one")

    def tell(row: RankRow, made: int, whole: int) -> None:
        if asked.format == "text" and row.seconds > 1:
            told = f"[{made}/{whole}] M = {row.inputs}, R = {row.width}, T = {row.steps}: {row.rank}"
            say(console, f"{told} ({row.seconds:.1f} s)")

    table = rank_table(
        shapes,
        depth=asked.depth,
        path=asked.out,
        jobs=1 if asked.jobs is None else asked.jobs,
        runs=asked.runs,
        seed=asked.seed,
        start=asked.start,
        backend=asked.backend,
        on_row=tell,
    )
    if asked.format == "json":
        rows = [{**asdict(row), "verdict": row.verdict, "certain": row.certain} for row in table.rows]
        told = {"depth": table.depth, "sentence": table.sentence, "rows": rows, "kept": asked.out}
        say(console, json.dumps(told_in_json(told), indent=2))
        return
    columns = ("M", "R", "T", "rank", "conjecture", "repaired", "U1", "U2", "verdict")
    notes = [table.sentence, *([f"Kept: {asked.out}"] if asked.out else [])]
    Table(columns=columns, rows=[_line(row) for row in table.rows], left=0, notes=notes).print(console)


def _line(row: RankRow) -> tuple[str, ...]:
    numbers = (row.rank, row.conjecture, row.repaired, row.state_bound, row.end_cap)
    verdict = row.verdict + ("" if row.certain else " (by chance at most)")
    return *map(str, row.shape), *map(rank_text, numbers), verdict


def _check_drawn(path: Path, shape: Shape, depth: int) -> None:
    """Refuse what cannot be drawn before anything is computed."""
    if path.suffix not in (".svg", ".dot"):
        raise ArgumentError(where="--draw", got=str(path), wanted="a file.svg or a file.dot")
    if path.is_dir():
        raise ArgumentError(where="--draw", got=f"{path}, a folder", wanted="a file.svg or a file.dot")
    if min(shape.steps, depth) < 1:
        return  # the rank has its own words for it
    nodes = network_counts(steps=shape.steps, depth=depth).nodes
    if nodes > MOST_DRAWN:
        raise ArgumentError(where="--draw", got=f"{nodes:,} nodes", wanted=f"a network of at most {MOST_DRAWN:,}")


def _draw(path: Path, shape: Shape, depth: int) -> None:
    network = circuit_network(inputs=shape.inputs, width=shape.width, steps=shape.steps, depth=depth)
    title = f"M = {shape.inputs}, R = {shape.width}, T = {shape.steps}, L = {depth}"
    text = network_svg(network, title=title, steps=shape.steps) if path.suffix == ".svg" else network_dot(network)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text)
