"""Table 5 of Dieng et al. 2018: AWD-LSTM-MoS with Noisin, fine-tuned, with dynamic evaluation, on Penn Treebank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from statewise.models import LanguageModelConfig
from statewise.recipes.cases import Adaptation, Case, Measured, Step
from statewise.recipes.language_recipe import LanguageRecipe, smoke_settings
from statewise.recipes.lines import Line
from statewise.recipes.published import MOS_STAGES, TABLE5, Published
from statewise.recipes.recipe import Pace
from statewise.recipes.request import Request
from statewise.train.settings import TrainingSettings

MOS, NOISIN = "mos", "mos+gamma"
STAGES = ("trained", "fine-tuned", "dynamic evaluation")
GAMMA, ALPHA = 0.4, 2.0

#: AWD-LSTM-MoS for Penn Treebank (Yang et al. 2018): 21,500,620 parameters with 10,000 words.
MODEL = LanguageModelConfig(
    hidden=(960, 960, 620),
    embedding=280,
    head="mixture",
    experts=15,
    input_dropout=0.4,
    hidden_dropout=0.225,
    output_dropout=0.4,
    latent_dropout=0.29,
    locked=True,
    embedding_dropout=0.1,
    weight_drop=0.5,
    activation=2.0,
    temporal=1.0,
)
TRAINING = TrainingSettings(
    batch=12, bptt=70, random_bptt=True, lr=20.0, clip=0.25, weight_decay=1.2e-6, divide=None, averaging="non-monotone"
)
# The test that starts the averaging ends the fine-tuning: a loss above the best of all but the last five before it.
FINE_TUNING = replace(TRAINING, lr=25.0, averaging="always", stop_non_monotone=True)

#: Rate, decay and epsilon of dynamic evaluation for segments of five words, in the convention of the code of MoS; and
#: the same in the new one, for 17 tensors and 1859 batches of statistics.
DYNAMIC = {"old": (0.002, 0.075, 0.001), "new": (4.64e-5, 0.00441, 2.32e-5)}


class MixtureTable(LanguageRecipe):
    """AWD-LSTM-MoS without and with gamma noise: trained, fine-tuned, and going on learning while it is scored."""

    name = "noisin/table5"
    title = "AWD-LSTM-MoS with Noisin, fine-tuning and dynamic evaluation on Penn Treebank"
    data = "ptb"
    rows = (MOS, NOISIN)
    usual_rows = (NOISIN,)
    sizes = ("22M",)
    epochs = 400
    paces = {"22M": Pace(gpu=6.5, cpu=3700.0)}  # noqa: RUF012

    def complete(self, request: Request) -> Request:
        # Not fed back: weight drop and locked dropout act on the recurrence already.
        return super().complete(replace(request, placements=request.placements or ("outputs",)))

    def steps(self, request: Request) -> list[Step]:
        return [
            step
            for row in request.rows
            for placement in (request.placements if row == NOISIN else ("",))
            for seed in request.seed_numbers
            for step in self._stages(request, row, placement, seed)
        ]

    def notes(self, measured: Sequence[Measured]) -> list[str]:
        rows = {one.line.row for one in measured}
        found = [
            f"{model}: {published.test:g} on test, published." for model, (_, published) in list(TABLE5.items())[-3:-1]
        ]
        if MOS in rows:
            found.append("Of mos the column 'published' has what its own code base reports, in a later framework.")
        return found

    def _stages(self, request: Request, row: str, placement: str, seed: int) -> list[Step]:
        config = _model(request, row, placement)
        epochs, most = request.epochs or self.epochs, request.finetune
        training = _settings(request, replace(TRAINING, epochs=epochs, seed=seed))
        trained = Case(line=_line(row, placement, 0), config=config, settings=training)
        steps: list[Step] = [trained]
        if most != 0:
            tuning = _settings(request, replace(FINE_TUNING, epochs=most or epochs, seed=seed))
            trained = Case(line=_line(row, placement, 1), config=config, settings=tuning, after=trained)
            steps.append(trained)
        lr, decay, epsilon = DYNAMIC[request.convention]
        adapted = Adaptation(
            line=_line(row, placement, 2),
            after=trained,
            lr=lr,
            decay=decay,
            epsilon=epsilon,
            convention=request.convention,
            statistics_batch=10 if request.smoke else 100,
        )
        return [*steps, adapted]


def _model(request: Request, row: str, placement: str) -> LanguageModelConfig:
    config = MODEL
    if request.smoke:
        config = replace(config, hidden=(24, 24, 20), embedding=16, experts=3)
    if row == MOS:
        return config
    return replace(config, noise="gamma", gamma=GAMMA, alpha=ALPHA, placement=placement)


def _settings(request: Request, settings: TrainingSettings) -> TrainingSettings:
    settings = replace(settings, precision=request.precision)
    return replace(smoke_settings(settings), bptt=TRAINING.bptt) if request.smoke else settings


def _line(row: str, placement: str, stage: int) -> Line:
    published: Published | None = MOS_STAGES[STAGES[stage]]
    if row == NOISIN:
        published = TABLE5["this paper, + Noisin"][1] if stage == 2 else None
    gamma = GAMMA if row == NOISIN else None
    return Line(row=row, size="22M", placement=placement, stage=STAGES[stage], gamma=gamma, published=published)


RECIPE = MixtureTable()
