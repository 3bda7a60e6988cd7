"""Classes of Elman networks, and what networks in them look like, for studies of bounds without any training."""

from __future__ import annotations

import math
from collections.abc import Mapping

from statewise.bounds.elman_constants import ElmanConstants
from statewise.bounds.subject import Subject

#: The bounds of the studies, and what tables and pictures call them.
TITLES: Mapping[str, str] = {
    "thm2": "Theorem 2",
    "dudley": "Dudley",
    "massart": "Massart",
    "thm3_l1": "(3a)",
    "bartlett_unrolled": "(3b)",
    "pac_bayes": "(4)",
    "zhang": "(4), unbounded",
    "zhang_order": "Zhang (order)",
    "kl_occam": "kl",
}
#: The largest entry of a state.
CAPS: Mapping[str, float] = {"tanh": 1.0, "identity": math.inf}


def gaussian_shaped(elman: ElmanConstants) -> Subject:
    """A class with the sums and norms that Gaussian matrices of its spectral norms have, in the mean.

    Entries of deviation ``s = B / (√rows + √columns)`` give a spectral norm of about B; then the entries' sizes add up
    to ``√(2/π) s P``, the lengths of n rows to about ``n s √columns``, and the squares to ``s² P``.

    Args:
        elman: the class.

    >>> net = ElmanConstants(
    ...     inputs=1, hidden=4, classes=2, steps=20, norm_u=0.9, norm_w=2.0, norm_v=4.0, input_bound=1.0
    ... )
    >>> round(gaussian_shaped(net).squared_norm, 3)
    13.568
    """
    norms = {"U": elman.norm_u, "V": elman.norm_v, "W": elman.norm_w}
    shapes = elman.shapes
    spread = {name: norms[name] / (math.sqrt(rows) + math.sqrt(columns)) for name, (rows, columns) in shapes.items()}
    squares = {name: spread[name] ** 2 * rows * columns for name, (rows, columns) in shapes.items()}
    rows, columns = shapes["V"]
    return Subject.of_elman(
        elman,
        entry_sums={name: math.sqrt(2 / math.pi) * spread[name] * math.prod(shape) for name, shape in shapes.items()},
        cell_rows=math.sqrt(elman.hidden * (squares["U"] + squares["W"])),
        head_rows=rows * math.sqrt(columns) * spread["V"],
        squared_norm=math.fsum(squares.values()),
    )
