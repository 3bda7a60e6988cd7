"""Published numbers beside ours."""

from __future__ import annotations

from collections.abc import Sequence

from statewise.recipes import Measured, Outcome
from statewise.recipes.cases import Case
from statewise.recipes.language_recipe import LanguageRecipe
from statewise.recipes.lines import Line, Made, Mean, Sheet, group
from statewise.recipes.published import Published
from statewise.report.tables import Table
from statewise.train.settings import TrainingSettings

NOT_COMPARABLE = (
    "SMOKE RUN: a tiny network on an embedded text. It shows that everything runs; the published numbers belong to "
    "another network and another text, and nothing here can be compared with them."
)
TINY = (
    "SMOKE RUN: tiny networks on tiny data. It shows that everything runs, and nothing else. What is told below of "
    "sizes and examples is told of the full run."
)


def compare_with_published(outcome: Outcome) -> Table:
    """The table that a recipe ends with: published, ours, and the difference in per cent.

    Args:
        outcome: what came out, all or a part.
    """
    recipe, request = outcome.recipe, outcome.request
    language = isinstance(recipe, LanguageRecipe)
    sheet = _perplexities(outcome) if language else recipe.sheet(outcome.measured, request)
    rest = len(sheet.columns) - sheet.left
    failed = [[name, *["-"] * (sheet.left - 1), *["diverged"] * (rest - 3), "-", "-", "-"] for name in outcome.failed]
    title = f"{recipe.name}: {recipe.title}" + (" (smoke run)" if request.smoke else "")
    notes = _notes(outcome) if language else _plain_notes(outcome)
    return Table(columns=sheet.columns, rows=[*sheet.rows, *failed], left=sheet.left, title=title, notes=notes)


def _perplexities(outcome: Outcome) -> Sheet:
    """The table of language models: published, ours, and the difference in per cent."""
    foreign = outcome.request.smoke or not outcome.recipe.comparable
    lines = group(outcome.measured)
    stages = any(line.stage for line in lines)
    columns = ["row", "size", "placement", *(["stage"] if stages else []), "γ"]
    left = len(columns)
    for part in ("valid", "test"):
        columns += [f"{part} published{' (not comparable)' if foreign else ''}", f"{part} ours", "difference"]
    columns += ["runs", "epochs", "seconds"]
    return Sheet(columns, [_row(line, runs, stages=stages, smoke=foreign) for line, runs in lines.items()], left)


def curves(outcome: Outcome) -> Table:
    """How the validation went along the way, at some epochs; of several seeds, the means.

    Args:
        outcome: what came out, all or a part.
    """
    lines = group([run for run in outcome.measured if run.curve])
    epochs = _looks(max((len(run.curve) for runs in lines.values() for run in runs), default=0))
    number, called = outcome.recipe.curve
    rows = [[line.name, *(_at(runs, epoch, number) for epoch in epochs)] for line, runs in lines.items()]
    return Table(columns=[f"{called} after epoch", *map(str, epochs)], rows=rows)


def difference(ours: float, published: float | None) -> str:
    """By how much our number lies above the published one, or below.

    >>> difference(72.3, 71.8), difference(71.8, None)
    ('+0.7 %', '-')
    """
    return "-" if published is None else f"{(ours / published - 1) * 100:+.1f} %"


def _looks(epochs: int) -> list[int]:
    """Epochs at which a curve is told: often at first, then ever more rarely.

    >>> _looks(50)
    [1, 2, 5, 10, 20, 50]
    """
    usual = [digit * 10**power for power in range(6) for digit in (1, 2, 5)]
    return [*(epoch for epoch in usual if epoch < epochs), *([epochs] if epochs else [])]


def _at(runs: Sequence[Made], epoch: int, number: str) -> str:
    records = (run.curve[epoch - 1] for run in runs if len(run.curve) >= epoch)
    values = [float(record[number]) for record in records if number in record]  # older runs may not have it
    digits = 1 if number == "valid_perplexity" else 4
    return f"{Mean.of(values).value:.{digits}f}" if values else "-"


def _row(line: Line, runs: Sequence[Measured], *, stages: bool, smoke: bool) -> list[str]:
    published = line.published or Published(None, None)
    cells = [line.row, line.size or "-", line.placement or "-", *([line.stage] if stages else [])]
    cells.append("-" if line.gamma is None else f"{line.gamma:g}")
    for theirs, ours in (
        (published.valid, Mean.of([run.valid for run in runs])),
        (published.test, Mean.of([run.test for run in runs])),
    ):
        apart = "-" if smoke else difference(ours.value, theirs)
        cells += ["-" if theirs is None else f"{theirs:g}", str(ours), apart]
    epochs = sorted({run.epochs for run in runs})
    shown = "-" if epochs == [0] else "-".join(map(str, dict.fromkeys((epochs[0], epochs[-1]))))
    return [*cells, str(len(runs)), shown, f"{sum(run.seconds for run in runs):,.0f}"]


def training_in_words(settings: TrainingSettings) -> str:
    """How a network was trained, in a line.

    Args:
        settings: of the run.

    >>> training_in_words(TrainingSettings())
    'sgd at 30, divided by 1.2 without a new best; batch 80, segments of 35, clipped at 0.25; averaging: non-monotone'
    """
    rule = f", divided by {settings.divide:g} without a new best" if settings.divide else ""
    lengths = f"segments of {'about ' if settings.random_bptt else ''}{settings.bptt}"
    clip = f", clipped at {settings.clip:g}" if settings.clip else ""
    decay = f", weight decay {settings.weight_decay:g}" if settings.weight_decay else ""
    step = f"{settings.optimizer} at {settings.lr:g}{rule}{decay}"
    return f"{step}; batch {settings.batch}, {lengths}{clip}; averaging: {settings.averaging}"


def _stage(case: Case) -> str:
    return f" ({case.line.stage})" if case.line.stage else ""


def _notes(outcome: Outcome) -> list[str]:
    request, corpus = outcome.request, outcome.data
    seeds = ", ".join(map(str, dict.fromkeys(run.seed for run in outcome.measured)))
    found = [NOT_COMPARABLE] if request.smoke else []
    found.append(
        f"Perplexities a word; the best epoch by validation. Text: {corpus.name}, {len(corpus.train):,} tokens to "
        f"train on, {len(corpus.vocabulary):,} words. Seeds: {seeds or 'none'}. Products in {request.precision}."
        + (" Means ± standard deviations over the seeds." if (request.seeds or 1) > 1 else "")
    )
    cases = [step for step in outcome.steps.values() if isinstance(step, Case)]
    found += dict.fromkeys(f"Training{_stage(case)}: {training_in_words(case.settings)}." for case in cases)
    found += outcome.recipe.notes(outcome.measured)
    return [*found, *(f"{name} came to nothing: {why}" for name, why in outcome.failed.items())]


def _plain_notes(outcome: Outcome) -> list[str]:
    """The notes of a recipe that says itself what its numbers are."""
    request = outcome.request
    seeds = list(dict.fromkeys(run.seed for run in outcome.measured))
    set_so = "".join(f" {name}={value}." for name, value in request.overrides)
    found = [TINY] if request.smoke else []
    found.append(outcome.recipe.made_with(request, seeds) + (f" Set:{set_so}" if set_so else ""))
    found += outcome.recipe.notes(outcome.measured)
    return [*found, *(f"{name} came to nothing: {why}" for name, why in outcome.failed.items())]
