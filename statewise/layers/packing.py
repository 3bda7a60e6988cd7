"""Padded sequences of several lengths as a layer's packed rows, and back: two gathers, whose numbers the host knows.

torch's ``pack_padded_sequence`` and ``pad_packed_sequence`` copy step by step, and the gradient of the latter copies
all steps anew for each of them: there and back four times as long, for a batch of ordinary sentences on a CPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from statewise.engine import Layout
from statewise.engine.layout import Array, moved, spread
from statewise.errors import LengthError, ShapeError


@dataclass(frozen=True, eq=False)
class Packing:
    """Where the steps of padded sequences lie when they are packed.

    Made by :meth:`of`.

    Attributes:
        layout: of the packed rows.
        order: for each of the sorted sequences, longest first, its number in the batch; on the CPU.
        ranks: for each sequence its place among the sorted ones; on the CPU.
        index: for each packed row its place among the steps of the padded batch.

    >>> packing = Packing.of(torch.tensor([1, 3]), device="cpu")
    >>> packing.order.tolist(), packing.index.tolist()
    ([1, 0], [1, 0, 3, 5])
    """

    layout: Layout
    order: Int[Tensor, " batch"]
    ranks: Int[Tensor, " batch"]
    index: Int[Tensor, " rows"]

    @classmethod
    def of(cls, lengths: Int[Tensor, " batch"], *, device: torch.device | str) -> Packing:
        """How sequences of these lengths are packed.

        Args:
            lengths: of the sequences, at least 1, on the CPU.
            device: where the sequences are.
        """
        numbers: Array = np.array(lengths.tolist())
        if not len(numbers) or numbers.min() < 1:
            raise LengthError(
                where="Packing",
                got="an empty sequence" if len(numbers) else "an empty batch",
                wanted="sequences of at least one step",
                remedy="Leave empty sequences out of the batch.",
            )
        order = np.argsort(-numbers, kind="stable")
        layout = Layout.of(numbers)
        sequence, step = layout.places
        index = torch.from_numpy(step * len(order) + order[sequence])
        return cls(layout, torch.from_numpy(order), torch.from_numpy(np.argsort(order)), moved(index, device))

    def rows(self, padded: Shaped[Tensor, "steps batch *width"]) -> Shaped[Tensor, "rows *width"]:
        """The steps of padded sequences, sorted by length.

        Args:
            padded: time first; beyond the ends anything.
        """
        if padded.shape[0] < self.layout.steps or padded.shape[1] != self.layout.batch:
            got, wanted = tuple(padded.shape), f"at least {self.layout.steps} steps of {self.layout.batch} sequences"
            raise ShapeError(where="Packing", got=got, wanted=f"{wanted}, as many as there are lengths")
        return padded.flatten(0, 1).index_select(0, self.index)

    def pack_sorted(self, padded: Shaped[Tensor, "steps batch *width"]) -> PackedSequence:
        """The sorted sequences, which a layer takes for the batch: its results are sorted, too.

        Their numbers are :attr:`ranks`; :meth:`pad` of the output's rows brings them back.

        Args:
            padded: time first; beyond the ends anything.
        """
        return PackedSequence(self.rows(padded), torch.tensor(self.layout.batch_sizes))

    def pack(self, padded: Shaped[Tensor, "steps batch *width"]) -> PackedSequence:
        """What ``pack_padded_sequence(padded, lengths, enforce_sorted=False)`` gives.

        Args:
            padded: time first; beyond the ends anything.
        """
        order, ranks = (moved(numbers, padded.device) for numbers in (self.order, self.ranks))
        return PackedSequence(self.rows(padded), torch.tensor(self.layout.batch_sizes), order, ranks)

    def pad(
        self, rows: Shaped[Tensor, "rows *width"], *, steps: int | None = None
    ) -> Shaped[Tensor, "padded batch *width"]:
        """The way back from :meth:`rows`; zero beyond the ends.

        Args:
            rows: of the packed steps.
            steps: of the padded batch; None means those of the longest sequence.
        """
        return spread(rows, self.index, self.layout.steps if steps is None else steps, self.layout.batch)


def pad(packed: PackedSequence, *, steps: int | None = None) -> Shaped[Tensor, "padded batch *width"]:
    """What ``pad_packed_sequence(packed, total_length=steps)`` gives as its first result.

    Args:
        packed: sequences in any order.
        steps: of the padded batch; None means those of the longest sequence.

    >>> pad(Packing.of(torch.tensor([1, 2]), device="cpu").pack(torch.ones(2, 2, 1))).squeeze(2)
    tensor([[1., 1.],
            [0., 1.]])
    """
    layout = Layout.of_sizes(tuple(packed.batch_sizes.tolist()))
    sequence, step = (moved(torch.from_numpy(numbers), packed.data.device) for numbers in layout.places)
    if packed.sorted_indices is not None:
        sequence = packed.sorted_indices[sequence]
    index = torch.add(sequence, step, alpha=layout.batch)
    return spread(packed.data, index, layout.steps if steps is None else steps, layout.batch)
