"""Table C.1 of Ziv 2019: permuted pixel MNIST by orthogonal networks of several depths."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from statewise.data.permuted_pixels import PermutedPixels, PixelSet, permuted_pixels
from statewise.errors import ArgumentError
from statewise.memory.budget import orthogonal_parameters
from statewise.recipes.lines import Line, Sheet
from statewise.recipes.recipe import Pace
from statewise.recipes.replica_studies import Place, ReplicaStudy, spread
from statewise.recipes.request import Request
from statewise.recipes.studies import Computed, Studied, StudyCase, verdicts
from statewise.sweep.pixels import PixelTask
from statewise.sweep.trial import Trial

#: By layers and channels: the size and the test accuracy as printed.
PUBLISHED = {
    "2x128": ("26k", 96.3),
    "1x256": ("36K", 96.1),
    "1x360": ("69K", 96.2),
    "1x512": ("137K", 96.6),
    "3x256": ("167K", 97.2),
    "1x600": ("187K", 96.8),
}
#: Of two networks for 40,000 iterations, after which most have settled; the wide ones by the size of their matrices.
PACES = {
    "2x128": Pace(gpu=200, cpu=40_000),
    "1x256": Pace(gpu=250, cpu=65_000),
    "1x360": Pace(gpu=500, cpu=130_000),
    "1x512": Pace(gpu=1000, cpu=260_000),
    "3x256": Pace(gpu=600, cpu=200_000),
    "1x600": Pace(gpu=1400, cpu=360_000),
}
WITHIN = 0.5
SMOKE_PIXELS = 9
#: How a run has ended, in a word of the table.
ENDED = {
    "solved": "solved",
    "converged": "settled",
    "iterations": "capped",
    "stopped": "out of time",
    "diverged": "diverged",
}


@dataclass(frozen=True, kw_only=True)
class PixelSettings:
    """Networks of one size.

    Args:
        depth: layers.
        width: channels of each.
        lr: of everything but the orthogonal matrices.
        lr_recurrent: of these.
        iterations: at most; the thesis has 100,000.
        check_every: iterations from one look to the next.
        patience: looks without an improvement that are put up with.
        network_seconds: of training a row, at most; 0 for no limit.
        batch: images of an iteration.
        pixels: of an image.
        seeds: how many networks, side by side; the one with the least loss on held-out images is reported.
        seed: of the first.
        precision: of products on a CUDA device.
    """

    depth: int = 1
    width: int = 256
    lr: float = 1e-3
    lr_recurrent: float = 1e-4
    iterations: int = 100_000
    check_every: int = 1000
    patience: int = 10
    network_seconds: float = 0.0
    batch: int = 128
    pixels: int = 784
    seeds: int = 2
    seed: int = 0
    precision: str = "tf32"

    def __post_init__(self) -> None:
        if not 0 <= self.network_seconds < math.inf:
            wanted = "seconds, or 0 for no limit"
            raise ArgumentError(where="PixelSettings.network_seconds", got=self.network_seconds, wanted=wanted)

    def trials(self) -> list[Trial]:
        """The networks."""
        told = {name: getattr(self, name) for name in ("lr", "lr_recurrent", "iterations", "check_every", "patience")}
        return [
            Trial(
                task=PixelTask(pixels=self.pixels),
                depth=self.depth,
                width=self.width,
                batch=self.batch,
                seed=self.seed + seed,
                precision=self.precision,
                **told,
            )
            for seed in range(self.seeds)
        ]


class PixelTable(ReplicaStudy):
    """Test accuracies of networks that read an image pixel by pixel, in a fixed random order."""

    name = "depth-memory/tableC1"
    title = "Permuted pixel MNIST"
    data = "mnist"
    rows = tuple(PUBLISHED)
    usual_rows = ("2x128", "1x256", "3x256")
    sizes = ("mnist",)
    usual_seeds = 2
    exact = False

    def settings(self, line: Line, *, smoke: bool) -> PixelSettings:
        depth, width = map(int, line.row.split("x"))
        if not smoke:
            return PixelSettings(depth=depth, width=width)
        small: dict[str, Any] = {"pixels": SMOKE_PIXELS, "iterations": 4, "check_every": 2, "batch": 4}
        return PixelSettings(depth=depth, width=6, **small)

    def steps(self, request: Request) -> list[Any]:
        made = super().steps(request)
        return [replace(case, settings=replace(case.settings, precision=request.precision)) for case in made]

    def pace_of(self, step: StudyCase) -> Pace:
        return PACES[step.line.row]

    def load(self, request: Request, *, data: Path | str | None, device: torch.device) -> PermutedPixels:
        return _tiny() if request.smoke else permuted_pixels(data=data, device=device)

    def compute(self, case: StudyCase, data: Place) -> Computed:
        settings: PixelSettings = case.settings
        until = time.monotonic() + settings.network_seconds if settings.network_seconds else None
        told: dict[str, Any] = {"replicas": settings.seeds, "until": until}
        outcomes = data.train(case, settings.trials(), **told)
        chosen = min(outcomes, key=lambda outcome: outcome.loss)
        sizes = {"inputs": 1, "classes": 10, "depth": settings.depth, "width": settings.width}
        counts = {count: orthogonal_parameters(**sizes, count=count) for count in ("true", "thesis")}
        found = {"accuracy": chosen.accuracy, "true": counts["true"], "thesis": counts["thesis"], **spread(outcomes)}
        return Computed(found=found)

    def describe(self, data: Place) -> dict[str, Any]:
        return {"name": self.data, "train": len(data.data.train), "valid": len(data.data.valid)}

    def sheet(self, measured: Sequence[Studied], request: Request) -> Sheet:
        columns = ["layers x channels", "whose", "parameters", "as printed", "test accuracy %", "all runs %"]
        columns += ["iterations", "ended", "seconds"]
        rows = []
        for one in measured:
            found, (size, published) = one.found, PUBLISHED[one.line.row]
            runs = ", ".join(f"{100 * accuracy:.2f}" for accuracy in found["accuracies"])
            many = [", ".join(map(str, found["iterations"])), ", ".join(ENDED[reason] for reason in found["reasons"])]
            ours = [f"{found['true']:,}", f"{found['thesis']:,}", f"{100 * found['accuracy']:.2f}", runs, *many]
            rows.append([one.line.row, "ours", *ours, f"{one.seconds:.0f}"])
            whose = "published (not comparable)" if request.smoke else "published"
            rows.append([one.line.row, whose, "-", size, f"{published:.1f}", "-", "-", "-", "-"])
        return Sheet(columns, rows, 2)

    def notes(self, measured: Sequence[Studied]) -> list[str]:
        return [
            "One pixel a step, 784 steps, in the published order; 55,000 images to train on, 5,000 to choose by, "
            "10,000 to test. Of the runs of a row the one with the least loss on the 5,000 is reported. The sizes that "
            "the thesis prints count the matrices between layers as skew-symmetric; as they are trained there are "
            "more. The thesis trains up to 100,000 iterations with the best of several rates.",
            *verdicts(claims(measured)),
        ]


def claims(measured: Sequence[Studied]) -> list[tuple[str, bool]]:
    """Whether accuracies are near the printed ones; only of what was made, and not of a smoke run.

    Args:
        measured: finished lines.
    """
    answers: list[tuple[str, bool]] = []
    for one in measured:
        if not one.smoke:
            ours, published = 100 * one.found["accuracy"], PUBLISHED[one.line.row][1]
            text = f"{one.line.row}: {ours:.2f} is within {WITHIN} points of {published} or above"
            answers.append((text, ours >= published - WITHIN))
    return answers


def _tiny() -> PermutedPixels:
    """Noise in the shape of images."""
    generator = torch.Generator().manual_seed(0)

    def some(count: int) -> PixelSet:
        values = torch.randint(0, 256, (count, SMOKE_PIXELS), generator=generator, dtype=torch.uint8)
        return PixelSet(values=values, labels=torch.randint(0, 10, (count,), generator=generator))

    return PermutedPixels(train=some(20), valid=some(8), test=some(8))


RECIPES: tuple[Any, ...] = (PixelTable(),)
