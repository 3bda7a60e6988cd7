"""Sequences of numbers whose next values are predicted, tested by squared errors and by likelihoods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from statewise.data import Scale, Series, read_series, sample_seasons, write_series
from statewise.errors import DataError
from statewise.heads import Normal
from statewise.lineup.adaptor import PARTS, Adaptor, Metric, Tested, Told, Trained, parameters_of, seconds_of
from statewise.lineup.classifying import CONSTANT, MODEL, TRAINING
from statewise.lineup.series import READINGS, contents, read
from statewise.lineup.splits import SHARES, enough_groups, grouped_split
from statewise.models import ForecastConfig, Forecaster
from statewise.train import ClassifierSettings, load_forecaster, train_forecaster
from statewise.train.classify_data import EpochBatches
from statewise.train.forecast_data import NextSteps

WINDOW = 100  # steps, through which gradients flow
_BATCH = 256


def _log_rmse(sums: Float[np.ndarray, "*any columns"]) -> Float[np.ndarray, "*any"]:
    return np.asarray(0.5 * np.log(np.maximum(sums[..., 1] / sums[..., 0], 1e-300)))


def _mean_nll(sums: Float[np.ndarray, "*any columns"]) -> Float[np.ndarray, "*any"]:
    return np.asarray(sums[..., 2] / sums[..., 0])


class Forecasting(Adaptor):
    """Sequences of numbers, of which whole ones are held back; where they are few, what comes last of each."""

    kind, ending, unit = "forecast", "csv", "windows of steps"
    readings = READINGS

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return (Metric("RMSE", _log_rmse, higher=False, logarithmic=True), Metric("NLL", _mean_nll, higher=False))

    def prepare(self, files: Mapping[str, Path], sample: str | None, told: Told, folder: Path) -> dict[str, Any]:
        if sample is not None:
            sets = {"train": sample_seasons(seed=told.seed)}
        else:
            sets = {"train": read(files["train"], told, labels=False)}
            like = {"features": sets["train"].features}
            sets |= {part: read(files[part], told, labels=False, **like) for part in files if part != "train"}
        missing = [part for part in PARTS if part not in sets]
        where = str(files.get("train", sample))
        sets |= _divided(sets["train"], missing, told.seed, where) if missing else {}
        for part in PARTS:
            long = sets[part].unlabelled().longer_than(1)
            if not len(long):
                raise DataError(
                    where=str(files.get(part, where)),
                    got=f"no two steps in a row for {part}",
                    wanted="sequences of which one step is read and the next foretold",
                    remedy="Get longer sequences, or more of them; or name files of your own: --valid and --test.",
                )
            # Windows of one sequence have its name, and would be read as one again.
            sets[part] = replace(long.windows(WINDOW), names=())
            write_series(folder / f"{part}.{self.ending}", sets[part])
        sizes = {f"{part} windows": len(sets[part]) for part in PARTS}
        kinds = {"features": len(sets["train"].features)}
        return {"sizes": {**sizes, **kinds}, "reading": {"target": "next", "window": 0}}

    def load(self, folder: Path, reading: Mapping[str, Any]) -> dict[str, Series]:
        files = {part: folder / f"{part}.{self.ending}" for part in PARTS}
        return {part: read_series(path, form="long", labels=False) for part, path in files.items()}

    def plain(self, told: Told) -> tuple[ForecastConfig, ClassifierSettings]:
        settings = ClassifierSettings(**{**TRAINING, **told.training, **CONSTANT})
        return ForecastConfig(**{**MODEL, **told.model}), settings

    def train(
        self, sets: Any, config: Any, settings: Any, folder: Path, source: Mapping[str, Any], device: torch.device
    ) -> Trained:
        options: dict[str, Any] = {"device": device, "resume": True, "source": source}
        parts = sets["train"], sets["valid"], {"test": sets["test"]}
        result = train_forecaster(config, settings, *parts, folder, **options)
        valid = result.valid
        return Trained(math.log(max(valid.rmse, 1e-150)), valid.loss, result.epochs, seconds_of(folder))

    def test(self, sets: Any, folder: Path, device: torch.device) -> Tested:
        model, _ = load_forecaster(folder, device=device)
        return Tested(_rows(model, sets["test"], sets["train"].scale(), device), parameters_of(model))


def _rows(model: Forecaster, series: Series, scale: Scale, device: torch.device) -> Float[np.ndarray, "units columns"]:
    """Of each window the numbers that were foretold, squared errors and negative log-likelihoods, standardised."""
    examples = NextSteps(series, device, scale, where="test")
    batches = EpochBatches.sorted(examples.lengths, batch=_BATCH)
    rows = torch.from_numpy(batches.places).to(device)
    found = np.zeros((len(examples), 3))
    with torch.no_grad():
        for part in batches.slices():
            inputs, lengths, targets, _ = examples.batch(rows[part], batches.places[part])
            inside = ~targets.isnan().any(2)
            laws = Normal(*(each.double() for each in model(inputs, lengths)))
            observed = torch.where(inside.unsqueeze(2), targets.double(), laws.mean)
            squared = (observed - laws.mean).square().sum(2)
            nll = torch.where(inside, -laws.log_prob(observed), 0.0)
            counted = inside.double() * targets.shape[2]
            columns = [each.sum(1) for each in (counted, squared, nll)]
            found[batches.places[part]] = torch.stack(columns, dim=1).cpu().numpy()
    return found


def _divided(whole: Series, missing: list[str], seed: int, where: str) -> dict[str, Series]:
    """Whole sequences where there are many; of few the beginning of each to train on, and what comes later to test."""
    parts = ("train", *missing)
    if len(whole) >= enough_groups(parts):
        none: list[frozenset[str]] = [frozenset()] * len(whole)
        divided = grouped_split(contents(whole), [""] * len(whole), none, parts=parts, seed=seed, where=where)
        return {part: whole.select(places) for part, places in divided.items()}
    total = sum(SHARES[part] for part in parts)
    first, rest = whole.split_steps(SHARES["train"] / total)
    later = rest.split_steps(0.5) if len(missing) == 2 else (rest,)
    return dict(zip(parts, (first, *later), strict=True))
