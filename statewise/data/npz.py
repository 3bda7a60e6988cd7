"""Arrays of an ``.npz``, each only as large as its entry in the archive.

numpy's own reader makes an array as large as the header says before it looks for the numbers, and raises whatever a
damaged archive or header comes to; here that is a ValueError.
"""

from __future__ import annotations

import io
import lzma
import math
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

#: What zipfile raises of archives that are damaged, encrypted, or compressed in a way that it does not know.
_FAULTS = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OverflowError,
    UnicodeError,
    IndexError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
)


class Layout(NamedTuple):
    """What the header of an array says."""

    shape: tuple[int, ...]
    fortran: bool
    kind: np.dtype[Any]

    @property
    def size(self) -> int:
        """Bytes of all numbers."""
        return math.prod(self.shape) * self.kind.itemsize


@contextmanager
def opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """An archive, and a region in which whatever is the matter with it is a ValueError.

    Args:
        path: of the archive.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder) / "a.npz", words=np.array(["the"]))
    ...     with opened(Path(folder) / "a.npz") as archive:
    ...         read_array(archive, "words").tolist()
    ['the']
    """
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except _FAULTS as error:
        raise ValueError(f"no whole archive ({str(error) or type(error).__name__})") from error


def find(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """The entry of an array.

    Args:
        archive: that has it.
        name: of the array.

    Raises:
        KeyError: it has not.
    """
    if f"{name}.npy" not in archive.namelist():
        raise KeyError(name)
    return archive.getinfo(f"{name}.npy")


def read_array(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    """An array, read into memory.

    Args:
        archive: that has it.
        name: of the array.

    Raises:
        KeyError: it has not.
        ValueError: the array is damaged, cut off or of objects.
    """
    with archive.open(find(archive, name)) as content:
        layout = read_layout(content, name)
        numbers = content.read(layout.size)
    if len(numbers) != layout.size:
        raise ValueError(f"an array {name!r} that is cut off")
    order = "F" if layout.fortran else "C"
    return np.frombuffer(numbers, layout.kind).reshape(layout.shape, order=order)  # type: ignore[call-overload, no-any-return]


def read_layout(content: IO[bytes] | io.BufferedIOBase, name: str) -> Layout:
    """The header of an array; what is read next are its numbers.

    Args:
        content: of an entry, at its beginning.
        name: of the array, for errors.

    Raises:
        ValueError: it is no header, or that of objects.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that Python 2 wrote
            version = np.lib.format.read_magic(content)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            described: Any = header(content)  # numpy's annotations leave its parts open
    except (OSError, EOFError):
        raise
    except Exception as error:  # numpy takes a damaged header for a program, which can raise anything
        raise ValueError(f"no header of an array {name!r}") from error
    layout = Layout(*described)
    if layout.kind.hasobject or layout.kind.itemsize == 0 or any(size < 0 for size in layout.shape):
        raise ValueError(f"{name!r} of {layout.kind} and shape {layout.shape}")
    return layout
