"""One temperature for all logits, so that the confidence fits the accuracy on data held out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from statewise.analysis.calibration import BINS, Calibration, calibration
from statewise.analysis.groups import IGNORED, check_rows, checked_labels
from statewise.errors import ArgumentError, LengthError, NonFiniteError, ShapeError

_STEPS = 200  # Newton's method needs about ten; bisection alone would need a hundred


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedTemperature:
    """A temperature, and what it does to the data on which it was fitted; it prints as a table.

    Args:
        temperature: by which to divide the logits; above 1 for a network that was over-confident.
        before: the calibration of the logits as they are.
        after: the calibration of the divided logits; accuracy and order of the classes are the same.
    """

    temperature: float
    before: Calibration
    after: Calibration

    def __str__(self) -> str:
        lines = [f"temperature      {self.temperature:.4g}"]
        for name in ("ece", "mce", "brier", "nll", "accuracy", "mean_confidence"):
            old, new = getattr(self.before, name), getattr(self.after, name)
            lines.append(f"{name.replace('_', ' '):16} {old:.4f} -> {new:.4f}")
        return "\n".join(lines)


def fit_temperature(
    logits: Float[Tensor, "rows classes"], labels: Int[Tensor, " rows"], *, bins: int = BINS, equal: str = "width"
) -> FittedTemperature:
    """Find the temperature T with the least negative log-likelihood of ``softmax(z / T)`` (Guo et al. 2017).

    The mean of ``logsumexp(beta z) - beta z_y`` is convex in ``beta = 1 / T``; its derivative is ``E_p[z] - z_y``, and
    its second ``Var_p[z]``, each averaged. Newton's method finds the root of the first, kept in a bracket by bisection.
    Fit it on data held out: not on the training set, nor on the test set.

    Args:
        logits: a row for each prediction; log-probabilities do as well.
        labels: the true classes; -100 for rows to leave out.
        bins: of both calibrations.
        equal: "width" or "mass", as in :func:`calibration`.

    >>> logits = torch.tensor([[4.0, 0.0]] * 4)  # 98 % sure
    >>> found = fit_temperature(logits, torch.tensor([0, 0, 0, 1]))  # right three times of four: log 3 is enough
    >>> round(4 / found.temperature, 6), round(found.after.ece, 6)
    (1.098612, 0.0)
    """
    check_rows(logits, "fit_temperature.logits")
    if len(logits) != len(labels):
        raise ShapeError(where="fit_temperature.labels", got=f"{len(labels)} labels", wanted=f"{len(logits)}")
    known = torch.from_numpy(checked_labels(labels, logits.shape[1], "fit_temperature")).long()
    kept = known != IGNORED
    scores, known = logits.detach().cpu()[kept].double(), known[kept]
    if not len(known):
        raise LengthError(where="fit_temperature", got="no predictions", wanted="at least one")
    if not bool(scores.isfinite().all()):
        raise NonFiniteError(where="fit_temperature.logits", got="NaN or infinity", wanted="finite logits")
    temperature = 1 / _inverse_temperature(scores, known)
    before, after = (
        calibration((scores / by).log_softmax(1), known, bins=bins, equal=equal) for by in (1.0, temperature)
    )
    return FittedTemperature(temperature=temperature, before=before, after=after)


def _inverse_temperature(scores: Float[Tensor, "rows classes"], labels: Int[Tensor, " rows"]) -> float:
    truth = scores.gather(1, labels[:, None])[:, 0]
    if bool((scores == scores[:, :1]).all()):
        raise _no_temperature("equal logits for all classes: every T is as good", "on which it is better than none")
    largest = scores.amax(1)
    if bool((truth == largest).all()):
        tied = bool(((scores == largest[:, None]).sum(1) > 1).any())
        right = (
            "every label's logit the largest of its row, some beside an equal one" if tied else "every prediction right"
        )
        raise _no_temperature(f"{right}: the likelihood grows as T goes to 0", "with errors in it")
    low, high, beta = 0.0, 1.0, 1.0
    if _slopes(scores, truth, low)[0] >= 0:
        raise _no_temperature("logits that are no better than none: the best T is infinite", "on which it is better")
    while _slopes(scores, truth, high)[0] <= 0:  # ends: at last the likeliest class is all, and it is not always right
        low, high = high, 2 * high
    for _ in range(_STEPS):
        slope, curvature = _slopes(scores, truth, beta)
        low, high = (beta, high) if slope <= 0 else (low, beta)
        step = beta - slope / curvature if curvature > 0 else low
        following = step if low < step < high else (low + high) / 2
        if abs(following - beta) <= 1e-14 * beta:
            break
        beta = following
    return beta


def _slopes(scores: Float[Tensor, "rows classes"], truth: Float[Tensor, " rows"], beta: float) -> tuple[float, float]:
    """The first and the second derivative of the mean negative log-likelihood by the inverse temperature."""
    shares = (beta * scores).softmax(1)
    mean = (shares * scores).sum(1, keepdim=True)
    variance = (shares * (scores - mean).square()).sum(1)
    return float((mean[:, 0] - truth).mean()), float(variance.mean())


def _no_temperature(got: str, wanted: str) -> ArgumentError:
    return ArgumentError(
        where="fit_temperature",
        got=got,
        wanted=f"held-out data {wanted}",
        remedy="Fit it on other data of the network, or on more.",
    )
