"""The search for a proof, for words of every length, that a soft network follows its automaton."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from statewise.automata.extract import Extraction
from statewise.automata.frozen import FrozenNetwork
from statewise.automata.proof.certificate import Assumption, Certificate
from statewise.automata.proof.derivatives import BOUNDED
from statewise.automata.proof.readout_bound import ReadoutBound, readout_bound
from statewise.automata.proof.steps_bound import StepsBound, numbers_needed, steps_bound
from statewise.errors import ArgumentError

GROWTH = 1.02  # how far weights are widened beyond the last bound, so that the search ends
ROUNDS = 300
COLDEST, HOTTEST = 1e-6, 1e3
LARGEST = 2**27  # numbers, 1 GiB of float64, that the bound of all steps may hold


def certify(extraction: Extraction, *, temperature: float | None = None) -> Certificate:
    """Try to prove that the soft network equals its automaton on all words.

    Bounds on the weights that a state of the mixture gives to other centroids are searched for: from 0 on, each is
    raised to what the steps into the state need, until one more step exceeds none of them.

    Args:
        extraction: of a network with one layer, in float64.
        temperature: at which the network is used; None means its own.

    >>> from statewise.automata import compile_machine, extract, from_regex
    >>> even = from_regex("(0|10*1)*")
    >>> certify(extract(compile_machine(even))).holds
    True
    """
    search = Search.of(extraction)
    if temperature is None:
        temperature = search.network.layers[0].rule.temperature
    if not (math.isfinite(temperature) and temperature > 0):
        raise ArgumentError(where="certify temperature", got=temperature, wanted="a number above 0")
    with torch.no_grad():
        leaning = search.invariant(temperature)
        unsure = None if leaning is None else search.unsure(leaning)
        return _certificate(extraction, search, temperature, leaning, unsure)


def certified_temperature(extraction: Extraction, *, hottest: float = HOTTEST, precision: float = 0.01) -> float:
    """The largest temperature at which :func:`certify` succeeds, found by bisection; 0 where none does.

    A certificate for one temperature is one for every lower temperature, since all bounds fall with it.

    Args:
        extraction: of a network with one layer, in float64.
        hottest: no higher temperature is tried.
        precision: relative.
    """
    search = Search.of(extraction)
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
class Search:
    """All inequalities that balls around the reachable centroids must satisfy."""

    network: FrozenNetwork
    steps: StepsBound
    readout: ReadoutBound
    reachable: np.ndarray

    @classmethod
    @torch.no_grad()
    def of(cls, extraction: Extraction) -> Search:
        network = _single(extraction)
        k = network.sizes[0]
        # The state before the first token is no centroid: it is known exactly, and its steps count as first ones.
        inner = extraction.reachable[extraction.reachable < k]
        steps = steps_bound(network, np.array(extraction.table.transitions[:k]), inner)
        return cls(network, steps, readout_bound(network, inner), inner)

    def succeeds(self, temperature: float) -> bool:
        leaning = self.invariant(temperature)
        return leaning is not None and self.unsure(leaning) is None

    def unsure(self, leaning: Tensor) -> int | None:
        """A centroid near which the class is not certain; None if there is none."""
        return self.readout.first_failure(leaning, self.steps.radii(leaning))

    def invariant(self, temperature: float) -> Tensor | None:
        """(k, k): weights of other centroids that one more step does not exceed; None if none are within reach."""
        if not self.steps.starts_surely:
            return None
        leaning = torch.zeros_like(self.steps.apart)
        rivals = torch.ones_like(self.steps.gaps, dtype=torch.bool).scatter(1, self.steps.targets[:, None], False)
        for _ in range(ROUNDS):
            margins = self.steps.margins(leaning)
            if not bool(((margins > 0) | ~rivals).all()):
                return None  # some rival could win while the state still leans no further
            ahead = self.steps.next_leaning(margins, temperature)
            if bool((ahead <= leaning).all()):
                return leaning
            leaning = torch.maximum(leaning, ahead * GROWTH)
        return None


def why_not_certifiable(extraction: Extraction) -> str:
    """Why no certificate can be sought for a network; empty if one can.

    Args:
        extraction: of any memory-less network.
    """
    network = extraction.network
    if len(network.layers) > 1:
        return f"{len(network.layers)} layers, of which the upper ones read inputs that are not known exactly"
    if not isinstance(network.layers[0].cell, BOUNDED):
        return f"a {network.layers[0].cell.name} cell, whose derivative is not bounded here"
    if network.embedding.dtype != torch.float64:
        return f"an extraction in {network.embedding.dtype}"
    if (numbers := numbers_needed(network, len(extraction.reachable))) > LARGEST:
        return (
            f"{network.sizes[0]} centroids and {len(network.symbols)} symbols, "
            f"for which the bounds would take {8e-9 * numbers:.1f} GB"
        )
    return ""


def _single(extraction: Extraction) -> FrozenNetwork:
    if why := why_not_certifiable(extraction):
        raise ArgumentError(
            where="certify extraction",
            got=why,
            wanted="one layer of a cell with a known derivative, extracted in torch.float64, with bounds below 1 GB",
            remedy="At argmax the table is a proof for every network: verify(model, machine).proof. "
            "merge_centroids(model) gives a network with fewer centroids.",
        )
    return extraction.network


def _certificate(
    extraction: Extraction, search: Search, temperature: float, leaning: Tensor | None, unsure: int | None
) -> Certificate:
    network, steps = search.network, search.steps
    (layer,) = network.layers
    k = network.sizes[0]
    at = steps.radii(torch.zeros_like(steps.apart) if leaning is None else leaning)
    lipschitz = float(steps.moves.lipschitz(at[steps.sources]).max())
    closed = _worst_step(search, temperature) if leaning is None else ""
    read = "" if unsure is None else _unsure(extraction, unsure, float(at[unsure]))
    return Certificate(
        holds=leaning is not None and unsure is None,
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


def _worst_step(search: Search, temperature: float) -> str:
    """The step that lands farthest from its centroid even when it leaves from one, which is where to look."""
    steps = search.steps
    exact = steps.margins(torch.zeros_like(steps.apart))
    rivals = torch.exp(-exact / temperature).scatter(1, steps.targets[:, None], 0.0)
    needed = (rivals * steps.apart[steps.targets]).sum(1)
    worst = int(needed.argmax())
    lead = float(steps.gaps[worst].scatter(0, steps.targets[worst], torch.inf).min())
    symbol = search.network.symbols[int(steps.symbols[worst])]
    return (
        f"the step from state {int(steps.sources[worst])} on {symbol!r} leads by only {lead:.3g} and lands up to "
        f"{float(needed[worst]):.3g} from its centroid, from where the bound on the next steps does not close."
    )
