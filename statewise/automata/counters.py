"""Memory cells that count: units that move by the same amount at every occurrence of a token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from statewise.automata.seen import Labelled, Network, Seen, symbols_of, watch
from statewise.errors import ArgumentError, LengthError

Signal = Callable[[Sequence[str]], Sequence[float]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Counters:
    """How each unit of a memory moves at each token.

    Args:
        symbols: the tokens.
        counts: how often each was read.
        steps: the mean of ``c_t - c_{t-1}`` at each token; NaN for one that was not read.
        spreads: the standard deviation of the same.
        explained: of each unit, the part of the variance of its moves that the token alone explains; 1 for a counter.
        correlations: of each unit with the signal; None without one.
    """

    symbols: tuple[str, ...]
    counts: Int[np.ndarray, " tokens"]
    steps: Float[np.ndarray, "tokens units"] = field(repr=False)
    spreads: Float[np.ndarray, "tokens units"] = field(repr=False)
    explained: Float[np.ndarray, " units"] = field(repr=False)
    correlations: Float[np.ndarray, " units"] | None = field(repr=False)

    @property
    def best(self) -> int:
        """The unit that follows the signal best; without a signal the one whose moves the token explains best."""
        scores = self.explained if self.correlations is None else np.abs(self.correlations)
        return int(np.argmax(np.nan_to_num(scores)))

    @property
    def correlation(self) -> float:
        """That of the best unit with the signal; NaN without one."""
        return float("nan") if self.correlations is None else float(self.correlations[self.best])

    def units(self, *, spread: float = 0.1, least: float = 0.3) -> tuple[int, ...]:
        """The units that count: every token moves them by a constant, and some token by no little one.

        Args:
            spread: the largest standard deviation that a constant may have.
            least: the smallest move that some token makes.
        """
        read = self.counts > 0
        steady = (self.spreads[read] <= spread).all(0)
        moving = (np.abs(self.steps[read]) >= least).any(0)
        return tuple(int(unit) for unit in np.flatnonzero(steady & moving))

    def stride(self, unit: int | None = None) -> float:
        """The largest mean move of a unit, which is taken for one count.

        Args:
            unit: None for the best.
        """
        return float(np.nanmax(np.abs(self.steps[:, self.best if unit is None else unit])))


def depth(opening: str = "(", closing: str = ")") -> Signal:
    """The signal that counts what is open: up at one symbol, down at another.

    Args:
        opening: the symbol that goes up.
        closing: the symbol that goes down.

    >>> depth()("(a(b))")
    [1.0, 1.0, 2.0, 2.0, 1.0, 0.0]
    """

    def signal(word: Sequence[str]) -> list[float]:
        moves = [float(symbol == opening) - float(symbol == closing) for symbol in word]
        return list(accumulate(moves))

    return signal


def find_counters(
    model: Network, sequences: Labelled, *, signal: Signal | None = None, layer: int = 0, batch: int = 256
) -> Counters:
    """Measure how each unit of an LSTM's memory moves at each token (Wang & Niepert 2019, figures 6 and 12).

    Args:
        model: of tokens, whose cell has a memory.
        sequences: that it reads.
        signal: what a unit might follow, from the symbols of a word to a number a symbol; e.g. ``depth()``.
        layer: whose memory.
        batch: sequences at once.
    """
    symbols = symbols_of(model, sequences)
    tokens, moments = _Moments(len(symbols)), _Correlation()
    for seen in watch(model, sequences, collect=("cells",), layer=layer, batch=batch):
        cells, before = memories(seen)
        inside = seen.inside
        tokens.add(seen.inputs[inside].cpu(), (cells - before)[inside].double().cpu())
        if signal is not None:
            words = _words(seen, symbols)
            wanted = [value for word in words for value in signal(word)]
            moments.add(torch.tensor(wanted, dtype=torch.float64), cells[inside].double().cpu())
    steps, spreads, explained = tokens.result()
    return Counters(
        symbols=symbols,
        counts=tokens.counts.numpy(),
        steps=steps,
        spreads=spreads,
        explained=explained,
        correlations=None if signal is None else moments.result(),
    )


def memories(seen: Seen) -> tuple[Tensor, Tensor]:
    """The memory after and before each step.

    Args:
        seen: a batch; an error if its cell has no memory.
    """
    if seen.cells is None or seen.before is None:
        raise ArgumentError(where="model", got="a cell without a memory", wanted='one with, such as cell="peephole"')
    return seen.cells, seen.before


def _words(seen: Seen, symbols: Sequence[str]) -> list[list[str]]:
    lengths = seen.inside.sum(1).tolist()
    rows = seen.inputs.tolist()
    return [[symbols[token] for token in row[:length]] for row, length in zip(rows, lengths, strict=True)]


class _Moments:
    """Sums of moves by token, from which means and spreads come."""

    def __init__(self, tokens: int) -> None:
        self.counts = torch.zeros(tokens, dtype=torch.int64)
        self.sums: Tensor | None = None
        self.squares: Tensor | None = None

    def add(self, tokens: Int[Tensor, " steps"], moves: Float[Tensor, "steps units"]) -> None:
        if self.sums is None or self.squares is None:
            self.sums, self.squares = torch.zeros(2, len(self.counts), moves.shape[1], dtype=torch.float64)
        self.counts += torch.bincount(tokens, minlength=len(self.counts))
        self.sums.index_add_(0, tokens, moves)
        self.squares.index_add_(0, tokens, moves**2)

    def result(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self.sums is None or self.squares is None or not int(self.counts.sum()):
            raise LengthError(where="find_counters.sequences", got="no symbols at all", wanted="at least one")
        counts = self.counts[:, None].double()
        means = self.sums / counts
        spreads = (self.squares / counts - means**2).clamp(min=0).sqrt()
        within = (torch.nan_to_num(spreads) ** 2 * counts).sum(0) / counts.sum()
        total = self.squares.sum(0) / counts.sum() - (self.sums.sum(0) / counts.sum()) ** 2
        explained = torch.where(total > 1e-12, 1 - within / total.clamp(min=1e-12), 0.0)
        return means.numpy(), spreads.numpy(), explained.numpy()


class _Correlation:
    """Pearson's correlation of a signal with many units, from sums alone."""

    def __init__(self) -> None:
        self.number = 0
        self.sums: Tensor | None = None

    def add(self, signal: Float[Tensor, " steps"], values: Float[Tensor, "steps units"]) -> None:
        if len(signal) != len(values):
            raise LengthError(where="signal", got=f"{len(signal)} numbers", wanted=f"{len(values)}, one a symbol")
        wide = signal[:, None]
        parts = torch.stack(
            [part.expand_as(values).sum(0) for part in (wide, wide**2, values, values**2, wide * values)]
        )
        self.sums = parts if self.sums is None else self.sums + parts
        self.number += len(signal)

    def result(self) -> Float[np.ndarray, " units"]:
        assert self.sums is not None
        s, ss, v, vv, sv = self.sums / max(self.number, 1)
        scale = ((ss - s**2).clamp(min=0) * (vv - v**2).clamp(min=0)).sqrt()
        return torch.where(scale > 1e-12, (sv - s * v) / scale.clamp(min=1e-12), 0.0).numpy()
