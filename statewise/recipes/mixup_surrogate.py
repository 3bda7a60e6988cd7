"""A stand-in for Figure 5 of Karamzade et al. 2020 without licensed text: taggers of a hidden Markov chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from statewise.analysis import Calibration, Spectrum, calibration, every_spectrum, head_leakage, spectrum
from statewise.data.hidden_markov import HiddenMarkovFeatures, hidden_markov_features
from statewise.errors import ArgumentError
from statewise.layers import LSTM
from statewise.mixup import Mixup
from statewise.recipes.lines import Line, Sheet
from statewise.recipes.mixing import (
    MixingCase,
    MixingRecipe,
    MixingSettings,
    SmallNetwork,
    Trained,
    beside_reference,
    load_network,
    train_full_batch,
)
from statewise.recipes.published_moons import SURROGATE
from statewise.recipes.request import Request
from statewise.recipes.studies import means, verdicts

SIZE = "hmm"
CLASSES, FEATURES = 5, 8
TEST_SEED = 777
_MEASURES = {
    "accuracy": ("accuracy", 3),
    "nll": ("NLL", 3),
    "sigma_1": ("σ 1", 3),
    "sigma_5": ("σ 5", 3),
    "sigma_20": ("σ 20", 3),
    "variance": ("variance", 2),
    "leakage": ("leakage", 3),
    "effective_rank": ("effective rank", 1),
}


@dataclass(frozen=True, kw_only=True)
class SurrogateSettings(MixingSettings):
    """How a tagger learns the chain.

    Args:
        sequences: to train on.
        test_sequences: to test on.
    """

    sequences: int = 100
    test_sequences: int = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("sequences", "test_sequences"):
            if getattr(self, name) < 2:
                got = getattr(self, name)
                raise ArgumentError(where=f"SurrogateSettings.{name}", got=got, wanted="a number >= 2")


class Surrogate(MixingRecipe):
    """What each training does to likelihood and states of a tagger."""

    name = "sequence-mixup/surrogate"
    title = "Spectral compression in taggers of a hidden Markov chain"
    rows = tuple(SURROGATE)
    usual_rows = tuple(SURROGATE)
    sizes = (SIZE,)
    usual_seeds = 3
    seconds = 5.0

    def settings(self, line: Line, *, smoke: bool) -> SurrogateSettings:
        small = SurrogateSettings(steps=10, hidden=24, sequences=20, test_sequences=30)
        return small if smoke else SurrogateSettings()

    def train(self, case: MixingCase) -> SmallNetwork:
        return train_tagger(case)

    def measure(self, case: MixingCase, network: SmallNetwork) -> dict[str, float]:
        return measure_tagger(case, network)

    def describe(self, data: Any) -> dict[str, Any]:
        best = task(SurrogateSettings().test_sequences, TEST_SEED).best(causal=True)
        sizes = {"classes": CLASSES, "features": FEATURES, "test_seed": TEST_SEED}
        return {"name": self.data, **sizes, "best_accuracy": best.accuracy, "best_nll": best.nll}

    def sheet(self, measured: Sequence[Trained], request: Request) -> Sheet:
        return beside_reference(measured, _MEASURES, lambda line: SURROGATE[line.row], smoke=request.smoke)

    def notes(self, measured: Sequence[Trained]) -> list[str]:
        best = task(SurrogateSettings().test_sequences, TEST_SEED).best(causal=True)
        return [
            "Means ± standard deviations over the seeds; accuracy and NLL a step of the test sequences. States are "
            "those of the training sequences in eval mode: singular values of each class, centred, over the root of "
            "its states; variance within a class; leakage, the share of it that the read-out sees; all averaged over "
            "the classes. The reference is an earlier implementation of the same settings, with the numbers of the "
            "project's specification. Whoever knows the chain and "
            f"reads it in one direction has accuracy {best.accuracy:.3f} and NLL {best.nll:.3f} on the test sequences.",
            *verdicts(claims(measured)),
        ]


@cache
def task(sequences: int, seed: int) -> HiddenMarkovFeatures:
    """Sequences of the chain; the means of the classes are always the same.

    Args:
        sequences: how many.
        seed: of the chains and of their noise.
    """
    return hidden_markov_features(sequences, seed=seed, classes=CLASSES, width=FEATURES)


def tagged(sequences: int, seed: int) -> tuple[Float[Tensor, "steps batch features"], Int[Tensor, "steps batch"]]:
    """The same as a network reads it, time first.

    Args:
        sequences: how many.
        seed: of the chains and of their noise.
    """
    drawn = task(sequences, seed)
    return drawn.inputs.transpose(0, 1).contiguous(), drawn.targets.T.contiguous()


def new_network(case: MixingCase) -> SmallNetwork:
    """The network of a case, untrained."""
    return SmallNetwork(LSTM, FEATURES, case.settings.hidden, CLASSES, case.settings.seed)


def train_tagger(case: MixingCase) -> SmallNetwork:
    """Train the network of a case; the head reads every state.

    Args:
        case: what is asked.
    """
    network = new_network(case)
    inputs, labels = tagged(case.settings.sequences, case.settings.seed)

    def loss(network: SmallNetwork, mixup: Mixup | None, generator: torch.Generator) -> Tensor:
        if mixup is None:
            return F.cross_entropy(network.head(network.states(inputs)).flatten(0, 1), labels.flatten())
        output, pairs = mixup(network.layer, inputs, generator=generator)
        return pairs.cross_entropy(network.head(output), labels, reduction="token")

    train_full_batch(network, case, loss)
    return network


@torch.no_grad()
def training_states(
    case: MixingCase, network: SmallNetwork
) -> tuple[Float[Tensor, "rows hidden"], Int[Tensor, " rows"]]:
    """The states after each step of the training sequences, and their classes.

    Args:
        case: what was asked.
        network: trained.
    """
    inputs, labels = tagged(case.settings.sequences, case.settings.seed)
    return network.states(inputs).flatten(0, 1), labels.flatten()


@torch.no_grad()
def calibration_of(case: MixingCase, network: SmallNetwork) -> Calibration:
    """The calibration of a network on the steps of the test sequences.

    Args:
        case: what was asked.
        network: trained.
    """
    inputs, labels = tagged(case.settings.test_sequences, TEST_SEED)
    logits: Tensor = network.head(network.states(inputs)).flatten(0, 1)
    return calibration(logits.double().log_softmax(1), labels.flatten())


def spectra_of(case: MixingCase, network: SmallNetwork) -> tuple[Spectrum, ...]:
    """All spectra of the training states, for the figure.

    Args:
        case: what was asked.
        network: trained.
    """
    return every_spectrum(*training_states(case, network), classes=CLASSES)


def measure_tagger(case: MixingCase, network: SmallNetwork) -> dict[str, float]:
    """The numbers of a trained network.

    Args:
        case: what was asked.
        network: trained.
    """
    found, (states, labels) = calibration_of(case, network), training_states(case, network)
    values = spectrum(states, labels, classes=CLASSES, normalize="sqrt_n")
    return {
        "accuracy": found.accuracy,
        "nll": found.nll,
        **{f"sigma_{place}": float(values.mean_values[place - 1]) for place in (1, 5, 20)},
        "variance": values.mean(values.variances),
        "leakage": head_leakage(states, labels, network.head.weight).mean,
        "effective_rank": values.mean(values.effective_ranks),
        "participation_ratio": values.mean(values.participation_ratios),
        "stable_rank": values.mean(values.stable_ranks),
        "ece": found.ece,
        "brier": found.brier,
    }


def claims(measured: Sequence[Trained]) -> list[tuple[str, bool]]:
    """What the paper claims, in numbers, and whether it holds; only of what was made, and not of a smoke run.

    Args:
        measured: finished runs.
    """
    found = {row: numbers for (_, row), numbers in means([run for run in measured if not run.smoke]).items()}
    standard, answers = found.get("standard"), []
    for row in ("pre-output", "through-time"):
        if standard is not None and row in found:
            share = found[row]["nll"].value / standard["nll"].value
            answers.append((f"NLL of {row} below 0.7 of standard's ({share:.2f})", share < 0.7))
            smaller = all(found[row][name].value < standard[name].value for name in ("sigma_5", "sigma_20"))
            answers.append((f"σ 5 and σ 20 of {row} below those of standard", smaller))
    if "pre-output" in found:
        answers.append(("Head leakage of pre-output below 0.08", found["pre-output"]["leakage"].value < 0.08))
    if standard is not None:
        answers.append(("Head leakage of standard above 0.2", standard["leakage"].value > 0.2))
    return answers


def trained_network(case: MixingCase, folder: Path) -> SmallNetwork:
    """The network of a finished run.

    Args:
        case: what was asked.
        folder: where the runs are.
    """
    return load_network(new_network(case), case, folder)


RECIPES = (Surrogate(),)
