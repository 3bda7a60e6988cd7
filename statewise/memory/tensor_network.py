"""Tensor networks as graphs: a node is a tensor, an edge an index, a joined edge a sum."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from statewise.errors import ArgumentError

#: What a node can be: an input, the weights of a layer, the element-wise product, the readout, a state, any tensor.
KINDS = ("input", "WI", "WH", "delta", "WO", "state", "tensor")


class Bond(NamedTuple):
    """An index: what its range is called, and how far it goes.

    Args:
        symbol: such as M, R or C.
        dimension: the number of values of the index.
    """

    symbol: str
    dimension: int


class End(NamedTuple):
    """Where an edge meets a node.

    Args:
        node: its number.
        axis: of its tensor.
    """

    node: int
    axis: int


@dataclass(frozen=True, kw_only=True)
class Node:
    """A tensor of a network; its order is the number of its edges.

    Args:
        kind: one of :data:`KINDS`.
        edges: the edge of each axis. Axes are those of the matrices, rows first; those of ``delta`` are what comes from
            the step before, what comes from below, and what comes out.
        layer: to which it belongs, from 1; 0 for none.
        step: to which it belongs, from 1; 0 for none.
        label: the name of a "state" or a "tensor".

    >>> Node(kind="WI", edges=(0, 1), layer=2).name
    'WI[2]'
    """

    kind: str
    edges: tuple[int, ...]
    layer: int = 0
    step: int = 0
    label: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ArgumentError(where="Node.kind", got=self.kind, wanted=f"one of {', '.join(KINDS)}")
        if self.kind in ("state", "tensor") and not self.label:
            raise ArgumentError(where="Node.label", got="nothing", wanted=f"a name for a {self.kind}")
        if len(set(self.edges)) < len(self.edges):
            raise ArgumentError(where="Node.edges", got=self.edges, wanted="another edge for each axis")

    @property
    def order(self) -> int:
        """The number of indices of the tensor."""
        return len(self.edges)

    @property
    def name(self) -> str:
        """What the tensor is called; copies of one tensor have one name."""
        if self.label:
            return self.label
        if self.kind == "input":
            return f"x[{self.step}]"
        return f"{self.kind}[{self.layer}]" if self.kind in ("WI", "WH") else self.kind


@dataclass(frozen=True, kw_only=True)
class TensorNetwork:
    """A network: edges that two nodes share are summed over, those of one node stay open (Ziv 2019, Appendix A).

    Args:
        nodes: in an order in which those nearer to the inputs come first.
        bonds: the index of each edge.

    >>> vector, matrix = Node(kind="tensor", edges=(1,), label="v"), Node(kind="tensor", edges=(0, 1), label="A")
    >>> product = TensorNetwork(nodes=(vector, matrix), bonds=(Bond("m", 2), Bond("n", 3)))
    >>> product.open_edges, product.shape
    ((0,), (2,))
    """

    nodes: tuple[Node, ...]
    bonds: tuple[Bond, ...]

    def __post_init__(self) -> None:
        for bond in self.bonds:
            if bond.dimension < 1:
                raise ArgumentError(where="TensorNetwork.bonds", got=bond, wanted="dimensions of at least 1")
        met = Counter(edge for node in self.nodes for edge in node.edges)
        wrong = [edge for edge in range(len(self.bonds)) if met[edge] not in (1, 2)]
        wrong += [edge for edge in met if not 0 <= edge < len(self.bonds)]
        if wrong:
            wanted = f"edges from 0 to {len(self.bonds) - 1}, each with one end or two"
            raise ArgumentError(where="TensorNetwork.nodes", got=f"edge {wrong[0]}", wanted=wanted)

    @cached_property
    def ends(self) -> tuple[tuple[End, ...], ...]:
        """Where each edge begins and, unless it is open, ends; the node that comes first is named first."""
        found: list[list[End]] = [[] for _ in self.bonds]
        for number, node in enumerate(self.nodes):
            for axis, edge in enumerate(node.edges):
                found[edge].append(End(number, axis))
        return tuple(map(tuple, found))

    @property
    def open_edges(self) -> tuple[int, ...]:
        """The free indices, in the order of the edges."""
        return tuple(edge for edge, ends in enumerate(self.ends) if len(ends) == 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what the network stands for."""
        return tuple(self.bonds[edge].dimension for edge in self.open_edges)

    @property
    def edges(self) -> list[tuple[str, str, int]]:
        """The edges as pairs of nodes, such as ``WI[1]#3``, and the dimension; an open one ends at the empty text.

        >>> from statewise.memory.tensor_network_build import circuit_network
        >>> circuit_network(inputs=3, width=2, steps=1, depth=1, classes=4).edges
        [('x[1]#0', 'WI[1]#1', 3), ('WI[1]#1', 'WO#2', 2), ('WO#2', '', 4)]
        """
        called = [f"{node.name}#{number}" for number, node in enumerate(self.nodes)]
        return [
            (called[ends[0].node], called[ends[1].node] if len(ends) == 2 else "", bond.dimension)
            for ends, bond in zip(self.ends, self.bonds, strict=True)
        ]

    def parts(self) -> list[tuple[int, ...]]:
        """The numbers of the nodes of each connected part; the network is the product of its parts."""
        part = list(range(len(self.nodes)))

        def top(node: int) -> int:
            while part[node] != node:
                part[node] = part[part[node]]
                node = part[node]
            return node

        for ends in self.ends:
            part[top(ends[0].node)] = top(ends[-1].node)
        found: dict[int, list[int]] = {}
        for node in range(len(self.nodes)):
            found.setdefault(top(node), []).append(node)
        return [tuple(nodes) for nodes in found.values()]
