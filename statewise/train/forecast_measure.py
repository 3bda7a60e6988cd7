"""What is asked of a forecaster, and how well it answers: likelihood, errors beside the last value's, calibration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.heads import Normal
from statewise.models import Forecaster
from statewise.models.views import view_of
from statewise.train.classify_data import EpochBatches
from statewise.train.forecast_data import NextSteps
from statewise.train.tasks import Outcome, Task

BINS = 10
#: How far from the mean a normal law has half of its mass, and nine tenths of it, in deviations.
_WITHIN = tuple(float(torch.special.ndtri(torch.tensor(0.5 + share / 2, dtype=torch.float64))) for share in (0.5, 0.9))


class FeatureErrors(NamedTuple):
    """Errors of a feature in its own units, and those of who answers with the last value.

    Attributes:
        rmse: the root of the mean squared error.
        mae: the mean absolute error.
        last_rmse: the same of the last value.
        last_mae: likewise.
    """

    rmse: float
    mae: float
    last_rmse: float
    last_mae: float


@dataclass(frozen=True)
class ForecastMeasured(Outcome):
    """How well a forecaster foretells the next steps of a set.

    Attributes:
        loss: the mean negative log-likelihood of a number, in nats and standardised units.
        error: the mean squared error, in standardised units.
        count: how many numbers were foretold.
        mae: the mean absolute error, in standardised units.
        last_error: the mean squared error of the last value as the forecast.
        last_mae: the mean absolute error of the same.
        within_50: the share of numbers within the middle half of their laws; 0.5 for a calibrated one.
        within_90: the share within the middle nine tenths.
        pit: the share of numbers in each tenth of their laws, from the lowest; 0.1 each for a calibrated one.
        features: errors of each feature in its own units.
    """

    mae: float
    last_error: float
    last_mae: float
    within_50: float
    within_90: float
    pit: tuple[float, ...]
    features: tuple[FeatureErrors, ...]

    def __str__(self) -> str:
        return (
            f"loss {self.loss:.4f}, RMSE {self.rmse:.4f} (last value {math.sqrt(self.last_error):.4f}), "
            f"within 50 %: {100 * self.within_50:.1f} %, within 90 %: {100 * self.within_90:.1f} %"
        )

    @property
    def rmse(self) -> float:
        """The root of the mean squared error, in standardised units."""
        return math.sqrt(self.error)

    @property
    def skill(self) -> float:
        """How much of the last value's squared error is taken away: 1 for no error, 0 for no better than it."""
        return 1 - self.error / self.last_error if self.last_error else 0.0

    def record(self) -> dict[str, Any]:
        """As strict JSON can hold it."""
        return {**vars(self), "pit": list(self.pit), "features": [each._asdict() for each in self.features]}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> ForecastMeasured:
        """What :meth:`record` gave."""
        rows = (each.values() if isinstance(each, Mapping) else each for each in record["features"])
        features = tuple(FeatureErrors(*row) for row in rows)
        return cls(**{**record, "loss": float(record["loss"]), "pit": tuple(record["pit"]), "features": features})


class ForecastTask(Task):
    """What is asked of a forecaster: the law of each next step; the best has the smallest loss."""

    def loss(  # type: ignore[override]
        self, laws: Normal, targets: Float[Tensor, "batch steps features"]
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """The mean negative log-likelihood of a number, and the sum of squared errors.

        Args:
            laws: of the next steps, in standardised units.
            targets: those steps; NaN where there is none.
        """
        inside = ~targets.isnan().any(2)
        observed = torch.where(inside.unsqueeze(2), targets, laws.mean.detach())
        summed = torch.where(inside, laws.log_prob(observed), 0.0).sum()
        squared = (observed - laws.mean.detach()).square().sum()
        return -summed / (inside.sum() * targets.shape[2]), squared


FORECASTS = ForecastTask("forecaster", by_loss=True)


def measure_forecasts(model: Forecaster, examples: NextSteps, *, batch: int, hard: bool = False) -> ForecastMeasured:
    """How well a forecaster does on a set, with everything random switched off.

    Args:
        model: the forecaster, on the device of the examples.
        examples: the set.
        batch: how many sequences run at once.
        hard: move to the nearest centroid at each step.
    """
    seen = view_of(model)
    if hard:
        seen.retune(transition="argmax")
    seen.eval()
    sums = _Sums(model.features or 0, examples.device)
    batches = EpochBatches.sorted(examples.lengths, batch=batch)
    rows = torch.from_numpy(batches.places).to(examples.device)
    with torch.no_grad():
        for part in batches.slices():
            inputs, lengths, targets, _ = examples.batch(rows[part], batches.places[part])
            inside = ~targets.isnan().any(2)
            laws = Normal(*(each.double()[inside] for each in seen(inputs, lengths)))
            sums.add(laws, targets.double()[inside], seen.standardised(inputs).double()[inside])
    return sums.measured(model.scale_deviation.double())


class _Sums:
    """What is summed over all steps, for each feature, in float64."""

    def __init__(self, features: int, device: torch.device) -> None:
        self.steps = 0
        # Of negative log-likelihoods, squared and absolute errors, those of the last value, and what lies within.
        self.sums = torch.zeros(7, features, dtype=torch.float64, device=device)
        self.bins = torch.zeros(BINS, dtype=torch.float64, device=device)

    def add(self, laws: Normal, observed: Tensor, last: Tensor) -> None:
        """Some steps, (steps, features)."""
        off, behind = observed - laws.mean, observed - last
        apart = (off / laws.deviation).abs()
        nll = apart.square() / 2 + laws.deviation.log() + math.log(2 * math.pi) / 2
        parts = (nll, off.square(), off.abs(), behind.square(), behind.abs(), *(apart <= each for each in _WITHIN))
        self.sums += torch.stack([part.double().sum(0) for part in parts])
        places = (laws.cdf(observed) * BINS).long().clamp_(0, BINS - 1).flatten()
        self.bins += torch.bincount(places, minlength=BINS)
        self.steps += len(observed)

    def measured(self, units: Tensor) -> ForecastMeasured:
        """All of it, with the errors of each feature in its units."""
        count = self.steps * self.sums.shape[1]
        loss, error, mae, last_error, last_mae, half, most = (self.sums.sum(1) / count).tolist()
        own = self.sums[1:5] / self.steps
        by_feature = zip(own[0].sqrt() * units, own[1] * units, own[2].sqrt() * units, own[3] * units, strict=True)
        features = tuple(FeatureErrors(*(float(number) for number in numbers)) for numbers in by_feature)
        pit = tuple((self.bins / count).tolist())
        return ForecastMeasured(loss, error, count, mae, last_error, last_mae, half, most, pit, features)
