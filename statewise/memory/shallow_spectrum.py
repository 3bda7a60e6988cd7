"""All singular values of a circuit of one layer without a table of M^T words, and how they change with the split."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statewise.errors import ArgumentError, NonFiniteError, ShapeError
from statewise.memory.circuit import Circuit, check_circuit
from statewise.memory.spectrum import SeparationSpectrum, spectrum_of
from statewise.memory.split import split_of

Matrix = NDArray[np.float64]
#: A factor of a side, and the logarithm that it was divided by.
Side = tuple[Matrix, float]

METHODS = ("qr", "gram")
_EPS = float(np.finfo(np.float64).eps)


def shallow_spectrum(
    circuit: Circuit, *, steps: int, split: int | None = None, templates: Any = None, method: str = "qr"
) -> SeparationSpectrum:
    """The singular values of the table of Start and End of a circuit of one layer, for any number of steps.

    The table is ``P Q``. With triangular factors of both sides, updated step by step in O(T M R^3), its singular values
    are those of ``R_P R_Q^T``. The Gram form ``G <- (WH G WH^T) * K``, ``H <- WH^T (K * H) WH``, ``K = WI WI^T``, takes
    O(T R^3) and gives ``sqrt(eig(G H))``, with half of the digits. Both sides are rescaled at each step.

    Args:
        circuit: of one layer.
        steps: T.
        split: s, steps of the Start; None for half of an even T.
        templates: features of the templates, (templates, features); None for one-hot ones.
        method: "qr", or "gram".

    >>> from statewise.memory.circuit import drawn_circuit
    >>> shallow_spectrum(drawn_circuit(inputs=3, width=4, depth=1), steps=1000).rank()
    4
    """
    if method not in METHODS:
        raise ArgumentError(where="shallow_spectrum.method", got=method, wanted=f"one of {', '.join(METHODS)}")
    # Before the first step there is a product and no state; a table of one column has the values of one of one row.
    place = split_of(steps, split, where="shallow_spectrum", name="steps") or steps
    terms, recurrent, first, readout = _parts(circuit, templates)
    if method == "gram":
        starts, ends = _start_gram(terms, recurrent, first, place), _end_gram(terms, recurrent, readout, steps - place)
        return _meeting_gram(_last(starts), _last(ends))
    starts = _start_factors(terms, recurrent, first, place)
    return _meeting(_last(starts), _last(_end_factors(terms, recurrent, readout, steps - place)))


def shallow_spectra(circuit: Circuit, *, steps: int, templates: Any = None) -> list[SeparationSpectrum]:
    """The spectrum for every split ``s = 1..T-1``, in one pass from either side.

    Args:
        circuit: of one layer.
        steps: T.
        templates: features of the templates; None for one-hot ones.

    >>> from statewise.memory.circuit import drawn_circuit
    >>> [found.rank() for found in shallow_spectra(drawn_circuit(inputs=2, width=4, depth=1), steps=6)]
    [2, 4, 4, 4, 2]
    """
    terms, recurrent, first, readout = _parts(circuit, templates)
    starts = list(_start_factors(terms, recurrent, first, steps - 1))
    ends = list(_end_factors(terms, recurrent, readout, steps - 1))
    return [_meeting(starts[split], ends[steps - split]) for split in range(1, steps)]


def _parts(circuit: Circuit, templates: Any) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """``W f`` of the templates as rows, the recurrent matrix, the first product and the readout as rows."""
    check_circuit(circuit, where="shallow_spectrum")
    if circuit.depth != 1:
        raise ArgumentError(
            where="shallow_spectrum.circuit",
            got=f"{circuit.depth} layers",
            wanted="one layer",
            remedy="separation_spectrum(layer, ...) takes small deep ones.",
        )
    weight = circuit.inputs[0].astype(np.float64)
    features = np.eye(circuit.features) if templates is None else np.asarray(templates, dtype=np.float64)
    if features.ndim != 2 or features.shape[1] != circuit.features or not len(features):
        wanted = f"(templates, {circuit.features} features)"
        raise ShapeError(where="shallow_spectrum.templates", got=features.shape, wanted=wanted)
    if not np.isfinite(features).all():
        raise NonFiniteError(where="shallow_spectrum.templates", got="NaN or infinity", wanted="finite numbers")
    readout = circuit.readout.astype(np.float64)[None]
    return features @ weight.T, circuit.recurrent[0].astype(np.float64), circuit.first_products()[:1], readout


def _start_factors(terms: Matrix, recurrent: Matrix, first: Matrix, steps: int) -> Iterator[Side]:
    """Triangular factors of the states after 0, 1, ... steps (before any: of the first product)."""
    product, scale = first, 0.0
    yield product, scale
    for _ in range(steps):
        factor, scale = _factor(product, terms, scale)
        yield factor, scale
        product = factor @ recurrent.T


def _end_factors(terms: Matrix, recurrent: Matrix, readout: Matrix, steps: int) -> Iterator[Side]:
    """Triangular factors of the rows ``WO diag(w) WH diag(w) ... WH`` of 0, 1, ... steps."""
    rows, scale = readout, 0.0
    yield rows, scale
    for _ in range(steps):
        factor, scale = _factor(rows, terms, scale)
        rows = factor @ recurrent
        yield rows, scale


def _factor(rows: Matrix, terms: Matrix, scale: float) -> Side:
    stacked = (rows[None] * terms[:, None]).reshape(-1, terms.shape[1])
    if len(stacked) > stacked.shape[1]:
        stacked = np.linalg.qr(stacked)[1]
    return _normal(stacked, scale)


def _start_gram(terms: Matrix, recurrent: Matrix, first: Matrix, steps: int) -> Iterator[Side]:
    kernel, gram, scale = terms.T @ terms, first.T @ first, 0.0
    yield gram, scale
    for _ in range(steps):
        gram, scale = _normal(gram * kernel, scale)
        yield gram, scale
        gram = recurrent @ gram @ recurrent.T


def _end_gram(terms: Matrix, recurrent: Matrix, readout: Matrix, steps: int) -> Iterator[Side]:
    kernel, gram, scale = terms.T @ terms, readout.T @ readout, 0.0
    yield gram, scale
    for _ in range(steps):
        gram, scale = _normal(recurrent.T @ (kernel * gram) @ recurrent, scale)
        yield gram, scale


def _last(sides: Iterator[Side]) -> Side:
    """The last of them, without keeping the others: there may be millions of steps."""
    return deque(sides, maxlen=1)[0]


def _meeting(start: Side, end: Side) -> SeparationSpectrum:
    values = np.linalg.svd(start[0] @ end[0].T, compute_uv=False)
    return spectrum_of(values.astype(np.float64), log_scale=start[1] + end[1], rounding=start[0].shape[1] * _EPS)


def _meeting_gram(start: Side, end: Side) -> SeparationSpectrum:
    """``sqrt(eig(G H))``, as of the symmetric ``sqrt(G) H sqrt(G)``; it is their squares that are rounded."""
    energies, vectors = np.linalg.eigh(start[0])
    root = vectors * np.sqrt(np.clip(energies, 0, None))
    values = np.sqrt(np.clip(np.linalg.eigvalsh(root.T @ end[0] @ root), 0, None))
    return spectrum_of(
        values.astype(np.float64), log_scale=(start[1] + end[1]) / 2, rounding=math.sqrt(len(root) * _EPS)
    )


def _normal(matrix: Matrix, scale: float) -> Side:
    largest = float(np.abs(matrix).max())
    if largest == 0:
        return matrix, -math.inf
    return matrix / largest, scale + math.log(largest)
