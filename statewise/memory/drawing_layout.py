"""Where the nodes of a tensor network stand: inputs in a row at the bottom, a row of products for each layer."""

from __future__ import annotations

from collections.abc import Mapping

from statewise.automata.captions import text_width
from statewise.errors import ArgumentError
from statewise.memory.drawing_picture import FONT, SMALL, Mark, Picture, Wire
from statewise.memory.tensor_network import Node, TensorNetwork

#: From column to column, and from row to row.
COLUMN, ROW = 104.0, 58.0
_STUB = 36.0  # how long an open edge is
_SHAPES = {"delta": "triangle", "input": "circle", "state": "circle"}
_COLOURS = {"WI": 3, "WH": 2, "delta": None, "WO": 4, "state": 5, "tensor": 7}
_START, _END = 0, 1


def lay_out(
    network: TensorNetwork,
    *,
    steps: int | None = None,
    places: Mapping[int, complex] | None = None,
    stubs: Mapping[int, complex] | None = None,
) -> Picture:
    """Put a network on paper.

    Of a circuit every input has a column. A chain of a layer is a row; each of its steps stands over the network that
    it reads, so that no two lines cross.

    Args:
        network: of a circuit, of a part of one, or any with places.
        steps: T, if inputs of Start and End shall have two colours.
        places: column and row of each node, ``column + i row``, rows upwards; None for those of a circuit.
        stubs: where open edges lead, such as 1 to the right and 1j upwards; up if nothing is said.

    >>> from statewise.memory.tensor_network_build import circuit_network
    >>> picture = lay_out(circuit_network(inputs=2, width=2, steps=2, depth=1))
    >>> [mark.text for mark in picture.marks]
    ['x₁', 'Wᴵ', 'x₂', 'Wᴵ', 'Wᴴ', 'δ', 'Wᴼ']
    """
    chosen = circuit_places(network) if places is None else dict(places)
    deep = max((node.layer for node in network.nodes), default=0) > 1
    marks = [
        _mark(node, complex(COLUMN * chosen[number].real, -ROW * chosen[number].imag), steps, deep)
        for number, node in enumerate(network.nodes)
    ]
    wires = []
    for edge, ends in enumerate(network.ends):
        first = ends[0].node
        if len(ends) == 2:
            second = ends[1].node
            points = _route(marks[first], marks[second])
            wires.append(_wire(network, edge, points, (first, second)))
        else:
            points = _stub(marks[first], (stubs or {}).get(edge, 1j))
            wires.append(_wire(network, edge, points, (first, -1)))
    return Picture(marks=tuple(marks), wires=tuple(wires))


def circuit_places(network: TensorNetwork) -> dict[int, complex]:
    """Column and row of each node of a circuit.

    Args:
        network: whose nodes come in the order in which :func:`~.circuit_network` makes them.

    >>> from statewise.memory.tensor_network_build import circuit_network
    >>> circuit_places(circuit_network(inputs=2, width=2, steps=2, depth=1))
    {0: 0j, 1: 1j, 2: (1+0j), 3: (1+1j), 4: (0.5+2j), 5: (1+2j), 6: (1+3j)}
    """
    places: dict[int, complex] = {}
    columns = 0
    for number, node in enumerate(network.nodes):
        below = [ends[0].node for ends in (network.ends[edge] for edge in node.edges) if ends[0].node < number]
        if not below:
            if node.kind != "input":
                got = f"{node.name}, which stands on nothing"
                raise ArgumentError(where="lay_out.network", got=got, wanted="a circuit, or places")
            places[number] = complex(columns, 0)
            columns += 1
        elif node.kind == "delta":
            places[number] = complex(places[below[-1]].real, 2.0 * node.layer)
            for turned in (one for one in below if network.nodes[one].kind == "WH"):
                places[turned] = complex(places[number].real - 0.5, 2.0 * node.layer)
        elif node.kind == "WH":
            places[number] = places[below[-1]]  # until its product is known
        else:
            row = 2.0 * node.layer - 1 if node.kind == "WI" else places[below[-1]].imag + 1
            places[number] = complex(places[below[-1]].real, row)
    return places


