"""What stands in the way of a graph before anything is tried."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from statewise.train.exchange import Batch
from statewise.train.plan import Refusal

_MOVE = "Move the model, its buffers and every argument to one CUDA device."


def obstacle(model: nn.Module, parameters: Sequence[nn.Parameter], batch: Batch) -> Refusal | None:
    """Why a call cannot be captured; None if it may be tried.

    Args:
        model: the model.
        parameters: of model and optimiser.
        batch: the arguments.

    >>> model = nn.Linear(2, 1)
    >>> obstacle(model, list(model.parameters()), Batch.read((torch.ones(2),))).reason
    'the model is on cpu'
    """
    devices = {tensor.device for tensor in [*parameters, *model.buffers()]}
    told = " and ".join(sorted(map(str, devices)))
    if not any(device.type == "cuda" for device in devices):
        return Refusal(f"the model is on {told}", _MOVE, expected=True)
    if len(devices) > 1:
        return Refusal(f"the model and the optimiser are on {told}", _MOVE)
    for leaf in (leaf for leaf in batch.leaves if leaf is not None):
        if leaf.device not in devices:
            return Refusal(f"an argument is on {leaf.device} and the model on {told}", _MOVE)
        if leaf.requires_grad:
            return Refusal("an argument requires a gradient", "Detach it.")
        if leaf.layout != torch.strided:
            return Refusal(f"an argument has the layout {leaf.layout}", "Give dense tensors.")
    if isinstance(model, DistributedDataParallel):
        return Refusal("the model is distributed", "Give graph=False to say that this is known.")
    if torch.cuda.is_current_stream_capturing():
        return Refusal("another capture is under way", "Call the step outside of it.")
    return None
