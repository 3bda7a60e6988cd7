"""Small networks trained with and without mixing, each once, on full batches: what the recipes of mixup share."""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from rich.console import Console
from torch import Tensor, nn

from statewise.errors import ArgumentError, DivergedError, RunFolderError
from statewise.files import write_atomically
from statewise.layers import RecurrentLayer
from statewise.mixup import MarkovBeta, Mixup
from statewise.models.parts import make_head
from statewise.recipes.lines import Line, Made, Mean, SeededRun, Sheet, group, names_of, override
from statewise.recipes.recipe import Recipe
from statewise.recipes.request import Request
from statewise.train.metrics import strict
from statewise.train.tag_settings import MIXUPS
from statewise.train.telling import say
from statewise.train.tensor_file import read_tensors, write_tensors

MODEL, RESULT = "model.safetensors", "result.json"
STANDARD = "standard"
SITES: Mapping[str, type[Mixup]] = {name: kind for name, kind in MIXUPS.items() if kind is not None}
TRAININGS = (STANDARD, *SITES)


@dataclass(frozen=True, kw_only=True)
class MixingSettings:
    """How a small network is trained: Adam on the whole training set.

    Args:
        hidden: units.
        lr: learning rate.
        steps: of Adam.
        alpha: of the mixing coefficients.
        rho: of the mixing coefficients; 0 for one coefficient a pair.
        seed: of data, weights and mixing.
    """

    hidden: int = 32
    lr: float = 0.01
    steps: int = 400
    alpha: float = 1.0
    rho: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("hidden", "steps"):
            if getattr(self, name) < 1:
                raise ArgumentError(where=f"{type(self).__name__}.{name}", got=getattr(self, name), wanted=">= 1")
        if not self.lr > 0:
            raise ArgumentError(where=f"{type(self).__name__}.lr", got=self.lr, wanted="a number > 0")
        MarkovBeta(self.alpha, self.rho)  # a slip is told before anything is made


@dataclass(frozen=True, kw_only=True)
class MixingCase(SeededRun):
    """One small network to be trained; the row of its line is the training, one of :data:`TRAININGS`."""

    @property
    def recorded(self) -> dict[str, Any]:
        """The settings, as a file holds them."""
        return {"settings": {"training": self.line.row, **asdict(self.settings)}}

    @property
    def settable(self) -> frozenset[str]:
        """What can be overridden."""
        return names_of(self.settings)

    def overridden(self, values: Mapping[str, Any]) -> MixingCase:
        """The same with other settings.

        Args:
            values: by name.
        """
        return replace(self, settings=override(self.settings, values))

    @property
    def mixup(self) -> Mixup | None:
        """How its training mixes; None for not at all."""
        site = SITES.get(self.line.row)
        return None if site is None else site(alpha=self.settings.alpha, rho=self.settings.rho)


@dataclass(frozen=True, kw_only=True)
class Trained(Made):
    """What one small network came to.

    Args:
        found: numbers by name.
        smoke: whether it was only tried out, so that nothing can be claimed of it.
    """

    found: Mapping[str, float] = field(default_factory=dict)
    smoke: bool = False

    def __str__(self) -> str:
        return f"test accuracy {self.found['accuracy']:.2%}, NLL {self.found['nll']:.4f}, {self.seconds:.1f} s"

    def numbers(self) -> dict[str, Any]:
        """What was measured."""
        return dict(self.found)


class SmallNetwork(nn.Module):
    """A recurrent layer and a linear head, whose weights come from a seed.

    Args:
        layer: makes the recurrent layer, as the classes of layers do.
        features: width of an input.
        hidden: units.
        classes: of the head.
        seed: of the weights.
    """

    def __init__(
        self, layer: Callable[..., RecurrentLayer], features: int, hidden: int, classes: int, seed: int
    ) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.layer = layer(features, hidden, generator=generator)
        self.head = make_head(hidden, classes, generator)

    def states(self, inputs: Float[Tensor, "steps batch features"]) -> Float[Tensor, "steps batch hidden"]:
        """The state after each step.

        Args:
            inputs: one sequence a column.
        """
        output: Tensor = self.layer(inputs)[0]
        return output


#: The loss of a network on its training set, given how to mix and where to draw it from.
Loss = Callable[[SmallNetwork, Mixup | None, torch.Generator], Tensor]


def train_full_batch(network: SmallNetwork, case: MixingCase, loss: Loss) -> None:
    """Train a network for as many steps as its case says.

    Args:
        network: changed in place.
        case: what is asked.
        loss: of the whole training set.
    """
    # Not the seed of the weights again: the coefficients would follow them.
    generator = torch.Generator().manual_seed(case.settings.seed + 2**32)
    optimizer, mixup = torch.optim.Adam(network.parameters(), lr=case.settings.lr), case.mixup
    network.train()
    for step in range(1, case.settings.steps + 1):
        optimizer.zero_grad()
        value = loss(network, mixup, generator)
        if not bool(value.isfinite()):
            raise DivergedError(
                where=f"step {step} of {case.name}", got=value.item(), wanted="a finite loss", step=step
            )
        value.backward()
        optimizer.step()
    network.eval()


