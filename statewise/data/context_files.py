"""The two forms of files that vectors of tokens are kept in, written from a stream and mapped into memory.

Both are as their libraries write them; only here they are made without all vectors in memory, and opened so.
"""

from __future__ import annotations

import io
import json
import math
import shutil
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from statewise.data import npz

_KINDS: dict[str, np.dtype[Any]] = {
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
}
#: What safetensors calls the types of numbers that can be written.
NAMES = {kind: name for name, kind in _KINDS.items()}
_LONGEST_HEADER = 2**24


def write_npz(
    file: IO[bytes],
    spool: IO[bytes],
    kind: np.dtype[Any],
    shape: tuple[int, int],
    lengths: npt.NDArray[np.int64],
) -> None:
    """Write an ``.npz`` that is not compressed.

    Args:
        file: to write into.
        spool: has the vectors one behind the other, and stands at their beginning.
        kind: their precision.
        shape: (tokens, width).
        lengths: of the sentences.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        with archive.open("lengths.npy", "w") as entry:
            np.lib.format.write_array(entry, lengths, allow_pickle=False)
        with archive.open("vectors.npy", "w", force_zip64=True) as entry:
            header = {"descr": kind.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(entry, header)
            shutil.copyfileobj(spool, entry, 2**20)


def write_safetensors(
    file: IO[bytes],
    spool: IO[bytes],
    kind: np.dtype[Any],
    shape: tuple[int, int],
    lengths: npt.NDArray[np.int64],
) -> None:
    """Write a ``.safetensors``; the arguments are those of `write_npz`."""
    # Lengths come first: 8 bytes each, so that the vectors behind them are aligned.
    middle, size = lengths.nbytes, shape[0] * shape[1] * kind.itemsize
    tensors = {
        "lengths": {"dtype": "I64", "shape": list(lengths.shape), "data_offsets": [0, middle]},
        "vectors": {"dtype": NAMES[kind], "shape": list(shape), "data_offsets": [middle, middle + size]},
    }
    header = json.dumps(tensors).encode()
    header += b" " * (-len(header) % 8)
    file.write(len(header).to_bytes(8, "little") + header + lengths.tobytes())
    shutil.copyfileobj(spool, file, 2**20)


def open_safetensors(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays ``vectors`` and ``lengths`` of a file, mapped into memory.

    Raises:
        KeyError: one is missing.
        ValueError: the file is another, or cut off.
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 0 < length < _LONGEST_HEADER:
            raise ValueError("no header of safetensors")
        try:
            tensors = json.loads(file.read(length))
        except RecursionError:
            raise ValueError("a header nested too deep") from None
        end = file.seek(0, io.SEEK_END)
    found: dict[str, npt.NDArray[Any]] = {}
    for name in ("vectors", "lengths"):
        about = tensors[name]
        if about["dtype"] not in _KINDS:
            raise ValueError(f"{name} of type {about['dtype']}")
        start, stop = (int(offset) + 8 + length for offset in about["data_offsets"])
        found[name] = _mapped(path, _KINDS[about["dtype"]], tuple(about["shape"]), start, min(stop, end))
    return found


def open_npz(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The same of an ``.npz``; what is compressed is read into memory.

    Raises:
        KeyError: one is missing.
        ValueError: the file is another, or cut off.
    """
    found: dict[str, npt.NDArray[Any]] = {}
    with npz.opened(path) as archive, path.open("rb") as file:
        for name in ("vectors", "lengths"):
            entry = npz.find(archive, name)
            if entry.compress_type != zipfile.ZIP_STORED:
                found[name] = npz.read_array(archive, name)
                continue
            # Before its content an entry has 30 bytes, the last four of which are the lengths of its name and extras.
            file.seek(entry.header_offset + 26)
            more = sum(int.from_bytes(file.read(2), "little") for _ in range(2))
            begin = file.seek(entry.header_offset + 30 + more)
            layout = npz.read_layout(file, name)
            order, end = "F" if layout.fortran else "C", min(begin + entry.file_size, path.stat().st_size)
            found[name] = _mapped(path, layout.kind, layout.shape, file.tell(), end, order)
    return found


def _mapped(
    path: Path, kind: np.dtype[Any], shape: tuple[int, ...], start: int, stop: int, order: Any = "C"
) -> npt.NDArray[Any]:
    if any(type(size) is not int or size < 0 for size in shape):
        raise ValueError(f"an array of shape {shape}")
    if start < 0 or stop - start != math.prod(shape) * kind.itemsize:
        raise ValueError("an array that is cut off")
    if stop == start:
        return np.zeros(shape, dtype=kind)
    return np.memmap(path, dtype=kind, mode="r", offset=start, shape=shape, order=order)
