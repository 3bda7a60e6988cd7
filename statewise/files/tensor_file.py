"""Tensors and a document in one file that is either whole or not there: safetensors, never pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from statewise.errors import ArgumentError, DtypeError, TensorFileError
from statewise.files.atomic import write_atomically
from statewise.files.strict_json import read_json, strict

_ENTRY = "statewise"  # one entry of the metadata: several are written in any order, and the bytes would differ
_DOCUMENT, _ALIASES = "document", "aliases"  # what it holds; entries of their own in older files
_RESERVED = "__metadata__"

#: The names of dtypes in a safetensors file.
DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


def write_tensors(path: Path, tensors: Mapping[str, Tensor], document: Mapping[str, Any]) -> None:
    """Write tensors and a JSON document into one file, at once.

    A tensor with several names, such as a tied weight, is stored once; the file's metadata names the others.

    Args:
        path: the file to make or to replace.
        tensors: of any dtype and device, by name.
        document: what JSON can hold; NaN becomes null, infinity the text ``"inf"``.

    >>> import tempfile
    >>> weight = torch.ones(2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tensors(Path(folder) / "model.safetensors", {"in": weight, "out": weight}, {"epoch": 3})
    ...     tensors, document = read_tensors(Path(folder) / "model.safetensors")
    >>> tensors["in"] is tensors["out"], document
    (True, {'epoch': 3})
    """
    unique, aliases = unique_tensors(tensors)
    entry = {_DOCUMENT: strict(document, "document"), _ALIASES: aliases}
    write_atomically(path, save(_own_memory(unique), {_ENTRY: json.dumps(entry, allow_nan=False)}))


def read_tensors(path: Path, device: torch.device | str = "cpu") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the document of a file.

    Args:
        path: the file.
        device: where the tensors go. The state of a generator is wanted on the CPU whatever its device.
    """
    with TensorFile(path, device) as file:
        return file.tensors(), file.document


def read_document(path: Path) -> dict[str, Any]:
    """The document of a file alone, without its tensors."""
    with TensorFile(path) as file:
        return file.document


class TensorFile:
    """A file of tensors that is open: what is in it can be known before any of it is read.

    Args:
        path: the file.
        device: where its tensors go.

    Attributes:
        shapes: of the tensors, by name; that of an alias too.
        dtypes: likewise.
        aliases: the name under which a tensor is stored, by each further name that it has.
        document: what was written with the tensors.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tensors(Path(folder) / "x.safetensors", {"a": torch.ones(2, 3)}, {})
    ...     with TensorFile(Path(folder) / "x.safetensors") as file:
    ...         file.shapes, file.dtypes
    ({'a': (2, 3)}, {'a': torch.float32})
    """

    def __init__(self, path: Path, device: torch.device | str = "cpu") -> None:
        self.path = Path(path)
        try:
            opened: Any = safe_open(str(path), framework="pt", device=str(device))
        except SafetensorError as error:
            raise self._damaged(str(error)) from error
        self._file = opened
        try:
            self._names: list[str] = list(self._file.keys())
            slices = {name: self._file.get_slice(name) for name in self._names}
            self.shapes = {name: tuple(part.get_shape()) for name, part in slices.items()}
            self.dtypes = {name: self._dtype(name, part.get_dtype()) for name, part in slices.items()}
            self.document, self.aliases = self._entry(self._file.metadata() or {})
        except SafetensorError as error:
            raise self._damaged(str(error)) from error
        for alias, name in self.aliases.items():
            self.shapes[alias], self.dtypes[alias] = self.shapes[name], self.dtypes[name]

    def tensors(self) -> dict[str, Tensor]:
        """All tensors, by name; an alias is the same object as what it stands for."""
        try:
            found = {name: self._file.get_tensor(name) for name in self._names}
        except (SafetensorError, ValueError, TypeError, RuntimeError) as error:  # a type or a shape that torch has not
            raise self._damaged(str(error)) from error
        return found | {alias: found[name] for alias, name in self.aliases.items()}

    def __enter__(self) -> TensorFile:
        self._file.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.__exit__(kind, error, trace)

    def _dtype(self, name: str, found: str) -> torch.dtype:
        if found not in DTYPES:
            raise self._damaged(f"{name} of the type {found}")
        return DTYPES[found]

    def _entry(self, metadata: dict[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
        """The document and the aliases of a file."""
        try:
            if _ENTRY in metadata:
                found = read_json(metadata[_ENTRY])
            elif {_DOCUMENT, _ALIASES} <= metadata.keys():
                found = {name: read_json(metadata[name]) for name in (_DOCUMENT, _ALIASES)}
            else:
                raise self._damaged("no document in its metadata")
        except ValueError as error:
            if isinstance(error, TensorFileError):
                raise
            raise self._damaged(f"a document that is no JSON: {error}") from error
        document, aliases = (found.get(name) if isinstance(found, dict) else None for name in (_DOCUMENT, _ALIASES))
        if not isinstance(document, dict) or not isinstance(aliases, dict):
            raise self._damaged("metadata without a document and the names of tied tensors")
        for alias, name in aliases.items():
            if not isinstance(name, str) or name not in self.shapes or alias in self.shapes:
                raise self._damaged(f"a tensor {alias!r} that is tied to {name!r}")
        return document, aliases

    def _damaged(self, got: str) -> TensorFileError:
        return TensorFileError(
            where=str(self.path),
            got=got,
            wanted="a safetensors file written by statewise",
            remedy="Put the file back from a copy.",
        )


def unique_tensors(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Each tensor under its first name, and the first name of each other name.

    Args:
        tensors: by name; those that lie in the same place are one.
    """
    first: dict[Any, str] = {}
    unique, aliases = {}, {}
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise DtypeError(where=f"tensors[{name!r}]", got=type(tensor).__name__, wanted="a tensor")
        if name == _RESERVED:
            raise ArgumentError(where="tensors", got=name, wanted="a name that the file format has not taken")
        known = first.setdefault(_place(tensor, name), name)
        if known == name:
            unique[name] = tensor
        else:
            aliases[name] = known
    return unique, aliases


def _place(tensor: Tensor, name: str) -> Any:
    if not tensor.numel():  # nothing lies nowhere: empty tensors share an address without being tied
        return name
    return tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()


def _own_memory(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous tensors that share no memory, as the format wants them."""
    owned, storages = {}, set()
    for name, tensor in tensors.items():
        tensor = tensor.detach()
        storage = tensor.untyped_storage().data_ptr()
        owned[name] = tensor.clone().contiguous() if storage in storages else tensor.contiguous()
        storages.add(storage)
    return owned
