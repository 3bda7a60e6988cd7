"""One vector a sequence: how the outputs of all steps are read for a label of the whole."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from statewise.mixup.lengths import present

POOLS = ("last", "mean", "max")


def pool_steps(
    output: Float[Tensor, "steps rows width"],
    lengths: Int64[Tensor, " rows"],
    pool: str,
    *,
    bidirectional: bool = False,
) -> Float[Tensor, "rows width"]:
    """The last output, the mean or the maximum over the steps of each sequence.

    Args:
        output: padded.
        lengths: of the sequences, on the CPU.
        pool: "last", "mean" or "max".
        bidirectional: whether the second half of the width comes from a backward direction, whose last step is the
            first.

    >>> pool_steps(torch.arange(6.0).reshape(3, 2, 1), torch.tensor([3, 2]), "last").flatten().tolist()
    [4.0, 3.0]
    """
    at = lengths.to(output.device, non_blocking=True)
    if pool == "last":
        last = output.gather(0, (at - 1).reshape(1, -1, 1).expand(1, -1, output.shape[2])).squeeze(0)
        if not bidirectional:
            return last
        half = output.shape[2] // 2
        return torch.cat((last[:, :half], output[0, :, half:]), 1)
    inside = present(lengths, output.shape[0]).to(output.device, non_blocking=True).unsqueeze(2)
    if pool == "max":
        return torch.where(inside, output, -torch.inf).amax(0)
    return torch.where(inside, output, 0).sum(0) / at.unsqueeze(1)
