"""statewise: recurrent networks that generalize, remember and can be understood.

Everything here happens to the hidden state between two steps: it is disturbed, mixed, drawn to centroids, kept on a
sphere, measured, bounded and read.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from statewise import (
        analysis,
        automata,
        bounds,
        cells,
        data,
        engine,
        errors,
        heads,
        layers,
        memory,
        mixup,
        models,
        objectives,
        sharing,
        sweep,
        train,
        transforms,
        weights,
    )
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
        ConvReadout,
        ConvRNN,
        Draws,
        GRUCell,
        LSTMCell,
        MGUCell,
        MultiplicativeRNN,
        MultiplicativeRNNCell,
        OrthogonalRNN,
        OrthogonalRNNCell,
        PeepholeLSTM,
        PeepholeLSTMCell,
        RACCell,
        RecurrentLayer,
        RNNCell,
        SingularStartWarning,
        tune,
        upgrade,
    )
    from statewise.sharing import load
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
    "ConvRNN",
    "ConvReadout",
    "Draws",
    "GRUCell",
    "InputDropout",
    "LSTMCell",
    "LockedDropout",
    "LockedInputDropout",
    "MGUCell",
    "MultiplicativeRNN",
    "MultiplicativeRNNCell",
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
    "SingularStartWarning",
    "ThroughTimeMix",
    "Transform",
    "Zoneout",
    "analysis",
    "automata",
    "bounds",
    "cells",
    "cite",
    "data",
    "embedding_dropout",
    "engine",
    "errors",
    "heads",
    "layers",
    "load",
    "memory",
    "mixup",
    "models",
    "objectives",
    "sharing",
    "sweep",
    "train",
    "transforms",
    "tune",
    "upgrade",
    "weights",
]

#: Where the names that are no rooms come from.
_HOMES = ("layers", "transforms", "engine", "citations", "sharing")
_ROOMS = (
    *("analysis", "automata", "bounds", "cells", "data", "engine", "errors", "heads", "layers", "memory", "mixup"),
    *("models", "objectives", "sharing", "sweep", "train", "transforms", "weights"),
)


def __getattr__(name: str) -> _Any:
    """Import what is asked for when it is asked for, so that ``statewise --help`` need not wait for torch."""
    if name in _ROOMS:
        return _import_module(f"statewise.{name}")
    if name in __all__:
        for home in _HOMES:
            found = getattr(_import_module(f"statewise.{home}"), name, None)
            if found is not None:
                globals()[name] = found  # asked for once
                return found
    raise AttributeError(f"module 'statewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
