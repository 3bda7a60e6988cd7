"""The classes of numeric sequences, or how they go on, as lines to print or to write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import torch

from statewise.commands.predict_classes import DIGITS
from statewise.commands.series_run import read_like
from statewise.errors import ArgumentError
from statewise.models import Paths
from statewise.models.views import resting_view
from statewise.train import load_classifier, load_forecaster
from statewise.train.classify_data import EpochBatches

BATCH = 256  # sequences that run at once
SAMPLES = 500  # ways to go on
LOW, HIGH = 0.05, 0.95
HEAD = ("sequence", "step", "feature", "mean", "deviation", "q05", "q95")


def predict_series(asked: Any, *, device: torch.device) -> Iterator[str]:
    """A line for each sequence of a file, in its order: its name, its class, and how probable that is.

    Args:
        asked: the options.
        device: where to compute.
    """
    model, told = load_classifier(asked.run, device=device)
    classes = told["examples"]["classes"]
    series = read_like(told, asked, asked.file, labels=False)
    shares = torch.empty(len(series), len(classes), dtype=torch.float64)
    batches, resting = EpochBatches.sorted(series.lengths, batch=BATCH), resting_view(model)
    with torch.no_grad():
        for part in batches.slices():
            places = batches.places[part]
            values, lengths, _ = series.padded(places)
            shares[torch.from_numpy(places)] = resting(values.to(device), lengths).double().softmax(1).cpu()
    for at, row in enumerate(shares.tolist()):
        best = max(range(len(row)), key=row.__getitem__)
        if asked.format == "jsonl":
            found: dict[str, Any] = {"sequence": series.name(at), "class": classes[best]}
            found["probability"] = round(row[best], DIGITS)
            if asked.probabilities:
                found["probabilities"] = {name: round(one, DIGITS) for name, one in zip(classes, row, strict=True)}
            yield json.dumps(found, ensure_ascii=False) + "\n"
        else:
            numbers = row if asked.probabilities else [row[best]]
            said = "\t".join(f"{number:.{DIGITS}f}" for number in numbers)
            yield f"{series.name(at)}\t{classes[best]}\t{said}\n"


def predict_next(asked: Any, *, device: torch.device) -> Iterator[str]:
    """How each sequence of a file goes on: mean, deviation and two quantiles of each feature at each step.

    The law of the first step is exact; those of later ones are of sampled ways to go on.

    Args:
        asked: the options.
        device: where to compute.
    """
    options = {"steps": 1 if asked.steps is None else asked.steps}
    options["samples"] = SAMPLES if asked.samples is None else asked.samples
    for name, value in options.items():
        if value < 1:
            raise ArgumentError(where=f"--{name}", got=value, wanted="a whole number of at least 1")
    model, told = load_forecaster(asked.run, device=device)
    series = read_like(told, asked, asked.file, labels=False)
    draws = torch.Generator().manual_seed(asked.seed or 0)
    if asked.format == "columns":
        yield "\t".join(HEAD) + "\n"
    for at in range(len(series)):
        values = torch.tensor(series.sequence(at), device=device)
        rows = list(_rows(model.forecast(values, generator=draws, **options), series.features))
        if asked.format == "jsonl":
            yield json.dumps({"sequence": series.name(at), "next": rows}, ensure_ascii=False) + "\n"
            continue
        for row in rows:
            numbers = "\t".join(f"{row[name]:.6g}" for name in HEAD[3:])
            yield f"{series.name(at)}\t{row['step']}\t{row['feature']}\t{numbers}\n"


def _rows(paths: Paths, features: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    found = torch.stack((paths.mean, paths.deviation, paths.quantile(LOW), paths.quantile(HIGH)), dim=2)
    for step, row in enumerate(found.tolist(), start=1):
        for feature, numbers in zip(features, row, strict=True):
            rounded = (float(f"{number:.6g}") for number in numbers)
            yield {"step": step, "feature": feature, **dict(zip(HEAD[3:], rounded, strict=True))}
