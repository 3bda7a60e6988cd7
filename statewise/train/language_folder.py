"""The folder of a language model's run, and the best model in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from statewise.data import Vocabulary
from statewise.errors import RunFolderError
from statewise.models import LanguageModel, LanguageModelConfig
from statewise.train.run import RunFolder
from statewise.train.stored import as_written, filled

TASK = "language model"
VOCABULARY = "vocabulary.txt"


def load_language_model(
    folder: Path | str, *, device: torch.device | str = "cpu"
) -> tuple[LanguageModel, Vocabulary, dict[str, Any]]:
    """The best model of a run, its vocabulary, and what the run was told.

    Args:
        folder: of the run.
        device: where the model goes.
    """
    run = RunFolder(folder)
    told = run.config()
    if told.get("task") != TASK:
        raise RunFolderError(where=str(run.config_path), got=f"task {told.get('task')!r}", wanted=repr(TASK))
    vocabulary = Vocabulary.load(Path(folder) / VOCABULARY)
    state, _ = run.load_model()
    with as_written(run.config_path, "the settings of a language model"):
        config = LanguageModelConfig(**{**told["model"], "hidden": tuple(told["model"]["hidden"])})
        model = filled(lambda: config.build(len(vocabulary)), state, path=run.model_path)
    return model.to(device).eval(), vocabulary, told
