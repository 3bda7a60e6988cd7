"""A recurrent layer as ONNX can hold it: one loop over steps of whatever number, around the cell and transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import linear

from statewise.cells import Cell
from statewise.errors import ExportError
from statewise.layers import RAC, RecurrentLayer
from statewise.transforms import Place, StateTransform


class Walked(NamedTuple):
    """What a layer gives: its output, the states and memories at the ends, and the top cell's result at every step."""

    output: Float[Tensor, "steps batch width"]
    states: Float[Tensor, "slots batch hidden"]
    memories: Float[Tensor, "slots batch hidden"] | None
    bare: Float[Tensor, "steps batch hidden"]


class _Product:
    """``U v + b``, or 1 where a sequence of an arithmetic circuit begins; the Product of the cells' contract."""

    def __init__(self, weight: Tensor, bias: Tensor | None, begins: Tensor | None) -> None:
        self._weight, self._bias, self._begins = weight, bias, begins

    def __call__(self, value: Tensor, first: int, last: int) -> Tensor:
        size = self._weight.shape[1]
        blocks = slice(first * size, last * size)
        out = value @ self._weight[blocks].T
        if self._begins is not None:
            out = out + self._begins.unsqueeze(1).to(out.dtype)
        return out if self._bias is None else out + self._bias[blocks]

    def backward(self, grad: Tensor, first: int, last: int) -> Tensor:
        raise AssertionError("an exported network is not trained")


