"""What is minimised, and what noise on the state does to it."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.objectives.audit import Audit, Deviation, LayerAudit, audit
    from statewise.objectives.bracket import Bracket, bracket
    from statewise.objectives.deterministic import DeterministicLoss, deterministic_loss
    from statewise.objectives.estimate import Estimate, estimated_excess
    from statewise.objectives.exact import Divergence, Excess, InfiniteExpectationError, exact_excess
    from statewise.objectives.noises import Covariance
    from statewise.objectives.penalty import second_order, sensitivity
    from statewise.objectives.predictive import Predictive, predictive
    from statewise.objectives.sampling import Sampled, k_sample_loss, tile, tile_state

__all__ = [
    "Audit",
    "Bracket",
    "Covariance",
    "DeterministicLoss",
    "Deviation",
    "Divergence",
    "Estimate",
    "Excess",
    "InfiniteExpectationError",
    "LayerAudit",
    "Predictive",
    "Sampled",
    "audit",
    "bracket",
    "deterministic_loss",
    "estimated_excess",
    "exact_excess",
    "k_sample_loss",
    "predictive",
    "second_order",
    "sensitivity",
    "tile",
    "tile_state",
]

lazy_imports(__name__)
