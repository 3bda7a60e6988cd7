"""The loop of every recipe: each step once; what is finished is found, what came to nothing is noted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from statewise.errors import DivergedError
from statewise.recipes.lines import Step
from statewise.recipes.recipe import Recipe
from statewise.recipes.request import Request
from statewise.recipes.together import make_together
from statewise.train.telling import say


@dataclass(frozen=True)
class Outcome:
    """What a recipe came to, as far as it has come.

    Args:
        recipe: the recipe.
        request: what was asked of it, completed.
        data: what it was made on: the text, or the sets of examples.
        measured: the finished runs.
        steps: how each was made, by its name.
        failed: why the others came to nothing, by name.
    """

    recipe: Recipe
    request: Request
    data: Any
    measured: list[Any] = field(default_factory=list)
    steps: dict[str, Step] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def reproduce(
    recipe: Recipe,
    request: Request,
    folder: Path | str,
    *,
    data: Path | str | None = None,
    device: torch.device | str = "cpu",
    console: Console | None = None,
    after_each: Callable[[Outcome], None] | None = None,
    jobs: int = 1,
) -> Outcome:
    """Make the runs behind a table, those that are still to be made.

    A run that diverges is noted, and the others are made.

    Args:
        recipe: of the table.
        request: what of it.
        folder: where the runs are, each in a folder of its own.
        data: where the data set is; None for the usual places.
        device: where to compute.
        console: where to tell of the progress; None for silence.
        after_each: called when a run is finished, or was found to be.
        jobs: how many runs at a time, each in a process of its own.
    """
    request = recipe.complete(request)
    options: dict[str, Any] = {"data": data, "device": device, "console": console}
    failed = make_together(recipe, request, folder, jobs=jobs, **options) if jobs != 1 else {}
    maker = recipe.maker(request, Path(folder), data=data, device=torch.device(device), console=console)
    outcome = Outcome(recipe, request, maker.data, failed=failed)
    steps = recipe.planned(request)
    made: dict[str, Step] = {}  # by the name under which it was asked for
    for number, asked in enumerate(steps, start=1):
        if asked.name in failed:
            continue  # it would come to nothing again
        if asked.after is not None and asked.after.name in outcome.failed:
            outcome.failed[asked.name] = f"{asked.after.name} came to nothing"
            continue
        step: Any = asked if asked.after is None else replace(asked, after=made[asked.after.name])  # type: ignore[type-var]
        try:
            measured, found = maker.make(step, f"{number}/{len(steps)}")
        except DivergedError as error:
            outcome.failed[asked.name] = str(error)
            say(console, f"{asked.name} came to nothing: {error}")
            continue
        made[asked.name] = step.as_made(measured)
        outcome.measured.append(measured)
        outcome.steps[step.name] = step
        say(console, f"{step.name}: {measured} ({'found' if found else 'done'})")
        if after_each is not None:
            after_each(outcome)
    return outcome
