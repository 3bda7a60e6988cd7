"""The automaton that a memory-less network computes, read off its weights: exact, and without data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from statewise.automata.faithfulness import Faithfulness, compare_with_words
from statewise.automata.freeze import freeze
from statewise.automata.frozen import FrozenNetwork
from statewise.automata.moore import MooreMachine, Word
from statewise.automata.table import Table, read_table
from statewise.errors import NotMemorylessError
from statewise.models import SequenceClassifier

if TYPE_CHECKING:
    from statewise.automata.card import FaithfulnessCard


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Extraction:
    """What :func:`extract` found: the machine, and what is needed to judge it.

    Attributes:
        machine: reachable, minimal, canonical; labels name the centroids that were merged into each state.
        table: the machine over all centroids (of several layers: over all reachable tuples of them).
        states: (states of the table, layers), their centroids; -1 for the state before the first token.
        margins: (states of the table, symbols), the best similarity less the second best, before the temperature.
        start_margin: the same for START; infinite where there is none.
        output_margins: (states of the table,), the read-out of the class less that of the second best.
        ambiguous: (state, symbol) pairs that words reach and whose margin rounding could overturn; the symbol is END
            for a read-out, and the state empty for START.
        used: for each layer the centroids that words reach.
        unused: for each layer the others.
        agreement: with the words that were given; None if none were.
        network: the frozen network from which all this was read.
    """

    machine: MooreMachine
    table: MooreMachine
    states: np.ndarray
    margins: np.ndarray
    start_margin: float
    output_margins: np.ndarray
    ambiguous: tuple[tuple[str, str], ...]
    used: tuple[tuple[int, ...], ...]
    unused: tuple[tuple[int, ...], ...]
    agreement: Faithfulness | None
    network: FrozenNetwork

    def __repr__(self) -> str:
        used, of = (", ".join(str(len(layer)) for layer in part) for part in (self.used, self._all))
        return f"Extraction({self.machine!r}, {used} of {of} centroids used, smallest margin {self.min_margin:.3g})"

    @property
    def _all(self) -> tuple[tuple[int, ...], ...]:
        return tuple(a + b for a, b in zip(self.used, self.unused, strict=True))

    @cached_property
    def reachable(self) -> np.ndarray:
        """The numbers of the table's states that words reach."""
        return reachable_states(self.table)

    @property
    def min_margin(self) -> float:
        """The smallest margin of a step that some word takes, START included."""
        return min(self.start_margin, float(self.margins[self.reachable].min()))

    @property
    def soft_agreement(self) -> float | None:
        """The share of the given words to which the network as it is gives the machine's class."""
        return None if self.agreement is None else self.agreement.soft

    @property
    def hard_agreement(self) -> float | None:
        """The share of the given words to which the network at argmax gives the machine's class."""
        return None if self.agreement is None else self.agreement.hard

    @cached_property
    def probabilities(self) -> np.ndarray:
        """(symbols, k, k), ``P_a[i, j]`` the law of the next centroid at the network's temperature (Theorem 3.1)."""
        return transition_laws(self.network)

    @cached_property
    def card(self) -> FaithfulnessCard:
        """How far the machine may be trusted; computed when first asked for."""
        from statewise.automata.card import faithfulness_card

        return faithfulness_card(self)


