"""From the matrices of a trained network to the class around it: constants are measured, rounded up and paid for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from statewise.bounds.elman import ElmanClass
from statewise.bounds.grid import SLACK, Ledger
from statewise.bounds.gru import GRUClass
from statewise.bounds.layer_class import LayerClass, named_matrices
from statewise.bounds.logs import Floats
from statewise.bounds.lstm import LSTMClass
from statewise.bounds.matrices import NetworkMatrices
from statewise.bounds.mgu import MGUClass
from statewise.bounds.network_class import EmbeddingClass, NetworkClass, prefixed
from statewise.bounds.norms import spectral_norm
from statewise.errors import ShapeError

CELLS: Mapping[str, type[LayerClass]] = {"rnn": ElmanClass, "mgu": MGUClass, "gru": GRUClass, "lstm": LSTMClass}


def network_class(
    matrices: NetworkMatrices,
    *,
    steps: int,
    input_bound: float,
    ledger: Ledger,
    reference: NetworkMatrices | None = None,
    gates: bool = True,
) -> NetworkClass:
    """The class around a network: each constant is what the network has, rounded up and paid for.

    Args:
        matrices: of the network.
        steps: t, the most steps of a sequence.
        input_bound: on the length of each input; infinite where an embedding's vectors are its only bound.
        ledger: where constants are rounded up and paid for, under the names of blocks.
        reference: a network that was fixed before the data was seen, such as that from which training began. Each
            matrix is then also within a ball around that network's.
        gates: whether to look up how far gates can open; else nothing is known of them, and nothing paid.

    >>> from statewise.bounds.matrices import LayerMatrices
    >>> layer = LayerMatrices(kind="rnn", inputs={"state": np.eye(2)}, states={"state": np.eye(2) / 2})
    >>> net = NetworkMatrices(layers=((layer,),), head=3 * np.eye(2))
    >>> found = network_class(net, steps=5, input_bound=1.0, ledger=Ledger(promised={"W": 1.0, "U": 0.5}))
    >>> {block.name: round(block.bound, 6) for block in found.profile().blocks}
    {'W': 1.0, 'U': 0.5, 'V': 3.084422}
    """
    measured = iter(
        [
            CELLS[layer.kind].measured(layer, ledger=ledger, prefix=prefix, gates=gates)
            for prefix, layer in prefixed(matrices.layers)
        ]
    )
    embedding = None
    if matrices.embedding is not None:
        tokens, features = matrices.embedding.shape
        bound = ledger.up("embedding", longest_row(matrices.embedding))
        embedding = EmbeddingClass(tokens=tokens, features=features, bound=bound)
    return NetworkClass(
        layers=tuple(tuple(next(measured) for _ in directions) for directions in matrices.layers),
        head_norm=ledger.up("V", spectral_norm(matrices.folded_head)),
        classes=len(matrices.head),
        steps=steps,
        input_bound=input_bound,
        head_bias=matrices.head_bias is not None,
        embedding=embedding,
        readout=matrices.readout,
        radii={} if reference is None else _radii(matrices, reference, ledger),
    )


def network_blocks(matrices: NetworkMatrices) -> dict[str, Floats]:
    """Every matrix of a network under the name of its block, biases as columns.

    Args:
        matrices: of the network.

    >>> from statewise.bounds.matrices import LayerMatrices
    >>> layer = LayerMatrices(kind="rnn", inputs={"state": np.eye(2)}, states={"state": np.eye(2)}, start=np.ones(2))
    >>> {
    ...     name: matrix.shape
    ...     for name, matrix in network_blocks(NetworkMatrices(layers=((layer,),), head=np.eye(2))).items()
    ... }
    {'W': (2, 2), 'U': (2, 2), 'start': (2, 1), 'V': (2, 2)}
    """
    found = {} if matrices.embedding is None else {"embedding": matrices.embedding}
    for prefix, layer in prefixed(matrices.layers):
        found |= {prefix + name: matrix for name, matrix in named_matrices(layer).items()}
        if layer.start is not None:
            found[f"{prefix}start"] = layer.start[:, None]
    return {**found, "V": matrices.folded_head}


def longest_row(matrix: Floats) -> float:
    """An upper bound on the length of each row, tight to a part in 10^9.

    >>> round(longest_row(np.array([[3.0, 4.0], [1.0, 0.0]])), 6)
    5.0
    """
    return float(np.linalg.norm(matrix, axis=1).max()) * SLACK


def _radii(matrices: NetworkMatrices, reference: NetworkMatrices, ledger: Ledger) -> dict[str, float]:
    # All are paid for, also those beyond the norm's own ball: to pay only for some would be one more choice to pay for.
    here, there = network_blocks(matrices), network_blocks(reference)
    if {name: each.shape for name, each in here.items()} != {name: each.shape for name, each in there.items()}:
        raise ShapeError(where="reference", got="other matrices", wanted="the architecture of the network itself")
    found = {}
    for name, matrix in here.items():
        apart = matrix - there[name]
        length = longest_row(apart) if name == "embedding" else spectral_norm(apart)
        found[name] = ledger.up(f"distance of {name}", length)
    return found
