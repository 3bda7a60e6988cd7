"""Networks and machines that tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from statewise.automata import MooreMachine
from statewise.models import ClassifierConfig, SequenceClassifier

# Minimal complete machines of the seven Tomita languages: next states on 0 and 1, and the accepting states.
TOMITA_TABLES = {
    1: ([[1, 0], [1, 1]], [0]),
    2: ([[1, 2], [1, 1], [0, 1]], [0]),
    3: ([[0, 1], [2, 0], [3, 4], [2, 3], [4, 4]], [0, 1, 3]),
    4: ([[1, 0], [2, 0], [3, 0], [3, 3]], [0, 1, 2]),
    5: ([[1, 2], [0, 3], [3, 0], [2, 1]], [0]),
    6: ([[1, 2], [2, 0], [0, 1]], [0]),
    7: ([[0, 1], [2, 1], [2, 3], [4, 3], [4, 4]], [0, 1, 2, 3]),
}


def tomita(number: int) -> MooreMachine:
    """One of the seven."""
    rows, accepting = TOMITA_TABLES[number]
    outputs = np.isin(np.arange(len(rows)), accepting).astype(np.int64)
    return MooreMachine(alphabet=("0", "1"), transitions=np.array(rows), outputs=outputs)


def random_machine(seed: int, *, states: int = 8, symbols: int = 3, classes: int = 2) -> MooreMachine:
    """A machine with at most so many states and symbols, drawn evenly."""
    draw = np.random.default_rng(seed)
    own, width = int(draw.integers(1, states + 1)), int(draw.integers(1, symbols + 1))
    names = ("reject", "accept") if classes == 2 else tuple(str(label) for label in range(classes))
    return MooreMachine(
        alphabet=tuple("abcdefgh"[:width]),
        transitions=draw.integers(0, own, (own, width)),
        outputs=draw.integers(0, classes, own),
        start=int(draw.integers(own)),
        classes=names,
    )


def network(seed: int, *, scale: float = 3.0, tokens: int = 2, classes: int = 2, **settings: Any) -> SequenceClassifier:
    """A random classifier with weights so large that words reach several states; symbols 0, 1, ..."""
    config = ClassifierConfig(**{"hidden": 12, "centroids": (8,), **settings})
    symbols = "0123456789"[:tokens]
    model = config.build(tokens=tokens, classes=classes, symbols=symbols, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)
        if config.cell == "gru":  # else the old state leaks into the new one, and random weights hold still
            for layer in range(config.layers):
                model.layer.get_parameter(f"bias_ih_l{layer}").chunk(3)[1].fill_(-5)
    return model.eval()


class LastState(nn.Module):
    """What people write: a recurrent layer, batch first, whose last state a linear head reads.

    Args:
        layer: of torch.nn or of ours.
        classes: of the head.
        bias: of the head.
        tokens: how many the embedding has; None for numbers.
    """

    def __init__(self, layer: Any, classes: int = 2, *, bias: bool = True, tokens: int | None = None) -> None:
        super().__init__()
        self.embedding: Any = None if tokens is None else nn.Embedding(tokens, layer.input_size)
        self.layer: Any = layer
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(layer.hidden_size * (1 + layer.bidirectional), classes, bias=bias)

    def forward(self, inputs: Tensor) -> Tensor:
        values = inputs if self.embedding is None else self.embedding(inputs)
        _, state = self.layer(values)
        last = (state[0] if isinstance(state, tuple) else state)[-1 - self.layer.bidirectional :]
        logits: Tensor = self.head(self.dropout(torch.cat(tuple(last), dim=1)))
        return logits
