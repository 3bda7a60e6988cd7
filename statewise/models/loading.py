"""A model out of a folder that may have come from anywhere: nothing in it is believed before it is checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from statewise.errors import ModelFolderError, NewerFormatError, NonFiniteError, StatewiseError, TensorFileError
from statewise.files import TensorFile, read_json
from statewise.models.kinds import KINDS, Kind
from statewise.models.reading import Reading
from statewise.models.saved import Saved
from statewise.models.saving import CHECKSUM, CONFIG, FORMAT, VERSION, WEIGHTS, check_reading, seal, twin
from statewise.models.settings_json import from_json

FIELDS = ("format", "version", "statewise", "kind", "config", "built_for", "reading", "metrics", "dtype", CHECKSUM)
DTYPES = {"float64": torch.float64, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
#: A size up to this is never suspicious: building such a model's shapes takes no memory.
ALWAYS = 1 << 20
_COPY = "Get the folder again from where it came from."


def load_model(
    folder: Path,
    *,
    device: torch.device | str = "cpu",
    check_finite: bool = False,
    wanted: str | None = None,
) -> Saved:
    """The model that was saved into a folder, in eval mode.

    What the settings ask for is compared with what the file of the weights has before anything is built, so that no
    folder makes this program take more memory than its own size asks for.

    Args:
        folder: with the model.
        device: where it goes.
        check_finite: refuse weights that hold NaN or infinity.
        wanted: the kind that is expected; None for any.
    """
    path = folder / WEIGHTS
    with named(path):
        if not path.is_file():
            raise _no_model(folder)
        with TensorFile(path) as file:
            document = _checked(file.document, where=str(path))
            _compare_config(folder, document)
            _refuse_kind(document, wanted, where=str(path))
            model, tensors = assemble(file, document)
        if seal(document, tensors) != document[CHECKSUM]:
            raise ModelFolderError(where=str(path), got="another checksum", wanted="what was saved", remedy=_COPY)
        if check_finite:
            refuse_nan(tensors, where=str(path))
        return model.to(device).eval()


def assemble(file: TensorFile, document: Mapping[str, Any]) -> tuple[Saved, dict[str, torch.Tensor]]:
    """A model of what a document says with the weights of a file, and these; refused if one does not fit the other.

    Args:
        file: with the weights.
        document: "kind", "config", "built_for", "reading", "metrics" and "dtype", each yet to be checked.
    """
    kind, path = KINDS[document["kind"]], file.path
    config = from_json(kind.config, document["config"], where=f"{path}, config")
    task = from_json(kind.task, document["built_for"], where=f"{path}, built_for")
    reading = None
    if document["reading"] is not None:
        reading = from_json(Reading, document["reading"], where=f"{path}, reading")
    check_reading(task, reading)
    dtype = DTYPES[document["dtype"]]
    _check_sizes(kind, config, document, file)
    _check_shapes(kind, config, task, file, dtype)
    tensors = file.tensors()
    with torch.random.fork_rng(devices=[]):  # fresh weights are drawn, and nobody's generator may notice
        model = _attempted(kind.build, config, task, file=file)
    assert isinstance(model, Saved)
    model.to(dtype).load_state_dict(tensors)
    model.reading, model.metrics = reading, document["metrics"]
    return model, tensors


def read_model_document(folder: Path) -> dict[str, Any]:
    """What a saved model's folder says of it, checked, without its weights.

    Args:
        folder: with the model.
    """
    path = folder / WEIGHTS
    with named(path):
        if not path.is_file():
            raise _no_model(folder)
        with TensorFile(path) as file:
            return _checked(file.document, where=str(path))


@contextmanager
def named(path: Path) -> Iterator[None]:
    """A region in which whatever a file makes fail is an error of the folder, with the file's name.

    Args:
        path: the file of the weights.
    """
    try:
        yield
    except (ModelFolderError, NonFiniteError):
        raise
    except TensorFileError as error:
        raise ModelFolderError(where=error.where, got=error.got, wanted=error.wanted, remedy=_COPY) from error
    except StatewiseError as error:
        # Settings that no model can have, in the words of those who refused them.
        where = f"{path}, {error.where}"
        raise ModelFolderError(where=where, got=error.got, wanted=error.wanted, remedy=error.remedy) from error
    except OSError as error:
        got = f'"{error.strerror or error}"'
        raise ModelFolderError(where=str(path), got=got, wanted="a file that can be read") from error


def _no_model(folder: Path) -> ModelFolderError:
    if not folder.is_dir():
        got, remedy = "no folder", "Look at the spelling, and whether it was moved."
    else:
        run = (folder / "metrics.jsonl").exists()
        got = "the folder of a run without a model" if run else f"a folder without {WEIGHTS}"
        remedy = "Go on with the run until it has ended an epoch: --resume." if run else "model.save(folder) makes one."
    return ModelFolderError(where=str(folder), got=got, wanted="the folder of a saved model", remedy=remedy)


def _checked(document: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """A document whose outer fields are what they should be."""
    if document.get("format") != FORMAT:
        got = "the weights of a run" if "epoch" in document else "a file of tensors that is no saved model"
        remedy = "statewise.load reads the folder of a run too." if "epoch" in document else ""
        raise ModelFolderError(where=where, got=got, wanted=f"the format {FORMAT!r}", remedy=remedy)
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise ModelFolderError(where=f"{where}, version", got=str(version)[:80], wanted="a whole number", remedy=_COPY)
    if version > VERSION:
        by = document.get("statewise")
        raise NewerFormatError(
            where=where,
            got=f"version {version} of the format, written by statewise {by if isinstance(by, str) else '?'}"[:200],
            wanted=f"version {VERSION} or older",
            remedy="Install a newer statewise: pip install -U statewise.",
        )
    for name in (*FIELDS, *document):
        if name not in FIELDS or name not in document:
            got = "nothing" if name in FIELDS else "a field that is not known here"
            raise ModelFolderError(where=f"{where}, {name[:80]}", got=got, wanted=f"the fields {', '.join(FIELDS)}")
    for name in ("statewise", "kind", "dtype", CHECKSUM):
        if not isinstance(document[name], str):
            raise ModelFolderError(where=f"{where}, {name}", got=str(document[name])[:80], wanted="a text")
    if document["dtype"] not in DTYPES:
        got = repr(document["dtype"][:80])
        raise ModelFolderError(where=f"{where}, dtype", got=got, wanted=f"one of {', '.join(DTYPES)}")
    _check_metrics(document["metrics"], where=where)
    return dict(document)


def _check_metrics(metrics: Any, *, where: str) -> None:
    plain = isinstance(metrics, dict) and all(
        value is None or isinstance(value, bool | int | float | str) for value in metrics.values()
    )
    if not plain:
        raise ModelFolderError(where=f"{where}, metrics", got=str(metrics)[:80], wanted="numbers and texts by name")


def _compare_config(folder: Path, document: Mapping[str, Any]) -> None:
    """Refuse a config.json that was changed; one of an earlier save, which a kill has left, does not count."""
    path = folder / CONFIG
    if not path.exists():
        return
    remedy = f"{WEIGHTS} has all that it says: remove {CONFIG}, or get the folder again."
    if not path.is_file():  # a pipe would be waited for, and a device read without end
        raise ModelFolderError(where=str(path), got="no plain file", wanted="settings as JSON", remedy=remedy)
    try:
        found = read_json(path.read_bytes())
    except ValueError as error:
        got = f"no JSON: {error}"[:200]
        raise ModelFolderError(where=str(path), got=got, wanted="settings as JSON", remedy=remedy) from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        got = "settings of something else"
        raise ModelFolderError(where=str(path), got=got, wanted=f"the format {FORMAT!r}", remedy=remedy)
    if found.get(CHECKSUM) != document[CHECKSUM]:
        _checked(found, where=str(path))  # whole, and of an earlier save
        return
    changed = [name for name in {**document, **found} if document.get(name) != found.get(name)]
    if changed:
        raise ModelFolderError(
            where=f"{path}, {changed[0][:80]}",
            got="another value than the one that was saved",
            wanted=f"what {WEIGHTS} says",
            remedy=f"Load the model, change it and save it again; to drop the change remove {CONFIG}.",
        )


def _refuse_kind(document: Mapping[str, Any], wanted: str | None, *, where: str) -> None:
    name = document["kind"]
    if name not in KINDS:
        raise ModelFolderError(
            where=f"{where}, kind",
            got=repr(name[:80]),
            wanted=f"one of {', '.join(KINDS)}",
            remedy="If a newer statewise has written it: pip install -U statewise.",
        )
    if wanted not in (None, name):
        raise ModelFolderError(
            where=where, got=f"a {name}", wanted=f"a {wanted}", remedy="statewise.load takes every kind."
        )


def _check_sizes(kind: Kind, config: Any, document: Mapping[str, Any], file: TensorFile) -> None:
    """Refuse settings that ask for more than the file has, before anything is built."""
    entries = sum(_product(shape) for shape in file.shapes.values())
    most = max(ALWAYS, entries)
    for part in ("config", "built_for"):
        for name, value in document[part].items():
            for number in value if isinstance(value, list) else [value]:
                if type(number) is int and abs(number) > most:
                    raise ModelFolderError(
                        where=f"{file.path}, {part}.{name}",
                        got="a size that is larger than all weights together",
                        wanted=f"at most {entries}",
                    )
    tags = document["built_for"].get("tags", [])
    # Every layer has weights of its own, and a matrix of tags by tags, if there is one, is among the weights.
    if kind.layers(config) > len(file.shapes) or (getattr(config, "head", "") == "crf" and len(tags) ** 2 > entries):
        got = f"{kind.layers(config)} layers" if kind.layers(config) > len(file.shapes) else f"{len(tags)} tags"
        wanted = f"a model of {len(file.shapes)} tensors with {entries} numbers"
        raise ModelFolderError(where=f"{file.path}, config", got=got, wanted=wanted)


def _product(shape: tuple[int, ...]) -> int:
    found = 1
    for size in shape:
        found *= size
    return found


def _check_shapes(kind: Kind, config: Any, task: Any, file: TensorFile, dtype: torch.dtype) -> None:
    """Refuse tensors that are missing, too many, of another shape or dtype, or tied otherwise than the model's are."""
    same = _attempted(twin, kind, config, task, file=file)
    wanted = {name: (tuple(part.shape), part.dtype) for name, part in same.state_dict().items()}
    for name in {**wanted, **file.shapes}:
        where = f"{file.path}, tensor {name[:120]}"
        if name not in file.shapes:
            raise ModelFolderError(where=where, got="nothing", wanted=f"shape {wanted[name][0]}", remedy=_COPY)
        if name not in wanted:
            raise ModelFolderError(where=where, got="a tensor that the model has not", wanted="none", remedy=_COPY)
        shape, own = wanted[name]
        if file.shapes[name] != shape:
            got = f"shape {file.shapes[name]}"
            raise ModelFolderError(where=where, got=got, wanted=f"shape {shape}", remedy=_COPY)
        kept = dtype if own.is_floating_point else own
        if file.dtypes[name] != kept:
            raise ModelFolderError(where=where, got=str(file.dtypes[name]), wanted=str(kept), remedy=_COPY)
    if _groups(file.aliases, file.shapes) != _ties(same):
        got = "weights that are tied otherwise than in the model"
        raise ModelFolderError(where=str(file.path), got=got, wanted="the ties that its config says", remedy=_COPY)


