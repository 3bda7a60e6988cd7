"""How many copies of each tensor the network of a deep arithmetic circuit has."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from math import comb

from statewise.errors import ArgumentError
from statewise.memory.tensor_network import TensorNetwork


@dataclass(frozen=True, kw_only=True)
class NetworkCounts:
    """The nodes of a network, counted.

    Args:
        inputs: copies of each input ``x_1 .. x_T``.
        input_weights: copies of ``WI[l]``, by layer.
        recurrent_weights: copies of ``WH[l]``, by layer; there are as many element-wise products.
        readouts: copies of ``WO``.
    """

    inputs: tuple[int, ...]
    input_weights: tuple[int, ...]
    recurrent_weights: tuple[int, ...]
    readouts: int = 1

    @property
    def weights(self) -> int:
        """All copies of weights: the degree of the network's output as a polynomial of its weights."""
        return sum(self.input_weights) + sum(self.recurrent_weights) + self.readouts

    @property
    def nodes(self) -> int:
        """All nodes: inputs, weights, and element-wise products."""
        return sum(self.inputs) + self.weights + sum(self.recurrent_weights)


def network_counts(*, steps: int, depth: int) -> NetworkCounts:
    """How many copies of each tensor the network of a circuit has, if ``WH h_0 = 1`` (Ziv 2019, Appendix A.3).

    ``WI[l]`` has ``n_l = C(T+L-l, L-l+1)`` copies, ``WH[l]`` has ``n_l - n_{l+1}`` with ``n_{L+1} = 1``, and the input
    ``x_j`` has ``C(T-j+L-1, L-1)``: the thesis draws them; the closed forms were found by building the networks.

    Args:
        steps: T.
        depth: L.

    >>> network_counts(steps=4, depth=2)
    NetworkCounts(inputs=(4, 3, 2, 1), input_weights=(10, 4), recurrent_weights=(6, 3), readouts=1)
    >>> network_counts(steps=6, depth=3).weights
    139
    """
    check_circuit(steps=steps, depth=depth)
    chains = [comb(steps + depth - layer, depth - layer + 1) for layer in range(1, depth + 1)] + [1]
    return NetworkCounts(
        inputs=tuple(comb(steps - step + depth - 1, depth - 1) for step in range(1, steps + 1)),
        input_weights=tuple(chains[:-1]),
        recurrent_weights=tuple(here - above for here, above in pairwise(chains)),
    )


def count_network(network: TensorNetwork) -> NetworkCounts:
    """The same, by counting the nodes of a network that was built.

    Args:
        network: any; other nodes than those of circuits are not counted.

    >>> from statewise.memory.tensor_network_build import circuit_network
    >>> count_network(circuit_network(inputs=2, width=3, steps=4, depth=2)) == network_counts(steps=4, depth=2)
    True
    """
    met = Counter((node.kind, node.step if node.kind == "input" else node.layer) for node in network.nodes)
    longest = max((node.step for node in network.nodes if node.kind == "input"), default=0)
    deepest = max((node.layer for node in network.nodes if node.kind == "WI"), default=0)
    return NetworkCounts(
        inputs=tuple(met["input", step] for step in range(1, longest + 1)),
        input_weights=tuple(met["WI", layer] for layer in range(1, deepest + 1)),
        recurrent_weights=tuple(met["WH", layer] for layer in range(1, deepest + 1)),
        readouts=met["WO", 0],
    )


def unit_powers(*, steps: int, depth: int, joining: bool = False) -> dict[int, int]:
    """How often each chain of the first layer occurs, which is its power where ``WI[2]`` has rank 1.

    A matrix of rank 1 lets one number through, so that the network is a product of such numbers: the unit over the
    steps 1 to s, ``v . h[s,1]``, to the power ``C(T-s+L-2, L-2)`` (Ziv 2019, Appendix A.4).

    Args:
        steps: T.
        depth: L, at least 2.
        joining: only the units that reach beyond the middle, so that they join Start and End. Their powers have the sum
            ``ms(T/2, L-1)`` (Claim 4, whose last sum must be of ones).

    >>> unit_powers(steps=6, depth=3, joining=True)
    {4: 3, 5: 2, 6: 1}
    """
    check_circuit(steps=steps, depth=depth)
    if depth < 2:
        raise ArgumentError(where="unit_powers.depth", got=depth, wanted="at least 2 layers")
    first = steps // 2 + 1 if joining else 1
    return {step: comb(steps - step + depth - 2, depth - 2) for step in range(first, steps + 1)}


def product_form(*, steps: int, depth: int) -> str:
    """What joins Start and End where ``WI[2]`` has rank 1, as a product of powers of units (Ziv 2019, Appendix A.4).

    Args:
        steps: T.
        depth: L, at least 2.

    >>> product_form(steps=6, depth=3)
    '(unit 1..4)^3 (unit 1..5)^2 (unit 1..6)^1'
    """
    powers = unit_powers(steps=steps, depth=depth, joining=True)
    return " ".join(f"(unit 1..{step})^{power}" for step, power in powers.items())


def check_circuit(**sizes: int) -> None:
    """Refuse sizes that no circuit has.

    Args:
        sizes: by name.
    """
    for name, size in sizes.items():
        if size < 1:
            raise ArgumentError(where=name, got=size, wanted="an integer >= 1")
