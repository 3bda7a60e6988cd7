"""Scores on data that the training did not see, with what chance may have done to them; and calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from statewise.analysis import CalibrationTally
from statewise.data.span_scores import each_sentence
from statewise.models import SequenceClassifier
from statewise.report.html import Bar, Code, DataTable, Note, Section, bar_chart, reliability_chart, shown
from statewise.report.html.pieces import Part
from statewise.report.run_sections.forecasts import forecasts
from statewise.report.run_sections.run import CLASSIFIER, FORECASTER, LANGUAGE, STEP_CLASSIFIER, TAGGER, Run
from statewise.report.run_sections.words import percent, wilson
from statewise.train.tag_folder import read_given, tagged_path

_DRAWS = 2000
_BATCH = 512
_MOST = 20_000  # sequences that are read again for calibration


def scores(run: Run) -> Section:
    """The scores of a run.

    Args:
        run: any.
    """
    if not run.final:
        return Section("Scores", [Note(kind="missing", words="The run has not ended, so nothing was tested.")])
    if run.task == LANGUAGE:
        return _perplexities(run)
    if run.task == TAGGER:
        return _spans(run)
    if run.task in (CLASSIFIER, STEP_CLASSIFIER):
        return _accuracies(run)
    if run.task == FORECASTER:
        return forecasts(run)
    return Section("Scores", [Note(kind="missing", words=f"Nothing is known here of the task {run.task}.")])


def _perplexities(run: Run) -> Section:
    final = run.final
    rows = [(name, f"{final[f'{key}_perplexity']:.2f}") for name, key in (("validation", "valid"), ("test", "test"))]
    table = DataTable(headings=("text", "perplexity"), rows=rows, caption="Perplexities of the best model")
    remark = Note(
        kind="remark",
        words="One run says nothing of how much another seed would differ. Several seeds with intervals:",
        command=f"statewise compare {run.told.get('source', {}).get('data', 'DATA')}",
    )
    prose = (
        "A perplexity of p means that the model is as unsure of each next word as of a fair choice among p words. "
        "Lower is better; the test text was read once, by the model that validation chose."
    )
    return Section("Scores", [table, remark], prose=prose)


def _accuracies(run: Run) -> Section:
    bars, rows = [], []
    for place, (name, record) in enumerate(run.tests.items()):
        right, count = 1.0 - record["error"], int(record["count"])
        low, high = wilson(right, count)
        bars.append(Bar(label=name, value=right, low=low, high=high, group=place % 6))
        hard = percent(1.0 - record["argmax_error"]) if "argmax_error" in record else "none"
        around = f"{percent(low)} to {percent(high)}"
        rows.append((name, percent(right), around, hard, shown(record["loss"]), f"{count:,}"))
    headings = ("set", "accuracy", "95 %", "at the nearest centroid", "loss", "examples")
    parts: list[Part] = [
        DataTable(headings=headings, rows=rows, caption="The best model on each set"),
        bar_chart(bars, title="Accuracy", value="accuracy", zero=min(bar.low or 0.0 for bar in bars) < 0.5,
                  heading="set", interval="95 % (Wilson)"),
    ]  # fmt: skip
    if any(record.get("argmax_error", 0.0) > record["error"] + 0.01 for record in run.tests.values()):
        told = "The automaton of the centroids errs more often than the network. "
        ways = (Code("--transition noisy"), " or ", Code("--automaton"))
        parts.append(Note(kind="care", words=[told, *ways, " makes its steps hard while it learns."]))
    prose = (
        "The interval holds the true accuracy in 95 of 100 such tests, if the examples are independent draws. “At the "
        "nearest centroid” is the accuracy of the finite automaton that the network becomes when it always moves to "
        "the likeliest centroid."
    )
    return Section("Scores", parts, prose=prose)


def _spans(run: Run) -> Section:
    bars, rows = [], []
    for name, record in run.tests.items():
        interval = _drawn_again(run, name)
        low, high = interval or (None, None)
        bars.append(Bar(label=name, value=record["f1"], low=low, high=high))
        around = "none" if interval is None else f"{percent(interval[0])} to {percent(interval[1])}"
        cells = [percent(record[key]) for key in ("precision", "recall", "strict_f1", "accuracy")]
        ece = shown(record["ece"]) if "ece" in record else "not measured"
        rows.append((name, percent(record["f1"]), around, *cells, ece, f"{record['sentences']:,}"))
    headings = ("set", "F1", "95 %", "precision", "recall", "strict F1", "tokens", "calibration error", "sentences")
    parts: list[Part] = [DataTable(headings=headings, rows=rows, caption="The best model on each set")]
    if bars:
        parts.append(bar_chart(bars, title="F1", value="F1 of the spans", zero=False, heading="set", interval="95 %"))
    prose = (
        "F1 counts spans whose borders and type are both right, by the rules of conlleval; the strict one also wants "
        f"tags that are well formed. The interval is that of {_DRAWS:,} samples of the sentences, drawn with "
        "replacement. The calibration error is how far, on average, the probability of a token's tag is from the share "
        "of such tags that are right."
    )
    return Section("Scores", parts, prose=prose)


def _drawn_again(run: Run, name: str) -> tuple[float, float] | None:
    """The bootstrap interval of F1 over sentences; None where the tags that were given are not kept."""
    path = tagged_path(run.folder, name)
    if not path.exists():
        return None
    gold, given = read_given(path)
    pairs = each_sentence(gold, given, "conll", None)
    counts = np.array([(len(true & made), len(made), len(true)) for true, made in pairs], dtype=np.float64)
    return bootstrap_f1(counts.reshape(-1, 3)) if len(counts) else None


def bootstrap_f1(counts: np.ndarray, *, draws: int = _DRAWS, seed: int = 0) -> tuple[float, float]:
    """In what interval F1 lies in 95 % of samples of sentences that are drawn with replacement.

    Args:
        counts: for each sentence how many spans are right, were given, and are true.
        draws: how many samples.
        seed: of the draws.

    >>> bootstrap_f1(np.array([[2.0, 2.0, 2.0]] * 5))
    (1.0, 1.0)
    """
    generator = np.random.default_rng(seed)
    chosen = generator.multinomial(len(counts), np.full(len(counts), 1 / len(counts)), size=draws)
    right, made, true = (chosen @ counts[:, :3]).T
    f1 = 2 * right / np.maximum(made + true, 1)
    low, high = np.quantile(f1, [0.025, 0.975])
    return float(low), float(high)


def calibration(run: Run) -> Section | None:
    """How far the probabilities of a classifier can be believed, on its validation set and on its test sets.

    Args:
        run: any; only classifiers of sequences have this section.
    """
    if run.task != CLASSIFIER or run.quick:
        return None
    model = run.model
    assert isinstance(model, SequenceClassifier)
    sets = run.examples
    name, examples = "the validation set", sets.valid
    if sets.tests:
        name, examples = list(sets.tests.items())[-1]
    found = _tally(model, examples)
    figure = reliability_chart(
        found.confidences.tolist(),
        found.accuracies.tolist(),
        found.counts.tolist(),
        title=f"How sure it is, and how often it is right, on {name}",
        caption="On the dashed line a network is right as often as it says; below it, it is too sure of itself. The "
        "larger a mark, the more predictions it stands for.",
    )
    direction = "too sure of itself" if found.overconfidence > 0 else "too modest"
    prose = (
        f"The expected calibration error on {name} is {shown(found.ece, digits=3)}: so far the confidence is from the "
        f"share of right answers, on average. The mean confidence is {percent(found.mean_confidence)}, the accuracy "
        f"{percent(found.accuracy)}, so that the network is {direction}, by {percent(abs(found.overconfidence))}."
    )
    return Section("Calibration", [figure], prose=prose)


def _tally(model: SequenceClassifier, examples: Any) -> Any:
    tally = CalibrationTally()
    with torch.no_grad():
        for begin in range(0, min(len(examples), _MOST), _BATCH):
            inputs, lengths, labels = examples.padded(range(begin, min(begin + _BATCH, len(examples))))
            tally.add(torch.softmax(model(inputs, lengths), dim=1), labels)
    return tally.result()
