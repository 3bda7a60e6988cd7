"""What a pass over sequences draws, for which sequences, and how it acts before and after the recurrence."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from statewise.engine import Drawn
from statewise.layers.batch import Batch, check_generator
from statewise.layers.draws import Draws, check_draws, check_purpose
from statewise.layers.pairs import Batches
from statewise.layers.parts import LayerParts
from statewise.transforms import Place, Randomness, RecurrentDropout, SequenceTransform, Sizes, Stream, Transform
from statewise.weights import redraw_weight_drop, weight_drop_masks

START = 2**32  # the key of the stream of initial states, beyond every index of a transform


class DrawingLayer(LayerParts):
    """The part of a recurrent layer that draws: every transform from a stream of its own, layer by layer."""

    def _draw_all(self, batches: Batches, generator: torch.Generator | None, *, starts: bool = True) -> Draws:
        draws = self._draw(batches, generator, starts=starts)
        if not self.training:
            return draws
        redraw_weight_drop(self, generator)
        return replace(draws, weights=weight_drop_masks(self))

    def _draw(self, batches: Batches, generator: torch.Generator | None, *, starts: bool = True) -> Draws:
        device = batches.own.rows.device
        check_generator(generator, where=self._name, device=device)
        randomness, drawn = Randomness(generator, device=device), {}
        for index, transform in enumerate(self._drawing):
            outside = transform.place in (Place.INPUT, Place.OUTPUT)
            for layer in range(self.num_layers):
                if not transform.acts_on(layer, self.num_layers):
                    continue
                for direction in range(1 if outside else self.num_directions):
                    stream = randomness.stream(index, layer, direction)
                    tensors = self._draw_one(transform, layer, batches, stream)
                    if tensors is not None:
                        drawn[index, layer, direction] = tensors
        start = self._draw_start(batches.started(), randomness.stream(START)) if starts else None
        return Draws(drawn, start, made_for=(self._drawing, self.training, self._stack))

    def _draw_one(
        self, transform: Transform, layer: int, batches: Batches, stream: Stream
    ) -> tuple[Tensor, ...] | None:
        """What a transform draws for a layer; at the mixing layer what acts on inputs is drawn for the sequences."""
        if transform.place is Place.INPUT:
            return self._draw_for(transform, layer, batches.entering(layer), stream)
        drawn = self._draw_for(transform, layer, batches.at(layer), stream)
        if drawn is None or not batches.mixes(layer) or not isinstance(transform, RecurrentDropout):
            return drawn
        for_sequences = self._draw_for(transform, layer, batches.own, stream)
        return drawn if for_sequences is None else (for_sequences[0], drawn[1])

    def _draw_for(self, transform: Transform, layer: int, batch: Batch, stream: Stream) -> tuple[Tensor, ...] | None:
        outside = transform.place in (Place.INPUT, Place.OUTPUT)
        sizes = Sizes(
            steps=batch.layout.steps,
            batch=batch.layout.batch,
            input=self._input_width(layer),
            hidden=self.hidden_size * (self.num_directions if outside else 1),
            blocks=len(self.cell.blocks),
            dtype=batch.rows.dtype,
            device=batch.rows.device,
        )
        return transform.draw(sizes, stream, training=self.training)

    def _check_draws(self, draws: Draws, batches: Batches) -> None:
        """Refuse draws of another input, other pairs, or another layer."""

        def sizes(index: int, layer: int, which: int) -> tuple[int, int]:
            transform = self._drawing[index] if index < len(self._drawing) else None
            of_inputs = isinstance(transform, RecurrentDropout) and which == 0
            if transform is not None and transform.place is Place.INPUT:
                of_inputs = True
            layout = (batches.entering(layer) if of_inputs else batches.at(layer)).layout
            return layout.steps, layout.batch

        states = (batches.started().layout.batch, self.hidden_size)
        check_draws(draws, where=self._name, like=batches.own.rows, sizes=sizes, states=states)
        check_purpose(draws, where=self._name, transforms=self._drawing, training=self.training, sizes=self._stack)

    @property
    def _stack(self) -> tuple[int, int, int]:
        return self.num_layers, self.num_directions, self.hidden_size

    def _draw_start(self, batch: Batch, stream: Stream) -> Tensor | None:
        """Initial states for sequences that are given none, where the layer draws them."""
        return None

    def _lay_out(self, drawn: Tensor, batch: Batch) -> Drawn:
        """A drawn tensor (steps or 1, batch, width), in the user's order, as rows of the layout."""
        drawn = batch.sort(drawn, dim=1)
        if drawn.shape[0] == 1 and batch.layout.steps > 1:
            return Drawn(drawn[0], constant=True)
        return Drawn(batch.layout.pack(drawn), constant=False)

    def _outside(self, place: Place, rows: Tensor, layer: int, batch: Batch, draws: Draws) -> Tensor:
        """Apply the transforms of a layer's input or output to all steps at once."""
        for index, transform in enumerate(self._drawing):
            drawn = draws.tensors.get((index, layer, 0))
            if drawn is None or transform.place is not place or not isinstance(transform, SequenceTransform):
                continue
            expanded = tuple(batch.layout.pack(self._over_time(tensor, batch)) for tensor in drawn)
            # What was drawn before autocast may be wider than the rows.
            rows = transform.apply(rows, expanded).to(rows.dtype)
        return rows

    @staticmethod
    def _over_time(drawn: Tensor, batch: Batch) -> Tensor:
        return batch.sort(drawn, dim=1).expand(batch.layout.steps, -1, -1)
