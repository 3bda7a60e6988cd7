"""Table 11 of Wang & Niepert 2019: language models with a thousand centroids, on WikiText-2 in place of Wikipedia."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from statewise.models import LanguageModelConfig
from statewise.recipes.cases import Case, Measured, Step
from statewise.recipes.example_table import NETWORKS
from statewise.recipes.language_recipe import LanguageRecipe, smoke_settings
from statewise.recipes.lines import Line
from statewise.recipes.published_states import TABLE11
from statewise.recipes.recipe import Pace
from statewise.recipes.request import Request
from statewise.train.settings import TrainingSettings

# What the paper leaves open is all here. Units and centroids are the paper's; only without tied weights the network has
# its 47 million parameters.
MODEL = LanguageModelConfig(hidden=(300,), tied=False)
CENTROIDS = 1000
TRAINING = TrainingSettings(
    optimizer="adam", lr=0.001, batch=64, bptt=20, clip=5.0, divide=None, averaging="never", patience=3
)
EPOCHS = 20


class StateLanguageTable(LanguageRecipe):
    """The four networks as language models."""

    name = "state-regularized/lm"
    title = "LSTM language models with centroids on WikiText-2"
    data = "wikitext-2"
    rows = tuple(NETWORKS)
    usual_rows = rows
    sizes = ("300",)
    epochs = EPOCHS
    paces = {"300": Pace(gpu=15.0, cpu=2400.0)}  # noqa: RUF012
    comparable = False

    def steps(self, request: Request) -> list[Step]:
        return [self._case(request, row, seed) for row in request.rows for seed in request.seed_numbers]

    def notes(self, measured: Sequence[Measured]) -> list[str]:
        return [
            "The published numbers belong to 7,500 articles of Wikipedia; what can be compared is the order of the "
            "rows, best first: sr-lstm-p, sr-lstm, lstm, lstm-p."
        ]

    def _case(self, request: Request, row: str, seed: int) -> Case:
        cell, regularized = NETWORKS[row]
        config = replace(MODEL, cell=cell, centroids=CENTROIDS if regularized else None)
        if request.smoke:
            config = replace(config, hidden=(24,), centroids=8 if regularized else None)
        settings = replace(TRAINING, epochs=request.epochs or self.epochs, precision=request.precision, seed=seed)
        return Case(
            line=Line(row=row, size="300", published=TABLE11[row]),
            config=config,
            settings=smoke_settings(settings) if request.smoke else settings,
        )


RECIPES = (StateLanguageTable(),)
