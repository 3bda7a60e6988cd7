"""A recurrent network over the rows of pictures that is short to describe, and how it is trained to be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from statewise.bounds.description import describe
from statewise.bounds.grid import prefix_nats
from statewise.bounds.quantised import quantise, rounded

#: Levels of each tensor.
LEVELS: Mapping[str, int] = {"W": 9, "U": 5, "b": 9, "V": 5, "c": 9}
WINDOW, STRIDE = 4, 2
_CELLS = 4  # kinds of recurrence among which this one was chosen
_FLOAT = 0.15  # share of the training before weights are rounded
_RAMP = 0.25  # share over which the price comes in
_SMOOTH = 0.2  # width of a level, in levels, for the soft counts


class SharedRows(nn.Module):
    """A light gated recurrence over rows whose weights are the same at every place of a row.

    At each place of the row a few channels see a window of the new row and the states of the place and its two
    neighbours: ``a = W x + b + U [h_left, h, h_right]``, ``h <- n + z (h - n)``, ``z = sigmoid(a_1)``,
    ``n = tanh(a_2)``. The head reads the mean state of each of some bins of places. A minimal gated unit without a
    reset, whose matrices are convolutions: few numbers for many units.

    Args:
        channels: at each place.
        bins: that the head reads.
        classes: of the head.
        generator: source of the weights.
    """

    def __init__(self, channels: int, *, bins: int, classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.channels, self.bins = channels, bins

        def normal(rows: int, columns: int, gain: float) -> nn.Parameter:
            return nn.Parameter(gain / math.sqrt(columns) * torch.randn(rows, columns, generator=generator))

        self.W, self.U = normal(2 * channels, WINDOW, 1.5), normal(2 * channels, 3 * channels, 0.9)
        self.V, self.c = normal(classes, channels * bins, 1.0), nn.Parameter(torch.zeros(classes))
        # Gates begin by keeping the state.
        self.b = nn.Parameter(torch.cat([torch.ones(channels), torch.zeros(channels)]))

    def forward(self, rows: Float[Tensor, "batch height width"]) -> Float[Tensor, "batch classes"]:
        """The logits of pictures.

        Args:
            rows: grey values from 0 to 1, a row a step.
        """
        seen = F.pad(rows, (1, 1)).unfold(2, WINDOW, STRIDE).transpose(0, 1)
        driven = seen @ self.W.T + self.b
        state = rows.new_zeros(*driven.shape[1:3], self.channels)
        for step in driven.unbind(0):
            near = F.pad(state, (0, 0, 1, 1))
            sums = step + torch.cat([near[:, :-2], near[:, 1:-1], near[:, 2:]], dim=2) @ self.U.T
            fresh = torch.tanh(sums[..., self.channels :])
            state = fresh + torch.sigmoid(sums[..., : self.channels]) * (state - fresh)
        places = torch.arange(state.shape[1], device=rows.device) * self.bins // state.shape[1]
        means = [state[:, places == each].mean(1) for each in range(self.bins)]
        return torch.cat(means, dim=1) @ self.V.T + self.c

    @property
    def architecture_nats(self) -> float:
        """The price of having chosen this architecture: its sizes, and one of a few recurrences."""
        return math.fsum(map(prefix_nats, (self.channels, self.bins, STRIDE, WINDOW))) + math.log(_CELLS)


@dataclass(frozen=True, kw_only=True)
class SharedTraining:
    """How such a network is trained: Adam, a cosine rate, first with free weights, then with rounded ones.

    The loss is ``(1 - p^q) / q`` of the right class, nearer to the error than its logarithm, and the nats of the
    weights, each as much as ``price`` sequences' loss.

    Args:
        epochs: passes over the pictures.
        batch: pictures of an update.
        lr: the largest rate.
        price: of a nat.
        power: q at the end.
    """

    epochs: int
    batch: int = 500
    lr: float = 0.04
    price: float = 2.0
    power: float = 0.5


def train_shared(
    network: SharedRows,
    rows: Float[Tensor, "pictures height width"],
    labels: Int[Tensor, "pictures"],
    training: SharedTraining,
    *,
    generator: torch.Generator,
) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """Train, and give the rounded weights after each epoch in which weights were rounded.

    Args:
        network: with fresh weights, where the pictures are.
        rows: the pictures.
        labels: their classes.
        training: how.
        generator: of the order, on the host.
    """
    free: dict[str, Tensor] = dict(network.named_parameters())
    octaves = {name: torch.zeros((), device=rows.device, requires_grad=True) for name in free}  # log2 of each step
    adam = torch.optim.Adam([*free.values(), *octaves.values()], lr=training.lr, eps=1e-10)
    batches = max(1, len(rows) // training.batch)
    updates, done, rounding = training.epochs * batches, 0, False
    for epoch in range(1, training.epochs + 1):
        order = torch.randperm(len(rows), generator=generator).to(rows.device)
        for chosen in order.tensor_split(batches):
            share = done / updates
            if share >= _FLOAT and not rounding:
                rounding = True
                _first_steps(free, octaves)
            ramp = min(1.0, max(0.0, (share - _FLOAT) / _RAMP))
            rate = min(1.0, done / 200) * max(0.002, 0.5 * (1 + math.cos(math.pi * share)))
            adam.param_groups[0]["lr"] = training.lr * rate
            weights = _rounded(free, octaves) if rounding else free
            entropy = F.cross_entropy(
                functional_call(network, weights, (rows[chosen],)), labels[chosen], reduction="none"
            )
            power = max(0.02, training.power * ramp)
            loss = (-torch.expm1(-power * entropy) / power).mean()
            if rounding:
                loss = loss + ramp * training.price / len(rows) * soft_nats(free, octaves)
            adam.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(free.values(), 1.0)
            adam.step()
            done += 1
        if rounding:
            yield epoch, kept(free, octaves)


def kept(free: Mapping[str, Tensor], octaves: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The rounded weights, exactly on their levels.

    Args:
        free: what the optimiser moves.
        octaves: the logarithms of the steps, to base 2.
    """
    return {
        name: quantise(weight, levels=LEVELS[name], scale=2.0 ** octaves[name].item()).dequantise(weight.dtype)
        for name, weight in free.items()
    }


