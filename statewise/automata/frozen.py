"""A memory-less network as a value: copies of its weights, and the one-step functions an automaton is read from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.cells import Cell
from statewise.errors import ArgumentError
from statewise.layers.plain import StepWeights, apply_once
from statewise.transforms import Centroids

Inputs = Float[Tensor, "rows width"]
States = Float[Tensor, "rows hidden"]


@dataclass(frozen=True)
class RepeatedProduct:
    """``U v + b`` of one step, the Product of the cells' contract, where each state occurs several times in a row.

    Args:
        weight, bias: U and b.
        once: (states, hidden), whose product is made only once.
        repeated: the same with each row several times.
    """

    weight: Tensor
    bias: Tensor | None
    once: Tensor
    repeated: Tensor

    def __call__(self, value: Tensor, first: int, last: int) -> Tensor:
        hidden = self.weight.shape[1]
        blocks = slice(first * hidden, last * hidden)
        shared = value is self.repeated
        product = (self.once if shared else value) @ self.weight[blocks].T
        if self.bias is not None:
            product = product + self.bias[blocks]
        return product.repeat_interleave(len(self.repeated) // len(self.once), dim=0) if shared else product

    def backward(self, grad: Tensor, first: int, last: int) -> Tensor:
        raise AssertionError("autograd differentiates a single step")


@dataclass(frozen=True, eq=False)
class FrozenLayer:
    """One layer: ``u = cell(W x + b, U h + b')`` and the similarity of ``u`` to the centroids.

    Args:
        cell: the transition function, one without memory.
        weight_ih, bias_ih, weight_hh, bias_hh, extra: its weights.
        centroids: (k, hidden).
        rule: how similar is measured, and at which temperature.
        initial: (hidden,), the state before the first step.
        start_at_one: whether the recurrent product of the first step is 1, the circuits' convention.
    """

    cell: Cell
    weight_ih: Tensor
    bias_ih: Tensor | None
    weight_hh: Tensor
    bias_hh: Tensor | None
    extra: tuple[Tensor, ...]
    centroids: Float[Tensor, "k hidden"]
    rule: Centroids
    initial: Float[Tensor, " hidden"]
    start_at_one: bool = False

    def input_term(self, inputs: Inputs) -> Float[Tensor, "rows gates"]:
        """``W x + b``."""
        term = inputs @ self.weight_ih.T
        return term if self.bias_ih is None else term + self.bias_ih

    def cell_step(self, inputs: Inputs, states: States, *, fresh: bool = False) -> States:
        """``u``, what the cell makes of inputs and states; fresh rows are at the start of their word."""
        weights = StepWeights(self.weight_ih, self.bias_ih, self.weight_hh, self.bias_hh, self.extra)
        return apply_once(self.cell, inputs, states, None, weights, ones=fresh and self.start_at_one)[0]

    def pair_step(self, terms: Float[Tensor, "symbols gates"], states: States) -> Float[Tensor, "pairs hidden"]:
        """``u`` for every pair of a state and an input term, the terms running fastest: each product is made once."""
        repeated = states.repeat_interleave(len(terms), dim=0)
        product = RepeatedProduct(self.weight_hh, self.bias_hh, states, repeated)
        return self.cell.forward(terms.repeat(len(states), 1), repeated, None, product, self.extra).state

    def similarities(self, u: States) -> Float[Tensor, "rows k"]:
        """The logits before they are divided by the temperature."""
        return replace(self.rule, temperature=1.0).logits(u, self.centroids)

    def to(self, dtype: torch.dtype) -> FrozenLayer:
        """The same layer in another precision."""
        wide = ("weight_ih", "weight_hh", "centroids", "initial")
        tensors: dict[str, Any] = {name: getattr(self, name).to(dtype) for name in wide}
        biases: dict[str, Any] = {
            name: None if (b := getattr(self, name)) is None else b.to(dtype) for name in ("bias_ih", "bias_hh")
        }
        return replace(self, **tensors, **biases, extra=tuple(tensor.to(dtype) for tensor in self.extra))


@dataclass(frozen=True, eq=False)
class FrozenNetwork:
    """A classifier of words whose whole memory is its centroids: what Theorems 3.1 and 3.2 speak of.

    Args:
        layers: from the bottom.
        embedding: (symbols, width), what each symbol of the alphabet enters as.
        start: (width,), or None where words begin without START.
        end: (width,), or None where the head reads the state itself.
        head_weight, head_bias: of the linear read-out.
        symbols: the alphabet.
        classes: the names of the classes.
        dtype: in which the model computes; the copies may be wider.
    """

    layers: tuple[FrozenLayer, ...]
    embedding: Float[Tensor, "symbols width"]
    start: Float[Tensor, " width"] | None
    end: Float[Tensor, " width"] | None
    head_weight: Float[Tensor, "classes hidden"]
    head_bias: Float[Tensor, " classes"] | None
    symbols: tuple[str, ...]
    classes: tuple[str, ...]
    dtype: torch.dtype

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many centroids each layer has."""
        return tuple(len(layer.centroids) for layer in self.layers)

    @property
    def samples(self) -> bool:
        """Whether a layer draws its centroid: then a word has no one class."""
        return any(layer.rule.transition == "sample" for layer in self.layers)

    @property
    def hard(self) -> bool:
        """Whether every layer moves onto its best centroid, in evaluation: then the network is its table."""
        return not self.samples and all(layer.rule.hard for layer in self.layers)

    def initial(self, rows: int) -> tuple[Tensor, ...]:
        """The states of all layers before the first step."""
        return tuple(layer.initial.expand(rows, -1) for layer in self.layers)

    def read_out(self, states: Sequence[States], *, fresh: bool = False) -> Float[Tensor, "rows classes"]:
        """The head's logits; END is one application of each cell, with the centroids skipped (spec of the paper)."""
        if self.end is None:
            inputs = states[-1]
        else:
            first = self.layers[0]
            if fresh:
                inputs = first.cell_step(self.end.expand(len(states[0]), -1), states[0], fresh=True)
            else:
                inputs = first.pair_step(first.input_term(self.end[None]), states[0])
            for layer, state in zip(self.layers[1:], states[1:], strict=True):
                inputs = layer.cell_step(inputs, state, fresh=fresh)
        logits = inputs @ self.head_weight.T
        return logits if self.head_bias is None else logits + self.head_bias

    def at_centroids(self, tuples: Tensor) -> tuple[Tensor, ...]:
        """The states of all layers for rows of centroid numbers, (rows, layers)."""
        return tuple(layer.centroids[tuples[:, index]] for index, layer in enumerate(self.layers))

    def hard_step(
        self, inputs: Inputs, states: Sequence[States], *, fresh: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """One step at argmax: the centroids chosen, (rows, layers), and each layer's similarities."""
        return self._hard(self.layers[0].cell_step(inputs, states[0], fresh=fresh), states[1:], fresh=fresh)

    def hard_pairs(self, states: Sequence[States]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """:meth:`hard_step` for every pair of a state and a symbol, the symbols running fastest."""
        first = self.layers[0]
        u = first.pair_step(first.input_term(self.embedding), states[0])
        return self._hard(u, [state.repeat_interleave(len(self.symbols), dim=0) for state in states[1:]], fresh=False)

    def _hard(self, u: Tensor, above: Sequence[Tensor], *, fresh: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
        """What follows the first layer's cell."""
        seen = [self.layers[0].similarities(u)]
        chosen = [seen[0].argmax(1)]
        for below, layer, state in zip(self.layers, self.layers[1:], above, strict=False):
            seen.append(layer.similarities(layer.cell_step(below.centroids[chosen[-1]], state, fresh=fresh)))
            chosen.append(seen[-1].argmax(1))
        return torch.stack(chosen, dim=1), tuple(seen)

    def soft_step(self, inputs: Inputs, states: Sequence[States], *, fresh: bool = False) -> tuple[Tensor, ...]:
        """One step of the mixture, ``h = sum_i alpha_i s_i`` (eq. 6): the new states of all layers."""
        moved = []
        for layer, state in zip(self.layers, states, strict=True):
            similar = layer.similarities(layer.cell_step(inputs, state, fresh=fresh))
            weights = torch.softmax(similar / layer.rule.temperature, dim=1)
            # Similarities are float32 at least: a narrower state is rounded once, at the end, as in the transform.
            inputs = (weights @ layer.centroids.to(weights.dtype)).to(state.dtype)
            moved.append(inputs)
        return tuple(moved)

    def to(self, dtype: torch.dtype) -> FrozenNetwork:
        """The same network in another precision."""
        named = ("embedding", "start", "end", "head_weight", "head_bias")
        tensors: dict[str, Any] = {name: None if (t := getattr(self, name)) is None else t.to(dtype) for name in named}
        return replace(self, layers=tuple(layer.to(dtype) for layer in self.layers), **tensors)

    def cooled(self, temperature: float) -> FrozenNetwork:
        """The same network at another temperature, in every layer."""
        layers = (replace(layer, rule=replace(layer.rule, temperature=temperature)) for layer in self.layers)
        return replace(self, layers=tuple(layers))

    @torch.no_grad()
    def classify(self, words: Iterable[Sequence[int]], *, hard: bool = False) -> Tensor:
        """The class of each word, as the network reads it, or at argmax.

        Args:
            words: each as numbers of symbols.
            hard: whether the state is moved onto the best centroid at every step.
        """
        if self.samples and not hard:
            raise ArgumentError(
                where="FrozenNetwork.classify",
                got='a network with transition "sample"',
                wanted="one whose words have one class each",
                remedy="Give hard=True, or ask the model itself: model.classify(words, generator=...).",
            )
        hard = hard or self.hard
        words = list(words)
        lengths = torch.tensor([len(word) for word in words], dtype=torch.int64)
        rows, longest = len(words), int(lengths.max()) if words else 0
        tokens = torch.zeros(rows, longest, dtype=torch.int64)
        for row, word in enumerate(words):
            tokens[row, : len(word)] = torch.tensor(list(word), dtype=torch.int64)
        states, fresh = self.initial(rows), True
        if self.start is not None:
            states, fresh = self._moved(self.start.expand(rows, -1), states, hard=hard, fresh=True), False
        logits = self.read_out(states, fresh=fresh)
        for step in range(longest):
            states = self._moved(self.embedding[tokens[:, step]], states, hard=hard, fresh=fresh and step == 0)
            ends = lengths == step + 1
            if bool(ends.any()):
                logits[ends] = self.read_out([state[ends] for state in states])
        return logits.argmax(1)

    def _moved(self, inputs: Tensor, states: Sequence[Tensor], *, hard: bool, fresh: bool) -> tuple[Tensor, ...]:
        if not hard:
            return self.soft_step(inputs, states, fresh=fresh)
        return self.at_centroids(self.hard_step(inputs, states, fresh=fresh)[0])
