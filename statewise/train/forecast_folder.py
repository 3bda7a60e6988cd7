"""The best model in the folder of a forecaster's run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from statewise.models import ForecastConfig, Forecaster
from statewise.train.classify_folder import stored_run
from statewise.train.forecast_measure import FORECASTS
from statewise.train.run import RunFolder
from statewise.train.stored import as_written, filled


def load_forecaster(folder: Path | str, *, device: torch.device | str = "cpu") -> tuple[Forecaster, dict[str, Any]]:
    """The best model of a run, and what the run was told; under "examples" its features and their scale.

    Args:
        folder: of the run.
        device: where the model goes.
    """
    about, told, state, model = stored_run(folder, FORECASTS)
    run = RunFolder(folder)
    with as_written(run.config_path, "the settings of a forecaster"):
        config, sizes = ForecastConfig(**model), scale_of(about)
        built = filled(lambda: config.build(**sizes), state, layers=config.layers, path=run.model_path)
    return built.to(device).eval(), told


def scale_of(about: Mapping[str, Any]) -> dict[str, Any]:
    """What a forecaster of such examples is built with: how many features, and their scale.

    Args:
        about: what :func:`~statewise.train.classify_folder.about_examples` gave.
    """
    return {"features": len(about["features"]), "mean": about["mean"], "deviation": about["deviation"]}
