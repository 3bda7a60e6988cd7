"""Figure 1 of Karamzade et al. 2020: half moons read in two steps, with and without mixing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from statewise.analysis import Calibration, calibration
from statewise.errors import ArgumentError
from statewise.layers import RNN
from statewise.mixup import Mixup
from statewise.recipes.lines import Line, Sheet
from statewise.recipes.mixing import (
    TRAININGS,
    MixingCase,
    MixingRecipe,
    MixingSettings,
    SmallNetwork,
    Trained,
    beside_reference,
    load_network,
    train_full_batch,
)
from statewise.recipes.published_moons import HALFMOONS
from statewise.recipes.request import Request
from statewise.recipes.studies import means, verdicts

NOISES = {"clean": 0.0, "noisy": 0.3}
TEST_SEED = 999
#: The grid on which the probabilities are looked at: left, right, columns; bottom, top, rows.
ACROSS, UP = (-2.0, 3.0, 201), (-1.5, 2.0, 141)
UNSURE = 0.1  # the band: where neither class has less than this
_MEASURES = {"accuracy": ("accuracy", 4), "nll": ("NLL", 4), "confidence": ("mean max-prob", 4), "band": ("band", 3)}


@dataclass(frozen=True, kw_only=True)
class MoonSettings(MixingSettings):
    """How a network learns the moons.

    Args:
        noise: standard deviation of what is added to every coordinate.
        points: to train on.
        test_points: to test on.
    """

    steps: int = 2000
    noise: float = 0.0
    points: int = 300
    test_points: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("points", 2), ("test_points", 2), ("noise", 0)):
            if not getattr(self, name) >= least:
                wanted = f"a number >= {least}"
                raise ArgumentError(where=f"MoonSettings.{name}", got=getattr(self, name), wanted=wanted)


class HalfMoons(MixingRecipe):
    """How each training fares on clean and on noisy moons, and how wide it is unsure between them."""

    name = "sequence-mixup/halfmoons"
    title = "Half moons in two steps (Figure 1)"
    rows = TRAININGS
    usual_rows = TRAININGS
    sizes = tuple(NOISES)
    usual_seeds = 5
    seconds = 4.0

    def complete(self, request: Request) -> Request:
        return super().complete(replace(request, sizes=request.sizes or self.sizes))

    def settings(self, line: Line, *, smoke: bool) -> MoonSettings:
        usual = MoonSettings(steps=20, points=40, test_points=200) if smoke else MoonSettings()
        return replace(usual, noise=NOISES[line.size])

    def train(self, case: MixingCase) -> SmallNetwork:
        return train_moons(case)

    def measure(self, case: MixingCase, network: SmallNetwork) -> dict[str, float]:
        return measure_moons(case, network)

    def describe(self, data: Any) -> dict[str, Any]:
        return {"name": self.data, "noise": NOISES, "test_seed": TEST_SEED}

    def sheet(self, measured: Sequence[Trained], request: Request) -> Sheet:
        return beside_reference(measured, _MEASURES, lambda line: HALFMOONS[line.size, line.row], smoke=request.smoke)

    def notes(self, measured: Sequence[Trained]) -> list[str]:
        return [
            "Means ± standard deviations over the seeds. The paper shows pictures and prints no numbers: the reference "
            "is an earlier implementation of the same settings, with the numbers of the project's specification. Band "
            "is the share of the grid on [-2, 3] x [-1.5, 2] where 0.1 < p < 0.9; a wide band at a small NLL is a "
            "network that knows where it does not know.",
            *verdicts(claims(measured)),
        ]


def half_moons(
    points: int, noise: float, seed: int
) -> tuple[Float[np.ndarray, "points 2"], Int[np.ndarray, " points"]]:
    """Two half circles that reach into each other, as points of the plane and their classes.

    With ``a`` evenly spaced on [0, pi], class 0 is ``(cos a, sin a)`` and class 1 is ``(1 - cos a, 1/2 - sin a)``; to
    every coordinate normal noise is added. An odd point belongs to class 1.

    Args:
        points: how many.
        noise: standard deviation.
        seed: of the noise.

    >>> points, labels = half_moons(4, 0.0, seed=0)
    >>> points.round(6).tolist(), labels.tolist()
    ([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.5], [2.0, 0.5]], [0, 0, 1, 1])
    """
    outer, inner = (np.linspace(0, np.pi, count) for count in (points // 2, points - points // 2))
    upper = np.stack([np.cos(outer), np.sin(outer)], 1)
    lower = np.stack([1 - np.cos(inner), 0.5 - np.sin(inner)], 1)
    moved = np.concatenate([upper, lower]) + noise * np.random.default_rng(seed).standard_normal((points, 2))
    return moved, np.repeat([0, 1], [len(outer), len(inner)])


def as_sequences(points: Float[np.ndarray, "points 2"]) -> Float[Tensor, "2 points 1"]:
    """Points as sequences of two steps: the first coordinate, then the second.

    Args:
        points: of the plane.
    """
    return torch.from_numpy(np.ascontiguousarray(points.T)).float()[..., None]


def new_network(case: MixingCase) -> SmallNetwork:
    """The network of a case, untrained."""
    return SmallNetwork(RNN, 1, case.settings.hidden, 2, case.settings.seed)


def train_moons(case: MixingCase) -> SmallNetwork:
    """Train the network of a case; the head reads the last state.

    Args:
        case: what is asked.
    """
    settings, network = case.settings, new_network(case)
    points, classes = half_moons(settings.points, settings.noise, settings.seed)
    inputs, labels = as_sequences(points), torch.from_numpy(classes)

    def loss(network: SmallNetwork, mixup: Mixup | None, generator: torch.Generator) -> Tensor:
        if mixup is None:
            return F.cross_entropy(network.head(network.states(inputs)[-1]), labels)
        features, pairs = mixup.pooled(network.layer, inputs, generator=generator)
        return pairs.classification(network.head(features), labels)

    train_full_batch(network, case, loss)
    return network


@torch.no_grad()
def log_probabilities(network: SmallNetwork, points: Float[np.ndarray, "points 2"]) -> Float[Tensor, "points 2"]:
    """What a network says of points of the plane.

    Args:
        network: trained.
        points: of the plane.
    """
    logits: Tensor = network.head(network.states(as_sequences(points))[-1])
    return logits.double().log_softmax(1)


def probability_map(network: SmallNetwork) -> Float[np.ndarray, "rows columns"]:
    """The probability of class 1 on the grid, a row for each height from the lowest upwards.

    Args:
        network: trained.
    """
    across, up = np.meshgrid(np.linspace(*ACROSS), np.linspace(*UP))
    found = log_probabilities(network, np.stack([across.ravel(), up.ravel()], 1))[:, 1].exp()
    return found.numpy().reshape(across.shape)


def calibration_of(case: MixingCase, network: SmallNetwork) -> Calibration:
    """The calibration of a network on the test points.

    Args:
        case: what was asked.
        network: trained.
    """
    points, classes = half_moons(case.settings.test_points, case.settings.noise, TEST_SEED)
    return calibration(log_probabilities(network, points), torch.from_numpy(classes))


def measure_moons(case: MixingCase, network: SmallNetwork) -> dict[str, float]:
    """The numbers of a trained network.

    Args:
        case: what was asked.
        network: trained.
    """
    found, shares = calibration_of(case, network), probability_map(network)
    return {
        "accuracy": found.accuracy,
        "nll": found.nll,
        "confidence": found.mean_confidence,
        "band": float(((shares > UNSURE) & (shares < 1 - UNSURE)).mean()),
        "ece": found.ece,
        "brier": found.brier,
    }


def claims(measured: Sequence[Trained]) -> list[tuple[str, bool]]:
    """What the figure claims, in numbers, and whether it holds; only of what was made, and not of a smoke run.

    Args:
        measured: finished runs.
    """
    found = means([run for run in measured if not run.smoke])
    answers = []
    if (clean := found.get(("clean", "pre-output"))) is not None:
        text = "Clean, pre-output: NLL in [0.0280, 0.0305] and mean max-prob in [0.970, 0.973] (theory: 0.0285, 0.9719)"
        inside = 0.0280 <= clean["nll"].value <= 0.0305 and 0.970 <= clean["confidence"].value <= 0.973
        answers.append((text, inside))
    standard, mixed = found.get(("noisy", "standard")), found.get(("noisy", "pre-output"))
    if standard is not None and mixed is not None:
        apart = mixed["nll"].value < 0.30 < 0.45 < standard["nll"].value
        answers.append(("Noisy: NLL of pre-output < 0.30 < 0.45 < NLL of standard", apart))
        wider = mixed["band"].value > 2 * standard["band"].value
        answers.append(("Noisy: the band of pre-output is more than twice that of standard", wider))
    return answers


def trained_network(case: MixingCase, folder: Path) -> SmallNetwork:
    """The network of a finished run.

    Args:
        case: what was asked.
        folder: where the runs are.
    """
    return load_network(new_network(case), case, folder)


RECIPES = (HalfMoons(),)
