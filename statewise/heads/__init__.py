"""What reads the state: distributions over words and over sequences of tags, and exponential families."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.heads.crf import CRF
    from statewise.heads.crf_constraints import Constraints
    from statewise.heads.crf_score import ForbiddenPathError
    from statewise.heads.gaussian import Normal
    from statewise.heads.likelihoods import Bernoulli, Categorical, Gaussian, Likelihood, Poisson
    from statewise.heads.outside import apply_outside
    from statewise.heads.readout import Readout
    from statewise.heads.softmax import AdaptiveSoftmax, Head, MixtureOfSoftmaxes, Softmax

__all__ = [
    "CRF",
    "AdaptiveSoftmax",
    "Bernoulli",
    "Categorical",
    "Constraints",
    "ForbiddenPathError",
    "Gaussian",
    "Head",
    "Likelihood",
    "MixtureOfSoftmaxes",
    "Normal",
    "Poisson",
    "Readout",
    "Softmax",
    "apply_outside",
]

lazy_imports(__name__)
