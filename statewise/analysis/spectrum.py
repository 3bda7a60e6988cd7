"""Spectral compression: the singular values of the states of each class (Karamzade et al. 2020, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from statewise.analysis.groups import class_names, rows_by_class, table
from statewise.analysis.ranks import effective_rank, participation_ratio, stable_rank
from statewise.errors import ArgumentError

NORMALIZATIONS = (None, "sqrt_n", "sum")
WAYS = tuple((center, normalize) for center in (True, False) for normalize in NORMALIZATIONS)
COUNT = 20  # of Figure 5

Numbers = Float[np.ndarray, " classes"]


@dataclass(frozen=True, kw_only=True, eq=False)
class SingularValues:
    """The largest singular values of each class's states.

    Args:
        classes: their names.
        values: of each, in falling order and normalized; fewer have zeros at the end.
        center: whether the mean of the class was subtracted.
        normalize: by what the values were divided; see :func:`spectrum`.
    """

    classes: tuple[str, ...]
    values: Float[np.ndarray, "classes count"]
    center: bool
    normalize: str | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Spectrum(SingularValues):
    """The singular values of each class's states, and how many dimensions these need; it prints as a table.

    A class without states has NaN everywhere; one whose states are all the same has zeros.

    Args:
        classes: their names.
        counts: how many states each has.
        values: as of :class:`SingularValues`.
        effective_ranks: see :func:`effective_rank`; of all singular values, not of the largest only.
        participation_ratios: see :func:`participation_ratio`.
        stable_ranks: see :func:`stable_rank`.
        variances: the mean squared distance of a class's states from their mean, whatever ``center`` is.
        center: whether the mean of the class was subtracted.
        normalize: by what the values were divided.
    """

    counts: Int[np.ndarray, " classes"]
    effective_ranks: Numbers
    participation_ratios: Numbers
    stable_ranks: Numbers
    variances: Numbers

    @property
    def mean_values(self) -> Float[np.ndarray, " count"]:
        """The singular values averaged over the classes that have states, each class alike."""
        found: Float[np.ndarray, " count"] = self.values[self.counts > 0].mean(0)
        return found

    def mean(self, numbers: Numbers) -> float:
        """Numbers of the classes averaged over those that have states, each class alike.

        Args:
            numbers: such as ``spectrum.variances``.
        """
        return float(numbers[self.counts > 0].mean())

    def __str__(self) -> str:
        shown = [place for place in (0, 4, 19) if place < self.values.shape[1]]
        columns = ["class", "states", *(f"sigma_{place + 1}" for place in shown)]
        columns += ["effective rank", "participation", "stable rank", "variance"]
        means = (self.effective_ranks, self.participation_ratios, self.stable_ranks, self.variances)
        rows = [
            [name, str(self.counts[row]), *_texts(self.values[row, shown]), *_texts([of[row] for of in means])]
            for row, name in enumerate(self.classes)
        ]
        rows.append(
            ["mean", str(self.counts.sum()), *_texts(self.mean_values[shown]), *_texts([self.mean(of) for of in means])]
        )
        return table(columns, rows)


def spectrum(
    states: Float[Tensor, "rows hidden"],
    labels: Int[Tensor, " rows"],
    *,
    classes: int | Sequence[str],
    center: bool = True,
    normalize: str | None = None,
    count: int = COUNT,
) -> Spectrum:
    """Measure how many dimensions the states of each class need (Karamzade et al. 2020, section 4.2 and Figure 5).

    The rows with label k are the matrix ``Z_k``; its singular values are computed in double precision. The paper does
    not say whether its rows are centred or its values normalized: the claim is about affine sets, hence the centre.
    Measure in eval mode, on unmixed sequences.

    Args:
        states: of the steps of all sequences, a row each.
        labels: their classes; -100 for padding, which is left out.
        classes: how many there are, or their names.
        center: whether to subtract the mean of each class.
        normalize: None for the values as they are; "sqrt_n" divides them by the root of the class's states, so that
            their squares are variances; "sum" by their sum, so that only their shape is left.
        count: how many of the values are kept.

    >>> import torch
    >>> states = torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> found = spectrum(states, torch.zeros(4, dtype=torch.long), classes=1)
    >>> (found.values**2).round(6)
    array([[18.,  2.]])
    >>> print(found)
    class  states  sigma_1  effective rank  participation  stable rank  variance
    0           4    4.243           1.384           1.22        1.111         5
    mean        4    4.243           1.384           1.22        1.111         5
    """
    if normalize not in NORMALIZATIONS:
        raise ArgumentError(where="spectrum.normalize", got=normalize, wanted="None, 'sqrt_n' or 'sum'")
    if count < 1:
        raise ArgumentError(where="spectrum.count", got=count, wanted="a number >= 1")
    names = class_names(classes, "spectrum")
    groups = rows_by_class(states, labels, len(names), "spectrum")
    if not any(map(len, groups)):
        raise ArgumentError(where="spectrum.states", got="none", wanted="states of at least one class")
    values = [_singular_values(rows, center=center) for rows in groups]
    kept = min(count, states.shape[1])
    normalized = [_normalized(each, len(rows), normalize) for each, rows in zip(values, groups, strict=True)]
    ranks = [[of(each) for each in values] for of in (effective_rank, participation_ratio, stable_rank)]
    variances = [float(rows.var(0).sum()) if len(rows) else np.nan for rows in groups]
    counts = np.array([len(rows) for rows in groups])
    effective, participation, stable = (np.where(counts > 0, np.array(each), np.nan) for each in ranks)
    return Spectrum(
        classes=names,
        counts=counts,
        values=np.stack([_padded(each, kept, empty=not n) for each, n in zip(normalized, counts, strict=True)]),
        effective_ranks=effective,
        participation_ratios=participation,
        stable_ranks=stable,
        variances=np.array(variances),
        center=center,
        normalize=normalize,
    )


def every_spectrum(
    states: Float[Tensor, "rows hidden"],
    labels: Int[Tensor, " rows"],
    *,
    classes: int | Sequence[str],
    count: int = COUNT,
) -> tuple[Spectrum, ...]:
    """The spectra with and without the centre, in all three normalizations: what Figure 5 may have meant.

    Args:
        states: as :func:`spectrum` takes them.
        labels: their classes.
        classes: how many there are, or their names.
        count: how many of the values are kept.

    >>> import torch
    >>> found = every_spectrum(torch.eye(3), torch.tensor([0, 0, 1]), classes=2)
    >>> [(each.center, each.normalize) for each in found][:4]
    [(True, None), (True, 'sqrt_n'), (True, 'sum'), (False, None)]
    """
    return tuple(
        spectrum(states, labels, classes=classes, center=center, normalize=normalize, count=count)
        for center, normalize in WAYS
    )


def _singular_values(rows: Float[np.ndarray, "rows hidden"], *, center: bool) -> Float[np.ndarray, " values"]:
    if not len(rows):
        return np.zeros(0)
    values = np.linalg.svd(rows - rows.mean(0) if center else rows, compute_uv=False)
    # What the rounding of the mean leaves of states that are all the same is not a dimension.
    rounding = max(rows.shape) * np.finfo(np.float64).eps * np.abs(rows).max()
    return np.where(values > rounding, values, 0.0)


def _normalized(values: Float[np.ndarray, " values"], rows: int, by: str | None) -> Float[np.ndarray, " values"]:
    divisor = {None: 1.0, "sqrt_n": rows**0.5, "sum": values.sum()}[by]
    return values / divisor if divisor > 0 else values


def _padded(values: Float[np.ndarray, " values"], count: int, *, empty: bool) -> Float[np.ndarray, " count"]:
    kept = values[:count]
    return np.full(count, np.nan) if empty else np.pad(kept, (0, count - len(kept)))


def _texts(numbers: Sequence[float] | Float[np.ndarray, " numbers"]) -> list[str]:
    return ["-" if np.isnan(number) else f"{number:.4g}" for number in numbers]
