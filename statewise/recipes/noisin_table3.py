"""Table 3 of Dieng et al. 2018: Penn Treebank."""

from __future__ import annotations

from statewise.recipes.noisin_language import LanguageTable
from statewise.recipes.published import TABLE3
from statewise.recipes.recipe import Pace

RECIPE = LanguageTable(
    "noisin/table3",
    title="LSTM language models with noise of eight laws on Penn Treebank",
    data="ptb",
    table=TABLE3,
    usual_rows=("none", "gaussian", "bernoulli", "chi-square", "dropout", "dropout+gaussian", "dropout+beta"),
    paces={"medium": Pace(gpu=1.0, cpu=800.0), "large": Pace(gpu=3.5, cpu=3000.0)},
)
