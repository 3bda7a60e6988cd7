"""What every recipe of language models has: a text, and perplexities of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from statewise.data import Corpus, find_data_set, read_corpus, sample_corpus
from statewise.recipes.recipe import Recipe
from statewise.recipes.request import Request
from statewise.recipes.running import LanguageMaker
from statewise.train.settings import TrainingSettings


class LanguageRecipe(Recipe):
    """A recipe of language models: perplexities of a text."""

    def maker(
        self,
        request: Request,
        folder: Path,
        *,
        data: Path | str | None,
        device: torch.device,
        console: Console | None,
    ) -> LanguageMaker:
        return LanguageMaker(self.corpus(request, data), self.source(request, data), folder, device, console)

    def corpus(self, request: Request, data: Path | str | None = None) -> Corpus:
        """The text: the embedded one for a smoke run.

        Args:
            request: what is asked.
            data: where the data set is; None for the usual places.
        """
        return sample_corpus() if request.smoke else read_corpus(self.source(request, data))

    def source(self, request: Request, data: Path | str | None = None) -> str:
        """Where the text is, as ``--data`` of other commands takes it.

        Args:
            request: what is asked.
            data: where the data set is; None for the usual places.
        """
        return "sample" if request.smoke else str(find_data_set(self.data, data=data).resolve())

    def describe(self, data: Corpus) -> dict[str, Any]:
        return {
            "name": data.name,
            "words": len(data.vocabulary),
            "tokens": {part: len(getattr(data, part)) for part in ("train", "valid", "test")},
        }


def smoke_settings(settings: TrainingSettings) -> TrainingSettings:
    """The settings for a text of a few thousand words.

    Args:
        settings: those of the full run.
    """
    return replace(settings, batch=10, bptt=20, valid_batch=5, test_batch=5)
