"""The outputs of a network from its matrices alone: the test that they were read rightly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from statewise.bounds.logs import Floats
from statewise.bounds.matrices import LayerMatrices, NetworkMatrices

Step = Callable[[LayerMatrices, Floats, Floats, Floats], tuple[Floats, Floats]]


def recompute(network: NetworkMatrices, sequences: npt.NDArray[Any]) -> Floats:
    """The logits of some sequences of one length, step by step in float64.

    ``y = V h_T + b``, each layer by the equations of its cell (Chen, Li & Zhao 2019, section 2; torch.nn).

    Args:
        network: its matrices.
        sequences: (sequences, steps, features), or token numbers (sequences, steps) for a network with an embedding.

    >>> layer = LayerMatrices(kind="rnn", inputs={"state": np.eye(1)}, states={"state": np.eye(1)})
    >>> net = NetworkMatrices(layers=((layer,),), head=np.array([[1.0], [-1.0]]))
    >>> recompute(net, np.array([[[1.0], [0.0]]])).round(6).tolist()
    [[0.642015, -0.642015]]
    """
    values = sequences if network.embedding is None else network.embedding[sequences.astype(np.int64)]
    last: list[tuple[Floats, Floats]] = []
    for directions in network.layers:
        walks = [_walk(layer, values if at == 0 else values[:, ::-1]) for at, layer in enumerate(directions)]
        last = [(states[:, -1], memory) for states, memory in walks]
        values = np.concatenate([walk[0] if at == 0 else walk[0][:, ::-1] for at, walk in enumerate(walks)], axis=2)
    parts = {"h": (0,), "c": (1,), "hc": (0, 1)}[network.readout]
    read = np.concatenate([pair[part] for part in parts for pair in last], axis=1)
    logits: Floats = read @ network.head.T
    return logits if network.head_bias is None else logits + network.head_bias


def mgu_gates(layer: LayerMatrices, values: Floats) -> Floats:
    """The gates of a minimal gated unit at every step, (steps, sequences, hidden).

    Args:
        layer: its matrices.
        values: what it reads, (sequences, steps, features).
    """
    state, gates = np.zeros((len(values), layer.hidden)), []
    for value in values.swapaxes(0, 1):
        gates.append(_sigmoid(_sums(layer, value, state)["forget"]))
        state, _ = _mgu(layer, value, state, state)
    return np.stack(gates)


def _walk(layer: LayerMatrices, values: Floats) -> tuple[Floats, Floats]:
    """All states, and the last memory."""
    state, memory = np.zeros((2, len(values), layer.hidden))
    if layer.start is not None:
        state = state + layer.start
    states = []
    for value in values.swapaxes(0, 1):
        state, memory = _STEPS[layer.kind](layer, value, state, memory)
        states.append(state)
    return np.stack(states, axis=1), memory


def _sums(layer: LayerMatrices, value: Floats, state: Floats) -> dict[str, Floats]:
    """``W x + b + U h`` of every gate."""
    bias: Mapping[str, Floats] = layer.bias or {}
    return {
        gate: value @ weight.T + bias.get(gate, np.zeros(layer.hidden)) + state @ layer.states[gate].T
        for gate, weight in layer.inputs.items()
    }


def _sigmoid(values: Floats) -> Floats:
    result: Floats = 0.5 * (1 + np.tanh(0.5 * values))
    return result


def _rnn(layer: LayerMatrices, value: Floats, state: Floats, memory: Floats) -> tuple[Floats, Floats]:
    total = _sums(layer, value, state)["state"]
    if layer.activation == "tanh":
        return np.tanh(total), memory
    return (np.maximum(total, 0) if layer.activation == "relu" else total), memory


def _mgu(layer: LayerMatrices, value: Floats, state: Floats, memory: Floats) -> tuple[Floats, Floats]:
    gate = _sigmoid(_sums(layer, value, state)["forget"])
    candidate = np.tanh(_sums(layer, value, gate * state)["candidate"])
    return (1 - gate) * state + gate * candidate, memory


def _gru(layer: LayerMatrices, value: Floats, state: Floats, memory: Floats) -> tuple[Floats, Floats]:
    sums = _sums(layer, value, state)
    reset, update = _sigmoid(sums["reset"]), _sigmoid(sums["update"])
    recurrent = state @ layer.states["candidate"].T
    inner = recurrent if layer.state_bias is None else recurrent + layer.state_bias
    candidate = np.tanh(sums["candidate"] - recurrent + reset * inner)
    return (1 - update) * candidate + update * state, memory


def _lstm(layer: LayerMatrices, value: Floats, state: Floats, memory: Floats) -> tuple[Floats, Floats]:
    sums = _sums(layer, value, state)
    kept = _sigmoid(sums["forget"]) * memory
    memory = kept + _sigmoid(sums["input"]) * np.tanh(sums["candidate"])
    return _sigmoid(sums["output"]) * np.tanh(memory), memory


_STEPS: Mapping[str, Step] = {"rnn": _rnn, "mgu": _mgu, "gru": _gru, "lstm": _lstm}
