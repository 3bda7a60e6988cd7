"""Readers of arrays: word vectors, context vectors and pictures, given every kind of bad file."""

from __future__ import annotations

import gzip
import io
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np

from contracts.damage import SIGNS, altered, damaged, packed, table, unpacked
from contracts.readers import ReaderContract
from statewise.data import read_context_vectors, read_idx, read_images, read_vectors, write_context_vectors

_SIZES = (0, 1, 2, 3, 2**20, 2**31, 2**40, 2**62, 2**63, -1)


class TestWordVectors(ReaderContract):
    name = "vectors.txt"

    def right(self) -> Sequence[bytes]:
        return [b"the 1 0.5\ncat -1 2e-3\n", b"2 2\nthe 1 0.5\na b 3 4\n"]

    def nearly_right(self, chance: Random) -> bytes:
        words = ("the", "cat", "2", "1", "0.5", "-1e30", "1e400", "nan", "inf", "1_0", "", "9" * 18, "\u0663", "0x1")
        return table(chance, words, " ")

    def read(self, path: Path) -> object:
        found = read_vectors(path)
        return found.matrix(["The", "42"]), read_vectors(path, vocabulary=["the"])


def archive(chance: Random, arrays: dict[str, Any]) -> bytes:
    """An archive of numpy's whose entries are right, or have another header, or are damaged, or others."""
    file = io.BytesIO()
    how = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(file, "w", how) as made:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array)
            entry = content.getvalue()
            what = chance.choice(("right", "shape", "kind", "damaged", "damaged", "missing", "other"))
            if what == "shape":
                shape = [chance.choice(_SIZES) for _ in range(chance.randint(0, 4))]
                entry = _with_header(entry, str(array.dtype.str), shape, fortran=chance.random() < 0.5)
            elif what == "kind":
                kind = chance.choice(("<f4", "<f8", "|O", "<U3", "|V8", "<i8", "<c8", "nonsense", "<f4'*9+'", ","))
                entry = _with_header(entry, kind, list(array.shape), fortran=False)
            elif what == "damaged":
                entry = damaged(chance, [entry])
            elif what == "other":
                entry = chance.choice(SIGNS)
            if what != "missing":
                made.writestr(f"{name}.npy", entry)
    return damaged(chance, [file.getvalue()]) if chance.random() < 0.3 else file.getvalue()


def _with_header(entry: bytes, kind: str, shape: list[int], *, fortran: bool) -> bytes:
    said = f"{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {tuple(shape)}, }}".encode()
    said += b" " * (-(len(said) + 11) % 64) + b"\n"
    return entry[:8] + len(said).to_bytes(2, "little") + said + entry[128:]


def _saved(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


class TestWordVectorArrays(TestWordVectors):
    name = "vectors.npz"
    arrays: ClassVar[dict[str, Any]] = {"words": np.array(["the", "cat"]), "vectors": np.eye(2, dtype=np.float32)}

    def right(self) -> Sequence[bytes]:
        return [_saved(**self.arrays)]

    def nearly_right(self, chance: Random) -> bytes:
        return archive(chance, self.arrays)


class TestContextArchive(ReaderContract):
    name = "context.npz"
    arrays: ClassVar[dict[str, Any]] = {
        "vectors": np.arange(6, dtype=np.float32).reshape(3, 2),
        "lengths": np.array([1, 2]),
    }

    def right(self) -> Sequence[bytes]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / self.name
            write_context_vectors(path, [np.ones((2, 3), dtype=np.float16), np.ones((1, 3), dtype=np.float16)])
            return [path.read_bytes()]

    def nearly_right(self, chance: Random) -> bytes:
        return archive(chance, self.arrays)

    def read(self, path: Path) -> object:
        found = read_context_vectors(path)
        return found.batch(range(min(len(found), 3))), found.starts, found.width


class TestContextTensors(TestContextArchive):
    name = "context.safetensors"

    def nearly_right(self, chance: Random) -> bytes:
        header, body = unpacked(self.files[0])
        return packed(altered(chance, [header]), body)


def _idx(shape: Sequence[int], values: bytes, kind: int = 8) -> bytes:
    return bytes([0, 0, kind, len(shape)]) + b"".join(size.to_bytes(4, "big") for size in shape) + values


class TestIdx(ReaderContract):
    name = "train-images-idx3-ubyte"

    def right(self) -> Sequence[bytes]:
        return [_idx((2, 2, 2), bytes(range(8))), _idx((3,), bytes(3)), _idx((0,), b"")]

    def nearly_right(self, chance: Random) -> bytes:
        sizes = [chance.choice((0, 1, 2, 4, 2**16, 2**32 - 1)) for _ in range(chance.choice((0, 1, 2, 3, 80)))]
        return _idx(sizes, bytes(chance.randint(0, 9)), chance.choice((8, 8, 8, 9, 13)))

    def read(self, path: Path) -> object:
        return read_idx(path).sum()


class TestIdxArchive(TestIdx):
    name = "train-images-idx3-ubyte.gz"

    def right(self) -> Sequence[bytes]:
        return [gzip.compress(content) for content in super().right()]

    def nearly_right(self, chance: Random) -> bytes:
        return gzip.compress(super().nearly_right(chance))


class TestLabelsOfImages(ReaderContract):
    name = "train-labels-idx1-ubyte"

    @classmethod
    def prepare(cls, folder: Path) -> None:
        (folder / "train-images-idx3-ubyte").write_bytes(_idx((2, 2, 2), bytes(range(8))))

    def right(self) -> Sequence[bytes]:
        return [_idx((2,), bytes([3, 9]))]

    def nearly_right(self, chance: Random) -> bytes:
        return _idx([chance.randint(0, 3) for _ in range(chance.randint(0, 3))], chance.randbytes(chance.randint(0, 4)))

    def read(self, path: Path) -> object:
        return read_images(path.parent, "train").padded([0])


class TestPixelsOfImages(TestLabelsOfImages):
    name = "train-images-idx3-ubyte"

    @classmethod
    def prepare(cls, folder: Path) -> None:
        (folder / "train-labels-idx1-ubyte").write_bytes(_idx((2,), bytes([3, 9])))

    def right(self) -> Sequence[bytes]:
        return [_idx((2, 2, 2), bytes(range(8)))]

    def nearly_right(self, chance: Random) -> bytes:
        return _idx([chance.choice((0, 1, 2, 4)) for _ in range(chance.randint(0, 4))], bytes(chance.randint(0, 9)))
