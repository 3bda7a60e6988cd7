"""Trials of a model: is it one function of each sequence, and is it the one that its matrices compute?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from statewise.bounds.logs import Floats
from statewise.bounds.observed import Forward, Observed
from statewise.bounds.reading import Reading
from statewise.bounds.recompute import recompute
from statewise.errors import AssumptionError

#: How far two ways to compute the same logits may be apart, as a share of how far these are from their mean.
AGREE: Mapping[torch.dtype, float] = {torch.float64: 1e-8, torch.float32: 1e-4}
_COARSE = 5e-2  # of other dtypes
_ALONE = 12  # sequences that are run alone


def refuse_changing(model: nn.Module, seen: Observed, *, forward: Forward | None) -> None:
    """Refuse a model whose answer changes when a sequence is run again, alone and without padding.

    So what draws in eval mode is found, and what sees the other sequences of its batch, the padding, or those before.

    Args:
        model: in eval mode.
        seen: with some sequences and their logits.
        forward: as for :func:`observe`.
    """
    call = model if forward is None else forward
    parameter = next(model.parameters(), None)
    device = torch.device("cpu") if parameter is None else parameter.device
    with torch.no_grad():
        for sequence, logits in seen.tested[:_ALONE]:
            inputs = torch.from_numpy(sequence).to(device, seen.input_dtype).unsqueeze(0)
            length = (torch.tensor([len(sequence)]),) if seen.with_lengths else ()
            alone: Tensor = call(inputs, *length)
            # Written so that what is no number does not pass.
            if not apart(alone.double().cpu().numpy(), logits[None]) <= _allowed(logits[None], seen.dtype):
                raise AssumptionError(
                    where="certify.model",
                    got="other logits for a sequence that is run again, alone and without padding",
                    wanted="one deterministic function of each sequence",
                    remedy="Does something in it draw in eval mode, such as functional dropout? Does it see the other "
                    "sequences of its batch, their padding, or a state from before?",
                )


def tried(reading: Reading, seen: Observed) -> tuple[Reading, Observed]:
    """The reading, without matrices if the model's logits are not those that its matrices give.

    What is left between the two is taken off the margins: twice for each of two logits, here and on what is to come.

    Args:
        reading: of the model.
        seen: with some sequences and their logits.
    """
    matrices, worst = reading.matrices, 0.0
    if matrices is None:
        return reading, seen
    if (matrices.embedding is None) != (seen.words is None):
        return replace(reading, matrices=None, why_not="its layers do not read what it is given"), seen
    for length in {len(sequence) for sequence, _ in seen.tested}:
        group = [pair for pair in seen.tested if len(pair[0]) == length]
        logits = np.stack([each for _, each in group])
        again = recompute(matrices, np.stack([reading.as_read(sequence) for sequence, _ in group]))
        distance = apart(again, logits)
        if not distance <= _allowed(logits, seen.dtype):
            why = (
                f"its logits are {distance:.2g} away from those of its matrices: it is no linear head on the last state"
            )
            return replace(reading, matrices=None, why_not=why), seen
        worst = max(worst, distance)
    return reading, replace(seen, margins=seen.margins - 4 * worst)


def apart(one: Floats, other: Floats) -> float:
    """How far logits are from each other; what is added to all classes alike does not count, as for margins.

    >>> apart(np.array([[1.0, 2.0]]), np.array([[5.0, 6.5]]))
    0.25
    """
    with np.errstate(invalid="ignore"):  # what is no number is no distance, and passes no test
        return float(np.abs(_centred(one) - _centred(other)).max(initial=0.0))


def _centred(logits: Floats) -> Floats:
    centred: Floats = logits - logits.mean(1, keepdims=True)
    return centred


def _allowed(logits: Floats, dtype: torch.dtype) -> float:
    return AGREE.get(dtype, _COARSE) * float(np.abs(_centred(logits)).max(initial=0.0)) + 1e-300
