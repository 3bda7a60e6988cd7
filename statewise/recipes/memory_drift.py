"""Matrices that are moved by random gradients or by training, and how far they come away from orthogonal."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from statewise.data.copying_memory import CopyingMemory
from statewise.errors import ArgumentError
from statewise.models.orthogonal_network import OrthogonalNetwork
from statewise.recipes.studies import Computed
from statewise.train.rmsprop_tf import RMSpropTF
from statewise.weights.cayley import ScaledCayley
from statewise.weights.orthogonal_init import haar_orthogonal_
from statewise.weights.orthogonality import orthogonality_error
from statewise.weights.stiefel import StiefelSGD

DTYPES = {"float32": torch.float32, "float64": torch.float64}
#: How a matrix may be moved by random gradients.
UPDATES = ("plain", "full-capacity", "reorthogonalised", "scornn")
#: Where numbers are printed.
PRINTED = (1, 100, 500, 1000, 2000)


@dataclass(frozen=True, kw_only=True)
class DriftSettings:
    """A matrix that is moved by random gradients.

    Args:
        update: how: "plain" computes in the matrix's own dtype, "full-capacity" in float64, "reorthogonalised" also
            projects now and then, "scornn" moves the free entries of A.
        dtype: of the matrix.
        channels: its rows.
        lr: the step size.
        spread: standard deviation of the entries of the gradients, or of the steps of A.
        steps: how many.
        reorthogonalize_every: steps from one projection to the next, where there are some.
        seed: of the start and of the gradients.
    """

    update: str = "plain"
    dtype: str = "float32"
    channels: int = 116
    lr: float = 1e-2
    spread: float = 0.1
    steps: int = 10_000
    reorthogonalize_every: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        for name, known in (("update", UPDATES), ("dtype", DTYPES)):
            if getattr(self, name) not in known:
                wanted = f"one of {', '.join(known)}"
                raise ArgumentError(where=f"DriftSettings.{name}", got=getattr(self, name), wanted=wanted)
        for name in ("channels", "steps", "reorthogonalize_every"):
            if getattr(self, name) < 1:
                raise ArgumentError(where=f"DriftSettings.{name}", got=getattr(self, name), wanted="an integer >= 1")

    def matrices(self) -> Iterator[Tensor]:
        """The matrix after each step."""
        generator, dtype, size = torch.Generator().manual_seed(self.seed), DTYPES[self.dtype], self.channels
        weight = nn.Parameter(haar_orthogonal_(torch.empty(size, size, dtype=dtype), generator=generator))
        every = self.reorthogonalize_every if self.update == "reorthogonalised" else 0
        optimizer = StiefelSGD([weight], lr=self.lr, reorthogonalize_every=every)
        cayley = ScaledCayley(size)
        free = cayley.initial(generator=generator).to(dtype)
        for _ in range(self.steps):
            if self.update == "scornn":
                free -= self.lr * self.spread * torch.randn(free.shape, generator=generator, dtype=dtype)
                yield cayley(free)
                continue
            gradient = self.spread * torch.randn(size, size, generator=generator, dtype=dtype)
            if self.update == "plain":
                weight.data = plain_step(weight.data, gradient, lr=self.lr)
            else:
                weight.grad = gradient
                optimizer.step()
            yield weight.detach()


@dataclass(frozen=True, kw_only=True)
class TrainedSettings:
    """A small network that is trained on copying memory.

    Args:
        update: of its matrices: "scornn" or "full-capacity".
        dtype: of its weights.
        m: symbols to be remembered.
        n: kinds of them.
        delay: for how long.
        channels: of a layer.
        depth: layers.
        lr: of everything but the recurrent matrices.
        lr_recurrent: of these.
        batch: sequences of a step.
        steps: how many.
        seed: of weights, batches and initial states.
    """

    update: str = "scornn"
    dtype: str = "float32"
    m: int = 5
    n: int = 8
    delay: int = 10
    channels: int = 48
    depth: int = 1
    lr: float = 1e-3
    lr_recurrent: float = 1e-4
    batch: int = 128
    steps: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        for name, known in (("update", ("scornn", "full-capacity")), ("dtype", tuple(DTYPES))):
            if getattr(self, name) not in known:
                wanted = f"one of {', '.join(known)}"
                raise ArgumentError(where=f"TrainedSettings.{name}", got=getattr(self, name), wanted=wanted)
        for name in ("channels", "depth", "batch", "steps"):
            if getattr(self, name) < 1:
                raise ArgumentError(where=f"TrainedSettings.{name}", got=getattr(self, name), wanted="an integer >= 1")
        _ = self.task  # a slip is told before anything is made

    @property
    def task(self) -> CopyingMemory:
        """What is learnt."""
        return CopyingMemory(m=self.m, n=self.n, delay=self.delay)

    def network(self, generator: torch.Generator) -> OrthogonalNetwork:
        """The untrained network.

        Args:
            generator: source of its weights.
        """
        update = "cayley" if self.update == "scornn" else "full-capacity"
        sizes = (self.task.inputs, self.task.classes, self.channels, self.depth)
        return OrthogonalNetwork(*sizes, update=update, generator=generator, dtype=DTYPES[self.dtype])


def plain_step(weight: Tensor, gradient: Tensor, *, lr: float) -> Tensor:
    """The full-capacity update in the arithmetic of the weight: ``(I + lr/2 A)^-1 (I - lr/2 A) W``.

    Args:
        weight: orthogonal.
        gradient: of the loss.
        lr: step size.

    >>> plain_step(torch.eye(2), torch.tensor([[0.0, 2.0], [0.0, 0.0]]), lr=1.0)
    tensor([[ 0., -1.],
            [ 1.,  0.]])
    """
    half = lr / 2 * (gradient @ weight.T - weight @ gradient.T)
    eye = torch.eye(len(weight), dtype=weight.dtype)
    moved: Tensor = torch.linalg.solve(eye + half, eye - half) @ weight
    return moved


def deviations(settings: DriftSettings, looks: Collection[int]) -> Iterator[float]:
    """The deviation at each look; of a matrix that is projected now and then, the largest since the look before.

    Args:
        settings: how the matrix is moved.
        looks: after which steps.
    """
    largest, watched = 0.0, settings.update == "reorthogonalised"
    for step, matrix in enumerate(settings.matrices(), 1):
        if watched or step in looks:
            largest = max(largest, float(orthogonality_error(matrix)))
        if step in looks:
            yield largest
            largest = 0.0


def trained(settings: TrainedSettings) -> Computed:
    """Train a network, and look at its matrices along the way.

    Args:
        settings: which network, on which task.
    """
    generator = torch.Generator().manual_seed(settings.seed)
    task, network = settings.task, settings.network(generator)
    rest, matrices = network.parameter_groups(settings.lr, settings.lr_recurrent)
    optimizers: list[torch.optim.Optimizer]
    if settings.update == "scornn":
        optimizers = [RMSpropTF([rest, matrices])]
    else:
        optimizers = [RMSpropTF([rest]), StiefelSGD(matrices["params"], lr=settings.lr_recurrent, rms=True)]
    looks, curve = looks_of(settings.steps), []
    for step in range(1, settings.steps + 1):
        symbols, answers = task.examples(torch.rand(settings.batch, task.needs, generator=generator))
        loss = cross_entropy(network(symbols.T, generator=generator).flatten(0, 1), answers.T.flatten())
        network.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        if step in looks:
            curve.append(network.orthogonality())
    with torch.no_grad():
        symbols, answers = task.examples(torch.rand(1000, task.needs, generator=generator))
        accuracy = task.right(network(symbols.T, generator=generator).transpose(0, 1), answers).mean()
    found = {
        **told_of(sorted(looks), curve),
        "data_accuracy": float(accuracy),
        "largest_entry": network.largest_entry(),
    }
    return Computed(found=found, network=network)


def looks_of(steps: int) -> frozenset[int]:
    """When to look: eight times a decade, where numbers are printed, and at the end.

    >>> sorted(looks_of(10))
    [1, 2, 3, 4, 6, 7, 10]
    """
    spread = {round(10 ** (place / 8)) for place in range(8 * len(str(steps)) + 1)}
    return frozenset(look for look in spread | {*PRINTED, steps} if look <= steps)


def told_of(looks: Sequence[int], curve: Sequence[float]) -> dict[str, Any]:
    """The curve of a case, and its numbers that are printed.

    Args:
        looks: after which steps.
        curve: the deviation there.

    >>> told_of([1, 2], [1e-7, 2e-7])
    {'at_1': 1e-07, 'end': 2e-07, 'iterations': [1, 2], 'deviation': [1e-07, 2e-07]}
    """
    at = dict(zip(looks, curve, strict=True))
    printed = {f"at_{step}": at[step] for step in PRINTED if step in at}
    return {**printed, "end": curve[-1], "iterations": list(looks), "deviation": list(curve)}
