"""From the folder of a run to a network that can be explored."""

from __future__ import annotations

from pathlib import Path

from statewise.errors import RunFolderError
from statewise.explorer.classifying import ClassifierSubject
from statewise.explorer.speaking import LanguageSubject
from statewise.explorer.subjects import Subject
from statewise.explorer.tagging import TaggerSubject
from statewise.train import RunFolder, load_classifier, load_language_model, load_tagger
from statewise.train.stored import as_written

KINDS = ("classifier", "language model", "tagger")


def load_subject(folder: Path | str) -> Subject:
    """The network of a run, on the CPU.

    Args:
        folder: of the run.
    """
    place = Path(folder)
    if not (place / "config.json").exists():
        raise RunFolderError(
            where=str(folder),
            got="no config.json",
            wanted="the folder of a run",
            remedy="statewise train classify, lm or tag makes one.",
        )
    name, task = place.resolve().name, RunFolder(place).config().get("task")
    with as_written(place / "config.json", "the settings of a run"):
        if task == "classifier":
            model, told = load_classifier(place)
            return ClassifierSubject(name, model, told)
        if task == "language model":
            return LanguageSubject(name, *load_language_model(place))
        if task == "tagger":
            return TaggerSubject(name, load_tagger(place)[0])
    raise RunFolderError(where=str(folder), got=f"a run of the task {task!r}", wanted=f"one of {', '.join(KINDS)}")
