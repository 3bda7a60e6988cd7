"""The finite table of a frozen network: from which centroids which token leads where, and by what margin."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np
import torch
from torch import Tensor

from statewise.automata.frozen import FrozenNetwork
from statewise.errors import ArgumentError, NonFiniteError

# A margin below this part of the largest similarity may be flipped by rounding in float32 (spec section 7).
AMBIGUOUS = 1e-5
NUMBERS_AT_ONCE = 2**23  # 64 MiB of float64: what one batched evaluation may hold


@dataclass(frozen=True, eq=False)
class Steps:
    """What rows of (state, token) lead to.

    Args:
        chosen: (rows, layers), the centroid of each layer.
        margins: (rows,), the smallest lead of a chosen centroid over the second, before the temperature.
        ambiguous: (rows,), whether rounding could choose otherwise.
    """

    chosen: np.ndarray
    margins: np.ndarray
    ambiguous: np.ndarray


@dataclass(frozen=True, eq=False)
class Table:
    """All states and where they lead.

    Args:
        states: (states, layers) centroid numbers; -1 for the state before the first token, where there is no START.
        start: the number of the start state.
        successors: (states, symbols).
        margins: (states, symbols).
        ambiguous: (states, symbols).
        outputs: (states,), the class that is read out.
        output_margins: (states,), its lead over the second best.
        output_ambiguous: (states,).
        start_margin: that of START; infinite where there is none.
        start_ambiguous: that of START.
    """

    states: np.ndarray
    start: int
    successors: np.ndarray
    margins: np.ndarray
    ambiguous: np.ndarray
    outputs: np.ndarray
    output_margins: np.ndarray
    output_ambiguous: np.ndarray
    start_margin: float
    start_ambiguous: bool


def evaluate_pairs(network: FrozenNetwork, states: np.ndarray) -> Steps:
    """One step at argmax from all pairs of a state and a symbol, in as few batches as memory allows.

    Args:
        network: a memory-less network.
        states: (states, layers), numbers of centroids.
    """
    at_once = max(1, NUMBERS_AT_ONCE // (_numbers_a_row(network) * len(network.symbols)))
    found = []
    for begin in range(0, len(states), at_once):
        chosen, seen = network.hard_pairs(network.at_centroids(torch.from_numpy(states[begin : begin + at_once])))
        found.append(_steps(network, chosen, seen))
    parts = zip(*((steps.chosen, steps.margins, steps.ambiguous) for steps in found), strict=True)
    return found[0] if len(found) == 1 else Steps(*(np.concatenate(part) for part in parts))


def evaluate_start(network: FrozenNetwork) -> Steps:
    """The first step: START, or where there is none, every symbol from the initial state."""
    inputs = network.embedding if network.start is None else network.start[None]
    return _steps(network, *network.hard_step(inputs, network.initial(len(inputs)), fresh=True))


def _numbers_a_row(network: FrozenNetwork) -> int:
    """How many numbers one row needs at its widest: gates, or the differences to all centroids."""
    widest = 0
    for layer in network.layers:
        k, hidden = layer.centroids.shape
        widest = max(widest, len(layer.weight_hh), k if layer.rule.similarity == "dot" else k * hidden)
    return widest


def _steps(network: FrozenNetwork, chosen: Tensor, seen: tuple[Tensor, ...]) -> Steps:
    decided = [_decided(network, similar) for similar in seen]
    margins, unsure = np.stack([margin for _, margin, _ in decided]), np.stack([doubt for _, _, doubt in decided])
    return Steps(chosen.numpy(), margins.min(axis=0), np.asarray(unsure.any(axis=0)))


def _decided(network: FrozenNetwork, scores: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The best of each row, its lead over the second, and whether rounding could choose otherwise."""
    if not bool(torch.isfinite(scores).all()):
        raise NonFiniteError(where="extract model", got="scores that are not finite", wanted="finite weights")
    if scores.shape[1] == 1:
        return np.zeros(len(scores), np.int64), np.full(len(scores), np.inf), np.zeros(len(scores), dtype=bool)
    best = scores.topk(2, dim=1).values
    lead = best[:, 0] - best[:, 1]
    coarser = max(1.0, torch.finfo(network.dtype).eps / torch.finfo(torch.float32).eps)
    unsure = lead <= AMBIGUOUS * coarser * scores.abs().amax(1)
    return scores.argmax(1).numpy(), lead.numpy(), unsure.numpy()


@torch.no_grad()
def read_table(network: FrozenNetwork, *, max_states: int = 100_000) -> Table:
    """The table over all centroids of one layer; of several layers, over the tuples that words reach (algorithm A5).

    Args:
        network: a memory-less network.
        max_states: an error if there are more tuples.
    """
    symbols, layers = len(network.symbols), len(network.layers)
    begin = evaluate_start(network)
    known: dict[tuple[int, ...], int] = {}

    def number(states: np.ndarray) -> np.ndarray:
        """Numbers of the states, given to new ones in the order in which they come."""
        return np.array([known.setdefault(tuple(state), len(known)) for state in states.tolist()], dtype=np.int64)

    if layers == 1:
        number(np.arange(network.sizes[0])[:, None])
    seeds = number(begin.chosen)
    found: list[Steps] = []
    rows: list[np.ndarray] = []
    done = 0
    for _ in count():
        frontier = np.array(list(known)[done:], dtype=np.int64).reshape(-1, layers)
        if len(frontier) == 0:
            break
        if len(known) > max_states:
            raise ArgumentError(
                where="extract max_states", got=f"more than {max_states} reachable tuples of centroids",
                wanted="fewer states", remedy="Raise max_states, or give the layers fewer centroids.",
            )  # fmt: skip
        done = len(known)
        steps = evaluate_pairs(network, frontier)
        found.append(steps)
        rows.append(number(steps.chosen).reshape(-1, symbols))
    states = np.array(list(known), dtype=np.int64)
    outputs, output_margins, output_ambiguous = _decided(
        network, network.read_out(network.at_centroids(torch.from_numpy(states)))
    )
    whole = Table(
        states=states,
        start=int(seeds[0]),
        successors=np.concatenate(rows),
        margins=np.concatenate([s.margins for s in found]).reshape(-1, symbols),
        ambiguous=np.concatenate([s.ambiguous for s in found]).reshape(-1, symbols),
        outputs=outputs,
        output_margins=output_margins,
        output_ambiguous=output_ambiguous,
        start_margin=float(begin.margins[0]),
        start_ambiguous=bool(begin.ambiguous[0]),
    )
    return whole if network.start is not None else _with_own_start(network, whole, seeds, begin)


def _with_own_start(network: FrozenNetwork, table: Table, seeds: np.ndarray, begin: Steps) -> Table:
    """The table with one more state: the one before the first token, which is no centroid."""
    empty, lead, unsure = _decided(network, network.read_out(network.initial(1), fresh=True))
    return Table(
        states=np.concatenate([table.states, np.full((1, table.states.shape[1]), -1)]),
        start=len(table.states),
        successors=np.concatenate([table.successors, seeds[None]]),
        margins=np.concatenate([table.margins, begin.margins[None]]),
        ambiguous=np.concatenate([table.ambiguous, begin.ambiguous[None]]),
        outputs=np.concatenate([table.outputs, empty]),
        output_margins=np.concatenate([table.output_margins, lead]),
        output_ambiguous=np.concatenate([table.output_ambiguous, unsure]),
        start_margin=float("inf"),
        start_ambiguous=False,
    )
