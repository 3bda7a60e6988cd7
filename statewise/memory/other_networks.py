"""What is said where an arithmetic circuit is asked and another network is given."""

from __future__ import annotations

from statewise.errors import DtypeError
from statewise.layers.recurrent import RAC

_GATED = ("GRU", "LSTM", "MGU", "MultiplicativeRNN", "PeepholeLSTM")


def check_layer(layer: RAC, *, where: str) -> None:
    """Refuse a layer that is no arithmetic circuit, and say what there is for it.

    Args:
        layer: what was given.
        where: what was asked, for errors.

    >>> check_layer(RAC(2, 3), where="here")
    """
    if not isinstance(layer, RAC):
        raise other_network(layer, where=f"{where}.layer")


def other_network(network: object, *, where: str) -> DtypeError:
    """The error for a network that is no arithmetic circuit: what it is, and what works on any network.

    Args:
        network: what was given.
        where: the argument, for errors.

    >>> import torch
    >>> print(other_network(torch.nn.RNN(2, 3), where="here"))
    here: got torch.nn.modules.rnn.RNN with tanh, wanted a recurrent arithmetic circuit: statewise.RAC, ...
    """
    kind = type(network)
    gates = "gates of sigmoid and tanh" if kind.__name__ in _GATED else ""
    shown = getattr(network, "nonlinearity", gates)
    return DtypeError(
        where=where,
        got=f"{kind.__module__}.{kind.__qualname__}" + (f" with {shown}" if shown else ""),
        wanted="a recurrent arithmetic circuit: statewise.RAC, whose cells multiply and have no other nonlinearity",
        remedy="Of other networks no exact rank is known: separation_spectrum(network, templates, steps, readout=...) "
        "gives the singular values of their table, which is grid_tensor(...), in floats, and "
        "empirical_profile(network, starts, ends) those on samples.",
    )
