"""The search for a proof, for words of every length, that a soft network follows its automaton."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from statewise.automata.certificate import Assumption, Certificate
from statewise.automata.extract import Extraction
from statewise.automata.frozen import FrozenNetwork
from statewise.automata.readout_bound import ReadoutBound, readout_bound
from statewise.automata.steps_bound import StepsBound, steps_bound
from statewise.errors import ArgumentError, NotMemorylessError

GROWTH = 1.02  # how far radii are widened beyond the last bound, so that the search ends
ROUNDS = 300
COLDEST = 1e-6


def certify(extraction: Extraction, *, temperature: float | None = None) -> Certificate:
    """Try to prove that the soft network equals its automaton on all words.

    The balls of :class:`Certificate` are searched for: from the smallest on, each is widened to what the steps into it
    need, until one more step leaves none of them.

    Args:
        extraction: of a network with one layer, in float64.
        temperature: at which the network is used; None means its own.

    >>> from statewise.automata import compile_machine, extract, from_regex
    >>> even = from_regex("(0|10*1)*")
    >>> certify(extract(compile_machine(even))).holds
    True
    """
    search = _Search.of(extraction)
    if temperature is None:
        temperature = search.network.layers[0].rule.temperature
    if not (math.isfinite(temperature) and temperature > 0):
        raise ArgumentError(where="certify temperature", got=temperature, wanted="a number above 0")
    with torch.no_grad():
        radii = search.invariant(temperature)
        unsure = None if radii is None else search.readout.first_failure(radii)
        return _certificate(extraction, search, temperature, radii, unsure)


def certified_temperature(extraction: Extraction, *, hottest: float = 1e3, precision: float = 0.01) -> float:
    """The largest temperature at which :func:`certify` succeeds, found by bisection; 0 where none does.

    A certificate for one temperature is one for every lower temperature, since all bounds fall with it.

    Args:
        extraction: of a network with one layer, in float64.
        hottest: no higher temperature is tried.
        precision: relative.
    """
    search = _Search.of(extraction)
    with torch.no_grad():
        if not search.succeeds(COLDEST):
            return 0.0
        low, high = COLDEST, hottest
        if search.succeeds(hottest):
            return hottest
        while high > low * (1 + precision):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if search.succeeds(middle) else (low, middle)
        return low


@dataclass(frozen=True, eq=False)
class _Search:
    """All inequalities that balls around the reachable centroids must satisfy."""

    network: FrozenNetwork
    steps: StepsBound
    readout: ReadoutBound
    reachable: np.ndarray

    @classmethod
    @torch.no_grad()
    def of(cls, extraction: Extraction) -> _Search:
        network = _single(extraction)
        k = network.sizes[0]
        # The state before the first token is no centroid: it is known exactly, and its steps count as first ones.
        inner = extraction.reachable[extraction.reachable < k]
        steps = steps_bound(network, np.array(extraction.table.transitions[:k]), inner)
        return cls(network, steps, readout_bound(network, inner), inner)

    def succeeds(self, temperature: float) -> bool:
        radii = self.invariant(temperature)
        return radii is not None and self.readout.first_failure(radii) is None

    def invariant(self, temperature: float) -> Tensor | None:
        """Radii that one more step does not leave; None if there are none within reach."""
        if not self.steps.starts_surely:
            return None
        centroids = self.steps.layer.centroids
        # Not below what float64 itself may be off by.
        floor = 1e-12 * float(torch.linalg.vector_norm(centroids, dim=1).amax())
        radii = torch.full((len(centroids),), floor, dtype=centroids.dtype)
        rivals = torch.ones_like(self.steps.gaps, dtype=torch.bool).scatter(1, self.steps.targets[:, None], False)
        for _ in range(ROUNDS):
            margins = self.steps.margins(radii)
            if not bool(((margins > 0) | ~rivals).all()):
                return None  # some rival could win while the state is still within the radii
            ahead = self.steps.next_radii(margins, temperature)
            if bool((ahead <= radii).all()):
                return radii
            radii = torch.maximum(radii, ahead * GROWTH)
        return None


def _single(extraction: Extraction) -> FrozenNetwork:
    network = extraction.network
    if len(network.layers) > 1:
        raise NotMemorylessError(
            where="certify extraction",
            got=f"{len(network.layers)} layers",
            wanted="one layer: in a stack an upper layer's input is not known exactly, which is not bounded here",
            remedy="At argmax the table is a proof for stacks too: verify(model, machine).proof.",
        )
    if network.embedding.dtype != torch.float64:
        raise ArgumentError(
            where="certify extraction", got=str(network.embedding.dtype), wanted="an extraction in torch.float64"
        )
    return network


def _certificate(
    extraction: Extraction, search: _Search, temperature: float, radii: Tensor | None, unsure: int | None
) -> Certificate:
    network, steps = search.network, search.steps
    (layer,) = network.layers
    k = network.sizes[0]
    at = radii if radii is not None else torch.zeros(k, dtype=torch.float64)
    lipschitz = float(steps.moves.lipschitz(at[steps.sources]).max())
    closed = _worst_step(search, temperature) if radii is None else ""
    read = "" if unsure is None else _unsure(extraction, unsure, float(at[unsure]))
    return Certificate(
        holds=radii is not None and unsure is None,
        temperature=temperature,
        radii={int(state): float(at[state]) for state in search.reachable} if not closed + read else {},
        gap=extraction.min_margin,
        lipschitz=lipschitz,
        diameter=float(torch.pdist(layer.centroids).max()) if k > 1 else 0.0,
        centroids=k,
        similarity=layer.rule.similarity,
        assumptions=_assumptions(network, extraction.min_margin, lipschitz, closed=closed, read=read),
        failure=closed or read,
    )


def _assumptions(
    network: FrozenNetwork, gap: float, lipschitz: float, *, closed: str, read: str
) -> tuple[Assumption, ...]:
    kind = f"one layer of {network.layers[0].cell.name} with {network.sizes[0]} centroids"
    bounded = f"by interval arithmetic in float64, widened by 1e-9: Lipschitz constant at most {lipschitz:.4g}"
    all_read = "not reached" if closed else "checked for every reachable state"
    return (
        Assumption("the cell carries nothing but its state, and every layer has centroids", kind, True),
        Assumption("every reachable step has one best centroid", f"the smallest lead is {gap:.4g}", gap > 0),
        Assumption("the cell's derivative is bounded on every ball", bounded, math.isfinite(lipschitz)),
        Assumption(
            "one more step leaves no ball",
            closed or "checked for every reachable (state, symbol) pair and for the start",
            not closed,
        ),
        Assumption("the read-out has one class on every ball", read or all_read, not (closed or read)),
    )


def _unsure(extraction: Extraction, state: int, radius: float) -> str:
    return f"the read-out of state {extraction.table.labels[state]} may change its class within {radius:.3g} of it."


def _worst_step(search: _Search, temperature: float) -> str:
    """The step that lands farthest from its centroid even when it leaves from one, which is where to look."""
    steps = search.steps
    exact = steps.margins(torch.zeros(search.network.sizes[0], dtype=torch.float64))
    rivals = torch.exp(-exact / temperature).scatter(1, steps.targets[:, None], 0.0)
    needed = (rivals * steps.distances).sum(1)
    worst = int(needed.argmax())
    lead = float(steps.gaps[worst].scatter(0, steps.targets[worst], torch.inf).min())
    symbol = search.network.symbols[int(steps.symbols[worst])]
    return (
        f"the step from state {int(steps.sources[worst])} on {symbol!r} leads by only {lead:.3g} and lands up to "
        f"{float(needed[worst]):.3g} from its centroid, from where the bound on the next steps does not close."
    )
