"""A network built from a machine, weight by weight: it computes the machine at argmax, and softly at temperature 1."""

from __future__ import annotations

import torch

from statewise.automata.moore import MooreMachine
from statewise.errors import ArgumentError
from statewise.models import ClassifierConfig, SequenceClassifier

SATURATED = 40.0  # a gate's bias at which the logistic function is 0 or 1 in float64
CENTROID = 10.0  # the length of a centroid
RESTING = -6.0  # the candidate's bias: no unit is on by itself,
READ = 4.0  # nor by its symbol alone,
LED_TO = 0.4  # nor by its state alone, which brings CENTROID times this; together they are on
START = 8.0  # START needs no state


def compile_machine(
    machine: MooreMachine,
    *,
    temperature: float = 1.0,
    readout: str = "u_end",
    dtype: torch.dtype = torch.float32,
) -> SequenceClassifier:
    """A GRU with centroids that computes a machine.

    One unit and one centroid for each (state, symbol) pair, on when that pair was the last step, and one for the
    start: ``k = hidden = states * symbols + 1``. The next pair (δ(q, a), b) is on when its state was led to and its
    symbol is read; the gates are held open. The read-out takes the class of the state that a pair leads to.

    Args:
        machine: of two classes or more.
        temperature: of the centroids; the network follows the machine softly up to about 1.
        readout: "u_end" reads through an END token that holds the state, "h" the state itself.
        dtype: of the weights.

    >>> from statewise.automata import from_regex
    >>> even = from_regex("(0|10*1)*")
    >>> model = compile_machine(even)
    >>> model.config.hidden, model.classify(["", "1", "0110"]).tolist()
    (5, [1, 0, 1])
    """
    states, symbols = machine.transitions.shape
    if symbols == 0:
        raise ArgumentError(where="compile_machine machine", got="an empty alphabet", wanted="at least one symbol")
    classes = len(machine.classes)
    if classes < 2:
        raise ArgumentError(
            where="compile_machine machine",
            got=f"one class, {machine.classes[0]!r}",
            wanted="at least two, which a network can tell apart",
            remedy=f'Name one more that no state has: replace(machine, classes=({machine.classes[0]!r}, "other")).',
        )
    if readout not in ("u_end", "h"):
        raise ArgumentError(where="compile_machine readout", got=readout, wanted='"u_end" or "h"')
    units = states * symbols + 1
    config = ClassifierConfig(
        cell="gru", hidden=units, embedding=symbols + 2, centroids=(units,), temperature=temperature, readout=readout
    )
    model = config.build(tokens=symbols, classes=classes, symbols=machine.alphabet).to(dtype)
    # The unit of (q, a) is q * symbols + a; it stands for having arrived at δ(q, a). The last one is the start's.
    arrives = torch.cat([torch.from_numpy(machine.transitions.copy()).reshape(-1), torch.tensor([machine.start])])
    leaves = torch.cat([torch.arange(states).repeat_interleave(symbols), torch.tensor([-1])])
    led_to = (leaves[:, None] == arrives[None]).to(dtype) * LED_TO
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        _set_embedding(model, symbols)
        _set_gates(model, units, led_to, states, symbols)
        model.layer.get_parameter("centroids_l0").copy_(CENTROID * torch.eye(units, dtype=dtype))
        outputs = torch.from_numpy(machine.outputs.copy())[arrives]
        model.head.weight[outputs, torch.arange(units)] = 1.0
    return model


def _set_embedding(model: SequenceClassifier, symbols: int) -> None:
    """Each token is a unit vector."""
    assert model.embedding is not None
    model.embedding.weight.copy_(torch.eye(symbols + 2, dtype=model.embedding.weight.dtype))


def _set_gates(model: SequenceClassifier, units: int, led_to: torch.Tensor, states: int, symbols: int) -> None:
    """Reset open, update shut but for END, and the candidate as in :func:`compile_machine`."""
    reset, update, candidate = (slice(block * units, (block + 1) * units) for block in range(3))
    layer = model.layer
    bias, read = layer.get_parameter("bias_ih_l0"), layer.get_parameter("weight_ih_l0")
    bias[reset], bias[update], bias[candidate] = SATURATED, -SATURATED, RESTING
    pairs = torch.arange(states * symbols)
    read[candidate][pairs, pairs % symbols] = READ
    read[candidate][units - 1, model.start_id] = START
    read[update][:, model.end_id] = 2 * SATURATED  # END holds the state, so that the head sees it
    layer.get_parameter("weight_hh_l0")[candidate] = led_to
