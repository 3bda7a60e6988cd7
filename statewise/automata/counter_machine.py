"""A state and a counter: what an LSTM with centroids does, told as a table that a person can check."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from statewise.automata.counters import Counters, memories
from statewise.automata.seen import Labelled, Network, symbols_of, watch
from statewise.errors import LengthError, UnknownSymbolError

Place = tuple[int, bool]


@dataclass(frozen=True, kw_only=True)
class Move:
    """What happens at a symbol.

    Args:
        state: the likeliest centroid before; -1 before the first symbol of a model without a start token.
        zero: whether the counter is 0 before.
        symbol: that is read.
        target: the likeliest centroid after, of most occurrences.
        change: what the counter does then.
        count: how often it was seen.
        share: of the occurrences that went this way.
    """

    state: int
    zero: bool
    symbol: str
    target: int
    change: int
    count: int
    share: float


@dataclass(frozen=True, kw_only=True, eq=False)
class CounterMachine:
    """States times a counter, read off what a network did; approximate, since no table of an LSTM is finite.

    Args:
        unit: of the memory that is the counter.
        stride: how far it moves for one count.
        start: the state before the first symbol.
        moves: by state, zero or not, and symbol.
        verdicts: the class of most words that ended in a state with the counter at zero or not.
        classes: their names.
        occupancy: how often each (state, counter) was met.
    """

    unit: int
    stride: float
    start: int
    moves: dict[tuple[int, bool, str], Move]
    verdicts: dict[Place, int]
    classes: tuple[str, ...]
    occupancy: dict[tuple[int, int], int]

    @property
    def faithful(self) -> float:
        """The share of all steps that went as the table says."""
        total = sum(move.count for move in self.moves.values())
        return sum(move.count * move.share for move in self.moves.values()) / total

    def run(self, word: Sequence[str]) -> int | None:
        """The class of a word, or None where the table has no row: tells how far what was seen reaches.

        Args:
            word: a text counts as its characters.
        """
        known = {symbol for _, _, symbol in self.moves}
        state, count = self.start, 0
        for symbol in word:
            if symbol not in known:
                raise UnknownSymbolError(
                    where="CounterMachine.run", got=symbol, wanted=f"one of {', '.join(sorted(known))}"
                )
            move = self.moves.get((state, count == 0, symbol))
            if move is None:
                return None
            state, count = move.target, count + move.change
        return self.verdicts.get((state, count == 0))


def counter_machine(
    model: Network,
    sequences: Labelled,
    counters: Counters,
    *,
    unit: int | None = None,
    layer: int = 0,
    batch: int = 256,
) -> CounterMachine:
    """Tell a network as states times a counter: the likeliest centroid, and a cell unit in whole strides.

    Args:
        model: of tokens, with centroids and a memory.
        sequences: that it reads.
        counters: of the same model, from ``find_counters``.
        unit: the counter; None for the best.
        layer: which.
        batch: sequences at once.
    """
    unit = counters.best if unit is None else unit
    stride, symbols = counters.stride(unit), symbols_of(model, sequences)
    seen_moves: defaultdict[tuple[int, bool, str], Counter[tuple[int, int]]] = defaultdict(Counter)
    ends: defaultdict[Place, Counter[int]] = defaultdict(Counter)
    occupancy: Counter[tuple[int, int]] = Counter()
    start = _start(model, layer)
    for seen in watch(model, sequences, collect=("cells", "probabilities"), layer=layer, batch=batch):
        assert seen.probabilities is not None
        cells, before = (part[..., unit].double().cpu().numpy() for part in memories(seen))
        levels = np.rint((cells - before[:, :1]) / max(stride, 1e-12)).astype(int)
        states, tokens = seen.probabilities.argmax(2).cpu().numpy(), seen.inputs.cpu().numpy()
        for row, length in enumerate(seen.inside.sum(1).tolist()):
            state, count = start, 0
            for t in range(length):
                target, level = int(states[row, t]), int(levels[row, t])
                seen_moves[state, count == 0, symbols[tokens[row, t]]][target, level - count] += 1
                occupancy[target, level] += 1
                state, count = target, level
            ends[state, count == 0][int(seen.labels[row])] += 1
    if not seen_moves:
        raise LengthError(where="counter_machine.sequences", got="no symbols at all", wanted="at least one")
    return CounterMachine(
        unit=unit,
        stride=stride,
        start=start,
        moves={key: _move(key, found) for key, found in seen_moves.items()},
        verdicts={place: found.most_common(1)[0][0] for place, found in ends.items()},
        classes=tuple(sequences.classes),
        occupancy=dict(sorted(occupancy.items())),
    )


def _move(key: tuple[int, bool, str], found: Counter[tuple[int, int]]) -> Move:
    (target, change), times = found.most_common(1)[0]
    state, zero, symbol = key
    total = found.total()
    return Move(
        state=state, zero=zero, symbol=symbol, target=target, change=change, count=total, share=times / total
    )  # fmt: skip


def _start(model: Network, layer: int) -> int:
    """The likeliest centroid after the start token; -1 where there is none."""
    device = next(model.parameters()).device
    trace = model.states(torch.zeros(1, 1, dtype=torch.int64, device=device), collect=("probabilities",))
    probabilities = trace.probabilities[layer]
    if not trace.has_start or probabilities is None:
        return -1
    return int(probabilities[0, 0].argmax())
