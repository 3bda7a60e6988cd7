"""The tensor networks of Appendix A: of circuits of any depth, of their states, and of the plain tensors."""

from __future__ import annotations

from collections.abc import Sequence

from statewise.errors import ArgumentError
from statewise.memory.tensor_network import Bond, Node, TensorNetwork
from statewise.memory.tensor_network_counts import check_circuit, network_counts

#: More nodes than this are not built: the closed forms of the counts need no network.
MOST_NODES = 100_000


class _Builder:
    """Adds nodes, those nearer to the inputs first."""

    def __init__(self, inputs: int, width: int) -> None:
        self.inputs, self.width = Bond("M", inputs), Bond("R", width)
        self.nodes: list[Node] = []
        self.bonds: list[Bond] = []

    def edge(self, bond: Bond) -> int:
        self.bonds.append(bond)
        return len(self.bonds) - 1

    def add(self, kind: str, *edges: int, layer: int = 0, step: int = 0, label: str = "") -> int:
        """Add a node; gives its first edge."""
        self.nodes.append(Node(kind=kind, edges=edges, layer=layer, step=step, label=label))
        return edges[0]

    def state(self, step: int, layer: int) -> int:
        """Add all that makes ``h[step, layer]``; gives the edge that it comes out at.

        Nothing can be copied in a tensor network (Claim 3), so everything below is built again for each use.
        """
        if layer == 0:
            return self.add("input", self.edge(self.inputs), step=step)
        before: int | None = None
        for now in range(1, step + 1):
            below = self.state(now, layer - 1)
            entering = self.add("WI", self.edge(self.width), below, layer=layer, step=now)
            if before is None:  # WH h_0 = 1: nothing to multiply with
                before = entering
                continue
            turned = self.add("WH", self.edge(self.width), before, layer=layer, step=now)
            before = self.edge(self.width)
            self.add("delta", turned, entering, before, layer=layer, step=now)
        assert before is not None
        return before

    def network(self) -> TensorNetwork:
        return TensorNetwork(nodes=tuple(self.nodes), bonds=tuple(self.bonds))


def circuit_network(*, inputs: int, width: int, steps: int, depth: int, classes: int = 1) -> TensorNetwork:
    """The network of the scores of a circuit after its last step (Ziv 2019, Appendix A.2 and A.3).

    Each use of a state repeats the network that made it, down to the inputs. It begins with ``WH h_0 = 1``. What is
    open is the class.

    Args:
        inputs: M.
        width: R.
        steps: T.
        depth: L.
        classes: C.

    >>> network = circuit_network(inputs=3, width=2, steps=4, depth=2, classes=5)
    >>> len(network.nodes), network.shape, len(network.parts())
    (43, (5,), 1)
    """
    check_circuit(inputs=inputs, width=width, steps=steps, depth=depth, classes=classes)
    _check_size(steps, depth)
    builder = _Builder(inputs, width)
    top = builder.state(steps, depth)
    builder.add("WO", builder.edge(Bond("C", classes)), top)
    return builder.network()


def state_network(*, inputs: int, width: int, step: int, layer: int) -> TensorNetwork:
    """The network of one state ``h[t,l]``, such as Figure A.3b with t = l = 2, which is equation A.4.

    Args:
        inputs: M.
        width: R.
        step: t.
        layer: l.

    >>> [node.name for node in state_network(inputs=3, width=2, step=2, layer=1).nodes]
    ['x[1]', 'WI[1]', 'x[2]', 'WI[1]', 'WH[1]', 'delta']
    """
    check_circuit(inputs=inputs, width=width, step=step, layer=layer)
    _check_size(step, layer)
    builder = _Builder(inputs, width)
    builder.state(step, layer)
    return builder.network()


def product_network(*, inputs: int, width: int, steps: int, depth: int, classes: int = 1) -> TensorNetwork:
    """The network of a circuit whose ``WI[2]`` is ``u vᵀ``: it falls into parts (Ziv 2019, Appendix A.4).

    Every copy of ``WI[2]`` is the two nodes u and v, which share no edge.

    Args:
        inputs: M.
        width: R.
        steps: T.
        depth: L, at least 2.
        classes: C.

    >>> len(product_network(inputs=2, width=2, steps=6, depth=3).parts())  # what reads u, and 6+5+4+3+2+1 units
    22
    """
    whole = circuit_network(inputs=inputs, width=width, steps=steps, depth=depth, classes=classes)
    if depth < 2:
        raise ArgumentError(where="product_network.depth", got=depth, wanted="at least 2 layers")
    nodes: list[Node] = []
    for node in whole.nodes:
        if node.kind == "WI" and node.layer == 2:
            nodes += [
                Node(kind="tensor", edges=(edge,), layer=2, step=node.step, label=label)
                for edge, label in zip(reversed(node.edges), "vu", strict=True)
            ]
        else:
            nodes.append(node)
    return TensorNetwork(nodes=tuple(nodes), bonds=whole.bonds)


