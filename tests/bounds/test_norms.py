"""Norms are upper bounds, whatever the matrix, and near the truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from statewise.bounds.logs import Floats
from statewise.bounds.norms import DECOMPOSED, spectral_norm

Make = Callable[[np.random.Generator, int, int], Floats]
SHAPES = ((1, 1), (3, 7), (7, 3), (DECOMPOSED, 40), (DECOMPOSED + 44, DECOMPOSED + 44), (DECOMPOSED + 4, 600))


def orthogonal(generator: np.random.Generator, rows: int, columns: int) -> Floats:
    wide = np.linalg.qr(generator.normal(size=(max(rows, columns), min(rows, columns))))[0]
    return wide if rows >= columns else wide.T


MATRICES: dict[str, Make] = {
    "normal": lambda generator, rows, columns: generator.normal(size=(rows, columns)),
    "uniform": lambda generator, rows, columns: generator.uniform(size=(rows, columns)),
    "rank one": lambda generator, rows, columns: np.outer(generator.normal(size=rows), generator.normal(size=columns)),
    "orthogonal": orthogonal,
    "tiny": lambda generator, rows, columns: 1e-200 * generator.normal(size=(rows, columns)),
    "huge": lambda generator, rows, columns: 1e200 * generator.normal(size=(rows, columns)),
    "one entry": lambda generator, rows, columns: np.eye(rows, columns) * (np.arange(rows) == rows - 1)[:, None],
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", MATRICES)
def test_a_norm_is_not_below_the_truth_and_hardly_above(name: str, shape: tuple[int, int]) -> None:
    matrix = MATRICES[name](np.random.default_rng(0), *shape)
    truth = float(np.linalg.svd(matrix, compute_uv=False)[0])
    found = spectral_norm(matrix)
    # The decomposition it is compared with is itself off by a few units.
    assert truth * (1 - 1e-13) <= found <= truth * (1 + (1e-9 if min(shape) <= DECOMPOSED else 1e-4))


@pytest.mark.parametrize("size", [20, DECOMPOSED + 50])
def test_what_was_projected_is_at_its_bound(size: int) -> None:
    """As a promise of a norm needs it."""
    left, values, right = np.linalg.svd(np.random.default_rng(2).normal(size=(size, size)))
    assert spectral_norm(left @ np.diag(np.minimum(values, 1.0)) @ right) == pytest.approx(1, rel=1e-9)


def test_nothing_has_no_norm() -> None:
    assert spectral_norm(np.zeros((3, 4))) == 0
    assert spectral_norm(np.zeros((0, 4))) == 0


def test_a_bad_guess_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.random.default_rng(1).normal(size=(DECOMPOSED + 10, DECOMPOSED + 10))
    truth = float(np.linalg.svd(matrix, compute_uv=False)[0])
    for share in (0.5, 0.99, 0.999999):
        monkeypatch.setattr("statewise.bounds.norms._lanczos", lambda product, share=share: share * guess(product))
        assert truth * (1 - 1e-13) <= spectral_norm(matrix) <= truth * 1.02


def guess(product: Floats) -> float:
    return float(np.linalg.eigvalsh(product)[-1])
