"""A forecaster from beginning to end: train, validate, keep the best, test; killed at any moment, it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from statewise.data import Series
from statewise.errors import ArgumentError
from statewise.models import ForecastConfig, Forecaster
from statewise.train.classify import check_like
from statewise.train.classify_folder import about_examples
from statewise.train.classify_settings import ClassifierSettings
from statewise.train.forecast_folder import scale_of
from statewise.train.forecast_measure import FORECASTS
from statewise.train.forecast_run import ForecastResult, ForecastRun


def train_forecaster(
    config: ForecastConfig,
    settings: ClassifierSettings,
    train: Series,
    valid: Series,
    tests: Mapping[str, Series],
    folder: Path | str,
    **options: Any,
) -> ForecastResult:
    """Train a forecaster of the next step in a folder of its own, validate it after every epoch, and test the best.

    The best has the smallest loss on the validation set: the mean negative log-likelihood of a number, standardised by
    the training set. Gradients flow through whole sequences: cut long ones by :meth:`Series.windows`. Killed at any
    moment it goes on with ``resume=True``, and on a CPU ends with the same bits as a run that was not.

    Args:
        config: the model.
        settings: how it is trained.
        train: sequences of 2 steps or more; labels are not looked at.
        valid: what chooses the best.
        tests: sets on which the best is tested, by name.
        folder: where the run is kept: see :class:`RunFolder`; beside its files lie features and scale.
        **options: as for :func:`train_classifier`.

    >>> import tempfile
    >>> from statewise.data import sample_seasons
    >>> data = sample_seasons(12, steps=30)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     result = train_forecaster(
    ...         ForecastConfig(hidden=8), ClassifierSettings(epochs=2), data, data, {}, Path(place) / "run"
    ...     )
    >>> result.epochs, result.valid.count
    (2, 696)
    """
    if settings.mixup != "none":
        raise ArgumentError(
            where="ClassifierSettings.mixup",
            got=f'"{settings.mixup}" for a forecaster',
            wanted='"none": it has no labels that could be mixed',
            remedy="Noise, dropout and zoneout are for forecasters too: see ForecastConfig.",
        )
    train, valid = train.unlabelled(), valid.unlabelled()
    sets = {name: each.unlabelled() for name, each in tests.items()}
    for name, examples in {"train": train, "valid": valid, **sets}.items():
        check_like(train, examples, name)
    about = about_examples(train)

    def build(generator: torch.Generator) -> Forecaster:
        return config.build(**scale_of(about), generator=generator)

    result: ForecastResult = ForecastRun(FORECASTS, config, settings, build, about)(
        train, valid, sets, folder, **options
    )
    return result
