"""Images that are read pixel by pixel, as a task that replicas can be trained on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Int64
from torch import Tensor

from statewise.data.memory_task import SequenceTask
from statewise.data.permuted_pixels import PermutedPixels
from statewise.errors import ArgumentError, ShapeError
from statewise.sweep.sources import ORDERS, Examples, Source, uniforms


@dataclass(frozen=True, kw_only=True)
class PixelTask(SequenceTask):
    """The class of an image of which one pixel is shown at each step, in a fixed order (Ziv 2019, Appendix C).

    Args:
        pixels: how many an image has.
        kinds: how many classes there are.

    >>> PixelTask().steps, PixelTask().chance
    (784, 0.1)
    """

    kind: ClassVar[str] = "pixels"
    every_step: ClassVar[bool] = False

    pixels: int = 784
    kinds: int = 10

    @property
    def inputs(self) -> int:
        """One number a step."""
        return 1

    @property
    def classes(self) -> int:
        """As many as there are kinds."""
        return self.kinds

    @property
    def steps(self) -> int:
        """As many as there are pixels."""
        return self.pixels

    @property
    def baseline(self) -> float:
        """Any class, where all are as frequent."""
        return math.log(self.kinds)

    @property
    def chance(self) -> float:
        """One of the kinds."""
        return 1 / self.kinds

    @property
    def min_delta(self) -> float:
        """0.001."""
        return 1e-3

    def right(self, logits: Tensor, answers: Tensor) -> Tensor:
        """Whether each is right.

        Args:
            logits: of the classes.
            answers: those that are right.
        """
        return (logits.argmax(-1) == answers).to(logits.dtype)


class PermutedImages(Source):
    """Batches of images in an order of its own for each replica and epoch; what does not fill a batch waits an epoch.

    Args:
        task: what is learnt.
        batch: images of an iteration.
        device: where they are wanted; all of them are kept there, a byte a pixel.
        data: the images.
    """

    task: PixelTask

    def __init__(self, task: PixelTask, batch: int, device: torch.device, data: PermutedPixels | None) -> None:
        super().__init__(task, batch, device)
        if data is None:
            raise ArgumentError(
                where="train_replicas.data", got=None, wanted="images", remedy="Give data=permuted_pixels()."
            )
        self._parts = {"train": data.train.to(device), "valid": data.valid.to(device), "test": data.test.to(device)}
        for part, images in self._parts.items():
            if images.steps != task.pixels:
                raise ShapeError(
                    where=f"PermutedPixels.{part}",
                    got=f"images of {images.steps} pixels",
                    wanted=f"{task.pixels}, as the task has",
                )
        self.per_epoch = len(self._parts["train"]) // batch
        if not self.per_epoch:
            raise ShapeError(
                where="PermutedPixels.train", got=f"{len(self._parts['train'])} images", wanted=f"a batch of {batch}"
            )
        self._order: Tensor | None = None
        self._of: list[tuple[int, int]] = []

    def prepare(self, roots: Tensor, iterations: list[int]) -> int:
        """Lay out the order of every replica's present epoch; it holds until the first of them is through."""
        epochs = [count // self.per_epoch for count in iterations]
        wanted = list(zip(roots.tolist(), epochs, strict=True))
        if self._order is None or len(self._order) != len(wanted):
            images = len(self._parts["train"])
            # Where it lies stays the same: a graph reads it.
            self._order = torch.zeros(len(wanted), images, dtype=torch.int64, device=self.device)
            self._of = [(-1, -1)] * len(wanted)
        for replica, (before, now) in enumerate(zip(self._of, wanted, strict=True)):
            if before != now:
                root, epoch = (torch.tensor([number], device=self.device) for number in now)
                numbers = uniforms(root, epoch, ORDERS, self._order.shape[1])
                self._order[replica].copy_(numbers[0].argsort(stable=True))
        self._of = wanted
        return min(self.per_epoch - count % self.per_epoch for count in iterations)

    def fresh(self, roots: Tensor, iterations: Tensor) -> Examples:
        assert self._order is not None
        first = (iterations % self.per_epoch) * self.batch
        places = first.unsqueeze(1) + torch.arange(self.batch, device=self.device)
        return self._read("train", self._order.gather(1, places))

    def held_out(self, part: str, first: int, last: int) -> Examples:
        return self._read(part, torch.arange(first, last, device=self.device).unsqueeze(0))

    def size(self, part: str, wanted: int) -> int:
        return min(wanted, len(self._parts[part]))

    def _read(self, part: str, places: Int64[Tensor, "replicas batch"]) -> Examples:
        images = self._parts[part]
        return (images.values[places].float() / 255).mT.unsqueeze(3), images.labels[places]