def unit_network(*, inputs: int, width: int, steps: int) -> TensorNetwork:
    """One of its parts: ``v . h[s,1]``, a number that joins the steps 1 to s.

    Args:
        inputs: M.
        width: R.
        steps: s.

    >>> unit_network(inputs=2, width=3, steps=4).shape
    ()
    """
    check_circuit(inputs=inputs, width=width, steps=steps)
    builder = _Builder(inputs, width)
    builder.add("tensor", builder.state(steps, 1), layer=2, step=steps, label="v")
    return builder.network()


def cell_network(*, inputs: int, width: int) -> TensorNetwork:
    """One step of a layer: ``h_t[k] = sum WH[k',j] h_{t-1}[j] WI[d',d] f_d(x_t) delta[k',d',k]`` (Figure A.2a).

    Args:
        inputs: M.
        width: R.

    >>> cell_network(inputs=3, width=2).shape
    (2,)
    """
    check_circuit(inputs=inputs, width=width)
    builder = _Builder(inputs, width)
    below = builder.add("input", builder.edge(builder.inputs), step=1)
    entering = builder.add("WI", builder.edge(builder.width), below, layer=1, step=1)
    before = builder.add("state", builder.edge(builder.width), label="h[t-1]")
    turned = builder.add("WH", builder.edge(builder.width), before, layer=1, step=1)
    builder.add("delta", turned, entering, builder.edge(builder.width), layer=1, step=1)
    return builder.network()


def train_network(*, inputs: int, width: int, steps: int, classes: int = 1) -> TensorNetwork:
    """The circuit of one layer with WI, WH and delta of each step contracted: a tensor train (Figure A.2c).

    ``B[j,d,k] = WI[k,d] WH[k,j]``; the first is ``A[d,k] = WI[k,d]``. What is open are the class and the T inputs.

    Args:
        inputs: M.
        width: R.
        steps: T.
        classes: C.

    >>> train_network(inputs=3, width=2, steps=4).shape
    (3, 3, 3, 3, 1)
    """
    check_circuit(inputs=inputs, width=width, steps=steps, classes=classes)
    builder = _Builder(inputs, width)
    first = builder.edge(builder.inputs)
    state = builder.edge(builder.width)
    builder.add("tensor", first, state, layer=1, step=1, label="A")
    for step in range(2, steps + 1):
        leg, after = builder.edge(builder.inputs), builder.edge(builder.width)
        builder.add("tensor", state, leg, after, layer=1, step=step, label="B")
        state = after
    builder.add("WO", builder.edge(Bond("C", classes)), state)
    return builder.network()


def plain_network(*shape: int, label: str = "A") -> TensorNetwork:
    """One tensor with all its indices open: a vector, a matrix, or one of any order (Figure A.1).

    Args:
        shape: of the tensor.
        label: its name.

    >>> plain_network(2, 3).nodes[0].order
    2
    """
    node = Node(kind="tensor", edges=tuple(range(len(shape))), label=label)
    bonds = [Bond(f"n{_SMALL[number]}", size) for number, size in enumerate(shape, 1)]
    return TensorNetwork(nodes=(node,), bonds=tuple(bonds))


def matrix_vector_network(rows: int, columns: int) -> TensorNetwork:
    """A matrix times a vector: the joined edge is the sum (Figure A.1).

    Args:
        rows: of the matrix.
        columns: of the matrix, and length of the vector.

    >>> matrix_vector_network(2, 3).shape
    (2,)
    """
    nodes: Sequence[Node] = (
        Node(kind="tensor", edges=(1,), label="v"),
        Node(kind="tensor", edges=(0, 1), label="A"),
    )
    return TensorNetwork(nodes=tuple(nodes), bonds=(Bond("n₁", rows), Bond("n₂", columns)))


_SMALL = "₀₁₂₃₄₅₆₇₈₉"


def _check_size(steps: int, depth: int) -> None:
    count = network_counts(steps=steps, depth=depth).nodes
    if count > MOST_NODES:
        raise ArgumentError(
            where="the tensor network",
            got=f"{count:,} nodes",
            wanted=f"at most {MOST_NODES:,}",
            remedy="network_counts(steps=, depth=) counts them without building them.",
        )