class MixingMaker:
    """Trains one small network, or finds it trained.

    Args:
        train: makes the network of a case.
        measure: gives its numbers.
        folder: where the networks go, each in a folder of its own.
        console: where to tell of the progress; None for silence.
        smoke: whether the networks are only tried out.
    """

    def __init__(
        self,
        train: Callable[[MixingCase], SmallNetwork],
        measure: Callable[[MixingCase, SmallNetwork], Mapping[str, float]],
        folder: Path,
        console: Console | None,
        *,
        smoke: bool = False,
    ) -> None:
        self.train, self.measure, self.folder, self.console = train, measure, folder, console
        self.smoke = smoke
        self.data: dict[str, Any] = {}

    def make(self, step: MixingCase, number: str) -> tuple[Trained, bool]:
        """What training came to, and whether it was there.

        Args:
            step: what is asked.
            number: such as 2/5.
        """
        place, told = self.folder / step.name, strict(step.recorded, "settings")
        path = place / RESULT
        there = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if there.get("told") == told:
            return _trained(step, there, smoke=self.smoke), True
        say(self.console, f"[{number}] {step.name}")
        began = time.monotonic()
        network = self.train(step)
        found = strict(dict(self.measure(step, network)), "result")
        parameters = sum(parameter.numel() for parameter in network.parameters())
        whole = {"told": told, "found": found, "parameters": parameters, "seconds": round(time.monotonic() - began, 3)}
        place.mkdir(parents=True, exist_ok=True)
        write_tensors(place / MODEL, network.state_dict(), told)
        # Last, so that what has a result is whole.
        write_atomically(path, json.dumps(whole, indent=2, allow_nan=False) + "\n")
        return _trained(step, whole, smoke=self.smoke), False


class MixingRecipe(Recipe):
    """A recipe of small networks on generated data."""

    data = "generated"
    epochs = 0
    paces = {}  # noqa: RUF012
    curve = ("", "")

    @abstractmethod
    def settings(self, size: str, *, smoke: bool) -> MixingSettings:
        """How the networks of a size are trained; the seed is the request's.

        Args:
            size: one of the recipe's.
            smoke: whether they are only tried out.
        """

    @abstractmethod
    def train(self, case: MixingCase) -> SmallNetwork:
        """The trained network of a case.

        Args:
            case: what is asked.
        """

    @abstractmethod
    def measure(self, case: MixingCase, network: SmallNetwork) -> Mapping[str, float]:
        """The numbers of a trained network.

        Args:
            case: what was asked.
            network: trained.
        """

    def steps(self, request: Request) -> list[MixingCase]:
        return [
            MixingCase(
                line=Line(row=row, size=size), settings=replace(self.settings(size, smoke=request.smoke), seed=seed)
            )
            for size in request.sizes
            for row in request.rows
            for seed in range(request.seeds or 1)
        ]

    def maker(
        self,
        request: Request,
        folder: Path,
        *,
        data: Path | str | None,
        device: torch.device,
        console: Console | None,
    ) -> MixingMaker:
        return MixingMaker(self.train, self.measure, folder, console, smoke=request.smoke)


def load_network(network: SmallNetwork, case: MixingCase, folder: Path) -> SmallNetwork:
    """A network with the weights that its run ended with, in eval mode.

    Args:
        network: of the case, untrained; changed in place.
        case: what was asked.
        folder: where the runs are.
    """
    path = folder / case.name / MODEL
    if not path.exists():
        raise RunFolderError(where=str(path), got="nothing", wanted="a trained network", remedy="Reproduce it first.")
    network.load_state_dict(read_tensors(path)[0])
    return network.eval()


def means(measured: Sequence[Trained]) -> dict[tuple[str, str], dict[str, Mean]]:
    """The mean of each number over the seeds, by size and row.

    Args:
        measured: finished runs.
    """
    return {
        (line.size, line.row): {name: Mean.of([float(run.found[name]) for run in runs]) for name in runs[0].found}
        for line, runs in group(measured).items()
    }


def beside_reference(
    measured: Sequence[Trained],
    measures: Mapping[str, tuple[str, int]],
    reference: Callable[[Line], Mapping[str, float]],
    *,
    smoke: bool,
) -> Sheet:
    """A table with two rows for each line: our means, and below them the numbers to hold them against.

    Args:
        measured: finished runs.
        measures: the heading and the digits of each number, by its name.
        reference: the numbers of a line.
        smoke: whether ours cannot be compared.
    """
    columns = ["training", "data", "whose", *(heading for heading, _ in measures.values()), "ECE", "runs", "seconds"]
    found, rows = means(measured), []
    for line, runs in group(measured).items():
        ours, theirs = found[line.size, line.row], reference(line)
        told = [ours[name].text(digits) for name, (_, digits) in measures.items()]
        seconds = f"{sum(run.seconds for run in runs):.0f}"
        rows.append([line.row, line.size, "ours", *told, ours["ece"].text(3), str(len(runs)), seconds])
        whose = "reference (not comparable)" if smoke else "reference"
        told = [f"{theirs[name]:.{digits}f}" for name, (_, digits) in measures.items()]
        rows.append([line.row, line.size, whose, *told, "-", "-", "-"])
    return Sheet(columns, rows, 3)


def verdicts(claims: Sequence[tuple[str, bool]]) -> list[str]:
    """Claims as sentences of notes.

    >>> verdicts([("2 > 1", True), ("1 > 2", False)])
    ['2 > 1: holds.', '1 > 2: DOES NOT HOLD.']
    """
    return [f"{text}: {'holds' if holds else 'DOES NOT HOLD'}." for text, holds in claims]


def _trained(step: MixingCase, there: Mapping[str, Any], *, smoke: bool) -> Trained:
    return Trained(
        name=step.name,
        line=step.line,
        seed=step.settings.seed,
        seconds=there["seconds"],
        parameters=there["parameters"],
        found=there["found"],
        smoke=smoke,
    )
