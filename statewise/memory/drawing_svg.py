"""Tensor networks as SVG: one self-contained text, made without any other program."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from statewise.automata.captions import text_width
from statewise.automata.drawing.palette import fill
from statewise.memory.drawing_layout import lay_out
from statewise.memory.drawing_picture import FONT, LINE, SMALL, Caption, Mark, Picture, Wire
from statewise.memory.tensor_network import TensorNetwork

_MARGIN = 16.0
_COLOURS = 8


def network_svg(network: TensorNetwork, *, title: str = "", steps: int | None = None) -> str:
    """The drawing of the network of a circuit: triangles are element-wise products, letters at lines dimensions.

    What a node is stands in full where the pointer rests on it. Dark paper is used where the reader's browser asks
    for it.

    Args:
        network: of :func:`~.circuit_network`, :func:`~.state_network` or :func:`~.unit_network`.
        title: over the picture.
        steps: T, if inputs of Start and End shall have two colours.

    >>> from statewise.memory.tensor_network_build import circuit_network
    >>> network_svg(circuit_network(inputs=2, width=2, steps=4, depth=2)).splitlines()[0][:40]
    '<svg xmlns="http://www.w3.org/2000/svg" '
    """
    return picture_svg(lay_out(network, steps=steps), title=title, notes=bond_notes(network))


def bond_notes(network: TensorNetwork) -> list[str]:
    """What the letters at the lines stand for, and how many nodes there are.

    Args:
        network: any.

    >>> from statewise.memory.tensor_network_build import circuit_network
    >>> bond_notes(circuit_network(inputs=3, width=2, steps=2, depth=1))
    ['M = 3, R = 2, C = 1; 7 nodes']
    """
    dimensions = dict.fromkeys(f"{bond.symbol} = {bond.dimension}" for bond in network.bonds)
    count = len(network.nodes)
    return [f"{', '.join(dimensions)}; {count} {'node' if count == 1 else 'nodes'}"]


def picture_svg(picture: Picture, *, title: str = "", notes: Sequence[str] = ()) -> str:
    """A picture as SVG.

    Args:
        picture: with its places.
        title: over it.
        notes: lines under it.
    """
    left, top, right, bottom = picture.box
    head, foot = (1.8 * FONT if title else 0.0), LINE * len(notes) + (0.5 * FONT if notes else 0.0)
    texts = [text_width(text, FONT) for text in (title, *notes)]
    width = max(right - left, *texts) + 2 * _MARGIN
    height = bottom - top + 2 * _MARGIN + head + foot
    moved = picture.shifted(complex((width - (right - left)) / 2 - left, _MARGIN + head - top))
    under = _MARGIN + head + (bottom - top) + 0.5 * FONT
    lines = [
        Caption(text=note, at=complex(width / 2, under + LINE * (place + 0.5))) for place, note in enumerate(notes)
    ]
    heading = [Caption(text=title, at=complex(width / 2, _MARGIN + 0.4 * FONT))] if title else []
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(width)}" height="{_n(height)}" '
        f'viewBox="0 0 {_n(width)} {_n(height)}" role="img">',
        f"<title>{escape(title or 'A tensor network')}</title>",
        _style(),
        f'<rect class="sw-paper" width="{_n(width)}" height="{_n(height)}"/>',
        *map(_wire, moved.wires),
        *map(_mark, moved.marks),
        # Texts come last, so that no line runs over them.
        *(_text(wire.at, wire.text, SMALL, "sw-label", wire.title) for wire in moved.wires if wire.text),
        *(_text(one.at, one.text, one.size, "sw-name") for one in (*heading, *moved.captions, *lines)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _style() -> str:
    light = _rules("#ffffff", "#1b1f24", "#57606a", dark=False)
    dark = _rules("#14171c", "#e6e9ed", "#9aa4af", dark=True)
    font = "text{font-family:system-ui,'DejaVu Sans',Arial,sans-serif;text-anchor:middle}"
    return f"<style>{font}{light}@media (prefers-color-scheme:dark){{{dark}}}</style>"


def _rules(paper: str, ink: str, line: str, *, dark: bool) -> str:
    colours = "".join(f".sw-k{kind}{{fill:{fill(kind, dark=dark)}}}" for kind in range(_COLOURS))
    return (
        f".sw-paper{{fill:{paper}}}"
        f".sw-line{{fill:none;stroke:{line};stroke-width:1.4}}"
        f".sw-node{{fill:{paper};stroke:{ink};stroke-width:1.4}}"
        f"{colours}"
        f".sw-name{{fill:{ink}}}"
        f".sw-label{{fill:{line};stroke:{paper};stroke-width:3;paint-order:stroke;stroke-linejoin:round}}"
    )


def _mark(mark: Mark) -> str:
    style = "sw-node" + ("" if mark.colour is None else f" sw-k{mark.colour}")
    x, y, across, up = mark.at.real, mark.at.imag, mark.half.real, mark.half.imag
    if mark.shape == "triangle":
        corners = ((x, y - up), (x + across, y + up), (x - across, y + up))
        points = " ".join(f"{_n(a)},{_n(b)}" for a, b in corners)
        drawn = f'<polygon class="{style}" points="{points}"/>'
    elif mark.shape == "circle":
        drawn = f'<ellipse class="{style}" cx="{_n(x)}" cy="{_n(y)}" rx="{_n(across)}" ry="{_n(up)}"/>'
    else:
        place = f'x="{_n(x - across)}" y="{_n(y - up)}" width="{_n(2 * across)}" height="{_n(2 * up)}"'
        drawn = f'<rect class="{style}" rx="3" {place}/>'
    low = 0.35 * up if mark.shape == "triangle" else 0.0  # where a triangle is wide enough
    text = _text(mark.at + 1j * low, mark.text, SMALL if low else FONT, "sw-name")
    return f"<g><title>{escape(mark.title)}</title>{drawn}{text}</g>"


def _wire(wire: Wire) -> str:
    points = " ".join(f"{_n(point.real)},{_n(point.imag)}" for point in wire.points)
    return f'<g><title>{escape(wire.title)}</title><polyline class="sw-line" points="{points}"/></g>'


def _text(middle: complex, text: str, size: float, style: str, title: str = "") -> str:
    tip = f"<title>{escape(title)}</title>" if title else ""
    place = f'x="{_n(middle.real)}" y="{_n(middle.imag + 0.35 * size)}"'
    return f'<text class="{style}" font-size="{_n(size)}" {place}>{tip}{escape(text)}</text>'


def _n(number: float) -> str:
    """A number with one digit behind the point at most; the same on every machine."""
    return f"{round(float(number), 1) + 0.0:g}"
