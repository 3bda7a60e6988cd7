"""Tensor networks as DOT text, the language of Graphviz, for those who have it."""

from __future__ import annotations

import json

from statewise.memory.tensor_network import TensorNetwork

_SHAPES = {"delta": "triangle", "input": "circle", "state": "circle"}


def network_dot(network: TensorNetwork) -> str:
    """The network as an undirected DOT graph; an edge says its dimension, an open one ends at a point.

    Args:
        network: any.

    >>> from statewise.memory.tensor_network_build import circuit_network
    >>> print(network_dot(circuit_network(inputs=3, width=2, steps=1, depth=1)))
    graph network {
      rankdir=BT;
      0 [label="x[1]", shape=circle];
      1 [label="WI[1]", shape=box];
      2 [label="WO", shape=box];
      open2 [label="", shape=point];
      0 -- 1 [label="M=3"];
      1 -- 2 [label="R=2"];
      2 -- open2 [label="C=1"];
    }
    <BLANKLINE>
    """
    lines = ["graph network {", "  rankdir=BT;"]
    for number, node in enumerate(network.nodes):
        lines.append(f"  {number} [label={_quoted(node.name)}, shape={_SHAPES.get(node.kind, 'box')}];")
    lines += [f'  open{edge} [label="", shape=point];' for edge in network.open_edges]
    for edge, (ends, bond) in enumerate(zip(network.ends, network.bonds, strict=True)):
        other = str(ends[1].node) if len(ends) == 2 else f"open{edge}"
        label = _quoted(f"{bond.symbol}={bond.dimension}")
        lines.append(f"  {ends[0].node} -- {other} [label={label}];")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
