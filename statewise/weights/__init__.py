"""Constraints on recurrent weights: orthogonal, bounded, or dropped at random.

Everything here is a torch parametrization, an optimiser, or a function of a tensor, so it works on any module.

=====================  =================================================================================
you want               use
=====================  =================================================================================
exactly orthogonal     :func:`scaled_cayley` (any optimiser), or :class:`StiefelSGD` (plain parameters)
nearly orthogonal      :func:`orthogonality_penalty` in the loss
an orthogonal start    :func:`haar_orthogonal_`, :func:`identity_`
a bounded norm         :func:`spectral_cap` (differentiable), :func:`project_spectral_` (after a step)
DropConnect            :func:`weight_drop`, :func:`redraw_weight_drop`
=====================  =================================================================================
"""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.weights.cayley import GatewiseOrthogonal, ScaledCayley, scaled_cayley
    from statewise.weights.drop import (
        WeightDrop,
        redraw_weight_drop,
        restore_weight_drop,
        weight_drop,
        weight_drop_masks,
    )
    from statewise.weights.gradient_limit import GradientLimit, limit_entries
    from statewise.weights.orthogonal_init import haar_orthogonal_, identity_
    from statewise.weights.orthogonality import nearest_orthogonal, orthogonality_error
    from statewise.weights.penalty import orthogonality_penalty
    from statewise.weights.skew import cayley_orthogonal, initial_skew, rotation_entries, skew_matrix
    from statewise.weights.spectral import SpectralCap, project_spectral_, spectral_cap
    from statewise.weights.stiefel import StiefelSGD, stiefel_step

__all__ = [
    "GatewiseOrthogonal",
    "GradientLimit",
    "ScaledCayley",
    "SpectralCap",
    "StiefelSGD",
    "WeightDrop",
    "cayley_orthogonal",
    "haar_orthogonal_",
    "identity_",
    "initial_skew",
    "limit_entries",
    "nearest_orthogonal",
    "orthogonality_error",
    "orthogonality_penalty",
    "project_spectral_",
    "redraw_weight_drop",
    "restore_weight_drop",
    "rotation_entries",
    "scaled_cayley",
    "skew_matrix",
    "spectral_cap",
    "stiefel_step",
    "weight_drop",
    "weight_drop_masks",
]

lazy_imports(__name__)