class LoopLayer(nn.Module):
    """A copy of a layer in eval mode whose walk through time is a single loop of the graph.

    Weights are taken as they are computed: an orthogonal matrix is a constant here, not a formula.

    Args:
        layer: any recurrent layer; one that draws in eval mode is refused.
        where: its name, for the error.
    """

    def __init__(self, layer: RecurrentLayer, *, where: str) -> None:
        super().__init__()
        self.cell: Cell = layer.cell
        self.depth, self.directions = layer.num_layers, layer.num_directions
        self.starts_at_one = isinstance(layer, RAC) and layer.initial_state == "ones"
        self.chains: dict[str, list[tuple[StateTransform, list[str], list[str]]]] = {}
        with torch.no_grad():
            for slot, suffix in enumerate(self._suffixes):
                names = ("weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if layer.bias else ()))
                for name in (*names, *(own for own, _ in layer.cell.extra_parameters)):
                    self._keep(name + suffix, getattr(layer, name + suffix))
                self.chains[suffix] = self._chain(layer, slot, suffix, where)

    @property
    def _suffixes(self) -> list[str]:
        ends = ("", "_reverse")[: self.directions]
        return [f"_l{layer}{end}" for layer in range(self.depth) for end in ends]

    def _keep(self, name: str, tensor: Tensor) -> None:
        self.register_buffer(name, tensor.detach().clone())

    def _chain(self, layer: RecurrentLayer, slot: int, suffix: str, where: str) -> list[Any]:
        """The transforms that act on the state in eval mode, with the names of what they use."""
        found = []
        for index, drawn in constant_draws(layer, where=where).items():
            if (index[1], index[2]) != divmod(slot, self.directions):
                continue
            transform = layer.transforms[index[0]]
            assert isinstance(transform, StateTransform)
            fixed = [f"fixed{index[0]}_{place}{suffix}" for place in range(len(drawn))]
            for name, tensor in zip(fixed, drawn, strict=True):
                self._keep(name, tensor)
            learnt = [name + suffix for name in layer._learnt(index[0], transform, index[1])]
            for name in learnt:
                self._keep(name, getattr(layer, name))
            found.append((transform, fixed, learnt))
        return found

    def forward(
        self,
        inputs: Float[Tensor, "steps batch input"],
        inside: Bool[Tensor, "steps batch"] | None,
        states: Float[Tensor, "slots batch hidden"],
        memories: Float[Tensor, "slots batch hidden"] | None,
    ) -> Walked:
        """Walk through the sequences.

        Args:
            inputs: steps first.
            inside: which steps belong to their sequence; None for all.
            states: at the beginning, of all layers and directions; zeros of an arithmetic circuit mean a fresh start.
            memories: likewise, for cells that have some.
        """
        ends: list[tuple[Tensor, ...]] = []
        bare = inputs
        for layer in range(self.depth):
            sides = []
            for direction in range(self.directions):
                slot = layer * self.directions + direction
                start = (states[slot],) if memories is None else (states[slot], memories[slot])
                end, output, bare = self._walk(self._suffixes[slot], inputs, inside, start, reverse=direction == 1)
                ends.append(end)
                sides.append(output)
            inputs = torch.cat(sides, dim=2) if self.directions > 1 else sides[0]
        final = [torch.stack(parts) for parts in zip(*ends, strict=True)]
        return Walked(inputs, final[0], final[1] if len(final) > 1 else None, bare)

    def bare_step(self, rows: Tensor, states: Tensor, memories: Tensor | None) -> Tensor:
        """One application of each layer's cell, past all transforms: what the top one gives.

        Args:
            rows: (batch, input).
            states: of all layers.
            memories: likewise, for cells that have some.
        """
        for layer, suffix in enumerate(self._suffixes):
            product = _Product(self._get("weight_hh", suffix), self._or_none("bias_hh", suffix), None)
            memory = None if memories is None else memories[layer]
            rows = self.cell.forward(
                self._term(rows, suffix), states[layer], memory, product, self._extra(suffix)
            ).state
        return rows

    def _walk(
        self, suffix: str, inputs: Tensor, inside: Tensor | None, start: tuple[Tensor, ...], *, reverse: bool
    ) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
        from torch._higher_order_ops.scan import scan

        terms = self._term(inputs, suffix)
        if reverse:
            terms, inside = terms.flip(0), None if inside is None else inside.flip(0)
        entering = [terms] if inside is None else [terms, inside]
        if self.starts_at_one:
            entering.append(_beginnings(terms, inside) & (start[0] == 0).all(1))
        # A loop may hand on nothing that is also an output, nor what it was given.
        carried, (output, bare) = scan(self._step(suffix, masked=inside is not None), [*start], entering)
        if reverse:
            output, bare = output.flip(0), bare.flip(0)
        return tuple(carried), output, bare

    def _step(self, suffix: str, *, masked: bool) -> Callable[[list[Tensor], list[Tensor]], tuple[Any, Any]]:
        weight, bias, extra = self._get("weight_hh", suffix), self._or_none("bias_hh", suffix), self._extra(suffix)
        chain = [
            (transform, tuple(map(self.get_buffer, fixed)), tuple(map(self.get_buffer, learnt)))
            for transform, fixed, learnt in self.chains[suffix]
        ]

        def step(carried: list[Tensor], entering: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            old = (carried[0], carried[1] if len(carried) > 1 else None)
            begins = entering[-1] if self.starts_at_one else None
            # Copies, since parts of what a loop only reads may not enter it beside the whole.
            own = tuple(part.clone() for part in extra)
            moved = self.cell.forward(entering[0], *old, _Product(weight, bias, begins), own)
            state, memory = moved.state, moved.memory
            for transform, fixed, learnt in chain:
                change = transform.forward(state, memory, old, fixed, learnt)
                state, memory = change.state, change.memory
            output, bare = state, moved.state
            new = [state] if memory is None else [state, memory]
            if masked:
                here = entering[1].unsqueeze(1)
                new = [torch.where(here, one, before) for one, before in zip(new, carried, strict=True)]
                output, bare = torch.where(here, output, 0), torch.where(here, bare, 0)
            return [part.clone() for part in new], [output.clone(), bare.clone()]

        return step

    def _term(self, rows: Tensor, suffix: str) -> Tensor:
        return linear(rows, self._get("weight_ih", suffix), self._or_none("bias_ih", suffix))

    def _get(self, name: str, suffix: str) -> Tensor:
        return self.get_buffer(name + suffix)

    def _or_none(self, name: str, suffix: str) -> Tensor | None:
        return self._buffers.get(name + suffix)

    def _extra(self, suffix: str) -> tuple[Tensor, ...]:
        return tuple(self._get(name, suffix) for name, _ in self.cell.extra_parameters)


def constant_draws(layer: RecurrentLayer, *, where: str) -> dict[tuple[int, int, int], tuple[Tensor, ...]]:
    """What the transforms that act in eval mode use beside what is learnt: the same at every step and for all rows.

    Args:
        layer: in eval mode; one that draws anything then is refused, since a graph has no such chance.
        where: its name, for the error.
    """
    like = layer.weight_ih_l0
    inputs = torch.zeros(2, 2, layer.input_size, dtype=like.dtype, device=like.device)
    inputs = inputs.transpose(0, 1) if layer.batch_first else inputs
    both = [layer.draw(inputs, generator=torch.Generator(like.device).manual_seed(seed)).tensors for seed in (0, 1)]
    for key, drawn in both[0].items():
        transform = layer.transforms[key[0]] if key[0] < len(layer.transforms) else None
        same = all(torch.equal(a, b) and bool((a == a[:1, :1]).all()) for a, b in zip(drawn, both[1][key], strict=True))
        if transform is None or transform.place is not Place.STATE or not same:
            name = "dropout" if transform is None else type(transform).__name__
            raise ExportError(
                where=where,
                got=f"{name}, which acts by chance or outside the state in eval mode",
                wanted="transforms of the state that are the same at every pass",
                remedy='For centroids: model.with_transition("mixture") or ("argmax").' if name == "Centroids" else "",
            )
    return {key: tuple(tensor[0, :1] for tensor in drawn) for key, drawn in both[0].items()}


def _beginnings(terms: Tensor, inside: Tensor | None) -> Tensor:
    """The first step of every sequence, (steps, batch)."""
    inside = torch.ones_like(terms[:, :, 0], dtype=torch.bool) if inside is None else inside
    before = torch.cat((torch.zeros_like(inside[:1]), inside[:-1]))
    return inside & ~before
