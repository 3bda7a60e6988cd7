"""The singular values of the recurrent matrices, gate by gate: what a step does to what was remembered."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float

from statewise.analysis import effective_rank, stable_rank
from statewise.layers import RecurrentLayer
from statewise.report.html import DataTable, Section, Series, line_chart, shown
from statewise.report.html.pieces import Figure
from statewise.report.run_sections.run import Run

_MOST = 1500  # units beyond which the decomposition takes too long for a page
_CHARTS = 6  # more are in the table only


def recurrent_spectra(run: Run) -> Section | None:
    """The singular values of each gate's recurrent matrix.

    Args:
        run: any.
    """
    found = [each for each in gates_of(run.model) if each[2].shape[0] <= _MOST]
    if not found:
        return None
    groups: dict[str, list[tuple[str, np.ndarray]]] = {}
    rows = []
    for place, gate, matrix in found:
        values = np.linalg.svd(matrix, compute_uv=False)
        radius = float(np.abs(np.linalg.eigvals(matrix)).max())
        groups.setdefault(place, []).append((gate, values))
        numbers = (values[0], values[-1], radius, stable_rank(values), effective_rank(values))
        rows.append((f"{place}, {gate}", *(shown(float(number)) for number in numbers)))
    headings = ("matrix", "largest", "smallest", "spectral radius", "stable rank", "effective rank")
    table = DataTable(headings=headings, rows=rows, caption="The recurrent matrices")
    figures = [_chart(place, gates) for place, gates in list(groups.items())[:_CHARTS]]
    prose = (
        "A direction with a singular value above 1 is stretched at every step, one below 1 shrinks; at 1 it is kept. "
        "In gated cells the gates act on top of this. The effective rank says how many directions matter."
    )
    return Section("Singular values of the recurrent matrices", [*figures, table], prose=prose)


def gates_of(model: torch.nn.Module) -> Iterator[tuple[str, str, Float[np.ndarray, "hidden hidden"]]]:
    """The recurrent matrix of each gate of each recurrent layer: where it is, the gate, and the matrix.

    Args:
        model: with layers of this library.

    >>> from statewise import GRU
    >>> [(place, gate, matrix.shape) for place, gate, matrix in gates_of(GRU(3, 4))][0]
    ('layer 1', 'reset', (4, 4))
    """
    layers = [module for module in model.modules() if isinstance(module, RecurrentLayer)]
    number = 0
    for layer in layers:
        for index in range(layer.num_layers):
            number += 1
            for suffix, way in (("", ""), ("_reverse", ", backwards")):
                name = f"weight_hh_l{index}{suffix}"
                if not hasattr(layer, name):
                    continue
                weight = getattr(layer, name).detach().double().cpu().numpy()
                blocks = layer.cell.blocks
                if weight.ndim != 2 or weight.shape[0] != len(blocks) * weight.shape[1]:
                    continue
                for block, matrix in zip(blocks, np.split(weight, len(blocks)), strict=True):
                    yield f"layer {number}{way}", block, matrix


def _chart(place: str, gates: list[tuple[str, np.ndarray]]) -> Figure:
    series = [
        Series(name=gate, x=[float(rank) for rank in range(1, len(values) + 1)], y=[float(value) for value in values])
        for gate, values in gates
    ]
    return line_chart(series, title=f"Singular values, {place}", x="rank", y="singular value", zero=True)
