"""What a run is and what it came to, in one sentence and a few numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from statewise.report.html import KeyFigure, KeyFigures, Note, Section, Terminal, shown
from statewise.report.html.pieces import Part
from statewise.report.run_sections.run import FORECASTER, LANGUAGE, TAGGER, Run
from statewise.report.run_sections.words import counted, percent, wilson

_CELLS = {cell: cell.upper() for cell in ("lstm", "gru", "mgu", "rnn", "rac")}
_CELLS |= {"multiplicative": "multiplicative RNN", "peephole": "peephole LSTM"}


def network_of(run: Run) -> str:
    """The network in a few words.

    Args:
        run: any.
    """
    model: Mapping[str, Any] = run.told.get("model", {})
    hidden = model.get("hidden", "?")
    widths = " and ".join(map(str, hidden)) if isinstance(hidden, list | tuple) else str(hidden)
    layers = model.get("layers", 1)
    size = f"{layers} × {widths} units" if layers > 1 else f"{widths} units"
    extras = []
    if any(model.get("centroids") or ()):
        extras.append(f"{', '.join(map(str, model['centroids']))} centroids")
    if model.get("noise") and isinstance(model["noise"], str):
        extras.append(f"{model['noise']} noise {model.get('gamma') or 0:g}")
    if model.get("state_noise"):
        extras.append(f"{model['state_noise']} noise {model.get('gamma') or 0:g}")
    if model.get("zoneout"):
        extras.append(f"zoneout {model['zoneout']:g}")
    if model.get("orthogonal"):
        extras.append("orthogonal recurrence")
    cell = str(model.get("cell", "network"))
    return f"{_CELLS.get(cell, cell)} of {size}" + (f" with {' and '.join(extras)}" if extras else "")


def score_of(run: Run) -> tuple[str, float] | None:
    """The score that ranks runs of a kind, and its name; None if the run has not ended.

    Args:
        run: any.
    """
    final = run.final
    if run.task == LANGUAGE:
        value = final.get("test_perplexity")
        return None if value is None else ("test perplexity", float(value))
    tests = run.tests
    if not tests:
        return None
    name, last = list(tests.items())[-1]
    if run.task == TAGGER:
        return f"F1 on {name}", float(last["f1"])
    if run.task == FORECASTER:
        return f"error (RMSE) on {name}, in deviations of the training set", math.sqrt(float(last["error"]))
    return f"accuracy on {name}", 1.0 - float(last["error"])


def score_text(run: Run) -> str:
    """That score as a person reads it, with an interval where one is known.

    Args:
        run: any.
    """
    found = score_of(run)
    if found is None:
        return "not finished"
    if run.task == LANGUAGE:
        return f"{found[1]:.2f}"
    if run.task == FORECASTER:
        naive = math.sqrt(float(list(run.tests.values())[-1]["last_error"]))
        return f"{found[1]:.4f} (the last value as the forecast: {naive:.4f})"
    if run.task == TAGGER:
        return percent(found[1])
    low, high = wilson(found[1], int(list(run.tests.values())[-1]["count"]))
    return f"{percent(found[1])} ({percent(low, 1)} to {percent(high, 1)})"


def headline(run: Run) -> str:
    """The run in one sentence.

    Args:
        run: any.
    """
    what = f"{_article(run.task)} {run.task}: {network_of(run)}."
    found = score_of(run)
    if found is None:
        done = len(run.epochs)
        return f"{what} It has not ended: {counted(done, 'epoch')} {'is' if done == 1 else 'are'} there."
    result = f"{found[0][0].upper()}{found[0][1:]}: {score_text(run)}"
    best = run.final.get("best_epoch")
    if run.told.get("training", {}).get("exact"):
        return f"{what} {result}; it was learnt as an exact automaton of its examples."
    return f"{what} {result}" + (f", best after epoch {best} of {len(run.epochs)}." if best is not None else ".")


def overview(run: Run) -> Section:
    """What the run is, the numbers worth a glance, and how it was made.

    Args:
        run: any.
    """
    figures = []
    if (found := score_of(run)) is not None:
        whole = score_text(run)
        value, _, note = whole.partition(" (")
        figures.append(KeyFigure(value=value, label=found[0], note=note.rstrip(")")))
    if run.final.get("best_epoch") is not None:
        figures.append(KeyFigure(value=str(run.final["best_epoch"]), label=f"best epoch of {len(run.epochs)}"))
    elif run.told.get("training", {}).get("steps_taken") is not None:
        figures.append(KeyFigure(value=f"{run.told['training']['steps_taken']:,}", label="steps of learning"))
    parameters = sum(each.numel() for each in run.model.parameters())
    figures.append(KeyFigure(value=f"{parameters:,}", label="parameters"))
    if run.final.get("seconds") is not None:
        figures.append(KeyFigure(value=f"{shown(run.final['seconds'], digits=3)} s", label="of training"))
    parts: list[Part] = [KeyFigures(figures)]
    if run.sources is not None:
        parts.append(Terminal(run.sources.command(run)))
        if going_on := run.sources.resume(run):
            parts.append(Note(kind="remark", words="It goes on from where it is with:", command=going_on))
    return Section("What it is", parts, prose=headline(run))


def _article(word: str) -> str:
    return "An" if word[:1] in "aeiou" else "A"
