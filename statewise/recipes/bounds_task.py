"""A task of memory whose law is known, and the plain Elman network that learns it: what certificates are tried on."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from statewise.errors import ArgumentError, DivergedError
from statewise.layers import RNN

FEATURES = 2
#: No input is longer, whatever is drawn: √(0.9² + 0.3²) < 1. Known before any data is.
INPUT_BOUND = 1.0
_NOISE, _SIGNAL = 0.3, 0.9


@dataclass(frozen=True, kw_only=True)
class TaskSettings:
    """How a network learns to say at the end what the first input was.

    Args:
        hidden: units.
        sequences: m, to train on and to certify with.
        random_labels: whether labels are drawn without regard to the inputs, so that nothing can be learnt.
        length: t.
        lr: of Adam.
        batch: sequences of a step.
        steps: of training.
        weight_decay: of Adam.
        test_sequences: fresh ones, for the error.
        delta: δ of the certificate.
        seed: of data, weights and batches.
    """

    hidden: int = 4
    sequences: int = 100_000
    random_labels: bool = False
    length: int = 20
    lr: float = 0.01
    batch: int = 512
    steps: int = 1500
    weight_decay: float = 1e-4
    test_sequences: int = 100_000
    delta: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("hidden", 1), ("sequences", 2), ("length", 1), ("batch", 1), ("steps", 1)):
            if getattr(self, name) < least:
                got = getattr(self, name)
                raise ArgumentError(where=f"TaskSettings.{name}", got=got, wanted=f"a whole number >= {least}")
        if not self.lr > 0:
            raise ArgumentError(where="TaskSettings.lr", got=self.lr, wanted="a number > 0")


def draw(
    sequences: int, length: int, seed: int, *, random_labels: bool = False
) -> tuple[Float[Tensor, "sequences steps 2"], Int[Tensor, " sequences"]]:
    """Independent sequences: small noise, but for the first coordinate of the first input, ±0.9 as the class is 1 or 0.

    Args:
        sequences: how many.
        length: t.
        seed: of all of them.
        random_labels: whether the classes have nothing to do with them.

    >>> inputs, labels = draw(3, 20, seed=0)
    >>> (inputs[:, 0, 0] > 0).long().equal(labels), bool(inputs.norm(dim=2).max() < INPUT_BOUND)
    (True, True)
    """
    generator = torch.Generator().manual_seed(seed)
    inputs = (2 * torch.rand(sequences, length, FEATURES, generator=generator) - 1) * _NOISE
    labels = torch.randint(2, (sequences,), generator=generator)
    inputs[:, 0, 0] = (2 * labels - 1) * _SIGNAL
    if random_labels:
        labels = torch.randint(2, (sequences,), generator=generator)
    return inputs, labels


class PlainClassifier(nn.Module):
    """``h_s = tanh(U h_{s-1} + W x_s)``, ``y = V h_t``, without any bias, as Chen, Li & Zhao 2019 have it.

    Args:
        hidden: units.
        seed: of the weights: U begins near 0.9 times the identity.
        features: of an input.
        classes: how many.
    """

    def __init__(self, hidden: int, seed: int, *, features: int = FEATURES, classes: int = 2) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.layer = RNN(features, hidden, bias=False, batch_first=True, generator=generator)
        # Linear fills its weights from the global generator, whatever comes afterwards.
        with torch.random.fork_rng(devices=[]):
            self.head = nn.Linear(hidden, classes, bias=False)
        with torch.no_grad():
            near = 0.9 * torch.eye(hidden) + 0.05 * torch.randn(hidden, hidden, generator=generator)
            self.layer.get_parameter("weight_hh_l0").copy_(near)
            self.layer.get_parameter("weight_ih_l0").copy_(0.5 * torch.randn(hidden, features, generator=generator))
            self.head.weight.copy_(0.5 * torch.randn(classes, hidden, generator=generator))

    def forward(self, inputs: Float[Tensor, "sequences steps features"]) -> Float[Tensor, "sequences classes"]:
        """The logits after the last step."""
        logits: Tensor = self.head(self.layer(inputs)[0][:, -1])
        return logits


def train_plain(settings: TaskSettings) -> PlainClassifier:
    """Train a network on batches of its sequences.

    Args:
        settings: which.
    """
    inputs, labels = training_data(settings)
    network = PlainClassifier(settings.hidden, settings.seed)
    # Not the seed of the weights again: the batches would follow them.
    generator = torch.Generator().manual_seed(settings.seed + 2**32)
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
    batch = min(settings.batch, settings.sequences)
    for step in range(1, settings.steps + 1):
        chosen = torch.randint(settings.sequences, (batch,), generator=generator)
        loss = F.cross_entropy(network(inputs[chosen]), labels[chosen])
        if not bool(loss.isfinite()):
            raise DivergedError(where=f"step {step}", got=loss.item(), wanted="a finite loss", step=step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return network.eval()


def training_data(settings: TaskSettings) -> tuple[Tensor, Tensor]:
    """The sequences that a network is trained on and certified with.

    Args:
        settings: which.
    """
    return draw(settings.sequences, settings.length, settings.seed, random_labels=settings.random_labels)


@torch.no_grad()
def fresh_error(network: nn.Module, settings: TaskSettings) -> float:
    """The share of wrong answers on fresh sequences; a tie is wrong.

    Args:
        network: trained.
        settings: how many, and of which law.
    """
    inputs, labels = draw(
        settings.test_sequences, settings.length, settings.seed + 2**33, random_labels=settings.random_labels
    )
    wrong = 0
    for some, right in zip(inputs.split(4096), labels.split(4096), strict=True):
        logits = network(some)
        wrong += int((logits.gather(1, right[:, None])[:, 0] <= logits.gather(1, 1 - right[:, None])[:, 0]).sum())
    return wrong / settings.test_sequences
