"""Permuted pixel MNIST as the orthogonal networks of the literature were trained on it, ready for a device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float32, Int64, UInt8
from torch import Tensor

from statewise.data.idx import image_sets
from statewise.data.images import Images
from statewise.errors import ArgumentError, ShapeError

#: Of the order of pixels in the code published with Helfrich et al. 2018 and Ziv 2019.
SEED = 92916
VALID = 5000


def published_order(pixels: int = 784) -> npt.NDArray[np.int64]:
    """The pixel, counted row by row, that each step reads in the published experiments.

    Args:
        pixels: of a picture.

    >>> published_order()[:10].tolist()
    [319, 576, 323, 107, 355, 716, 197, 20, 625, 60]
    """
    # numpy promises that the numbers of this old generator never change, and the published order is one of its.
    legacy = np.random.RandomState(SEED)
    return legacy.permutation(pixels).astype(np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class PixelSet:
    """Pictures and their labels as tensors of one device; a byte for each pixel, until a batch is read.

    Args:
        values: from 0 to 255, in the order in which a network reads them.
        labels: the class of each picture.

    >>> two = PixelSet(values=torch.tensor([[0, 255], [51, 0]], dtype=torch.uint8), labels=torch.tensor([3, 8]))
    >>> sequences, labels = two.batch(torch.tensor([1]))
    >>> sequences.shape, round(sequences[0].item(), 1), labels.tolist()
    (torch.Size([2, 1, 1]), 0.2, [8])
    """

    values: UInt8[Tensor, "pictures pixels"]
    labels: Int64[Tensor, " pictures"]

    def __post_init__(self) -> None:
        if self.values.dim() != 2 or self.labels.shape != self.values.shape[:1]:
            raise ShapeError(
                where="PixelSet",
                got=f"values {tuple(self.values.shape)} and labels {tuple(self.labels.shape)}",
                wanted="(pictures, pixels) and (pictures,)",
            )

    @classmethod
    def of(cls, images: Images, device: torch.device | str = "cpu") -> PixelSet:
        """The pictures of a set, in its order of pixels.

        Args:
            images: the set.
            device: where the tensors go.
        """
        values, labels = (torch.from_numpy(np.array(array)) for array in (images.values, images.labels))
        return cls(values=values.to(device), labels=labels.to(device))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def steps(self) -> int:
        """How many pixels are read, one a step."""
        return self.values.shape[1]

    def to(self, device: torch.device | str) -> PixelSet:
        """The same on another device."""
        return PixelSet(values=self.values.to(device), labels=self.labels.to(device))

    def batch(self, at: Int64[Tensor, " batch"]) -> tuple[Float32[Tensor, "pixels batch 1"], Int64[Tensor, " batch"]]:
        """Sequences of grey values from 0 to 1, time first, and their labels; nothing is read on the host.

        Args:
            at: places, on the same device.
        """
        return self.values[at].T.unsqueeze(2).to(torch.float32) / 255, self.labels[at]

    def places(
        self, size: int, *, generator: torch.Generator | None = None, drop_last: bool = False
    ) -> Iterator[Int64[Tensor, " batch"]]:
        """The places of an epoch's batches.

        Args:
            size: of a batch.
            generator: shuffles them; None for the order of the set.
            drop_last: leave out a last batch that is not full.
        """
        if size < 1:
            raise ArgumentError(where="PixelSet.places size", got=size, wanted="an integer >= 1")
        if generator is None:
            order = torch.arange(len(self), device=self.labels.device)
        else:
            order = torch.randperm(len(self), generator=generator, device=generator.device).to(self.labels.device)
        end = len(self) // size * size if drop_last else len(self)
        yield from (order[begin : min(begin + size, end)] for begin in range(0, end, size))


@dataclass(frozen=True, kw_only=True)
class PermutedPixels:
    """The three sets of permuted pixel MNIST.

    Args:
        train: what is trained on.
        valid: what is chosen by.
        test: what is reported.
    """

    train: PixelSet
    valid: PixelSet
    test: PixelSet


def permuted_pixels(
    *,
    data: Path | str | None = None,
    drop_last: bool = False,
    batch: int = 128,
    device: torch.device | str = "cpu",
) -> PermutedPixels:
    """MNIST with its 784 pixels in the published order, one a step, split as in the published experiments.

    The first 5,000 of the 60,000 pictures are to choose by, the other 55,000 to train on; 10,000 test (Ziv 2019,
    appendix C). The published code rounds each set down to whole batches of 128: with ``drop_last`` there are 4,992,
    the next 54,912, and 9,984, as there.

    Args:
        data: where MNIST is; see `find_data_set`.
        drop_last: leave out of each set what does not fill a batch, for parity with the published code.
        batch: size of these batches.
        device: where the tensors go.

    Raises:
        DataError: MNIST is not there; says where to get it.
    """
    if not 1 <= batch <= VALID:
        raise ArgumentError(where="permuted_pixels.batch", got=batch, wanted=f"1 to {VALID}")
    made = image_sets("mnist", data=data, valid=0)
    order = published_order(made.train.pixels)
    pictures, test = (images.in_order(order) for images in (made.train, made.tests["test"]))
    if len(pictures) <= VALID:
        raise ArgumentError(where="permuted_pixels", got=f"{len(pictures)} pictures", wanted=f"more than {VALID}")

    def whole(count: int) -> int:
        return count // batch * batch if drop_last else count

    valid = whole(VALID)
    train = whole(len(pictures) - VALID)
    return PermutedPixels(
        train=PixelSet.of(pictures.select(slice(valid, valid + train)), device),
        valid=PixelSet.of(pictures.select(slice(valid)), device),
        test=PixelSet.of(test.select(slice(whole(len(test)))), device),
    )
