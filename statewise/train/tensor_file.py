"""The files of tensors of a run: those of :mod:`statewise.files`, whose errors speak of the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from statewise import files
from statewise.errors import RunFolderError, TensorFileError
from statewise.files import write_tensors

__all__ = ["read_document", "read_tensors", "write_tensors"]


def read_tensors(path: Path, device: torch.device | str = "cpu") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the document of a file of a run.

    Args:
        path: the file.
        device: where the tensors go. The state of a generator is wanted on the CPU whatever its device.
    """
    with _of_a_run():
        return files.read_tensors(path, device)


def read_document(path: Path) -> dict[str, Any]:
    """The document of a file of a run alone, without its tensors."""
    with _of_a_run():
        return files.read_document(path)


@contextmanager
def _of_a_run() -> Iterator[None]:
    try:
        yield
    except TensorFileError as error:
        remedy = "Put the file back from a copy, or begin a new run in another folder."
        raise RunFolderError(where=error.where, got=error.got, wanted=error.wanted, remedy=remedy) from error
