"""Pictures in idx files, as MNIST and Fashion-MNIST come."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from statewise.data.images import Images
from statewise.data.sets import find_data_set, find_together
from statewise.data.task import TaskSets
from statewise.errors import ArgumentError, DataError

DIGITS = tuple("0123456789")
FASHION = (
    *("t-shirt", "trouser", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
)
_SPLITS = {"train": "train", "test": "t10k"}
#: Where the files lie below a folder; of those in one group there must be one alone.
_FOLDERS = (("",), ("raw",), ("MNIST/raw", "FashionMNIST/raw"))
_DIMENSIONS = 8  # of which numpy can have 64; three are those of pictures
_UBYTE = 8  # the code of unsigned bytes in the third byte of an idx file


def read_idx(path: Path | str) -> npt.NDArray[np.uint8]:
    """An array of bytes from an idx file, plain or with an ending ``.gz``.

    The file begins with two zero bytes, the code 8 of unsigned bytes, the number of dimensions, and each of them in
    four bytes, the highest first; then come the values.

    Raises:
        DataError: the file is absent, another one, or cut off; names the byte.
    """
    path = Path(path)
    content = _content(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _UBYTE or not content[3]:
        got = f"{content[:4].hex(' ') or 'nothing'} at byte 0"
        remedy = "It looks like a gzip archive: let its name end in .gz." if content[:2] == b"\x1f\x8b" else ""
        wanted = "00 00 08 and the number of dimensions: an idx file of unsigned bytes"
        raise DataError(where=str(path), got=got, wanted=wanted, remedy=remedy)
    begin = 4 + 4 * content[3]
    if len(content) < begin:
        _refuse_length(path, len(content), f"{content[3]} dimensions up to byte {begin}")
    shape = tuple(np.frombuffer(content[4:begin], ">u4").tolist())
    if len(content) != (end := begin + math.prod(shape)):
        _refuse_length(path, len(content), f"values of shape {shape} up to byte {end}")
    if len(shape) > _DIMENSIONS:
        raise DataError(where=str(path), got=f"{len(shape)} dimensions at byte 3", wanted=f"at most {_DIMENSIONS}")
    return np.frombuffer(content, np.uint8, offset=begin).reshape(shape)


def read_images(folder: Path | str, split: str, *, classes: Sequence[str] = DIGITS) -> Images:
    """The pictures of a folder that has ``train-images-idx3-ubyte`` and ``train-labels-idx1-ubyte``.

    The files may end in ``.gz``, and lie in a folder ``raw`` below, as torchvision puts them. A folder that has both
    ``MNIST/raw`` and ``FashionMNIST/raw`` below is refused: nobody said which.

    Args:
        folder: where the files are.
        split: ``"train"`` or ``"test"``, whose files are called ``t10k-...``.
        classes: the names of the labels.

    Raises:
        DataError: a file is missing or malformed, or pictures and labels do not go together.
    """
    pixels, numbers = _find(Path(folder), split)
    values, labels = read_idx(pixels), read_idx(numbers)
    for path, array, dimensions in ((pixels, values, 3), (numbers, labels, 1)):
        if array.ndim != dimensions:
            raise DataError(where=str(path), got=f"{array.ndim} dimensions at byte 3", wanted=f"{dimensions}")
    if len(values) != len(labels):
        wanted = f"{len(values)}, as many as pictures in {pixels.name}"
        raise DataError(where=str(numbers), got=f"{len(labels)} labels", wanted=wanted)
    if len(wrong := np.flatnonzero(labels >= len(classes))):
        got = f"the label {labels[wrong[0]]} at byte {8 + wrong[0]}"
        raise DataError(where=str(numbers), got=got, wanted=f"labels under {len(classes)}")
    height, width = values.shape[1:]
    flat = values.reshape(len(values), height * width)
    return Images(values=flat, labels=labels, classes=tuple(classes), height=height, width=width)


def image_sets(
    name: str,
    *,
    data: Path | str | None = None,
    valid: int = 5000,
    permute: int | None = None,
    by: str = "pixels",
) -> TaskSets[Images]:
    """MNIST or Fashion-MNIST, read pixel by pixel (Wang & Niepert 2019, Table 7 and Section 5), or row by row.

    Args:
        name: ``"mnist"`` or ``"fashion-mnist"``.
        data: where it is; see `find_data_set`.
        valid: how many of the 60,000 pictures to train on, the last ones, are kept to choose by; 0 for none.
        permute: a seed; all pictures are then read in one random order, which is kept with them. None: row by row.
        by: what a step is: "pixels", one grey value, or "rows", a whole row of them.
    """
    if name not in ("mnist", "fashion-mnist"):
        raise ArgumentError(where="image_sets.name", got=name, wanted="'mnist' or 'fashion-mnist'")
    folder = find_data_set(name, data=data)
    names = FASHION if name == "fashion-mnist" else DIGITS
    train, test = (read_images(folder, split, classes=names) for split in _SPLITS)
    if not 0 <= valid < len(train):
        raise ArgumentError(where="image_sets.valid", got=valid, wanted=f"0 to {len(train) - 1}")
    if permute is not None:
        train, test = train.permuted(seed=permute), test.permuted(seed=permute)
    train, test = replace(train, by=by), replace(test, by=by)
    cut = len(train) - valid
    held = train.select(slice(cut, None)) if valid else None
    return TaskSets(train.select(slice(cut)), held, {"test": test})


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        remedy = "The archive is cut off or damaged: get it again."
        raise DataError(where=str(path), got=str(error), wanted="a whole .gz archive", remedy=remedy) from error
    except OSError as error:
        got = (error.strerror or type(error).__name__).lower()
        raise DataError(where=str(path), got=got, wanted="an idx file that can be read") from error


def _refuse_length(path: Path, length: int, wanted: str) -> NoReturn:
    raise DataError(where=str(path), got=f"an end at byte {length}", wanted=wanted, remedy="Get it again.")


def _find(folder: Path, split: str) -> tuple[Path, ...]:
    """The files of the pictures and of their labels."""
    if split not in _SPLITS:
        raise ArgumentError(where="read_images.split", got=split, wanted="'train' or 'test'")
    names = [f"{_SPLITS[split]}-{kind}-ubyte" for kind in ("images-idx3", "labels-idx1")]
    for group in _FOLDERS:
        found = [pair for below in group if (pair := find_together(folder / below, names))]
        if len(found) == 1:
            return found[0]
        if found:
            got = " and ".join(str(pair[0].parent) for pair in found)
            raise DataError(where=str(folder), got=got, wanted="pictures of one kind", remedy="Name one of them.")
    wanted = f"{' and '.join(names)}, plain or .gz, here or in a folder raw"
    raise DataError(where=str(folder), got="no such files", wanted=wanted, remedy="Name the folder of the idx files.")
