"""A pool of networks that are trained side by side, each at its own pace: one iteration of all is one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from statewise.sweep.networks import Networks, State, free_name
from statewise.sweep.sources import HELD_OUT, Source, states_at_start
from statewise.sweep.trial import Shape
from statewise.train.rmsprop_tf import rmsprop_tf_
from statewise.weights import stiefel_step

_WARMUP = 3  # iterations that run by themselves before a device may record one
_CHUNK = 2**27  # numbers of logits that a look at held-out examples makes at once
_SQUARES = "squares."


class Look(NamedTuple):
    """What held-out examples say of every network: mean cross-entropy and accuracy."""

    losses: list[float]
    accuracies: list[float]


class Pool:
    """Networks of one shape in slots, with the state of their optimisers.

    What a slot computes depends on what was put into it, not on the other slots, up to rounding: examples and initial
    states are functions of the seed and of the slot's own count of iterations. On a CUDA device an iteration is
    recorded as a graph, examples, gradients, updates and all, and replayed.

    Args:
        shape: of all networks.
        slots: how many there are room for.
        source: of the examples.
        device: where to compute.
    """

    def __init__(self, shape: Shape, slots: int, source: Source, device: torch.device) -> None:
        self.shape, self.slots, self.source, self.device = shape, slots, source, device
        self.networks = Networks(shape, slots, device)
        self.squares = {name: torch.ones_like(tensor) for name, tensor in self.networks.parameters.items()}
        self.roots = torch.zeros(slots, dtype=torch.int64, device=device)
        self.iterations = torch.zeros(slots, dtype=torch.int64, device=device)
        self.rates = torch.zeros(slots, device=device)
        self.recurrent_rates = torch.zeros(slots, device=device)
        self.done = [0] * slots  # the host's own count, so that it need not ask
        self._graph: torch.cuda.CUDAGraph | None = None
        self._warm = 0
        self._recurrent = {free_name(layer) for layer in range(shape.depth)}

    def put(self, slot: int, state: Mapping[str, Tensor], *, seed: int, iterations: int = 0) -> None:
        """Give a slot a network to go on with.

        Args:
            slot: which.
            state: weights, and ``squares.`` of them; squares that are missing begin at 1.
            seed: of its examples and initial states.
            iterations: how many it has behind it.
        """
        self.networks.put(slot, state)
        for name, stacked in self.squares.items():
            found = state.get(f"{_SQUARES}{name}")
            stacked[slot].copy_(torch.ones_like(stacked[slot]) if found is None else found)
        self.roots[slot] = seed
        self.iterations[slot] = self.done[slot] = iterations

    def take(self, slot: int) -> State:
        """Weights and squares of a slot, on the CPU.

        Args:
            slot: which.
        """
        squares = {f"{_SQUARES}{name}": stacked[slot].cpu().clone() for name, stacked in self.squares.items()}
        return {**self.networks.take(slot), **squares}

    def set_rates(self, slot: int, lr: float, lr_recurrent: float) -> None:
        """Give a slot its learning rates.

        Args:
            slot: which.
            lr: of everything but the recurrent matrices.
            lr_recurrent: of these.
        """
        self.rates[slot], self.recurrent_rates[slot] = lr, lr_recurrent

    @torch.no_grad()
    def advance(self, iterations: int) -> None:
        """Train all networks for some iterations.

        Args:
            iterations: how many.
        """
        left = iterations
        while left:
            until = self.source.prepare(self.roots, self.done)
            now = left if until is None else min(left, until)
            for _ in range(now):
                self._step()
            self.done = [done + now for done in self.done]
            left -= now

    @torch.no_grad()
    def look(self, part: str, count: int) -> Look:
        """Let all networks answer the same held-out examples, from the same initial states.

        Args:
            part: "valid" or "test".
            count: how many examples.
        """
        task, count = self.shape.task, self.source.size(part, count)
        recurrent = self.networks.recurrent(self.networks.inverses())
        wide = task.steps * max(task.classes, self.shape.width)
        chunk = max(1, min(count, _CHUNK // (wide * self.slots)))
        losses = torch.zeros(self.slots, dtype=torch.float64, device=self.device)
        rights = torch.zeros_like(losses)
        for first in range(0, count, chunk):
            last = min(first + chunk, count)
            inputs, answers = self.source.held_out(part, first, last)
            starts = self._held_out_starts(part, first, last)
            logits = self.networks.logits(recurrent, inputs, starts)
            answers = answers.expand(self.slots, *answers.shape[1:])
            loss = F.cross_entropy(logits.flatten(0, -2), answers.flatten(), reduction="none").view(answers.shape)
            losses += loss.flatten(1).double().mean(1) * (last - first)
            if task.every_step:
                logits, answers = logits.transpose(1, 2), answers.transpose(1, 2)
            rights += task.right(logits, answers).flatten(1).double().sum(1)
        return Look((losses / count).tolist(), (rights / count).tolist())

    def orthogonality(self) -> list[float]:
        """The largest ``||W W^T - I||_F`` of each network."""
        found: list[float] = self.networks.orthogonality().tolist()
        return found

    def largest_entries(self) -> list[float]:
        """The largest entry of any A, of each network."""
        found: list[float] = self.networks.largest_entries().tolist()
        return found

    def _held_out_starts(self, part: str, first: int, last: int) -> Tensor:
        root = torch.full((last - first,), HELD_OUT[part], device=self.device)
        places = torch.arange(first, last, device=self.device)
        each = states_at_start(root, places, (self.shape.depth, 1, self.shape.width))
        return each.squeeze(2).transpose(0, 1).unsqueeze(0)

    def _step(self) -> None:
        if self.device.type != "cuda":
            self._iterate()
            return
        if self._graph is None and self._warm < _WARMUP:
            self._warm += 1
            side = torch.cuda.Stream(self.device)
            side.wait_stream(torch.cuda.current_stream(self.device))
            with torch.cuda.stream(side):
                self._iterate()
            torch.cuda.current_stream(self.device).wait_stream(side)
            return
        if self._graph is None:
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._iterate()
        self._graph.replay()

    def _iterate(self) -> None:
        networks, shape = self.networks, self.shape
        inputs, answers = self.source.fresh(self.roots, self.iterations)
        starts = states_at_start(self.roots, self.iterations, (shape.depth, shape.batch, shape.width))
        inverses = networks.inverses()
        recurrent = networks.recurrent(inverses)
        _, grads = networks.gradients(recurrent, inputs, answers, starts)
        for name, grad in networks.chained(inverses, recurrent, grads).items():
            parameter, square = networks.parameters[name], self.squares[name]
            rate = self.recurrent_rates if name in self._recurrent else self.rates
            rate = rate.view(-1, *[1] * (parameter.ndim - 1))
            if name in self._recurrent and shape.update == "full-capacity":
                _full_capacity_(parameter, grad, square, rate)
            else:
                rmsprop_tf_(parameter, grad, square, lr=rate)
        self.iterations += 1


def _full_capacity_(weight: Tensor, grad: Tensor, square: Tensor, rate: Tensor) -> None:
    """The multiplicative update, of gradients divided by their running root mean square (Wisdom et al. 2016)."""
    square.mul_(0.9).addcmul_(grad, grad, value=0.1)
    weight.copy_(stiefel_step(weight, grad / (square + 1e-10).sqrt(), lr=rate.double()))