def soft_nats(free: Mapping[str, Tensor], octaves: Mapping[str, Tensor]) -> Tensor:
    """A smooth stand-in for the length of the description: entries times the entropy of the soft counts of levels.

    Args:
        free: what the optimiser moves.
        octaves: the logarithms of the steps, to base 2.
    """
    terms = []
    for name, weight in free.items():
        most = LEVELS[name] // 2
        levels = torch.arange(-most, most + 1.0, device=weight.device)
        places = (weight / octaves[name].exp2()).clamp(-most, most).flatten()
        counts = (-((places[:, None] - levels) ** 2) / (2 * _SMOOTH**2)).softmax(1).sum(0)
        # A level that nothing is near has no share, and the entropy's slope there is infinite.
        terms.append(torch.special.entr(counts / len(places) + 1e-8).sum() * len(places))
    return torch.stack(terms).sum()


def shared_nats(network: SharedRows, weights: Mapping[str, Tensor]) -> float:
    """All that has to be said of a network with rounded weights.

    Args:
        network: its architecture.
        weights: on their levels.
    """
    return describe(dict(weights)).nats + network.architecture_nats


def _rounded(free: Mapping[str, Tensor], octaves: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: rounded(weight, levels=LEVELS[name], scale=octaves[name].exp2()) for name, weight in free.items()}


@torch.no_grad()
def _first_steps(free: Mapping[str, Tensor], octaves: Mapping[str, Tensor]) -> None:
    """Steps that suit the weights of now."""
    for name, weight in free.items():
        size = 2 * float(weight.abs().mean()) / math.sqrt(LEVELS[name] // 2)
        octaves[name].fill_(math.log2(max(1e-3, size)))
