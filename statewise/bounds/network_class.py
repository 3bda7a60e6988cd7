"""Classes of recurrent classifiers: stacked layers in one direction or two, an embedding before them, a head after."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from statewise.bounds.layer_class import LayerClass, OffCentreBlock
from statewise.bounds.logs import log_of
from statewise.bounds.lstm import LSTMClass
from statewise.bounds.profile import Block, Profile
from statewise.bounds.walk import Signal, Walk, joined
from statewise.errors import ArgumentError, AssumptionError

T = TypeVar("T")
TITLES = {"rnn": "Elman", "mgu": "MGU", "gru": "GRU", "lstm": "LSTM"}


@dataclass(frozen=True, kw_only=True)
class EmbeddingClass:
    """Tables of vectors, one for each token.

    Args:
        tokens: how many.
        features: of a vector.
        bound: on the length of each vector.
    """

    tokens: int
    features: int
    bound: float


@dataclass(frozen=True, kw_only=True)
class NetworkClass:
    """All classifiers ``y = ρ(V [h; 1])`` of one architecture whose matrices obey the bounds.

    h is the state after the last step of the last layer; of a bidirectional one the last states of both directions. For
    sequences of up to ``steps`` steps, and since each constant is the most over all steps, for a head that reads
    another step, or a mean over steps, as well.

    Args:
        layers: from the input up; a pair for a layer that reads forward and backward.
        head_norm: bound on the spectral norm of V, its bias included as one more column.
        classes: how many.
        steps: t, the most steps of a sequence.
        input_bound: on the length of each input of the first layer; may be infinite with an embedding.
        head_bias: whether the head has one.
        embedding: what turns tokens into inputs, if they are tokens.
        readout: "h", "c" or "hc": whether the head reads the state, an LSTM's memory, or both.
        output_lipschitz: ρ_y, of what comes after the head and is 0 at 0.
        radii: how far each matrix may be from a fixed one, by its block's name, where that is known.

    >>> from statewise.bounds.elman import ElmanClass
    >>> layer = ElmanClass(hidden=4, features=2, norms={"U": 1.0, "W": 1.0})
    >>> net = NetworkClass(layers=(layer,), head_norm=2.0, classes=2, steps=10, input_bound=1.0)
    >>> {block.name: round(math.exp(block.log_lipschitz), 9) for block in net.profile().blocks}
    {'W': 20.0, 'U': 34.0, 'V': 2.0}
    >>> {block.name: round(math.exp(block.log_lipschitz), 9) for block in net.paper().blocks}
    {'W': 20.0, 'U': 200.0, 'V': 10.0}
    """

    layers: tuple[LayerClass | tuple[LayerClass, ...], ...]
    head_norm: float
    classes: int
    steps: int
    input_bound: float
    head_bias: bool = False
    embedding: EmbeddingClass | None = None
    readout: str = "h"
    output_lipschitz: float = 1.0
    radii: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ArgumentError(where="NetworkClass.steps", got=self.steps, wanted="at least 1")
        if self.classes < 2:
            raise ArgumentError(where="NetworkClass.classes", got=self.classes, wanted="at least 2")
        if not self.input_bound > 0 or (math.isinf(self.input_bound) and self.embedding is None):
            raise AssumptionError(
                where="NetworkClass.input_bound",
                got=self.input_bound,
                wanted="a finite length > 0 that no input exceeds",
                remedy="Let the network itself scale longer inputs down.",
            )
        self._check_layers()
        if unknown := sorted(set(self.radii) - {block.name for block in self._blocks}):
            raise ArgumentError(where="NetworkClass.radii", got=unknown, wanted="names of blocks")

    def _check_layers(self) -> None:
        width = self.embedding.features if self.embedding else None
        for directions in self.directions:
            if not 1 <= len(directions) <= 2:
                raise ArgumentError(where="NetworkClass.layers", got=len(directions), wanted="1 or 2 directions")
            for layer in directions:
                if width not in (None, layer.features):
                    got = f"a layer of {layer.features} features above {width} numbers"
                    raise ArgumentError(where="NetworkClass.layers", got=got, wanted="as many")
            width = sum(layer.hidden for layer in directions)
        if width is None:
            raise ArgumentError(where="NetworkClass.layers", got="none", wanted="at least 1")
        if self.readout not in ("h", "c", "hc"):
            raise ArgumentError(where="NetworkClass.readout", got=self.readout, wanted='"h", "c" or "hc"')
        if self.readout != "h" and not all(isinstance(layer, LSTMClass) for layer in self.directions[-1]):
            raise ArgumentError(where="NetworkClass.readout", got=self.readout, wanted='"h": only an LSTM has a memory')

    @cached_property
    def directions(self) -> tuple[tuple[LayerClass, ...], ...]:
        """The layers, each as a tuple of its one or two directions."""
        return tuple(entry if isinstance(entry, tuple) else (entry,) for entry in self.layers)

    @property
    def architecture(self) -> str:
        """In words."""
        first = self.directions[0]
        kinds = {layer.kind for directions in self.directions for layer in directions}
        title = TITLES[first[0].kind] if len(kinds) == 1 else "mixed"
        units = ", then ".join(str(directions[0].hidden) for directions in self.directions)
        both = ", bidirectional" if len(first) == 2 else ""
        return f"{title} network of {units} units{both}"

    @property
    def log_input(self) -> float:
        """The logarithm of the bound on the length of an input."""
        return log_of(min(self.input_bound, math.inf if self.embedding is None else self.embedding.bound))

    @cached_property
    def _blocks(self) -> tuple[Block, ...]:
        """The matrices from the input up, the head's last, without their Lipschitz constants."""
        found: list[Block] = []
        if self.embedding is not None:
            table = self.embedding
            found.append(_block("embedding", table.tokens, table.features, table.bound))
        for prefix, layer in prefixed(self.directions):
            found += [replace(block, name=prefix + block.name) for block in layer.blocks]
        width = len(self.readout) * sum(layer.hidden for layer in self.directions[-1])
        return (*found, _block("V", self.classes, width + self.head_bias, self.head_norm))

    def profile(self) -> Profile:
        """The tightest constants that are proved, by the recursions of all layers over time."""
        signal = Signal(
            log_norm=np.full(self.steps, self.log_input),
            log_moves=np.zeros((self.steps, 0 if self.embedding is None else 1)),
        )
        walks: tuple[Walk, ...] = ()
        every: list[Walk] = []
        for directions in self.directions:
            if walks:
                signal = walks[0].state if len(walks) == 1 else joined(*(walk.state.greatest for walk in walks))
            walks = tuple(_side_by_side(directions, signal))
            every += walks
        read = joined(*(self._read(walk).greatest for walk in walks))
        decays = [walk.log_decay for walk in every if walk.log_decay is not None]
        return self._profile(
            log_moves=read.log_moves[-1].tolist(),
            log_hidden=float(read.log_norm[-1]),
            log_read=float(read.log_norm[-1]),
            log_growth=max(walk.log_growth for walk in every),
            log_decay=max(decays, default=None),
        )

    def paper(self) -> Profile:
        """The constants of the paper's own lemmas where they hold, else (LSTM, GRU) of formulas of the same form.

        Chen, Li & Zhao 2019, Lemmas 2 and 7 (Elman) and Theorem 4 (MGU); repaired for LSTMs, new for GRUs. One layer in
        one direction that starts from zero.
        """
        layer = self.directions[0][0]
        one = len(self.layers) == len(self.directions[0]) == 1
        if not one or self.embedding or layer.start or getattr(layer, "start_memory", None) or self.readout != "h":
            raise AssumptionError(
                where="NetworkClass.paper",
                got=self.architecture,
                wanted="one layer in one direction that reads numbers, starts from zero and shows its state",
                remedy="Use profile(), whose constants hold for all networks.",
            )
        form = layer.closed_form(self.log_input, self.steps)
        return self._profile(
            log_moves=[form.log_moves[block.name] for block in layer.blocks],
            log_hidden=form.log_hidden,
            log_read=form.log_read,
            log_growth=form.log_growth,
            log_decay=form.log_decay,
        )

    def _read(self, walk: Walk) -> Signal:
        if self.readout == "h":
            return walk.state
        assert walk.memory is not None
        return walk.memory if self.readout == "c" else joined(walk.state, walk.memory)

    def _profile(
        self, *, log_moves: list[float], log_hidden: float, log_read: float, log_growth: float, log_decay: float | None
    ) -> Profile:
        log_rho, log_head = log_of(self.output_lipschitz), log_of(self.head_norm)
        fold = 0.0 if self.head_bias else -math.inf
        log_read, log_length = (float(np.logaddexp(fold, 2 * value)) / 2 for value in (log_read, log_hidden))
        lipschitz = [log_rho + log_head + moves for moves in log_moves] + [log_rho + log_read]
        return Profile(
            architecture=self.architecture,
            blocks=tuple(map(self._placed, self._blocks, lipschitz)),
            steps=self.steps,
            log_hidden=log_hidden,
            log_output=log_rho + log_head + log_length,
            log_growth=log_growth,
            log_decay=log_decay,
        )

    def _placed(self, block: Block, log_lipschitz: float) -> Block:
        if block.name not in self.radii:
            return replace(block, log_lipschitz=log_lipschitz)
        bound = min(block.bound, self.radii[block.name])
        return OffCentreBlock(
            name=block.name, rows=block.rows, columns=block.columns, bound=bound, log_lipschitz=log_lipschitz
        )


