"""Drawings that other rooms make as whole SVG texts, set into a page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

from statewise.errors import ArgumentError
from statewise.report.html.markup import Markup, element, text
from statewise.report.html.pieces import Drawing

_NAMESPACE = "{http://www.w3.org/2000/svg}"
#: What a drawing of ours is made of; anything else, a script or an address above all, is left out.
_ELEMENTS = frozenset(
    {"g", "path", "polygon", "polyline", "line", "circle", "ellipse", "rect", "text", "tspan", "title"}
)
_PLACES = ("x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry", "width", "height", "transform")
_ATTRIBUTES = frozenset({*_PLACES, "class", "d", "points", "text-anchor", "stroke-dasharray"})


def drawing_of(svg: str) -> Drawing:
    """A drawing of an automaton or a tensor network for a page: its own colours give way to those of the page.

    Args:
        svg: as ``statewise.automata.to_svg`` or ``statewise.memory.network_svg`` makes it.

    >>> made = drawing_of('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 7"><style>*{}</style><g/></svg>')
    >>> made.width, made.height, made.content
    (9.0, 7.0, '<g></g>')
    """
    root = ElementTree.fromstring(svg)
    box = [float(part) for part in re.split(r"[\s,]+", root.get("viewBox", "").strip()) if part]
    if root.tag != f"{_NAMESPACE}svg" or len(box) != 4:
        raise ArgumentError(where="drawing_of", got=f"<{root.tag}>", wanted="an SVG text with a viewBox")
    inside = [_copied(child) for child in root if child.tag != f"{_NAMESPACE}title"]
    return Drawing(box[2], box[3], Markup("".join(inside)))


def _copied(node: ElementTree.Element) -> Markup:
    name = node.tag.removeprefix(_NAMESPACE)
    if name not in _ELEMENTS:
        return Markup("")
    attributes = {key: value for key, value in node.attrib.items() if key in _ATTRIBUTES}
    if node.get("style") == "text-anchor:start":  # the only style of its own that such a drawing has
        attributes["class"] = f"{attributes.get('class', '')} sw-start".strip()
    inside = [text(node.text or ""), *(_copied(child) for child in node)]
    return element(name, *inside, **attributes)
