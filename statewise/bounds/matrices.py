"""The matrices of a recurrent classifier, gate by gate in float64, as bounds need them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from statewise.bounds.logs import Floats
from statewise.cells import Cell, GRUCell, LSTMCell, MGUCell, RNNCell
from statewise.errors import NonFiniteError

#: The gates of each cell, in the order in which torch.nn stacks their rows; the sigmoid ones are below.
GATES: Mapping[str, tuple[str, ...]] = {
    "rnn": ("state",),
    "mgu": ("forget", "candidate"),
    "gru": ("reset", "update", "candidate"),
    "lstm": ("input", "forget", "candidate", "output"),
}
#: What cells are called here; of others nothing is known.
KINDS: Mapping[type[Cell], str] = {RNNCell: "rnn", MGUCell: "mgu", GRUCell: "gru", LSTMCell: "lstm"}
SIGMOID = frozenset({"forget", "reset", "update", "input", "output"})


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerMatrices:
    """One recurrent layer, in one direction.

    Args:
        kind: one of "rnn", "mgu", "gru" and "lstm".
        inputs: W of each gate, (hidden, features).
        states: U of each gate, (hidden, hidden).
        bias: of each gate, (hidden,), torch's two summed; None without. Of a GRU's candidate that beside the input.
        state_bias: of a GRU's candidate, that which the reset gate multiplies; None without.
        activation: of an "rnn": "tanh", "relu" or "identity".
        start: the state before the first step, if it is not zero.
    """

    kind: str
    inputs: Mapping[str, Floats]
    states: Mapping[str, Floats]
    bias: Mapping[str, Floats] | None = None
    state_bias: Floats | None = None
    activation: str = "tanh"
    start: Floats | None = None

    def __post_init__(self) -> None:
        parts = {"W": self.inputs, "U": self.states, "bias": self.bias or {}}
        for name, each in parts.items():
            for gate, values in each.items():
                refuse_non_finite(f"{name} of the {gate} gate", values)
        for name, vector in (("state bias", self.state_bias), ("start", self.start)):
            if vector is not None:
                refuse_non_finite(name, vector)

    @property
    def hidden(self) -> int:
        """The size of the state."""
        return len(next(iter(self.states.values())))

    @property
    def features(self) -> int:
        """The size of an input."""
        return int(next(iter(self.inputs.values())).shape[1])

    def folded(self, gate: str) -> Floats:
        """``[W, bias]`` of a gate: what multiplies ``[x; 1]``.

        Args:
            gate: its name.
        """
        weight = self.inputs[gate]
        return weight if self.bias is None else np.concatenate([weight, self.bias[gate][:, None]], axis=1)

    def folded_state(self, gate: str) -> Floats:
        """``[U, bias]`` of a gate that has a bias beside its state: what multiplies ``[h; 1]``; else U.

        Args:
            gate: its name.
        """
        weight = self.states[gate]
        if self.state_bias is None or self.kind != "gru" or gate != "candidate":
            return weight
        return np.concatenate([weight, self.state_bias[:, None]], axis=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkMatrices:
    """A recurrent classifier: layers, the last state through a linear head; maybe an embedding before them.

    ``y = V [h_T; 1]`` (or without the 1), ``h`` the last layer's.

    Args:
        layers: from the input up; of a bidirectional network each entry has two, forward and backward.
        head: V, (classes, width).
        head_bias: of the classes; None without.
        embedding: (tokens, features); None where inputs are numbers.
        readout: "h", "c" or "hc": which of the last state and its memory the head reads.
    """

    layers: tuple[tuple[LayerMatrices, ...], ...]
    head: Floats
    head_bias: Floats | None = None
    embedding: Floats | None = None
    readout: str = "h"

    def __post_init__(self) -> None:
        for name in ("head", "head_bias", "embedding"):
            if getattr(self, name) is not None:
                refuse_non_finite(name, getattr(self, name))

    @property
    def folded_head(self) -> Floats:
        """``[V, bias]``: what multiplies ``[h; 1]``."""
        return self.head if self.head_bias is None else np.concatenate([self.head, self.head_bias[:, None]], axis=1)


def refuse_non_finite(name: str, values: Floats) -> None:
    """An error for a tensor that holds NaN or infinity.

    Args:
        name: of the tensor.
        values: looked at.
    """
    if not np.isfinite(values).all():
        wrong = int((~np.isfinite(values)).sum())
        raise NonFiniteError(
            where=name,
            got=f"NaN or infinity in {wrong} of {values.size} entries",
            wanted="finite weights",
            remedy="Such a network has no bound: go back to a checkpoint from before it diverged.",
        )