def prefixed(layers: Sequence[Sequence[T]]) -> Iterator[tuple[str, T]]:
    """Each layer and direction with what comes before the names of its matrices.

    Args:
        layers: from the input up, each with its one or two directions.

    >>> [prefix for prefix, _ in prefixed([["one"]])], [prefix for prefix, _ in prefixed([["one", "other"], ["above"]])]
    ([''], ['layer 0: ', 'layer 0 backward: ', 'layer 1: '])
    """
    alone = len(layers) == 1 and len(layers[0]) == 1
    for place, directions in enumerate(layers):
        for side, layer in enumerate(directions):
            yield "" if alone else f"layer {place}{' backward' * side}: ", layer


def _side_by_side(directions: tuple[LayerClass, ...], inputs: Signal) -> Iterator[Walk]:
    """The walks of all directions, each among the matrices of all."""
    counts = [len(layer.blocks) for layer in directions]
    below = inputs.log_moves.shape[1]
    for place, layer in enumerate(directions):
        walk, before, after = layer.walk(inputs), sum(counts[:place]), sum(counts[place + 1 :])
        memory = None if walk.memory is None else walk.memory.among(below, before, after)
        yield replace(walk, state=walk.state.among(below, before, after), memory=memory)


def _block(name: str, rows: int, columns: int, bound: float) -> Block:
    return Block(name=name, rows=rows, columns=columns, bound=bound, log_lipschitz=-math.inf)
