"""What reads the state: distributions over words, and the likelihoods of the exponential family."""

from statewise.heads.likelihoods import Bernoulli, Categorical, Gaussian, Likelihood, Poisson
from statewise.heads.outside import apply_outside
from statewise.heads.readout import Readout
from statewise.heads.softmax import AdaptiveSoftmax, Head, MixtureOfSoftmaxes, Softmax

__all__ = [
    "AdaptiveSoftmax",
    "Bernoulli",
    "Categorical",
    "Gaussian",
    "Head",
    "Likelihood",
    "MixtureOfSoftmaxes",
    "Poisson",
    "Readout",
    "Softmax",
    "apply_outside",
]
