"""What Tables 3 and 4 of Dieng et al. 2018 share: two-layer LSTMs, with noise, dropout, or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from statewise.models import LanguageModelConfig
from statewise.recipes.cases import Case, Measured, Step
from statewise.recipes.language_recipe import LanguageRecipe, smoke_settings
from statewise.recipes.lines import Line
from statewise.recipes.published import DROPOUT, PLAIN, SIZES, Published, Tables, published, rows
from statewise.recipes.recipe import Pace
from statewise.recipes.request import Request
from statewise.train.settings import TrainingSettings

WIDTHS = {"medium": 650, "large": 1500}
SMOKE_WIDTHS = {"medium": 32, "large": 48}
#: Of the inputs of both layers, of what is fed back, and of the top output; fresh masks each step.
DROPOUTS = {"input_dropout": 0.5, "hidden_dropout": 0.5, "recurrent_dropout": 0.4, "output_dropout": 0.5}
_DROPOUT_NOTE = (
    "Dropout: 0.5 of the inputs of both layers, 0.4 of what is fed back, 0.5 of the top output; fresh masks."
)


class LanguageTable(LanguageRecipe):
    """A table of LSTM language models with noise of several laws (Dieng et al. 2018, section 5).

    Args:
        name: by which a person asks for it.
        title: what it shows.
        data: the data set.
        table: the published numbers.
        usual_rows: those that are made when none is named.
        paces: seconds of an epoch, by size.
    """

    sizes = SIZES
    epochs = 200

    def __init__(
        self,
        name: str,
        *,
        title: str,
        data: str,
        table: Tables,
        usual_rows: tuple[str, ...],
        paces: Mapping[str, Pace],
    ) -> None:
        self.name, self.title, self.data, self.table = name, title, data, table
        self.rows, self.usual_rows, self.paces = rows(table), usual_rows, paces

    def steps(self, request: Request) -> list[Step]:
        return [
            self._case(request, size, row, placement, seed)
            for size in request.sizes
            for row in request.rows
            for placement in (request.placements if has_noise(row) else ("",))
            for seed in request.seed_numbers
        ]

    def notes(self, measured: Sequence[Measured]) -> list[str]:
        dropped = [one for one in measured if one.line.row.startswith(DROPOUT)]
        doubts = {one.line.name: one.line.published.doubtful for one in measured if one.line.published}
        found = [f"The published {name} is doubtful: {why}." for name, why in doubts.items() if why]
        return [_DROPOUT_NOTE, *found] if dropped else found

    def _case(self, request: Request, size: str, row: str, placement: str, seed: int) -> Case:
        numbers = published(self.table, size, row)
        widths = SMOKE_WIDTHS if request.smoke else WIDTHS
        settings = TrainingSettings(epochs=request.epochs or self.epochs, precision=request.precision, seed=seed)
        return Case(
            line=Line(row=row, size=size, placement=placement, gamma=numbers.gamma, published=numbers),
            config=model_of(row, widths[size], numbers, placement),
            settings=smoke_settings(settings) if request.smoke else settings,
        )


def has_noise(row: str) -> bool:
    """Whether a row has noise, so that its placement matters.

    >>> has_noise("dropout+gaussian"), has_noise("dropout")
    (True, False)
    """
    return row not in (PLAIN, DROPOUT)


def model_of(row: str, width: int, numbers: Published, placement: str) -> LanguageModelConfig:
    """The network of a row.

    Args:
        row: of the table.
        width: of both layers and of the embedding.
        numbers: the published ones; of them the noise's spread is used.
        placement: of the noise.

    >>> from statewise.recipes.published import TABLE3
    >>> model_of("dropout+beta", 650, TABLE3["medium", "dropout+beta"], "recurrent").gamma
    0.2
    """
    config = LanguageModelConfig(hidden=(width, width))
    if row.startswith(DROPOUT):
        config = replace(config, **DROPOUTS)  # type: ignore[arg-type]
    if has_noise(row):
        law = row.removeprefix(f"{DROPOUT}+")
        config = replace(config, noise=law, gamma=numbers.gamma or 0.0, placement=placement)
    return config
