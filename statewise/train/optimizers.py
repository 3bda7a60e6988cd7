"""What a graph needs of an optimiser: counts on the device, and learning rates that can be turned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adadelta, Adam, Adamax, AdamW, NAdam, Optimizer, RAdam, RMSprop

from statewise.train.rmsprop_tf import RMSpropTF

# With capturable=True, and with all tensors in one call (foreach) or fused, these read a learning rate from the device.
_READ_A_TENSOR = (Adam, AdamW, NAdam, RAdam, Adamax, Adadelta, RMSprop)
# What these optimisers count on the host unless they are capturable.
_COUNTS = ("step", "mu_product")

Fingerprint = dict[tuple[str, int], object]


class GraphOptimizer:
    """An optimiser made fit for graphs, without a change that its user would see.

    In a region :meth:`fit` its groups are ``capturable`` where they have the choice. Where the optimiser reads learning
    rates from device memory, tensors take the place of the user's numbers, and :meth:`refresh` writes the present
    numbers into them, so that a change takes effect without another capture.

    Args:
        optimizer: the user's.
        device: of its parameters.

    >>> optimizer = GraphOptimizer(SGD([nn.Parameter(torch.zeros(2))], lr=0.1), torch.device("cpu"))
    >>> optimizer.prepare()
    >>> sorted(name for name, _ in optimizer.fingerprint() if name in ("lr", "momentum", "params"))
    ['lr', 'momentum']
    """

    def __init__(self, optimizer: Optimizer, device: torch.device) -> None:
        self.optimizer, self.device = optimizer, device
        self.prepared = False
        self._rates: dict[int, Tensor] = {}
        self._written: dict[int, float] = {}

    def prepare(self) -> None:
        """Move the counts of groups that can be capturable to the device."""
        self.prepared = True
        for group in self.optimizer.param_groups:
            if "capturable" in group:
                self._move_counts(group, self.device)

    def retire(self) -> None:
        """Undo :meth:`prepare`, with the counts as they are now."""
        if self.prepared and type(self.optimizer) in _READ_A_TENSOR:
            for group in self.optimizer.param_groups:
                if not (group["capturable"] or group.get("fused")):
                    self._move_counts(group, torch.device("cpu"))
        self.prepared = False

    def refresh(self) -> None:
        """Write the learning rates of now where a graph reads them."""
        for index, group in enumerate(self.optimizer.param_groups):
            if not self._turns(group):
                continue
            rate = float(group["lr"])
            if index not in self._rates:
                self._rates[index] = torch.tensor(rate, dtype=_rate_dtype(group), device=self.device)
            elif self._written[index] != rate:
                self._rates[index].fill_(rate)
            self._written[index] = rate

    @contextmanager
    def fit(self) -> Iterator[None]:
        """A region in which the optimiser steps as a graph needs it."""
        self.refresh()
        replaced = []
        try:
            for index, group in enumerate(self.optimizer.param_groups):
                changes: dict[str, Any] = {"capturable": True} if "capturable" in group else {}
                if self._turns(group):
                    changes["lr"] = self._rates[index]
                replaced.append((group, {name: group[name] for name in changes}))
                group.update(changes)
            yield
        finally:
            for group, before in replaced:
                group.update(before)

    def fingerprint(self) -> Fingerprint:
        """What a graph holds for good: where the state lies, and every number of the groups that cannot be turned."""
        found: Fingerprint = {}
        for index, group in enumerate(self.optimizer.param_groups):
            tensors = (value for state in self._states(group) for value in state.values() if isinstance(value, Tensor))
            found["state", index] = tuple(tensor.data_ptr() for tensor in tensors)
            turns = self._turns(group)
            for name, value in group.items():
                if name != "params" and not (turns and name == "lr"):
                    found[name, index] = _comparable(value)
        return found

    def _states(self, group: dict[str, Any]) -> Iterator[dict[str, Any]]:
        state = self.optimizer.state
        return (state[parameter] for parameter in group["params"] if parameter in state)

    def _move_counts(self, group: dict[str, Any], device: torch.device) -> None:
        for state in self._states(group):
            for name in _COUNTS:
                if isinstance(state.get(name), Tensor):
                    state[name] = state[name].to(device)

    def _turns(self, group: dict[str, Any]) -> bool:
        """Whether the learning rate of a group can be read from device memory, and is a number on the host so far."""
        rate = group.get("lr")
        if rate is None or (isinstance(rate, Tensor) and rate.device.type != "cpu"):
            return False
        if type(self.optimizer) is SGD:
            return bool(group.get("fused"))
        if type(self.optimizer) is RMSpropTF:
            return True
        return type(self.optimizer) in _READ_A_TENSOR and group.get("foreach") is not False


def _rate_dtype(group: dict[str, Any]) -> torch.dtype:
    """Single precision, as the fused kernels want it, unless all parameters are double."""
    double = all(parameter.dtype == torch.float64 for parameter in group["params"])
    return torch.float64 if double and not group.get("fused") else torch.float32


def _comparable(value: Any) -> object:
    if isinstance(value, Tensor):
        return value.tolist() if value.device.type == "cpu" else value.data_ptr()
    if isinstance(value, list | tuple):
        return tuple(_comparable(part) for part in value)
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def places(parameters: Sequence[nn.Parameter]) -> Fingerprint:
    """Where parameters lie and which of them are trained: what a graph holds of the model.

    >>> weight = nn.Parameter(torch.zeros(2))
    >>> before = places([weight])
    >>> weight.data = torch.zeros(2)
    >>> places([weight]) == before
    False
    """
    return {("parameters", 0): tuple((each.data_ptr(), each.requires_grad) for each in parameters)}


def difference(before: Fingerprint, after: Fingerprint) -> str:
    """What is not as it was, in words.

    >>> difference({("lr", 0): 0.1, ("lr", 1): 0.1}, {("lr", 0): 0.2, ("lr", 1): 0.1})
    "'lr' of parameter group 0 has changed"
    """
    name, index = next(key for key in {**before, **after} if before.get(key) != after.get(key))
    if name == "parameters":
        return "the parameters are not where they were, or others are trained"
    if name == "state":
        return "the state of the optimiser is not where it was"
    return f"{name!r} of parameter group {index} has changed"
