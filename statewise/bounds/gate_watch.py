"""How far the gates of a minimal gated unit open, watched while a network runs over its data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from statewise.bounds.grid import Ledger
from statewise.bounds.logs import Floats
from statewise.bounds.measured_gates import gate_levels
from statewise.bounds.norms import spectral_norm
from statewise.bounds.observed import Watch
from statewise.bounds.reading import Reading
from statewise.bounds.recompute import mgu_gates

_STATE = "U candidate"


def has_one_gate(reading: Reading) -> bool:
    """Whether a network is one layer of minimal gated units, in one direction.

    Args:
        reading: of the model.
    """
    if reading.matrices is None:
        return False
    layers = reading.matrices.layers
    return len(layers) == len(layers[0]) == 1 and layers[0][0].kind == "mgu"


def gate_watch(reading: Reading, promised: Mapping[str, float]) -> Watch | None:
    """What watches the gates of a network: for each sequence the level ``a(X)`` of :func:`gate_levels`.

    The gates are computed from the matrices, in float64.

    Args:
        reading: of the model.
        promised: constants that were fixed beforehand, by name.
    """
    matrices = reading.matrices
    if matrices is None or not has_one_gate(reading):
        return None
    layer = matrices.layers[0][0]
    # The same constant as the class has, which is where it is paid for.
    norm = Ledger(promised=promised).up(_STATE, spectral_norm(layer.states["candidate"]))

    def watch(inputs: Tensor, steps: npt.NDArray[np.int64]) -> Floats:
        found, rows = np.empty(len(steps)), inputs.cpu().numpy()
        for length in np.unique(steps):
            at = np.flatnonzero(steps == length)
            given = np.stack([reading.as_read(rows[place, :length]) for place in at])
            values = given if matrices.embedding is None else matrices.embedding[given.astype(np.int64)]
            found[at] = gate_levels(torch.from_numpy(mgu_gates(layer, values)), state_norm=norm).numpy()
        return found

    return watch
