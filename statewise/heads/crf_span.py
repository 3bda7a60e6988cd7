"""How far each sequence of a padded batch reaches."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from statewise.errors import DeviceError, DtypeError, LengthError, ShapeError
from statewise.kernels import traced


@dataclass(frozen=True, eq=False)
class Span:
    """The lengths of a padded batch, on the host and on its device.

    Args:
        steps: of the padded batch.
        lengths: (batch,), int64, on the CPU.
        there: the lengths on the device of the batch.

    >>> Span.of(None, torch.zeros(3, 2, 4)).lengths
    tensor([3, 3])
    """

    steps: int
    lengths: Tensor
    there: Tensor

    @classmethod
    def of(cls, lengths: Tensor | None, padded: Tensor, *, where: str = "lengths") -> Span:
        """Check the lengths of a batch; None means that all its sequences are full.

        Args:
            lengths: (batch,), on the CPU.
            padded: (steps, batch, ...).
            where: the argument, for errors.
        """
        steps, batch = padded.shape[:2]
        if steps == 0 or batch == 0:
            raise LengthError(
                where=where, got=f"{steps} steps of {batch} sequences", wanted="at least one of each", remedy=_LEAVE_OUT
            )
        if lengths is None:
            lengths = torch.full((batch,), steps)
        if not isinstance(lengths, Tensor) or lengths.dtype not in (torch.int32, torch.int64):
            got = str(lengths.dtype) if isinstance(lengths, Tensor) else type(lengths).__name__
            raise DtypeError(where=where, got=got, wanted="a tensor of whole numbers")
        if lengths.device.type != "cpu":
            remedy = "Keep them there, so that the host need not wait for the device."
            raise DeviceError(where=where, got=str(lengths.device), wanted="the CPU", remedy=remedy)
        if lengths.shape != (batch,):
            raise ShapeError(where=where, got=tuple(lengths.shape), wanted=f"({batch},), one for each sequence")
        # Under torch's compiler there are no numbers yet; the kernel's operator looks at them.
        for row, length in enumerate(() if traced() else lengths.tolist()):
            if not 1 <= length <= steps:
                got = "an empty sequence" if length == 0 else f"length {length}"
                remedy = _LEAVE_OUT if length == 0 else "Count the steps of each sequence in this batch."
                wanted = f"lengths from 1 to {steps}"
                raise LengthError(where=where, got=f"{got} at {row}", wanted=wanted, remedy=remedy)
        lengths = lengths.long()
        return cls(steps, lengths, lengths.to(padded.device, non_blocking=True))

    @property
    def inside(self) -> Tensor:
        """(steps, batch): which steps are there at all."""
        return torch.arange(self.steps, device=self.there.device)[:, None] < self.there

    def at_end(self, values: Tensor) -> Tensor:
        """Of (steps, batch) values those at the last step of each sequence.

        >>> Span.of(torch.tensor([2, 1]), torch.zeros(2, 2)).at_end(torch.tensor([[1, 2], [3, 4]]))
        tensor([3, 2])
        """
        return values.gather(0, self.there[None] - 1)[0]


_LEAVE_OUT = "Leave empty sequences out of the batch."
