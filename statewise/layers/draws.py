"""What a layer has drawn for one forward pass: randomness as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from statewise.errors import DeviceError, DtypeError, ShapeError


@dataclass(frozen=True)
class Draws:
    """All random tensors of one forward pass of a layer; give it to ``forward(..., draws=)`` to repeat the pass.

    Attributes:
        tensors: what the transforms drew. Keys are (index of the transform, layer, direction); transforms of inputs and
            outputs have direction 0.
        start: the initial states of a layer that draws them, shape (layers * directions, batch, hidden).
        weights: the masks of dropped weights, by the path of the parametrization.
    """

    tensors: dict[tuple[int, int, int], tuple[Tensor, ...]] = field(default_factory=dict)
    start: Tensor | None = None
    weights: dict[str, Tensor] = field(default_factory=dict)

    def to(self, *args: object, **kwargs: object) -> Draws:
        """A copy on another device or in another dtype, as ``Tensor.to``."""
        return self._map(lambda tensor: tensor.to(*args, **kwargs))  # type: ignore[call-overload]

    def _map(self, change: Callable[[Tensor], Tensor]) -> Draws:
        return Draws(
            {key: tuple(map(change, tensors)) for key, tensors in self.tensors.items()},
            None if self.start is None else change(self.start),
            {path: change(mask) for path, mask in self.weights.items()},
        )


def check_draws(draws: Draws, *, where: str, like: Tensor, steps: int, batch: int, hidden: int) -> None:
    """Refuse what was drawn for another input: an engine would read past its end."""
    if not isinstance(draws, Draws):
        raise DtypeError(where=f"{where} draws", got=type(draws).__name__, wanted="what layer.draw(input) gives")
    if draws.start is not None and draws.start.shape[1:] != (batch, hidden):
        raise ShapeError(
            where=f"{where} draws",
            got=f"initial states of shape {tuple(draws.start.shape)}",
            wanted=f"(layers * directions, {batch}, {hidden})",
            remedy="Draw anew with layer.draw(input).",
        )
    for tensor in (tensor for tensors in draws.tensors.values() for tensor in tensors):
        if tensor.shape[0] not in (1, steps) or tensor.shape[1] != batch:
            raise ShapeError(
                where=f"{where} draws",
                got=f"a tensor for {tensor.shape[0]} steps of {tensor.shape[1]} sequences",
                wanted=f"{steps} steps of {batch} sequences",
                remedy="Draw anew with layer.draw(input).",
            )
        if tensor.device != like.device:
            raise DeviceError(
                where=f"{where} draws", got=str(tensor.device), wanted=str(like.device), remedy="Use draws.to()."
            )
