"""Recurrent layers with torch.nn's interface, whose hidden state can be acted on between two steps."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.layers.base import RecurrentLayer
    from statewise.layers.collected import Collected
    from statewise.layers.convolutional import ConvReadout, ConvRNN
    from statewise.layers.draws import Draws
    from statewise.layers.orthogonal import OrthogonalRNN
    from statewise.layers.parts import CompoundingNoiseWarning
    from statewise.layers.recurrent import (
        GRU,
        LSTM,
        MGU,
        RAC,
        RNN,
        MultiplicativeRNN,
        PeepholeLSTM,
        SingularStartWarning,
    )
    from statewise.layers.single import (
        GRUCell,
        LSTMCell,
        MGUCell,
        MultiplicativeRNNCell,
        OrthogonalRNNCell,
        PeepholeLSTMCell,
        RACCell,
        RNNCell,
        SingleStep,
    )
    from statewise.layers.tune import tune
    from statewise.layers.upgrade import upgrade

__all__ = [
    "GRU",
    "LSTM",
    "MGU",
    "RAC",
    "RNN",
    "Collected",
    "CompoundingNoiseWarning",
    "ConvRNN",
    "ConvReadout",
    "Draws",
    "GRUCell",
    "LSTMCell",
    "MGUCell",
    "MultiplicativeRNN",
    "MultiplicativeRNNCell",
    "OrthogonalRNN",
    "OrthogonalRNNCell",
    "PeepholeLSTM",
    "PeepholeLSTMCell",
    "RACCell",
    "RNNCell",
    "RecurrentLayer",
    "SingleStep",
    "SingularStartWarning",
    "tune",
    "upgrade",
]

lazy_imports(__name__)
