"""Small networks trained with and without mixing, each once, on full batches: what the recipes of mixup share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from statewise.errors import ArgumentError, DivergedError, RunFolderError
from statewise.layers import RecurrentLayer
from statewise.mixup import MarkovBeta, Mixup
from statewise.models.parts import make_head
from statewise.recipes.lines import Line, Sheet, group
from statewise.recipes.studies import MODEL, Computed, Studied, Study, StudyCase, means
from statewise.train.settings import MIXUPS
from statewise.train.stored import as_written
from statewise.train.tensor_file import read_tensors

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
class MixingCase(StudyCase):
    """One small network to be trained; the row of its line is the training, one of :data:`TRAININGS`."""

    @property
    def recorded(self) -> dict[str, Any]:
        """The settings, as a file holds them."""
        return {"settings": {"training": self.line.row, **asdict(self.settings)}}

    @property
    def mixup(self) -> Mixup | None:
        """How its training mixes; None for not at all."""
        site = SITES.get(self.line.row)
        return None if site is None else site(alpha=self.settings.alpha, rho=self.settings.rho)


@dataclass(frozen=True, kw_only=True)
class Trained(Studied):
    """What one small network came to."""

    def __str__(self) -> str:
        return f"test accuracy {self.found['accuracy']:.2%}, NLL {self.found['nll']:.4f}, {self.seconds:.1f} s"


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


class MixingRecipe(Study):
    """A recipe of small networks on generated data."""

    case = MixingCase
    kind = Trained

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

    def compute(self, case: MixingCase, data: Any) -> Computed:
        network = self.train(case)
        return Computed(found=self.measure(case, network), network=network)


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
    with as_written(path, "the weights of a trained network"):
        network.load_state_dict(read_tensors(path)[0])
    return network.eval()


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
