"""What a layer has drawn for one forward pass: randomness as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from statewise.errors import ArgumentError, DeviceError, DtypeError, ShapeError
from statewise.transforms import Transform


@dataclass(frozen=True, repr=False)
class Draws:
    """All random tensors of one forward pass of a layer; give it to ``forward(..., draws=)`` to repeat the pass.

    Attributes:
        tensors: what the transforms drew. Keys are (index of the transform, layer, direction); transforms of inputs and
            outputs have direction 0.
        start: the initial states of a layer that draws them, shape (layers * directions, batch, hidden).
        weights: the masks of dropped weights, by the path of the parametrization.
        made_for: transforms, mode and (layers, directions, hidden) of the layer; None where it was made by hand.
    """

    tensors: dict[tuple[int, int, int], tuple[Tensor, ...]] = field(default_factory=dict)
    start: Tensor | None = None
    weights: dict[str, Tensor] = field(default_factory=dict)
    made_for: tuple[tuple[Transform, ...], bool, tuple[int, int, int]] | None = None

    def __repr__(self) -> str:
        shapes = {key: [tuple(tensor.shape) for tensor in tensors] for key, tensors in self.tensors.items()}
        start = None if self.start is None else tuple(self.start.shape)
        return f"Draws(tensors of shapes {shapes}, start {start}, weights {sorted(self.weights)})"

    def to(self, *args: object, **kwargs: object) -> Draws:
        """A copy on another device or in another dtype, as ``Tensor.to``."""
        return self._map(lambda tensor: tensor.to(*args, **kwargs))  # type: ignore[call-overload]

    def _map(self, change: Callable[[Tensor], Tensor]) -> Draws:
        return Draws(
            {key: tuple(map(change, tensors)) for key, tensors in self.tensors.items()},
            None if self.start is None else change(self.start),
            {path: change(mask) for path, mask in self.weights.items()},
            self.made_for,
        )


def check_purpose(
    draws: Draws, *, where: str, transforms: tuple[Transform, ...], training: bool, sizes: tuple[int, int, int]
) -> None:
    """Refuse what was drawn for other transforms, another stack, or in the other mode: it would be misused."""
    if draws.made_for is None or draws.made_for == (transforms, training, sizes):
        return

    def told(drawn: tuple[Transform, ...], mode: bool, size: tuple[int, int, int]) -> str:
        layers, directions, hidden = size
        return (
            f"draws for {list(drawn)} in {'training' if mode else 'eval'} mode, "
            f"{layers} layer(s) of {hidden} units in {directions} direction(s)"
        )

    raise ArgumentError(
        where=f"{where} draws",
        got=told(*draws.made_for),
        wanted=told(transforms, training, sizes),
        remedy="Draw anew with layer.draw(input).",
    )


def check_draws(
    draws: Draws,
    *,
    where: str,
    like: Tensor,
    sizes: Callable[[int, int, int], tuple[int, int]],
    states: tuple[int, int],
) -> None:
    """Refuse what was drawn for another input: an engine would read past its end.

    Args:
        draws: what was drawn.
        where: whose it is.
        like: a tensor on the device.
        sizes: for a transform, a layer, and which of its tensors: how many steps of how many sequences it needs.
        states: how many initial states of how many units.
    """
    if not isinstance(draws, Draws):
        raise DtypeError(where=f"{where} draws", got=type(draws).__name__, wanted="what layer.draw(input) gives")
    remedy = "Draw anew with layer.draw(input), and with the pairing if there is one."
    if draws.start is not None and draws.start.shape[1:] != states:
        raise ShapeError(
            where=f"{where} draws",
            got=f"initial states of shape {tuple(draws.start.shape)}",
            wanted=f"(layers * directions, {states[0]}, {states[1]})",
            remedy=remedy,
        )
    for (index, layer, _), tensors in draws.tensors.items():
        for which, tensor in enumerate(tensors):
            steps, batch = sizes(index, layer, which)
            if tensor.shape[0] not in (1, steps) or tensor.shape[1] != batch:
                raise ShapeError(
                    where=f"{where} draws",
                    got=f"a tensor for {tensor.shape[0]} steps of {tensor.shape[1]} sequences",
                    wanted=f"{steps} steps of {batch} sequences",
                    remedy=remedy,
                )
            if tensor.device != like.device:
                raise DeviceError(
                    where=f"{where} draws", got=str(tensor.device), wanted=str(like.device), remedy="Use draws.to()."
                )
