"""Models as a run has written them: whatever is the matter with a file is told with the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

from statewise.errors import DataError, DeviceError, MissingExtraError, RunFolderError, StatewiseError

Built = TypeVar("Built", bound=nn.Module)

_REMEDY = "Put the file back from a copy, or train again in another folder."
#: What a value of another kind than was written comes to.
_FAULTS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError, AssertionError)


@contextmanager
def as_written(path: Path, wanted: str) -> Iterator[None]:
    """A region in which what a damaged file leads to, whatever it is, becomes an error that names the file.

    Args:
        path: of the file.
        wanted: what it should hold.

    >>> with as_written(Path("run/config.json"), "the settings of a run"):
    ...     {}["model"]
    Traceback (most recent call last):
    statewise.errors.RunFolderError: run/config.json: got KeyError: 'model', wanted the settings of a run. ...
    """
    try:
        yield
    except (DataError, RunFolderError, MissingExtraError, DeviceError):  # these say where it is, or are of no file
        raise
    except StatewiseError as error:
        where, got = f"{path}, {error.where}", error.got
        raise RunFolderError(where=where, got=got, wanted=error.wanted, remedy=_REMEDY) from error
    except _FAULTS as error:
        got = f"{type(error).__name__}: {error}"
        raise RunFolderError(where=str(path), got=got, wanted=wanted, remedy=_REMEDY) from error


def filled(build: Callable[[], Built], state: Mapping[str, Tensor], *, layers: object = None, path: Path) -> Built:
    """A model with the weights of a file; none is made whose sizes the file does not have.

    Args:
        build: makes the model.
        state: the weights.
        layers: how many the model is said to have, each with weights of its own; None where nobody says.
        path: of the file of the weights, for errors.
    """
    if isinstance(layers, int) and layers > len(state):
        raise _other(path, f"{len(state)} tensors", f"those of {layers} layers")
    with torch.device("meta"):  # shapes without memory
        wanted = {name: tuple(tensor.shape) for name, tensor in build().state_dict().items()}
    given = {name: tuple(tensor.shape) for name, tensor in state.items()}
    for name in sorted(wanted.keys() | given.keys()):
        if wanted.get(name) != given.get(name):
            shapes = (f"{name} of shape {each[name]}" if name in each else f"no {name}" for each in (given, wanted))
            raise _other(path, *shapes)
    model = build()
    model.load_state_dict(state)
    return model


def _other(path: Path, got: str, wanted: str) -> RunFolderError:
    return RunFolderError(where=str(path), got=got, wanted=f"{wanted}, as config.json says", remedy=_REMEDY)
