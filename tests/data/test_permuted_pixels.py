"""Permuted pixel MNIST: the order, the split, and batches on a device."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from statewise.data.images import Images
from statewise.data.permuted_pixels import PixelSet, permuted_pixels, published_order
from statewise.errors import ArgumentError, DataError, ShapeError
from support import shared_data

PICTURES, TESTS, SIDE = 5300, 270, 2


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of 2 x 2 pixels in idx files; the first two pixels are the number of the picture."""
    folder = tmp_path_factory.mktemp("mnist")
    for split, count in (("train", PICTURES), ("t10k", TESTS)):
        numbers = np.arange(count)
        values = np.stack([numbers // 256, numbers % 256, numbers % 7, numbers % 5], 1).astype(np.uint8)
        head = struct.pack(">4B3I", 0, 0, 8, 3, count, SIDE, SIDE)
        (folder / f"{split}-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + values.tobytes()))
        labels = (numbers % 10).astype(np.uint8)
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, count) + labels.tobytes())
    return folder


def numbers(pictures: PixelSet) -> list[int]:
    """Which pictures they are."""
    plain = torch.empty_like(pictures.values)
    plain[:, torch.from_numpy(published_order(SIDE * SIDE))] = pictures.values
    return (plain[:, 0].long() * 256 + plain[:, 1]).tolist()


def test_the_first_five_thousand_are_to_choose_by(tiny: Path) -> None:
    sets = permuted_pixels(data=tiny)
    assert numbers(sets.valid) == list(range(5000))
    assert numbers(sets.train) == list(range(5000, PICTURES))
    assert numbers(sets.test) == list(range(TESTS))
    assert sets.train.labels.tolist() == [number % 10 for number in range(5000, PICTURES)]


def test_parity_leaves_out_what_fills_no_batch(tiny: Path) -> None:
    sets = permuted_pixels(data=tiny, drop_last=True)
    assert numbers(sets.valid) == list(range(4992))
    assert numbers(sets.train) == list(range(4992, 4992 + 256)), "the next ones, whole batches of 300 pictures"
    assert numbers(sets.test) == list(range(256))
    assert len(permuted_pixels(data=tiny, drop_last=True, batch=100).train) == 300


def test_pixels_are_read_in_the_published_order() -> None:
    order = published_order(6)
    values = np.arange(0, 60, 10)
    images = Images(values=values[None], labels=np.array([0]), classes=("0",), height=2, width=3).in_order(order)
    sequences, labels = PixelSet.of(images).batch(torch.tensor([0, 0]))
    assert sequences.shape == (6, 2, 1)
    assert sequences.dtype == torch.float32
    torch.testing.assert_close(sequences[:, 1, 0], torch.from_numpy(values[order] / 255).float())
    assert labels.tolist() == [0, 0]


def test_an_epoch_has_every_picture_once(generator: torch.Generator) -> None:
    pictures = PixelSet(values=torch.zeros(10, 3, dtype=torch.uint8), labels=torch.arange(10))
    plain = list(pictures.places(4))
    assert [batch.tolist() for batch in plain] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    shuffled = [torch.cat(list(pictures.places(4, generator=generator))).tolist() for _ in range(2)]
    assert shuffled[0] != shuffled[1], "shuffled anew"
    assert [sorted(order) for order in shuffled] == [list(range(10))] * 2
    assert [len(batch) for batch in pictures.places(4, generator=generator, drop_last=True)] == [4, 4]
    assert len(pictures.to("cpu")) == 10
    assert pictures.steps == 3


@pytest.mark.usefixtures("as_users_have_it")
def test_mistakes_are_named(tmp_path: Path, tiny: Path) -> None:
    with pytest.raises(ShapeError, match=r"wanted \(pictures, pixels\) and \(pictures,\)"):
        PixelSet(values=torch.zeros(2, 3, dtype=torch.uint8), labels=torch.zeros(3, dtype=torch.long))
    with pytest.raises(ArgumentError, match=r"permuted_pixels\.batch: got 0"):
        permuted_pixels(data=tiny, batch=0)
    with pytest.raises(DataError, match="data set mnist"):
        permuted_pixels(data=tmp_path)
    one = PixelSet(values=torch.zeros(1, 3, dtype=torch.uint8), labels=torch.zeros(1, dtype=torch.long))
    with pytest.raises(ArgumentError, match="size: got 0"):
        next(one.places(0))


@pytest.mark.slow
def test_mnist_has_the_published_sizes() -> None:
    folder = shared_data("mnist")
    whole, rounded = (permuted_pixels(data=folder, drop_last=drop_last) for drop_last in (False, True))
    assert [len(one) for one in (whole.train, whole.valid, whole.test)] == [55_000, 5_000, 10_000]
    assert [len(one) for one in (rounded.train, rounded.valid, rounded.test)] == [54_912, 4_992, 9_984]
    assert whole.train.steps == 784
    assert torch.equal(whole.valid.values[:4992], rounded.valid.values)
    assert torch.equal(rounded.train.values[8:100], whole.train.values[:92])
