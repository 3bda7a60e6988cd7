"""Head leakage: how much of what varies within a class the read-out can see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from statewise.analysis.groups import class_names, rows_by_class, table
from statewise.errors import DtypeError, NonFiniteError, ShapeError


@dataclass(frozen=True, kw_only=True, eq=False)
class Leakage:
    """The share of each class's variation that lies in the span of the read-out; it prints as a table.

    Args:
        classes: their names.
        counts: how many states each has.
        shares: from 0 to 1; NaN for a class whose states do not vary, or that has none.
        dimensions: of the span, at most one less than there are classes.
    """

    classes: tuple[str, ...]
    counts: Int[np.ndarray, " classes"]
    shares: Float[np.ndarray, " classes"]
    dimensions: int

    @property
    def mean(self) -> float:
        """Over the classes that vary, each alike; NaN if none does."""
        known = self.shares[~np.isnan(self.shares)]
        return float(known.mean()) if len(known) else float("nan")

    def __str__(self) -> str:
        lines = [*zip(self.classes, self.counts, self.shares, strict=True), ("mean", self.counts.sum(), self.mean)]
        rows = [[name, str(count), "-" if np.isnan(share) else f"{share:.4g}"] for name, count, share in lines]
        return table(["class", "states", "head leakage"], rows)


def head_leakage(
    states: Float[Tensor, "rows hidden"],
    labels: Int[Tensor, " rows"],
    weight: Float[Tensor, "classes hidden"],
    *,
    classes: Sequence[str] | None = None,
) -> Leakage:
    """Measure how much of the variation within a class reaches the logits.

    ``|(Z_k - mean) U|^2 / |Z_k - mean|^2`` in Frobenius norms, where U is an orthonormal basis of the span of the
    read-out's weights after their mean over the classes is subtracted: that mean moves all logits alike, so no
    probability sees it. A linear head that is right on every mixture of states of two sequences needs all states of a
    class at the same logits: the theory of pre-output mixup, put right, says that this share goes to 0 (Karamzade et
    al. 2020, Theorem 3).

    Args:
        states: of the steps of all sequences, a row each; in eval mode, on unmixed sequences.
        labels: their classes; -100 for padding, which is left out.
        weight: of the linear read-out, a row for each class.
        classes: their names, if they have some.

    >>> import torch
    >>> states, labels = torch.tensor([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, 3.0]]), torch.tensor([0, 0, 1, 1])
    >>> head_leakage(states, labels, torch.tensor([[1.0, 5.0], [-1.0, 5.0]])).shares  # logits differ along the first
    array([1., 0.])
    """
    if not isinstance(weight, Tensor):
        got, remedy = type(weight).__name__, "Of a torch.nn.Linear it is .weight."
        raise DtypeError(where="head_leakage.weight", got=got, wanted="a tensor, a row for each class", remedy=remedy)
    if len(weight) < 2:
        raise ShapeError(
            where="head_leakage.weight",
            got=f"{len(weight)} row",
            wanted="a row for each class",
            remedy="A single logit is that of class 1 beside a logit 0 of class 0: put a row of zeros before it.",
        )
    if weight.shape[1] != states.shape[1]:
        raise ShapeError(where="head_leakage.weight", got=tuple(weight.shape), wanted=f"{states.shape[1]} columns")
    names = class_names(len(weight) if classes is None else classes, "head_leakage")
    if len(names) != len(weight):
        raise ShapeError(where="head_leakage.classes", got=f"{len(names)} names", wanted=f"{len(weight)}, one a row")
    groups = rows_by_class(states, labels, len(names), "head_leakage")
    basis = read_out_basis(weight)
    return Leakage(
        classes=names,
        counts=np.array([len(rows) for rows in groups]),
        shares=np.array([_share(rows, basis) for rows in groups]),
        dimensions=basis.shape[1],
    )


def read_out_basis(weight: Float[Tensor, "classes hidden"]) -> Float[np.ndarray, "hidden dimensions"]:
    """An orthonormal basis of the directions along which a read-out tells classes apart.

    Args:
        weight: of the linear read-out, a row for each class.
    """
    rows = weight.detach().cpu().double().numpy()
    if not np.isfinite(rows).all():
        raise NonFiniteError(where="head_leakage.weight", got="NaN or infinity", wanted="finite weights")
    _, sizes, directions = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    rounding = max(rows.shape) * np.finfo(np.float64).eps * np.abs(rows).max(initial=0.0)
    basis: Float[np.ndarray, "hidden dimensions"] = directions[sizes > rounding].T
    return basis


def _share(rows: Float[np.ndarray, "rows hidden"], basis: Float[np.ndarray, "hidden dimensions"]) -> float:
    if not len(rows):
        return float("nan")
    centred = rows - rows.mean(0)
    rounding = max(rows.shape) * np.finfo(np.float64).eps * np.abs(rows).max()
    energy = np.square(centred).sum()
    if energy <= rounding**2:
        return float("nan")
    return min(1.0, float(np.square(centred @ basis).sum() / energy))  # rounding may add to a whole
