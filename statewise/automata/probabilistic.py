"""Probabilistic automata: what a memory-less network is at a temperature above 0, when it samples its states."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from statewise.automata.checks import checked_names
from statewise.automata.extract import Extraction, reachable_states, transition_laws
from statewise.automata.moore import MooreMachine, Word
from statewise.automata.symbols import encode_word, numbering
from statewise.errors import ArgumentError, DataError, ShapeError, StatewiseError

Array = np.ndarray


@dataclass(frozen=True)
class NearestMachine:
    """The deterministic machine of the likeliest steps, and what it leaves out.

    Args:
        machine: over the same states.
        gap: the mean over reachable (state, symbol) pairs of ``KL(machine's step || law) = -log P_a[i, δ(i, a)]``.
        largest_gap: the largest of them; 0 means that the law is the machine.
    """

    machine: MooreMachine
    gap: float
    largest_gap: float


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ProbabilisticMachine:
    """An automaton whose next state is drawn: ``P(q' | q, a) = laws[a, q, q']``.

    A memory-less network that samples its centroids (eq. 5) is one, exactly; the mixture of eq. 6 is not
    (Wang & Niepert 2019, Theorem 3.1).

    Args:
        alphabet: the symbols.
        start: (states,), the law of the first state.
        laws: (symbols, states, states), each row a law.
        outputs: (states,), the class of each state.
        classes: their names.
        labels: names of the states.

    >>> laws = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.5, 0.5]]])
    >>> start, outputs = np.array([1.0, 0.0]), np.array([0, 1])
    >>> machine = ProbabilisticMachine(alphabet=("0", "1"), start=start, laws=laws, outputs=outputs)
    >>> machine.law("011").round(3).tolist()
    [0.431, 0.569]
    """

    alphabet: tuple[str, ...]
    start: Array
    laws: Array
    outputs: Array
    classes: tuple[str, ...] = ("reject", "accept")
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        outputs: Array = np.array(self.outputs, dtype=np.int64)
        states, symbols = len(outputs), len(self.alphabet)
        arrays: dict[str, Array] = {
            "start": np.array(self.start, dtype=np.float64),
            "laws": np.array(self.laws, dtype=np.float64),
        }
        for name, shape in (("start", (states,)), ("laws", (symbols, states, states))):
            array = arrays[name]
            if array.shape != shape:
                raise ShapeError(where=f"ProbabilisticMachine.{name}", got=array.shape, wanted=f"{shape}")
            if array.min(initial=0.0) < 0 or not np.allclose(array.sum(-1), 1, atol=1e-6):
                raise ArgumentError(
                    where=f"ProbabilisticMachine.{name}", got="rows that are no laws", wanted="sums of 1"
                )
        for name, array in (*arrays.items(), ("outputs", outputs)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        for name in ("alphabet", "classes", "labels"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @classmethod
    def of(cls, extraction: Extraction) -> ProbabilisticMachine:
        """The probabilistic automaton of a network of one layer, at its temperature.

        Args:
            extraction: of the network.
        """
        network, table = extraction.network, extraction.table
        laws = transition_laws(network)
        (layer,) = network.layers
        first = network.embedding if network.start is None else network.start[None]
        with torch.no_grad():
            similar = layer.similarities(layer.cell_step(first, layer.initial.expand(len(first), -1), fresh=True))
            begin = torch.softmax(similar / layer.rule.temperature, dim=1).numpy()
        start = begin[0]
        if network.start is None:
            # The state before the first symbol is one more, from which each symbol has its law and to which none leads.
            laws = np.pad(laws, ((0, 0), (0, 1), (0, 1)))
            laws[:, -1, :-1] = begin
            start = np.eye(len(table))[-1]
        settings = {"alphabet": table.alphabet, "classes": table.classes, "labels": table.labels}
        return cls(start=start, laws=laws, outputs=table.outputs, **settings)

    def __len__(self) -> int:
        return len(self.outputs)

    def __repr__(self) -> str:
        return f"ProbabilisticMachine({len(self)} states; alphabet {' '.join(self.alphabet[:8])})"

    def _encode(self, word: Word) -> list[int]:
        return encode_word(word, numbering(self.alphabet))

    def laws_along(self, word: Word) -> Array:
        """(length + 1, states), the law of the state before and after every symbol: ``p_0 P_{w_1} ... P_{w_t}``."""
        found = [self.start]
        for symbol in self._encode(word):
            found.append(found[-1] @ self.laws[symbol])
        return np.stack(found)

    def law(self, word: Word) -> Array:
        """(states,), the law of the state after a word."""
        return np.array(self.laws_along(word)[-1])

    def class_law(self, word: Word) -> Array:
        """(classes,), the law of the class of a word."""
        return np.bincount(self.outputs, weights=self.law(word), minlength=len(self.classes))

    def occupancy(self, word: Word) -> Array:
        """(states,), how often each state is expected along a word, the first one included."""
        return np.array(self.laws_along(word).sum(0))

    def viterbi(self, word: Word) -> tuple[list[int], float]:
        """The likeliest path of states along a word, the first one included, and the logarithm of its probability."""
        with np.errstate(divide="ignore"):
            best, steps = np.log(self.start), np.log(self.laws)
        back = []
        for symbol in self._encode(word):
            through = best[:, None] + steps[symbol]
            back.append(through.argmax(0))
            best = through.max(0)
        path = [int(best.argmax())]
        for came_from in reversed(back):
            path.append(int(came_from[path[-1]]))
        return path[::-1], float(best.max())

    def stationary(self, symbols: Sequence[float] | None = None) -> Array:
        """(states,), the long-run share of time in each state from the start, for symbols drawn independently.

        Args:
            symbols: their probabilities; None means all alike.
        """
        step = np.tensordot(self._mixed(symbols), self.laws, axes=1)
        # Half steps have no period, so that their powers converge, and to the mean over a cycle.
        lazy = (np.eye(len(self)) + step) / 2
        for _ in range(60):
            lazy = lazy @ lazy
            lazy /= lazy.sum(1, keepdims=True)
        return np.array(self.start @ lazy)

    def entropy_rate(self, symbols: Sequence[float] | None = None) -> float:
        """Nats a step that the choice of the next state adds, in the long run; 0 for a deterministic machine.

        ``sum_a p_a sum_i pi_i H(P_a[i, :])``.

        Args:
            symbols: probabilities of independently drawn symbols; None means all alike.
        """
        entropy = -np.sum(np.where(self.laws > 0, self.laws * np.log(np.where(self.laws > 0, self.laws, 1)), 0), axis=2)
        return float(self._mixed(symbols) @ entropy @ self.stationary(symbols))

    def nearest(self) -> NearestMachine:
        """The deterministic machine of the likeliest steps: of all, the nearest in Kullback-Leibler divergence."""
        machine = MooreMachine(
            alphabet=self.alphabet,
            transitions=self.laws.argmax(2).T,
            outputs=self.outputs,
            start=int(self.start.argmax()),
            classes=self.classes,
            labels=self.labels,
        )
        gaps = -np.log(self.laws.max(2).T[reachable_states(machine)])
        first = -np.log(self.start.max())
        return NearestMachine(machine, float(gaps.mean()), float(max(gaps.max(), first)))

    def to_dict(self) -> dict[str, Any]:
        """All of it as lists and texts, for JSON."""
        arrays = {name: getattr(self, name).tolist() for name in ("start", "laws", "outputs")}
        return {**arrays, **{name: list(getattr(self, name)) for name in ("alphabet", "classes", "labels")}}

    def to_json(self) -> str:
        """The machine as JSON; :meth:`from_dict` reads it again after ``json.loads``."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> ProbabilisticMachine:
        """The machine that :meth:`to_dict` gave.

        Args:
            entries: by name.
        """
        kinds = {"start": np.float64, "laws": np.float64, "outputs": np.int64}
        try:
            arrays: dict[str, Any] = {name: np.array(entries[name], dtype=kind) for name, kind in kinds.items()}
            texts: dict[str, Any] = {
                name: checked_names(entries[name], f"ProbabilisticMachine.{name}", distinct=name != "labels")
                for name in ("alphabet", "classes", "labels")
            }
            return cls(**arrays, **texts)
        except StatewiseError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            got, wanted = f"{type(error).__name__}: {error}", "what to_dict gives"
            raise DataError(where="ProbabilisticMachine.from_dict", got=got, wanted=wanted) from error

    def _mixed(self, symbols: Sequence[float] | None) -> Array:
        if symbols is None:
            return np.full(len(self.alphabet), 1 / len(self.alphabet))
        law = np.asarray(symbols, dtype=np.float64)
        if law.shape != (len(self.alphabet),) or law.min() < 0 or abs(law.sum() - 1) > 1e-6:
            raise ArgumentError(where="symbols", got=list(symbols), wanted=f"{len(self.alphabet)} shares of 1")
        return law