def _mark(node: Node, at: complex, steps: int | None, deep: bool) -> Mark:
    text = _text(node, deep)
    colour = _COLOURS.get(node.kind)
    if node.kind == "input":
        colour = None if steps is None else _START if 2 * node.step <= steps else _END
    half = complex(max(14.0, text_width(text, FONT) / 2 + 5), 13.0)
    if node.kind in ("input", "state"):
        half = complex(max(half.real, 13.0), max(half.real, 13.0))
    if node.kind == "delta":
        half = complex(15.0, 13.0)
    shape = _SHAPES.get(node.kind, "box")
    return Mark(at=at, shape=shape, text=text, title=_title(node), colour=colour, half=half)


def _text(node: Node, deep: bool) -> str:
    if node.kind == "input":
        return f"x{lowered(node.step)}"
    if node.kind == "delta":
        return "δ"
    raised = {"WI": "Wᴵ", "WH": "Wᴴ", "WO": "Wᴼ"}
    if node.kind == "state":
        return "hₜ₋₁" if node.label == "h[t-1]" else node.label
    if node.kind == "tensor":
        return node.label
    return raised[node.kind] + (lowered(node.layer) if deep and node.layer else "")


def _title(node: Node) -> str:
    where = f", layer {node.layer}" if node.layer else ""
    when = f", step {node.step}" if node.step else ""
    what = "element-wise product" if node.kind == "delta" else node.name
    return f"{what}{where}{when}: order {node.order}"


def lowered(number: int) -> str:
    """A number as a subscript.

    >>> lowered(12)
    '₁₂'
    """
    return "".join("₀₁₂₃₄₅₆₇₈₉"[int(digit)] for digit in str(number))


def _route(lower: Mark, upper: Mark) -> tuple[complex, ...]:
    """A straight line where that is possible, else up and then aside."""
    if abs(lower.at.real - upper.at.real) < 1e-6:
        up = -1 if upper.at.imag < lower.at.imag else 1
        return lower.at + 1j * up * lower.half.imag, upper.at - 1j * up * upper.half.imag
    aside = 1 if upper.at.real > lower.at.real else -1
    end = upper.at - aside * _side(upper)
    if abs(lower.at.imag - upper.at.imag) < 1e-6:
        return lower.at + aside * _side(lower), end
    corner = complex(lower.at.real, upper.at.imag)
    return lower.at - 1j * lower.half.imag, corner, end


def _side(mark: Mark) -> float:
    """How far a line that arrives from the side is from the middle: a triangle is slimmer halfway up."""
    return mark.half.real / 2 if mark.shape == "triangle" else mark.half.real


def _stub(mark: Mark, direction: complex) -> tuple[complex, ...]:
    """The line of an open edge, from the rim of its node."""
    heading = direction.conjugate() / abs(direction)  # rows go up, paper goes down
    reach = [
        half / abs(part)
        for half, part in ((mark.half.real, heading.real), (mark.half.imag, heading.imag))
        if abs(part) > 1e-9
    ]
    begin = mark.at + heading * (_side(mark) if mark.shape == "triangle" and heading.imag == 0 else min(reach))
    return begin, begin + heading * _STUB


def _wire(network: TensorNetwork, edge: int, points: tuple[complex, ...], between: tuple[int, int]) -> Wire:
    bond = network.bonds[edge]
    begin, end = points[-2:]
    middle = (begin + end) / 2
    flat = abs(begin.imag - end.imag) < 1e-6
    aside = complex(0, -0.75 * SMALL) if flat else complex(text_width(bond.symbol, SMALL) / 2 + 5, 0)
    title = f"{bond.symbol} = {bond.dimension}"
    return Wire(points=points, between=between, text=bond.symbol, at=middle + aside, title=title)
