"""Tensors and a document in one file that is either whole or not there: safetensors, never pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from statewise.errors import ArgumentError, DtypeError, RunFolderError
from statewise.files import write_atomically
from statewise.train.metrics import strict

_ENTRY = "statewise"  # one entry of the metadata: several are written in any order, and the bytes would differ
_DOCUMENT, _ALIASES = "document", "aliases"  # what it holds; entries of their own in older files
_RESERVED = "__metadata__"


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
    unique, aliases = _unique(tensors)
    entry = {_DOCUMENT: strict(document, "document"), _ALIASES: aliases}
    write_atomically(path, save(_own_memory(unique), {_ENTRY: json.dumps(entry, allow_nan=False)}))


def read_tensors(path: Path, device: torch.device | str = "cpu") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the document of a file.

    Args:
        path: the file.
        device: where the tensors go. The state of a generator is wanted on the CPU whatever its device.
    """
    with _opened(path, device) as file:
        try:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  it is no mapping
        except (SafetensorError, ValueError, TypeError, RuntimeError) as error:  # a type or a shape that torch has not
            raise _damaged(path, str(error)) from error
        entry = _entry(path, file.metadata() or {})
    for alias, name in entry[_ALIASES].items():
        if not isinstance(name, str) or name not in tensors:
            raise _damaged(path, f"another name of {name!r}, which is not there")
        tensors[alias] = tensors[name]
    return tensors, entry[_DOCUMENT]


def read_document(path: Path) -> dict[str, Any]:
    """The document of a file alone, without its tensors."""
    with _opened(path, "cpu") as file:
        return _entry(path, file.metadata() or {})[_DOCUMENT]


def _opened(path: Path, device: torch.device | str) -> Any:
    try:
        return safe_open(str(path), framework="pt", device=str(device))
    except SafetensorError as error:
        raise _damaged(path, str(error)) from error


def _entry(path: Path, metadata: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The document and the aliases of a file."""
    try:
        if _ENTRY in metadata:
            found: dict[str, dict[str, Any]] = json.loads(metadata[_ENTRY])
        else:
            found = {name: json.loads(metadata[name]) for name in (_DOCUMENT, _ALIASES) if name in metadata}
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"metadata that is no JSON ({error})") from error
    for name in (_DOCUMENT, _ALIASES):
        if not isinstance(found, dict) or not isinstance(found.get(name), dict):
            raise _damaged(path, "no document in its metadata")
    return found


def _damaged(path: Path, got: str) -> RunFolderError:
    return RunFolderError(
        where=str(path),
        got=got,
        wanted="a safetensors file written by statewise",
        remedy="Put the file back from a copy, or begin a new run in another folder.",
    )


def _unique(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Each tensor under its first name, and the first name of each other name."""
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
