"""Whether a network is right as often as it says: calibration errors, Brier score and log-likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from statewise.analysis.groups import IGNORED, check_rows, checked_labels, table
from statewise.errors import ArgumentError, LengthError, ShapeError

WAYS = ("width", "mass")
BINS = 15  # of Guo et al. 2017
ROUNDED, HALF = 1e-3, 3e-2  # how far the sum of a row may be from 1: of a few printed digits, of 16-bit numbers

Numbers = Float[np.ndarray, " bins"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """How far the probabilities of a network can be believed; it prints as a table.

    A prediction's confidence is its largest probability. Predictions are put into bins by it.

    Args:
        count: how many predictions there were.
        ece: the expected calibration error, ``sum n_b / n |accuracy_b - confidence_b|``.
        mce: the largest ``|accuracy_b - confidence_b|`` of a bin.
        brier: the mean of ``sum_k (p_k - [y = k])^2``, from 0 to 2.
        nll: the mean of ``-log p_y``, in nats.
        accuracy: the share of predictions whose likeliest class is right.
        mean_confidence: the mean of the largest probability.
        edges: of the bins, one more than there are bins.
        counts: predictions in each bin.
        confidences: the mean confidence in each bin; NaN where it is empty.
        accuracies: the share of right predictions in each bin; NaN where it is empty.
    """

    count: int
    ece: float
    mce: float
    brier: float
    nll: float
    accuracy: float
    mean_confidence: float
    edges: Float[np.ndarray, " edges"]
    counts: Int[np.ndarray, " bins"]
    confidences: Numbers
    accuracies: Numbers

    @property
    def overconfidence(self) -> float:
        """By how much the mean confidence lies above the accuracy; negative for a network that is too modest."""
        return self.mean_confidence - self.accuracy

    def __str__(self) -> str:
        names = ("accuracy", "mean_confidence", "ece", "mce", "brier", "nll")
        rows = [["predictions", f"{self.count:,}"]]
        rows += [[name.replace("_", " "), f"{getattr(self, name):.4f}"] for name in names]
        bins = [
            [f"{low:.3f} to {high:.3f}", f"{count:,}", f"{confidence:.4f}", f"{accuracy:.4f}"]
            for low, high, count, confidence, accuracy in zip(
                self.edges[:-1], self.edges[1:], self.counts, self.confidences, self.accuracies, strict=True
            )
            if count
        ]
        whole = "\n".join(f"{name:16} {value}" for name, value in rows)
        return f"{whole}\n\n{table(['confidence', 'predictions', 'mean', 'accuracy'], bins)}"


class CalibrationTally:
    """Calibration over many batches, of which only a confidence and a hit or miss are kept for each prediction.

    Args:
        bins: how many.
        equal: "width" for bins of equal width over [0, 1], closed above; "mass" for bins of about as many predictions
            each, where equal confidences stay together.

    >>> import torch
    >>> tally = CalibrationTally()
    >>> for _ in range(2):
    ...     tally.add(torch.tensor([[0.9, 0.1], [0.4, 0.6]]), torch.tensor([0, 0]))
    >>> found = tally.result()
    >>> found.count, round(found.accuracy, 3), round(found.ece, 3)
    (4, 0.5, 0.35)
    """

    def __init__(self, *, bins: int = BINS, equal: str = "width") -> None:
        if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
            raise ArgumentError(where="calibration.bins", got=bins, wanted="a whole number of at least 1")
        if equal not in WAYS:
            raise ArgumentError(where="calibration.equal", got=equal, wanted="'width' or 'mass'")
        self._bins, self._equal = bins, equal
        self._confidences: list[Float[np.ndarray, " rows"]] = []
        self._hits: list[Bool[np.ndarray, " rows"]] = []
        self._nll = self._brier = 0.0

    def add(self, probabilities: Float[Tensor, "rows classes"], labels: Int[Tensor, " rows"]) -> None:
        """Take in a batch.

        Args:
            probabilities: of the classes, or their logarithms, a row for each prediction.
            labels: the true classes; -100 for rows to leave out.
        """
        log_probabilities, known = checked_predictions(probabilities, labels)
        shares = np.exp(log_probabilities)
        truth = log_probabilities[np.arange(len(known)), known]
        self._confidences.append(shares.max(1, initial=0.0))
        self._hits.append(log_probabilities.argmax(1) == known)
        self._nll -= float(truth.sum())
        self._brier += float((np.square(shares).sum(1) - 2 * np.exp(truth) + 1).sum())

    def result(self) -> Calibration:
        """The calibration of everything so far."""
        confidences = np.concatenate([np.zeros(0), *self._confidences])
        hits = np.concatenate([np.zeros(0, dtype=bool), *self._hits])
        count = len(hits)
        if not count:
            raise LengthError(where="calibration", got="no predictions", wanted="at least one")
        edges, places = (_by_width if self._equal == "width" else _by_mass)(confidences, self._bins)
        counts = np.bincount(places, minlength=self._bins)
        some = np.where(counts > 0, counts, np.nan)
        means = np.bincount(places, confidences, minlength=self._bins) / some
        rights = np.bincount(places, hits, minlength=self._bins) / some
        gaps = np.abs(rights - means)
        return Calibration(
            count=count,
            ece=float(np.nansum(gaps * counts) / count),
            mce=float(np.nanmax(gaps)),
            brier=self._brier / count,
            nll=self._nll / count,
            accuracy=float(hits.mean()),
            mean_confidence=float(confidences.mean()),
            edges=edges,
            counts=counts,
            confidences=means,
            accuracies=rights,
        )


def calibration(
    probabilities: Float[Tensor, "rows classes"],
    labels: Int[Tensor, " rows"],
    *,
    bins: int = BINS,
    equal: str = "width",
) -> Calibration:
    """Measure whether a network is right as often as it says, in double precision (Guo et al. 2017).

    Mixup caps the confidence on pure sequences, so that networks trained with it are less over-confident, and may be
    too modest where the task is easy; see :func:`fit_temperature`. For many batches there is
    :class:`CalibrationTally`.

    Args:
        probabilities: of the classes, or their logarithms, a row for each prediction.
        labels: the true classes; -100 for rows to leave out.
        bins: how many.
        equal: "width" or "mass", as in :class:`CalibrationTally`.

    >>> import torch
    >>> found = calibration(torch.tensor([[0.8, 0.2], [0.8, 0.2], [0.3, 0.7]]), torch.tensor([0, 1, 1]))
    >>> round(found.ece, 4), round(found.brier, 4)  # 2/3 |1/2 - 0.8| + 1/3 |1 - 0.7|
    (0.3, 0.5133)
    """
    tally = CalibrationTally(bins=bins, equal=equal)
    tally.add(probabilities, labels)
    return tally.result()


def checked_predictions(
    probabilities: Float[Tensor, "rows classes"], labels: Int[Tensor, " rows"]
) -> tuple[Float[np.ndarray, "known classes"], Int[np.ndarray, " known"]]:
    """Log-probabilities in double precision and their labels, without the rows that are left out.

    A row of probabilities has a positive entry, a row of their logarithms none: so both can be told apart.

    Args:
        probabilities: or their logarithms.
        labels: the true classes.
    """
    check_rows(probabilities, "calibration.probabilities")
    if len(probabilities) != len(labels):
        got, wanted = f"{len(labels)} labels", f"{len(probabilities)}, one a prediction"
        raise ShapeError(where="calibration.labels", got=got, wanted=wanted)
    known = checked_labels(labels, probabilities.shape[1], "calibration")
    kept = known != IGNORED
    rows = probabilities.detach().cpu().double().numpy()[kept]
    with np.errstate(divide="ignore", invalid="ignore"):  # log 0 is -inf, and what is negative is refused below
        logarithms = rows if (rows <= 0).all() else np.log(rows)
    off = ~(np.abs(np.exp(logarithms).sum(1) - 1) <= (ROUNDED if probabilities.element_size() >= 4 else HALF))
    if off.any():
        raise ArgumentError(
            where="calibration.probabilities",
            got=f"a row such as {[round(float(value), 4) for value in rows[off][0][:4]]}",
            wanted="rows of probabilities that sum to 1, or their logarithms",
            remedy="Of logits give logits.log_softmax(-1).",
        )
    return logarithms, known[kept]


def _by_width(
    confidences: Float[np.ndarray, " rows"], bins: int
) -> tuple[Float[np.ndarray, " edges"], Int[np.ndarray, " rows"]]:
    places = np.ceil(confidences * bins).astype(np.int64) - 1
    return np.linspace(0, 1, bins + 1), places.clip(0, bins - 1)


def _by_mass(
    confidences: Float[np.ndarray, " rows"], bins: int
) -> tuple[Float[np.ndarray, " edges"], Int[np.ndarray, " rows"]]:
    ordered = np.sort(confidences)
    inner = ordered[np.arange(1, bins) * len(ordered) // bins]
    # By value, not by rank: else the bins of equal confidences would depend on the order of the predictions.
    return np.concatenate([ordered[:1], inner, ordered[-1:]]), np.searchsorted(inner, confidences, side="right")
