"""Several runs of a recipe at a time, each in a process of its own with one thread."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import torch
from rich.console import Console

from statewise.errors import ArgumentError, DivergedError
from statewise.recipes.recipe import Recipe
from statewise.recipes.request import Request
from statewise.train.telling import say


def make_together(
    recipe: Recipe,
    request: Request,
    folder: Path | str,
    *,
    jobs: int,
    data: Path | str | None = None,
    device: torch.device | str = "cpu",
    console: Console | None = None,
) -> None:
    """Make the runs of a recipe that wait for no other, some at a time; whoever asks for the table finds them made.

    Args:
        recipe: of the table.
        request: what of it.
        folder: where the runs go, each in a folder of its own.
        jobs: how many at a time.
        data: where the data set is; None for the usual places.
        device: where to compute: a CPU.
        console: where to tell of the progress; None for silence.
    """
    if type(jobs) is not int or jobs < 1:
        raise ArgumentError(where="--jobs", got=jobs, wanted="a whole number >= 1")
    if torch.device(device).type != "cpu":
        raise ArgumentError(
            where="--jobs", got=f"{jobs} on {device}", wanted="a CPU", remedy="On an accelerator runs go one by one."
        )
    request = recipe.complete(request)
    alone = [number for number, step in enumerate(recipe.planned(request)) if step.after is None]
    # A fresh interpreter: threads of torch do not survive a fork.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        asked = [pool.submit(_make, recipe, request, Path(folder), data, number) for number in alone]
        for future in as_completed(asked):
            say(console, future.result())


def _make(recipe: Recipe, request: Request, folder: Path, data: Path | str | None, number: int) -> str:
    torch.set_num_threads(1)
    maker = recipe.maker(request, folder, data=data, device=torch.device("cpu"), console=None)
    step = recipe.planned(request)[number]
    try:
        measured, _ = maker.make(step, "")
    except DivergedError as error:
        return f"{step.name} came to nothing: {error}"
    return f"{step.name}: {measured}"
