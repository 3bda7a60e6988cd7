"""Figure 1 of Dieng et al. 2018: a network that overfits, and the same one with noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from statewise.models import LanguageModelConfig
from statewise.recipes.cases import Case, Measured, Step
from statewise.recipes.language_recipe import LanguageRecipe, smoke_settings
from statewise.recipes.lines import Line
from statewise.recipes.recipe import Pace
from statewise.recipes.request import Request
from statewise.train.settings import TrainingSettings

GAMMA = 0.5  # the paper does not say which
MODEL = LanguageModelConfig(cell="rnn", nonlinearity="sigmoid", hidden=(256,))


class OverfittingFigure(LanguageRecipe):
    """One layer of sigmoid units, without noise and with additive Gaussian noise, under the same settings."""

    name = "noisin/figure1"
    title = "Training and validation curves of an Elman network without and with additive noise"
    data = "ptb"
    rows = ("none", "gaussian")
    usual_rows = rows
    sizes = ("256",)
    epochs = 50
    paces = {"256": Pace(gpu=1.0, cpu=120.0)}  # noqa: RUF012
    train_curve = True

    def steps(self, request: Request) -> list[Step]:
        return [
            self._case(request, row, placement, seed)
            for row in request.rows
            for placement in (request.placements if row == "gaussian" else ("",))
            for seed in request.seed_numbers
        ]

    def notes(self, measured: Sequence[Measured]) -> list[str]:
        return [
            "The figure has no numbers; what it shows is that the validation perplexity turns up without noise, and "
            "that with noise it keeps falling, close to the training perplexity.",
            *(_told(one) for one in measured if one.curve),
        ]

    def _case(self, request: Request, row: str, placement: str, seed: int) -> Case:
        config = replace(MODEL, hidden=(24,)) if request.smoke else MODEL
        if row == "gaussian":
            config = replace(config, noise=row, gamma=GAMMA, noise_mode="additive", placement=placement)
        settings = TrainingSettings(epochs=request.epochs or self.epochs, precision=request.precision, seed=seed)
        gamma = GAMMA if row == "gaussian" else None
        return Case(
            line=Line(row=row, size="256", placement=placement, gamma=gamma),
            config=config,
            settings=smoke_settings(settings) if request.smoke else settings,
        )


def _told(one: Measured) -> str:
    last = one.curve[-1]
    valid, train = last["valid_perplexity"], last["train_perplexity"]
    return (
        f"{one.name}: best validation perplexity {one.valid:.1f} at epoch {one.best_epoch}; at the last, {one.epochs}, "
        f"{valid:.1f}, and {train:.1f} on the training text, with the noise of training."
    )


RECIPE = OverfittingFigure()
