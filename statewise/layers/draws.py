"""What a layer has drawn for one forward pass: randomness as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class Draws:
    """All random tensors of one forward pass of a layer; give it to ``forward(..., draws=)`` to repeat the pass.

    Keys are (index of the transform, layer, direction); transforms of inputs and outputs have direction 0.
    """

    tensors: dict[tuple[int, int, int], tuple[Tensor, ...]] = field(default_factory=dict)

    def to(self, *args: object, **kwargs: object) -> Draws:
        """A copy on another device or in another dtype, as ``Tensor.to``."""
        return self._map(lambda tensor: tensor.to(*args, **kwargs))  # type: ignore[call-overload]

    def _map(self, change: Callable[[Tensor], Tensor]) -> Draws:
        return Draws({key: tuple(map(change, tensors)) for key, tensors in self.tensors.items()})
