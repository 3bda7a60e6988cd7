"""Which options of ``statewise memory rank`` go together, and what to do where a table is too large."""

from __future__ import annotations

from typing import Any

from statewise.commands.shared import split_list
from statewise.commands.whole_numbers import whole_numbers
from statewise.errors import ArgumentError
from statewise.memory.rank_table_cases import BATCHES, Shape

ALL = "all"
SIZES = ("inputs", "width", "steps")
_CONTINUOUS = (
    "--samples 1000 needs no such table, but answers another question: a lower bound on the rank on continuous inputs, "
    "any vectors instead of symbols, which can be larger."
)


def check_given(asked: Any) -> None:
    """Refuse sizes that are missing, or that a batch has of its own.

    Args:
        asked: as the parser gives it.
    """
    remedy = "For example: statewise memory rank --inputs 6 --width 5 --steps 4 --depth 3"
    if asked.batch is not None:
        given = [name for name in (*SIZES, "split", "samples") if getattr(asked, name) is not None]
        if given:
            got = " and ".join(f"--{name}" for name in given)
            raise ArgumentError(where="--batch", got=f"{got} with it", wanted="the shapes of the batch alone")
    for name in SIZES if asked.batch is None else ():
        if getattr(asked, name) is None:
            raise ArgumentError(where=f"--{name}", got="nothing", wanted="a whole number, or --batch", remedy=remedy)
    if asked.depth is None:
        raise ArgumentError(where="--depth", got="nothing", wanted="a whole number of layers", remedy=remedy)


def check_alone(asked: Any) -> None:
    """Refuse options that one shape has no use for.

    Args:
        asked: as the parser gives it.
    """
    for name in ("out", "jobs"):
        if getattr(asked, name) is not None:
            raise ArgumentError(where=f"--{name}", got="one shape", wanted="a table: several shapes, or --batch")
    if asked.depth == 1 and asked.samples is None and asked.backend != "auto":
        wanted = "nothing, or a table, or --samples: one layer alone needs no elimination of a table"
        raise ArgumentError(where="--backend", got=f"{asked.backend} with one layer", wanted=wanted)
    if asked.split == ALL:
        if asked.draw is not None:
            raise ArgumentError(
                where="--draw", got=f"--split {ALL}", wanted="one split: the network is the same at each"
            )
        if whole_numbers(asked.steps, where="--steps")[0] < 2:
            wanted = f"at least 2 steps for --split {ALL}, so that there is a split"
            raise ArgumentError(where="--steps", got=asked.steps, wanted=wanted)
    elif isinstance(split_asked(asked.split), list) and asked.samples is not None:
        wanted = "one number with --samples: how many steps are the Start"
        raise ArgumentError(where="--split", got=asked.split, wanted=wanted)


def split_asked(text: str | None) -> int | list[int] | None:
    """Which steps are the rows: so many of the first ones, or a list of steps, counted from 0.

    Args:
        text: as it was typed.

    >>> split_asked("3"), split_asked("0, 2,4"), split_asked(None)
    (3, [0, 2, 4], None)
    """
    if text is None:
        return None
    entries = [entry.strip() for entry in text.split(",")]
    if not all(entry.isdecimal() for entry in entries):
        wanted = (
            f"how many steps are the Start, such as 3, {ALL} for every split, or steps counted from 0, such as 0,2,4; "
            "without it half of an even T"
        )
        raise ArgumentError(where="--split", got=text, wanted=wanted)
    return int(entries[0]) if len(entries) == 1 else [int(entry) for entry in entries]


def smaller(asked: Any) -> str:
    """What to do about a table that is too large.

    Args:
        asked: as the parser gives it.
    """
    if asked.batch is None and all(getattr(asked, name).isdecimal() for name in SIZES):
        return f"Take fewer steps or symbols. {_CONTINUOUS}"
    if asked.depth == 1:
        return "Ask for one shape at a time: one layer needs no table then, for any number of steps."
    return f"Leave large shapes out. For one shape alone, {_CONTINUOUS}"


def shapes_of_batches(text: str) -> list[Shape]:
    """The shapes of the batches of a list.

    Args:
        text: their names, with commas.

    >>> len(shapes_of_batches("small, medium"))
    220
    """
    shapes: list[Shape] = []
    for name in split_list(text):
        if name not in BATCHES:
            raise ArgumentError(where="--batch", got=name, wanted=f"some of {', '.join(BATCHES)}")
        shapes += BATCHES[name]
    if not shapes:
        raise ArgumentError(where="--batch", got="nothing", wanted=f"some of {', '.join(BATCHES)}")
    return shapes
