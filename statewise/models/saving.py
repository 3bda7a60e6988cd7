"""A model as a folder: what is written, and in which order."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from statewise.errors import ArgumentError, DtypeError, ExportError, ModelFolderError, TensorFileError
from statewise.files import locked, read_document, read_json, strict, write_atomically, write_tensors
from statewise.files.tensor_file import unique_tensors
from statewise.layers import RecurrentLayer
from statewise.models.kinds import KINDS, Words, kind_of
from statewise.models.reading import Reading
from statewise.models.saved import Saved

FORMAT, VERSION = "statewise-model", 1
WEIGHTS, CONFIG = "model.safetensors", "config.json"
CHECKSUM = "checksum"


def save_model(model: Saved, folder: Path) -> Path:
    """Write a model into a folder.

    The file of the weights holds everything, and takes its name when it is whole: so a folder always has the old model
    or the new one. ``config.json`` repeats what is in it but the weights, for people and for other programs.

    Args:
        model: of one of the kinds that can be saved, made from a config.
        folder: a new or empty one, or one with a saved model.
    """
    document = describe(model)
    tensors = {name: tensor.detach() for name, tensor in model.state_dict().items()}
    document[CHECKSUM] = seal(document, tensors)
    folder.mkdir(parents=True, exist_ok=True)
    _refuse_others(folder)
    with locked(folder / ".lock"):
        for torn in (path for name in (WEIGHTS, CONFIG) for path in folder.glob(f".{name}.*.partial")):
            torn.unlink(missing_ok=True)  # what a killed writer left; the lock says that none is at work
        write_tensors(folder / WEIGHTS, tensors, document)
        write_atomically(folder / CONFIG, readable(document))
    return folder


def describe(model: Saved) -> dict[str, Any]:
    """Everything that makes a model but its weights, as JSON holds it.

    Args:
        model: of one of the kinds that can be saved, made from a config.
    """
    name = kind_of(model)
    if name is None:
        raise ExportError(where="save", got=f"a {type(model).__name__}", wanted=f"one of {', '.join(KINDS)}")
    kind = KINDS[name]
    if model.config is None:
        raise ExportError(
            where=f"{name}.save",
            got="a model that was built by hand from layers",
            wanted="one that was made from a config, which says how to build it again",
            remedy=f"Build it with statewise.models.{kind.config.__name__}(...).build(...), and give it the weights: "
            "new.load_state_dict(old.state_dict()).",
        )
    task = kind.of(model)
    check_reading(task, model.reading)
    check_as_configured(model, twin(kind, model.config, task))
    reading = None if model.reading is None else dataclasses.asdict(model.reading)
    return {
        "format": FORMAT,
        "version": VERSION,
        "statewise": importlib.import_module("statewise").__version__,  # the roof, which knows this room
        "kind": name,
        "config": strict(dataclasses.asdict(model.config), "config"),
        "built_for": strict(dataclasses.asdict(task), "built_for"),
        "reading": None if reading is None else strict(_told(reading), "reading"),
        "metrics": strict(dict(model.metrics), "metrics"),
        "dtype": str(_dtype_of(model)).removeprefix("torch."),
    }


def check_reading(task: Any, reading: Reading | None) -> None:
    """Refuse a reading of other symbols, classes or pictures than those that a model is built for.

    Args:
        task: what the model is built for.
        reading: how raw input is read; None for nothing.
    """
    if reading is None:
        return
    symbols = getattr(task, "symbols", None)
    tokens = getattr(task, "words", None) if isinstance(task, Words) else getattr(task, "tokens", None)
    features = getattr(task, "features", None)
    width = None if reading.height is None else reading.width if reading.unit == "rows" else 1
    counted = {"symbols": (reading.symbols, tokens), "classes": (reading.classes, getattr(task, "classes", None))}
    wrong = [
        f"{len(names)} {name} for {count}"
        for name, (names, count) in counted.items()
        if names is not None and len(names) != count
    ]
    wrong += ["other symbols"] if None not in (symbols, reading.symbols) and symbols != reading.symbols else []
    width = len(reading.features) if reading.features is not None else width
    wrong += [f"{width} numbers a step for {features}"] if width is not None and width != features else []
    if wrong:
        raise ArgumentError(where="reading", got=wrong[0], wanted="the symbols, classes or pixels of the model")


def twin(kind: Any, config: Any, task: Any) -> nn.Module:
    """A model of the same settings without memory for its weights: only their shapes are known.

    Args:
        kind: of the model.
        config: its settings.
        task: what it is built for.
    """
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        made: nn.Module = kind.build(config, task)
    return made


def check_as_configured(model: nn.Module, same: nn.Module) -> None:
    """Refuse a model that was changed by hand since its config built it: what would be loaded is another one.

    Args:
        model: what is to be saved.
        same: what its config builds.
    """
    own, other = (dict(each.named_modules()) for each in (model, same))
    shapes = [{name: tuple(part.shape) for name, part in each.state_dict().items()} for each in (model, same)]
    # By their names: a module with parametrized weights has a class of its own.
    wrong = [n for n in {**own, **other} if type(own.get(n)).__name__ != type(other.get(n)).__name__]
    wrong += [name for name in {**shapes[0], **shapes[1]} if shapes[0].get(name) != shapes[1].get(name)]
    for name, layer in own.items():
        built = other.get(name)
        if isinstance(layer, RecurrentLayer) and isinstance(built, RecurrentLayer):
            wrong += [name] if (layer.cell, layer.transforms) != (built.cell, built.transforms) else []
    if wrong:
        raise ExportError(
            where=f"{type(model).__name__}.save",
            got=f"{wrong[0] or 'a model'} other than its config builds it",
            wanted="a model as its config builds it",
            remedy="Change the config and build anew, or use model.retune, which changes both.",
        )


def seal(document: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """A checksum of a document and of all tensors, by which a change of any of them is seen.

    Args:
        document: what is written with the tensors; its own checksum does not count.
        tensors: by name.
    """
    told = {name: value for name, value in document.items() if name != CHECKSUM}
    digest = hashlib.sha256(json.dumps(strict(told), sort_keys=True).encode())
    unique, aliases = unique_tensors(tensors)
    for name in sorted(tensors):
        stored = unique.get(name)
        if stored is None:
            digest.update(f"\n{name} is {aliases[name]}".encode("utf-8", "surrogatepass"))
            continue
        digest.update(f"\n{name} {stored.dtype} {tuple(stored.shape)}\n".encode("utf-8", "surrogatepass"))
        flat = stored.detach().cpu().contiguous().flatten()
        digest.update(flat.view(torch.uint8).numpy().data if flat.numel() else b"")
    return digest.hexdigest()


def readable(document: Mapping[str, Any]) -> str:
    """A document as a text that people can look at: a line a setting, long lists in one line.

    Args:
        document: as JSON can hold it.
    """
    lines = []
    for name, value in document.items():
        if isinstance(value, dict) and value:
            inside = ",\n".join(f"    {json.dumps(key)}: {json.dumps(part)}" for key, part in value.items())
            lines.append(f"  {json.dumps(name)}: {{\n{inside}\n  }}")
        else:
            lines.append(f"  {json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _told(reading: dict[str, Any]) -> dict[str, Any]:
    """What is said of a reading: all that is not as usual."""
    return {name: value for name, value in reading.items() if value is not None and value is not False}


def _dtype_of(model: nn.Module) -> torch.dtype:
    found: set[torch.dtype] = {tensor.dtype for tensor in model.state_dict().values() if tensor.is_floating_point()}
    if len(found) != 1:
        raise DtypeError(
            where="save",
            got=f"weights of {', '.join(sorted(map(str, found))) or 'no dtype'}",
            wanted="weights of one floating dtype",
            remedy="model.float() gives all of them one.",
        )
    return found.pop()


def _refuse_others(folder: Path) -> None:
    """Refuse a folder with the files of something else, such as a run, which would be lost."""
    there = [name for name in (WEIGHTS, CONFIG) if (folder / name).exists()]
    if there and not any(_is_ours(folder, name) for name in there):
        raise ModelFolderError(
            where=str(folder),
            got=f"a folder with {' and '.join(there)} of something else",
            wanted="a new or empty folder, or one with a saved model",
            remedy="Name another folder: nothing was written.",
        )


def _is_ours(folder: Path, name: str) -> bool:
    try:
        found = read_document(folder / name) if name == WEIGHTS else read_json((folder / name).read_bytes())
    except (TensorFileError, ValueError, OSError):
        return False
    return isinstance(found, dict) and found.get("format") == FORMAT
