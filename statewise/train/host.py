"""What the host does in a step, which a graph would not repeat."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from statewise.errors import ShapeError
from statewise.train.plan import Refusal


class HostState:
    """All that Python changes while a step is captured, when the device only records.

    It is put back after the capture, whether that succeeded or not. What differs from before would be frozen in the
    graph, so :meth:`frozen` refuses a graph that would silently repeat it.

    Args:
        model: the model.
        optimizer: the optimiser.
        parameters: those of both.
        device: whose generator is kept, too, if it is an accelerator.

    >>> model = nn.Dropout()
    >>> host = HostState(model, torch.optim.SGD([nn.Parameter(torch.ones(1))]), [], torch.device("cpu"))
    >>> host.frozen() is None
    True
    >>> _ = model(torch.ones(3))
    >>> host.frozen().reason
    'it draws random numbers on the host, which a graph would repeat'
    """

    def __init__(
        self, model: nn.Module, optimizer: Optimizer, parameters: Sequence[nn.Parameter], device: torch.device
    ) -> None:
        self._model, self._optimizer, self._device = model, optimizer, device
        self._random = torch.get_rng_state(), random.getstate()
        self._device_random = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
        self._grads = [(parameter, parameter.grad) for parameter in parameters]
        modules = list(model.modules())
        self.buffers = [(module, name, buffer) for module in modules for name, buffer in module._buffers.items()]
        self._attributes = list(_attributes(model))
        self._counts = {owner: dict(state) for owner, state in optimizer.state.items()}
        self._on_host = [(count, count.clone()) for count in self._host_tensors()]

    def keep_buffers(self) -> None:
        """Write what took the place of a buffer into the buffer, as part of the step.

        A step may put a new tensor in place of a buffer, such as a mask. In a graph the next step would read the old
        one.
        """
        for module, name, before in self.buffers:
            now = module._buffers.get(name)
            if now is before:
                continue
            if now is None or before is None or not alike(now, before):
                raise ShapeError(
                    where=f"{type(module).__name__}.{name}",
                    got="another tensor in place of the buffer, of another kind",
                    wanted="the same shape, dtype and device",
                )
            with torch.no_grad():
                before.copy_(now)
            module._buffers[name] = before

    def frozen(self) -> Refusal | None:
        """What was done on the host and would not be done again by a graph."""
        if not torch.equal(self._random[0], torch.get_rng_state()):
            return Refusal(
                "it draws random numbers on the host, which a graph would repeat",
                "Draw them on the device, or before the step, and give them as an argument.",
            )
        kept = {(id(module), name): parts for module, name, _, parts in self._attributes}
        for module, name, _, parts in _attributes(self._model):
            if not _same(kept.get((id(module), name)), parts):
                return Refusal(
                    f"{type(module).__name__} sets its attribute {name!r} in it, which a graph would not do again",
                    "Return the tensor from the loss and give it as an argument of the next call, or make it a buffer.",
                )
        if self._counts_changed():
            return Refusal(
                f"{type(self._optimizer).__name__} counts on the host, which a graph would not do again",
                "Use an optimiser that has capturable=True, or SGD.",
            )
        return None

    def restore(self) -> None:
        """Put everything back."""
        torch.set_rng_state(self._random[0])
        random.setstate(self._random[1])
        before = self._device_random
        # Only if it must be: setting it makes cuDNN begin its dropout anew.
        if before is not None and not torch.equal(before, torch.cuda.get_rng_state(self._device)):
            torch.cuda.set_rng_state(before, self._device)
        for parameter, grad in self._grads:
            parameter.grad = grad
        for module, name, buffer in self.buffers:
            module._buffers[name] = buffer
        self._restore_attributes()
        self._restore_counts()

    def _host_tensors(self) -> Iterator[Tensor]:
        values = (value for state in self._counts.values() for value in state.values())
        # On a CPU, where nothing is captured, the whole state is the host's.
        return (value for value in values if isinstance(value, Tensor) and value.device.type == "cpu")

    def _counts_changed(self) -> bool:
        now = self._optimizer.state
        if now.keys() != self._counts.keys():
            return True
        for owner, before in self._counts.items():
            if now[owner].keys() != before.keys() or not all(_same(now[owner][name], before[name]) for name in before):
                return True
        return not all(torch.equal(count, before) for count, before in self._on_host)

    def _restore_attributes(self) -> None:
        kept = {(id(module), name) for module, name, _, _ in self._attributes}
        for module, name, _, _ in list(_attributes(self._model)):
            if (id(module), name) not in kept:
                del vars(module)[name]
        for module, name, value, parts in self._attributes:
            if isinstance(value, list):
                value[:] = parts
            vars(module)[name] = value

    def _restore_counts(self) -> None:
        for owner in [owner for owner in self._optimizer.state if owner not in self._counts]:
            del self._optimizer.state[owner]
        for owner, before in self._counts.items():
            self._optimizer.state[owner].clear()
            self._optimizer.state[owner].update(before)
        with torch.no_grad():
            for count, value in self._on_host:
                count.copy_(value)


def alike(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape, dtype and device.

    >>> alike(torch.zeros(2), torch.ones(2)), alike(torch.zeros(2), torch.zeros(2, dtype=torch.int))
    (True, False)
    """
    return (one.shape, one.dtype, one.device) == (other.shape, other.dtype, other.device)


def _attributes(model: nn.Module) -> Iterator[tuple[nn.Module, str, Any, tuple[Any, ...]]]:
    """Tensors, and tuples or lists with tensors, that are plain attributes of a module; with their parts of now."""
    for module in model.modules():
        for name, value in vars(module).items():
            parts = tuple(value) if isinstance(value, tuple | list) else (value,)
            if any(isinstance(part, Tensor) for part in parts):
                yield module, name, value, parts


def _same(before: Any, now: Any) -> bool:
    if isinstance(now, tuple | list) and isinstance(before, tuple | list):
        return len(before) == len(now) and all(map(_same, before, now))
    return before is now or (not (isinstance(before, Tensor) or isinstance(now, Tensor)) and bool(before == now))
