"""Running a stack of layers again and again: from the start, or one layer for one step from a fixed state."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from statewise.errors import ArgumentError, DtypeError
from statewise.layers import Collected, Draws, RecurrentLayer, upgrade
from statewise.layers.base import State
from statewise.transforms import (
    InputDropout,
    LockedDropout,
    LockedInputDropout,
    Noise,
    OutputDropout,
    Place,
    RecurrentDropout,
    SequenceTransform,
    Transform,
)
from statewise.weights import WeightDrop

TINY = 1e-5  # of the noise: what is left of the response is linear
LAYER_OF_WEIGHT = re.compile(r"_l(\d+)(?:_reverse)?\.")


class Seen(NamedTuple):
    """What a pass showed of one layer: what leaves it, what is fed back, and the memory of an LSTM."""

    output: Tensor
    state: Tensor
    memory: Tensor | None


class Resampler:
    """A copy of a layer in double precision, its input, and one noisy pass to condition on.

    Args:
        layer: a layer of statewise, or a plain one of torch.nn.
        inputs: one batch, or one sequence, as the layer takes it.
        hx: the initial state; None for zeros.
        generator: source of all that is drawn.
    """

    def __init__(self, layer: nn.Module, inputs: Tensor, hx: State | None, generator: torch.Generator | None) -> None:
        self.layer = _copied(layer)
        self.generator = generator
        self.inputs = _timed(inputs, self.layer)
        self.start = _started(hx, self.layer, self.inputs, batched=inputs.ndim == 3)
        self.steps, self.batch = self.inputs.shape[:2]
        self.layer.batch_first = False
        self.clean = self._clean()
        self.layer.train()
        self.draws = self.layer.draw(self.inputs, generator=generator)
        self.noisy = self._run(self.inputs, self.start, self.draws)

    @property
    def shares_noise(self) -> bool:
        """Whether rows of one call have noise in common: dropped weights."""
        return any(isinstance(part, WeightDrop) for part in self.layer.modules())

    def changes_output(self, layer: int) -> bool:
        """Whether what leaves a layer may differ from what it feeds back."""
        every = (*self.layer.transforms, *self._between)
        return any(one.place is Place.OUTPUT and one.acts_on(layer, self.layer.num_layers) for one in every)

    def passes(self, copies: int) -> tuple[list[Seen], list[Seen] | None]:
        """One pass over so many copies of the batch, each with noise of its own; and again with the noise made tiny."""
        inputs = self.inputs.repeat(1, copies, 1)
        start = tuple(part.repeat(1, copies, 1) for part in self.start)
        draws = self.layer.draw(inputs, generator=self.generator)
        tiny = self._weakened(draws, inputs)
        return self._run(inputs, start, draws), None if tiny is None else self._run(inputs, start, tiny)

    def one_step(self, layer: int, copies: int) -> tuple[Seen, Seen | None]:
        """Every step of a layer by itself, drawn anew from the input and the state that the noisy pass had there."""
        inputs = self._all_steps(self.inputs, copies)
        draws = self.layer.draw(inputs, generator=self.generator)
        mine = {key: tensors for key, tensors in draws.tensors.items() if key[1] == layer}
        tiny = self._weakened(replace(draws, tensors=mine), inputs)
        noisy = self._step(layer, inputs, draws, copies)
        return noisy, None if tiny is None else self._step(layer, inputs, tiny, copies)

    def _weakened(self, draws: Draws, inputs: Tensor) -> Draws | None:
        """Draws moved towards their means, up to a tiny share; None if the mean of one is not known."""
        quiet = self.layer.eval().draw(inputs, generator=self.generator).tensors
        self.layer.train()
        moved = {}
        for key, tensors in draws.tensors.items():
            means = _means((*self.layer.transforms, *self._between)[key[0]], tensors, quiet.get(key))
            if means is None:
                return None
            moved[key] = tuple(mean + TINY * (one - mean) for one, mean in zip(tensors, means, strict=True))
        return replace(draws, tensors=moved, weights={path: 1 + TINY * (m - 1) for path, m in draws.weights.items()})

    def clean_step(self, layer: int) -> Seen:
        """The same without noise in this layer, as in eval mode."""
        inputs = self._all_steps(self.inputs, 1)
        quiet = self.layer.eval().draw(inputs, generator=self.generator)
        self.layer.train()
        masks = {path: torch.ones_like(mask) for path, mask in self.draws.weights.items()}
        return self._step(layer, inputs, replace(quiet, weights=masks), 1)

    def _step(self, layer: int, inputs: Tensor, own: Draws, copies: int) -> Seen:
        fixed = {
            key: tuple(self._all_steps(tensor.expand(self.steps, -1, -1), copies) for tensor in tensors)
            for key, tensors in self.draws.tensors.items()
            if key[1] < layer
        }
        mine = {key: tensors for key, tensors in own.tensors.items() if key[1] == layer}
        weights = {
            path: own.weights[path] if _layer_of(path) == layer else mask for path, mask in self.draws.weights.items()
        }
        hx = tuple(part.repeat(1, copies, 1) for part in self._before())
        seen = self._run(inputs, hx, Draws(fixed | mine, weights=weights))[layer]
        return Seen(*(None if part is None else part[0] for part in seen))  # type: ignore[arg-type]

    def _all_steps(self, tensor: Tensor, copies: int) -> Tensor:
        """A sequence (steps, batch, width) as one step of (copies * steps * batch) rows."""
        return tensor.reshape(1, self.steps * self.batch, -1).repeat(1, copies, 1)

    def _before(self) -> Iterator[Tensor]:
        """States, then memories, that each step of the noisy pass started from: (slots, steps * batch, hidden)."""
        kinds: list[list[Tensor]] = [[seen.state for seen in self.noisy]]
        if self.noisy[0].memory is not None:
            kinds.append([seen.memory for seen in self.noisy if seen.memory is not None])
        for start, of_layers in zip(self.start, kinds, strict=True):
            slots = []
            for slot, begin in enumerate(start):
                layer, direction = divmod(slot, self.layer.num_directions)
                states = of_layers[layer].unflatten(2, (self.layer.num_directions, -1))[:, :, direction]
                begin = begin.unsqueeze(0)
                before = torch.cat((begin, states[:-1])) if direction == 0 else torch.cat((states[1:], begin))
                slots.append(before.reshape(self.steps * self.batch, -1))
            yield torch.stack(slots)

    def _clean(self) -> list[Seen]:
        self.layer.eval()
        first, again = (
            self._run(self.inputs, self.start, self.layer.draw(self.inputs, generator=self.generator)) for _ in "ab"
        )
        if not all(torch.equal(one.output, other.output) for one, other in zip(first, again, strict=True)):
            raise ArgumentError(
                where="audit.layer",
                got="a layer that draws in eval mode too",
                wanted="one network to compare with",
                remedy="Centroids(transition='sample') has none; its mean is transition='mixture'.",
            )
        return first

    def _run(self, inputs: Tensor, hx: tuple[Tensor, ...], draws: Draws) -> list[Seen]:
        state = hx if self.layer.cell.has_memory else hx[0]
        with torch.no_grad():
            _, _, collected = self.layer(inputs, state, draws=draws, collect=("states", "cells"))
        return [self._seen(layer, collected, draws) for layer in range(self.layer.num_layers)]

    def _seen(self, layer: int, collected: Collected, draws: Draws) -> Seen:
        """What leaves a layer is not collected: its transforms are applied to the states again, with what they drew."""
        output = collected.states[layer]
        every = (*self.layer.transforms, *self._between)
        for (index, of, _), tensors in sorted(draws.tensors.items()):
            transform = every[index]
            if of == layer and transform.place is Place.OUTPUT and isinstance(transform, SequenceTransform):
                shape = output.shape
                wide = (tensor.expand(shape[0], -1, -1).flatten(0, 1) for tensor in tensors)
                output = transform.apply(output.flatten(0, 1), tuple(wide)).view(shape)
        return Seen(output, collected.states[layer], collected.cells[layer] if collected.cells else None)

    @property
    def _between(self) -> tuple[SequenceTransform, ...]:
        """The dropout between layers, which draws after all transforms."""
        inner = tuple(range(self.layer.num_layers - 1))
        return (OutputDropout(self.layer.dropout, layers=inner),) if self.layer.dropout else ()


def _copied(layer: nn.Module) -> RecurrentLayer:
    if isinstance(layer, nn.RNN | nn.GRU | nn.LSTM):
        layer = upgrade(layer)  # the same network by contract, and its inside can be seen
    if not isinstance(layer, RecurrentLayer):
        raise DtypeError(
            where="audit.layer",
            got=type(layer).__name__,
            wanted="a recurrent layer of statewise or torch.nn",
            remedy="Give the recurrent layer of a model, with an input of that layer.",
        )
    return copy.deepcopy(layer).double()


def _timed(inputs: Tensor, layer: RecurrentLayer) -> Tensor:
    if isinstance(inputs, PackedSequence) or not isinstance(inputs, Tensor):
        raise DtypeError(
            where="audit.inputs",
            got=type(inputs).__name__,
            wanted="a tensor of sequences of one length",
            remedy="Unpack it, and audit sequences of one length.",
        )
    inputs = inputs.detach().double()
    if inputs.ndim == 2:
        return inputs.unsqueeze(1)
    return inputs.transpose(0, 1) if layer.batch_first else inputs


def _started(hx: State | None, layer: RecurrentLayer, inputs: Tensor, *, batched: bool) -> tuple[Tensor, ...]:
    """The initial states as tensors, since single steps have to start from them too."""
    shape = (layer.num_layers * layer.num_directions, inputs.shape[1], layer.hidden_size)
    if hx is not None:
        parts = tuple(hx) if isinstance(hx, tuple | list) else (hx,)
        return tuple(part.detach().double() if batched else part.detach().double().unsqueeze(1) for part in parts)
    zeros = (inputs.new_zeros(shape),) * (2 if layer.cell.has_memory else 1)
    layer.eval()
    given = inputs.transpose(0, 1) if layer.batch_first else inputs
    with torch.no_grad():
        source = torch.Generator(inputs.device).manual_seed(0)
        by_itself, at_zero = layer(given, generator=source)[0], None
        with suppress(ArgumentError):  # an arithmetic circuit refuses to start there
            at_zero = layer(given, zeros if layer.cell.has_memory else zeros[0], generator=source.manual_seed(0))[0]
    if at_zero is None or not torch.equal(by_itself, at_zero):
        raise ArgumentError(
            where="audit.hx",
            got="None, for a layer that does not start at zero",
            wanted="an initial state",
            remedy=f"Give hx, of shape {shape}.",
        )
    return zeros


def _layer_of(path: str) -> int:
    found = LAYER_OF_WEIGHT.search(path + ".")
    return int(found.group(1)) if found else 0


def _means(
    transform: Transform, tensors: tuple[Tensor, ...], quiet: tuple[Tensor, ...] | None
) -> tuple[Tensor, ...] | None:
    """The means of what a transform draws: what it uses in eval mode, or what leaves a state as it is."""
    if quiet is not None:
        return quiet if len(quiet) == len(tensors) else None
    if isinstance(transform, Noise) and transform.mode == "additive":
        return tuple(torch.zeros_like(tensor) for tensor in tensors)
    if isinstance(
        transform, Noise | InputDropout | LockedInputDropout | OutputDropout | LockedDropout | RecurrentDropout
    ):
        return tuple(torch.ones_like(tensor) for tensor in tensors)
    return None
