"""statewise: recurrent networks that generalize, remember and can be understood.

Everything here happens to the hidden state between two steps: it is disturbed, mixed, drawn to centroids, kept on a
sphere, measured, bounded and read.
"""

from statewise import cells, data, engine, errors, heads, models, objectives, train, transforms, weights
from statewise.citations import cite
from statewise.engine import Plan
from statewise.layers import (
    GRU,
    LSTM,
    MGU,
    RAC,
    RNN,
    Collected,
    CompoundingNoiseWarning,
    Draws,
    GRUCell,
    LSTMCell,
    MGUCell,
    OrthogonalRNN,
    OrthogonalRNNCell,
    PeepholeLSTM,
    PeepholeLSTMCell,
    RACCell,
    RecurrentLayer,
    RNNCell,
    tune,
    upgrade,
)
from statewise.transforms import (
    Centroids,
    InputDropout,
    LockedDropout,
    LockedInputDropout,
    Noise,
    OutputDropout,
    Pairing,
    RecurrentDropout,
    ThroughTimeMix,
    Transform,
    Zoneout,
    embedding_dropout,
)

__version__ = "0.1.0"

__all__ = [
    "GRU",
    "LSTM",
    "MGU",
    "RAC",
    "RNN",
    "Centroids",
    "Collected",
    "CompoundingNoiseWarning",
    "Draws",
    "GRUCell",
    "InputDropout",
    "LSTMCell",
    "LockedDropout",
    "LockedInputDropout",
    "MGUCell",
    "Noise",
    "OrthogonalRNN",
    "OrthogonalRNNCell",
    "OutputDropout",
    "Pairing",
    "PeepholeLSTM",
    "PeepholeLSTMCell",
    "Plan",
    "RACCell",
    "RNNCell",
    "RecurrentDropout",
    "RecurrentLayer",
    "ThroughTimeMix",
    "Transform",
    "Zoneout",
    "cells",
    "cite",
    "data",
    "embedding_dropout",
    "engine",
    "errors",
    "heads",
    "models",
    "objectives",
    "train",
    "transforms",
    "tune",
    "upgrade",
    "weights",
]