def _attempted(build: Callable[..., nn.Module], *settings: Any, file: TensorFile) -> nn.Module:
    try:
        return build(*settings)
    except StatewiseError:
        raise
    except Exception as error:
        # Torch refuses sizes in many ways, and every one of them is the fault of the settings.
        got = (
            f"settings that build no model: {str(error).splitlines()[0][:120] if str(error) else type(error).__name__}"
        )
        raise ModelFolderError(where=str(file.path), got=got, wanted="settings of a model") from error


def _groups(aliases: Mapping[str, str], names: Mapping[str, Any]) -> set[frozenset[str]]:
    """The sets of names that stand for one tensor."""
    found: dict[str, set[str]] = {}
    for alias, name in aliases.items():
        found.setdefault(name, {name}).add(alias)
    return {frozenset(group) for group in found.values()}


def _ties(model: nn.Module) -> set[frozenset[str]]:
    found: dict[int, set[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        found.setdefault(id(parameter), set()).add(name)
    return {frozenset(group) for group in found.values() if len(group) > 1}


def refuse_nan(tensors: Mapping[str, torch.Tensor], *, where: str) -> None:
    """Refuse weights that are not finite.

    Args:
        tensors: by name.
        where: the file.
    """
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise NonFiniteError(where=f"{where}, tensor {name}", got="NaN or infinity", wanted="finite weights")
