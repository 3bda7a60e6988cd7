"""The figures of tensor networks: those of Appendix A and Figure 2.1 of Ziv 2019, drawn anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from statewise.errors import ArgumentError
from statewise.memory.counts import interactions
from statewise.memory.drawing_layout import COLUMN, lay_out, lowered
from statewise.memory.drawing_picture import FONT, LINE, Caption, Picture, below, beside
from statewise.memory.drawing_svg import bond_notes, picture_svg
from statewise.memory.tensor_network import TensorNetwork
from statewise.memory.tensor_network_build import (
    cell_network,
    circuit_network,
    matrix_vector_network,
    plain_network,
    state_network,
    train_network,
    unit_network,
)
from statewise.memory.tensor_network_counts import unit_powers

_M, _R = 3, 4  # of the drawings; no figure depends on them


class Figure(NamedTuple):
    """A figure: what it shows, and the picture with the notes under it."""

    title: str
    draw: Callable[[], tuple[Picture, list[str]]]


def figure_svg(name: str) -> str:
    """A figure of the thesis as SVG.

    Args:
        name: one of :data:`FIGURES`, such as "A.3a".

    >>> figure_svg("A.3b").count("<polygon")  # element-wise products
    2
    """
    if name not in FIGURES:
        raise ArgumentError(where="figure_svg", got=name, wanted=f"one of {', '.join(FIGURES)}")
    title, draw = FIGURES[name]
    picture, notes = draw()
    return picture_svg(picture, title=title, notes=notes)


def figure_picture(name: str) -> Picture:
    """The same before it is ink.

    Args:
        name: one of :data:`FIGURES`.
    """
    return FIGURES[name].draw()[0]


def _plain() -> tuple[Picture, list[str]]:
    wheel = dict(enumerate((-1 + 0j, -0.7 + 1j, 0.7 + 1j, 1 + 0j)))
    shown = [
        (plain_network(3, label="v"), "vector", {0: 1 + 0j}),
        (plain_network(3, 4), "matrix", {0: -1 + 0j, 1: 1 + 0j}),
        (plain_network(2, 2, 2, 2), "tensor of order N = 4", wheel),
    ]
    parts = [_titled(lay_out(one, places={0: 0j}, stubs=stubs), text) for one, text, stubs in shown]
    product = lay_out(matrix_vector_network(3, 4), places={0: 1 + 0j, 1: 0j}, stubs={0: -1 + 0j})
    return beside([*parts, _titled(product, "matrix times vector")]), []


def _cell() -> tuple[Picture, list[str]]:
    network = cell_network(inputs=_M, width=_R)
    places = {0: 1 + 0j, 1: 1 + 1j, 2: -0.2 + 2j, 3: 0.4 + 2j, 4: 1 + 2j}
    return lay_out(network, places=places, stubs={4: 1 + 0j}), bond_notes(network)


def _train() -> tuple[Picture, list[str]]:
    network = train_network(inputs=_M, width=_R, steps=6)
    places = {number: complex(0.7 * number, 0) for number in range(len(network.nodes))}
    stubs = {edge: (1 + 0j if network.bonds[edge].symbol == "C" else -1j) for edge in network.open_edges}
    return lay_out(network, places=places, stubs=stubs), bond_notes(network)


def _circuit(depth: int, steps: int) -> tuple[Picture, list[str]]:
    network = circuit_network(inputs=_M, width=_R, steps=steps, depth=depth)
    return lay_out(network, steps=steps), [*bond_notes(network), _COLOURED]


def _state() -> tuple[Picture, list[str]]:
    network = state_network(inputs=_M, width=_R, step=2, layer=2)
    return lay_out(network), bond_notes(network)


def _product() -> tuple[Picture, list[str]]:
    steps, depth = 6, 3
    powers = unit_powers(steps=steps, depth=depth, joining=True)
    units = [_power(_unit(step), steps, power) for step, power in powers.items()]
    reduced = _power(_unit(steps // 2 + 1), steps, interactions(steps, depth))
    first = "Units that join Start and End, and how often each occurs:"
    last = "Reduced to the shortest of them, as often as all together:"
    rows = [_titled(below(units), first), _titled(reduced, last)]
    return below(rows, gap=46.0), [f"M = {_M}, R = {_R}, L = {depth}, T = {steps}", _COLOURED]


def _unit(steps: int) -> TensorNetwork:
    return unit_network(inputs=_M, width=_R, steps=steps)


def _power(network: TensorNetwork, steps: int, power: int) -> Picture:
    """A unit in brackets, to a power."""
    picture = lay_out(network, steps=steps)
    left, top, right, bottom = picture.box
    middle, tall = (top + bottom) / 2, 2.6 * FONT
    return picture.told(
        Caption(text="(", at=complex(left - 0.3 * COLUMN, middle), size=2 * tall),
        Caption(text=")", at=complex(right + 0.3 * COLUMN, middle), size=2 * tall),
        Caption(text=str(power), at=complex(right + 0.48 * COLUMN, top + 0.5 * FONT), size=1.4 * FONT),
    )


def _titled(picture: Picture, text: str) -> Picture:
    left, top, right, _ = picture.box
    return picture.told(Caption(text=text, at=complex((left + right) / 2, top - LINE)))


_COLOURED = "Blue: inputs of the Start; yellow: inputs of the End. Triangles: element-wise products."

#: By their numbers in Ziv 2019.
FIGURES: Mapping[str, Figure] = {
    "A.1": Figure("Tensors as nodes with an edge for each index; a joined edge is a sum", _plain),
    "A.2a": Figure("One step of a recurrent arithmetic circuit", _cell),
    "A.2b": Figure("A circuit of one layer, T = 6", lambda: _circuit(1, 6)),
    "A.2c": Figure("The same as a tensor train, T = 6", _train),
    "A.3a": Figure("A circuit of two layers, T = 4", lambda: _circuit(2, 4)),
    "A.3b": Figure(f"The state h{lowered(2)} of the second layer", _state),
    "A.3c": Figure("A circuit of three layers, T = 3", lambda: _circuit(3, 3)),
    "2.1": Figure("A circuit of three layers, T = 6", lambda: _circuit(3, 6)),
    "A.4": Figure("The same where the input matrix of layer 2 has rank 1: a product of powers", _product),
}