def extract(
    model: SequenceClassifier,
    *,
    dtype: torch.dtype = torch.float64,
    words: Sequence[Word] | None = None,
    labels: Sequence[int] | None = None,
    classes: Sequence[str] | None = None,
    max_states: int = 100_000,
) -> Extraction:
    """Read the automaton of a memory-less classifier off its weights.

    ``δ(i, a) = argmax_j similarity(cell(a, s_i), s_j)``, ``q_0 = argmax_j similarity(cell(START, h_0), s_j)``, and the
    class of i is the read-out's after END: all (centroid, token) pairs in one batch. The machine equals the network at
    argmax on every word, of every length; it does not depend on the temperature (Wang & Niepert 2019, Theorem 3.2).

    Args:
        model: a classifier of tokens with a memory-less cell and centroids in every layer.
        dtype: of the evaluation.
        words: on which to compare the machine with the network, softly and at argmax; none are needed.
        labels: the true classes of the words, for accuracies beside the agreements.
        classes: the names of the classes; None means reject and accept for two, numbers otherwise.
        max_states: an error if a stack has more reachable tuples.

    >>> from statewise.models import ClassifierConfig
    >>> config = ClassifierConfig(hidden=8, centroids=(1,))
    >>> len(extract(config.build(tokens=2, classes=2, symbols="01")).machine)
    1
    """
    extraction = read_network(freeze(model, dtype=dtype, classes=classes), max_states=max_states)
    if words is None:
        return extraction
    return replace(extraction, agreement=compare_with_words(model, extraction.machine, words, labels=labels))


def read_network(network: FrozenNetwork, *, max_states: int = 100_000) -> Extraction:
    """The automaton of a frozen network; :func:`extract` for those who have changed its tensors.

    Args:
        network: a memory-less network.
        max_states: an error if a stack has more reachable tuples.
    """
    table = read_table(network, max_states=max_states)
    names = tuple(_label(state) for state in table.states.tolist())
    whole = MooreMachine(
        alphabet=network.symbols,
        transitions=table.successors,
        outputs=table.outputs,
        start=table.start,
        classes=network.classes,
        labels=names,
    )
    reached = reachable_states(whole)
    used = tuple(tuple(sorted({*table.states[reached, layer].tolist()} - {-1})) for layer in range(len(network.layers)))
    return Extraction(
        machine=whole.minimise(),
        table=whole,
        states=_read_only(table.states),
        margins=_read_only(table.margins),
        start_margin=table.start_margin,
        output_margins=_read_only(table.output_margins),
        ambiguous=_ambiguous(table, reached, names, network.symbols),
        used=used,
        unused=tuple(tuple(sorted({*range(k)} - {*own})) for k, own in zip(network.sizes, used, strict=True)),
        agreement=None,
        network=network,
    )


def transition_laws(network: FrozenNetwork) -> np.ndarray:
    """``P_a[i, :] = softmax(similarity(cell(a, s_i), S) / tau)`` for every symbol a (Theorem 3.1): (symbols, k, k)."""
    if len(network.layers) > 1:
        raise NotMemorylessError(
            where="Extraction.probabilities",
            got=f"{len(network.layers)} layers",
            wanted="one layer: the law over tuples is not one matrix of k x k",
            remedy="The deterministic machine over tuples is Extraction.table.",
        )
    (layer,) = network.layers
    k = len(layer.centroids)
    with torch.no_grad():
        laws = [
            torch.softmax(
                layer.similarities(layer.cell_step(symbol.expand(k, -1), layer.centroids)) / layer.rule.temperature,
                dim=1,
            )
            for symbol in network.embedding
        ]
    return _read_only(torch.stack(laws).numpy())


def reachable_states(machine: MooreMachine) -> np.ndarray:
    """The states that words reach, in rising order."""
    seen = np.zeros(len(machine), dtype=bool)
    frontier = np.array([machine.start])
    while len(frontier):
        seen[frontier] = True
        ahead = np.unique(machine.transitions[frontier])
        frontier = ahead[~seen[ahead]]
    return np.flatnonzero(seen)


def _label(state: list[int]) -> str:
    """The centroids of a state, as ``3`` or ``3,1``; the state before the first token is ``start``."""
    return "start" if -1 in state else ",".join(map(str, state))


def _ambiguous(
    table: Table, reached: np.ndarray, names: tuple[str, ...], symbols: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    places = np.argwhere(table.ambiguous[reached]).tolist()
    found = [(names[reached[row]], symbols[column]) for row, column in places]
    found += [(names[state], "END") for state in reached[table.output_ambiguous[reached]].tolist()]
    return (("", "START"), *found) if table.start_ambiguous else tuple(found)


def _read_only(array: np.ndarray) -> np.ndarray:
    array = np.array(array)
    array.flags.writeable = False
    return array
