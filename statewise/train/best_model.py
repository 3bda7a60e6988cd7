"""The best model of a run, with all that is needed to use it elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from statewise.data.vocabulary import END, UNKNOWN, Vocabulary
from statewise.errors import ModelFolderError, RunFolderError, StatewiseError
from statewise.files import TensorFile, read_json, strict
from statewise.models import Reading, Saved
from statewise.models.loading import DTYPES, assemble, named, refuse_nan
from statewise.models.saving import CONFIG, FORMAT
from statewise.train.classify_folder import IMDB_WORDS, read_about, sizes_of
from statewise.train.forecast_measure import FORECASTS
from statewise.train.language_folder import TASK as LANGUAGE
from statewise.train.language_folder import VOCABULARY
from statewise.train.run import RunFolder
from statewise.train.tag_folder import TASK as TAGGER
from statewise.train.tag_folder import read_lexicon
from statewise.train.tasks import CLASSES, STEPS

_KINDS = {
    LANGUAGE: "LanguageModel",
    CLASSES.name: "SequenceClassifier",
    STEPS.name: "StepClassifier",
    TAGGER: "Tagger",
    FORECASTS.name: "Forecaster",
}


def is_run(folder: Path) -> bool:
    """Whether a folder has a run, rather than a saved model; whether it is a good one is another question.

    Args:
        folder: that may have one.
    """
    if not (folder / CONFIG).is_file():  # a pipe would be waited for, and a device read without end
        return False
    try:
        found = read_json((folder / CONFIG).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and "task" in found and found.get("format") != FORMAT


def load_run(folder: Path | str, *, device: torch.device | str = "cpu", check_finite: bool = False) -> Saved:
    """The best model of a run of ``statewise train``, in eval mode, with its reading and what was measured of it.

    Args:
        folder: of the run.
        device: where the model goes.
        check_finite: refuse weights that hold NaN or infinity.
    """
    run = RunFolder(folder)
    told = run.config()
    kind = _KINDS.get(str(told.get("task")))
    if kind is None:
        got, wanted = f"task {told.get('task')!r}", f"one of {', '.join(map(repr, _KINDS))}"
        raise RunFolderError(where=str(run.config_path), got=got[:200], wanted=wanted)
    if not run.model_path.is_file():
        run.load_model()  # says what is missing, and what to do
    try:
        with named(run.model_path), TensorFile(run.model_path) as file:
            dtype = next(str(each).removeprefix("torch.") for each in file.dtypes.values() if each.is_floating_point)
            document = {"kind": kind, "dtype": dtype if dtype in DTYPES else "float32"}
            document |= _described(kind, told, file.document, run)
            model, tensors = assemble(file, strict(document))
            if check_finite:
                refuse_nan(tensors, where=str(run.model_path))
    except ModelFolderError as error:
        remedy = error.remedy or "Put the file back from a copy, or train again."
        raise RunFolderError(where=error.where, got=error.got, wanted=error.wanted, remedy=remedy) from error
    except (KeyError, TypeError, AttributeError, ValueError, StopIteration) as error:
        if isinstance(error, StatewiseError):
            raise
        got = f"something else than a run writes: {type(error).__name__} {error}"[:200]
        raise RunFolderError(where=str(run.path), got=got, wanted="the files of a run as it left them") from error
    return model.to(device).eval()


def _described(kind: str, told: Mapping[str, Any], best: Mapping[str, Any], run: RunFolder) -> dict[str, Any]:
    """What a saved model would say of itself."""
    source = told.get("source") or {}
    config = {**told["model"]}
    if kind == "LanguageModel":
        vocabulary = Vocabulary.load(run.path / VOCABULARY)
        built_for: dict[str, Any] = {"words": len(vocabulary)}
        names: dict[str, Any] = {"symbols": vocabulary.words, "unknown": vocabulary.unknown, "end": vocabulary.end}
        reading = Reading(unit="symbols", lower=bool(source.get("lower")), **names)
    elif kind == "Tagger":
        lexicon, about = read_lexicon(run.path)
        built_for = {**asdict(lexicon), "vectors": about["vectors"], "context": about["context"]}
        reading = Reading(unit="symbols", scheme=source.get("scheme"))
    else:
        about = read_about(run.path)
        sizes = {"tokens": None, "features": None, **sizes_of(about)}
        built_for = {**sizes, "scaled": "mean" in about}
        built_for |= {"symbols": about["symbols"]} if kind == "SequenceClassifier" else {}
        built_for = {"features": sizes["features"]} if kind == "Forecaster" else built_for
        reading = _of_examples(about, source)
        # The temperature is that of the best epoch: a schedule may have gone on since.
        config["temperature"] = best["temperature"]
    said = {name: value for name, value in asdict(reading).items() if value is not None}
    return {"config": config, "built_for": built_for, "reading": said, "metrics": _metrics(run, best)}


def _of_examples(about: Mapping[str, Any], source: Mapping[str, Any]) -> Reading:
    """How a classifier's examples were read."""
    classes = tuple(about["classes"])
    if about.get("kind") == "series":
        return Reading(unit="numbers", features=tuple(about["features"]), classes=classes or None)
    if about["symbols"] is None:
        order = about.get("permutation")
        sizes = {"height": about["height"], "width": about["width"]}
        unit = about.get("by", "pixels")
        return Reading(unit=unit, classes=classes, permutation=None if order is None else tuple(order), **sizes)
    symbols, unit = tuple(about["symbols"]), source.get("unit") or "auto"
    if unit == "auto":
        unit = "words" if UNKNOWN in symbols and END in symbols else "characters"
        unit = "symbols" if unit == "characters" and any(len(symbol) > 1 for symbol in symbols) else unit
    cut = source.get("truncate") or (IMDB_WORDS if source.get("data") == "imdb" else None)
    unknown = UNKNOWN if unit == "words" else None
    return Reading(
        unit=unit, symbols=symbols, classes=classes, unknown=unknown, truncate=cut if unit == "words" else None
    )


def _metrics(run: RunFolder, best: Mapping[str, Any]) -> dict[str, Any]:
    """What the run says of its best model: the record of its end, or what was known when it was kept."""
    last = next((record for record in reversed(run.metrics()) if "best_epoch" in record), best)
    return dict(_flat({name: value for name, value in last.items() if name != "seconds"}))


def _flat(record: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name} ")
        elif value is None or isinstance(value, bool | int | float | str):
            yield f"{before}{name}", value
