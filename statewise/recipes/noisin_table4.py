"""Table 4 of Dieng et al. 2018: WikiText-2."""

from __future__ import annotations

from statewise.recipes.noisin_language import LanguageTable
from statewise.recipes.published import TABLE4
from statewise.recipes.recipe import Pace

RECIPE = LanguageTable(
    "noisin/table4",
    title="LSTM language models with noise of eight laws on WikiText-2",
    data="wikitext-2",
    table=TABLE4,
    usual_rows=("none", "gaussian", "dropout"),
    paces={"medium": Pace(gpu=3.8, cpu=3800.0), "large": Pace(gpu=12.0, cpu=11500.0)},
)
