"""Machines as SVG: one self-contained text, for browsers, documents and editors, made without any other program."""

from __future__ import annotations

from xml.sax.saxutils import escape

from statewise.automata.drawing.compose import compose
from statewise.automata.drawing.palette import fill
from statewise.automata.drawing.picture import FONT, LINE, Arrow, Circle, Picture
from statewise.automata.moore import MooreMachine


def to_svg(
    machine: MooreMachine, *, title: str = "", hide_sinks: bool = False, label_width: int = 16, seed: int = 0
) -> str:
    """The drawing of a machine, as the paper's figures 4 and 9: an arrow into the start, two rings where it accepts.

    With more than two classes each has a colour and its name in the legend. The full text of what is shortened shows
    when the pointer rests on it. Dark paper is used where the reader's browser asks for it.

    Args:
        machine: to be drawn; readable up to about 30 states.
        title: over the picture.
        hide_sinks: leave out rejecting states that nothing leaves, and say so.
        label_width: characters of an arrow's text before it is shortened.
        seed: of the search for places.

    >>> import numpy as np
    >>> even = MooreMachine(alphabet=("0", "1"), transitions=np.array([[0, 1], [1, 0]]), outputs=np.array([1, 0]))
    >>> to_svg(even).splitlines()[0][:40]
    '<svg xmlns="http://www.w3.org/2000/svg" '
    """
    return svg_of(compose(machine, hide_sinks=hide_sinks, label_width=label_width, seed=seed), machine, title=title)


def svg_of(drawn: Picture, machine: MooreMachine, *, title: str = "") -> str:
    """A machine that is laid out already, as SVG: the circles and the arrows come in the order of the picture.

    Args:
        drawn: where everything stands.
        machine: that is drawn, for its description.
        title: over the picture.
    """
    top = 1.6 * FONT if title else 0.0
    width, height = drawn.size.real, drawn.size.imag + top
    heading = _text(complex(width / 2, 1.4 * FONT), title, "sw-name") if title else ""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(width)}" height="{_n(height)}" '
        f'viewBox="0 0 {_n(width)} {_n(height)}" role="img">',
        f"<title>{_escaped(title or 'A finite automaton')}</title>",
        f"<desc>{_escaped(describe(machine))}</desc>",
        _style(drawn),
        f'<rect class="sw-paper" width="{_n(width)}" height="{_n(height)}"/>',
        heading,
        f'<g transform="translate(0 {_n(top)})">',
        *(_arrow(arrow) for arrow in drawn.arrows),
        *(_circle(circle, drawn) for circle in drawn.circles),
        # Texts come last, so that no line runs over them.
        *(_label(arrow) for arrow in drawn.arrows if arrow.text),
        *_foot(drawn),
        "</g>",
        "</svg>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def describe(machine: MooreMachine) -> str:
    """A sentence for those who do not see the picture.

    Args:
        machine: any.

    >>> import numpy as np
    >>> describe(MooreMachine(alphabet=("a",), transitions=np.array([[0]]), outputs=np.array([1])))
    'A machine of 1 state over 1 symbol; it starts in state 0; accept: 0.'
    """
    names = machine.labels or tuple(map(str, range(len(machine))))
    kinds = list(enumerate(machine.classes))[1 if len(machine.classes) == 2 else 0 :]
    groups = [
        f"{name}: {' '.join(names[i] for i, k in enumerate(machine.outputs) if k == kind)}" for kind, name in kinds
    ]
    states, symbols = (_count(len(machine), "state"), _count(len(machine.alphabet), "symbol"))
    return f"A machine of {states} over {symbols}; it starts in state {names[machine.start]}; {'; '.join(groups)}."


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _style(drawn: Picture) -> str:
    kinds = () if drawn.rings else range(len(drawn.classes))
    light = _rules("#ffffff", "#1b1f24", "#57606a") + "".join(f".sw-k{kind}{{fill:{fill(kind)}}}" for kind in kinds)
    dark = _rules("#14171c", "#e6e9ed", "#9aa4af")
    dark += "".join(f".sw-k{kind}{{fill:{fill(kind, dark=True)}}}" for kind in kinds)
    font = f"text{{font:{_n(FONT)}px system-ui,'DejaVu Sans',Arial,sans-serif;text-anchor:middle}}"
    return f"<style>{font}{light}@media (prefers-color-scheme:dark){{{dark}}}</style>"


def _rules(paper: str, ink: str, line: str) -> str:
    return (
        f".sw-paper{{fill:{paper}}}"
        f".sw-line{{fill:none;stroke:{line};stroke-width:1.4}}"
        f".sw-head{{fill:{line}}}"
        f".sw-state{{fill:{paper};stroke:{ink};stroke-width:1.6}}"
        f".sw-ring{{fill:none;stroke:{ink};stroke-width:1.2}}"
        f".sw-name{{fill:{ink}}}"
        # A border in the colour of the paper keeps a text readable where a line passes behind it.
        f".sw-label{{fill:{ink};stroke:{paper};stroke-width:3;paint-order:stroke;stroke-linejoin:round}}"
    )


def _arrow(arrow: Arrow) -> str:
    begin, first, second, end = (_point(point) for point in arrow.curve)
    corners = " ".join(_point(point) for point in arrow.head)
    shaft = f'<path class="sw-line" d="M{begin} C{first} {second} {end}"/>'
    return f'<g>{_tip(arrow.title)}{shaft}<polygon class="sw-head" points="{corners}"/></g>'


def _circle(circle: Circle, drawn: Picture) -> str:
    x, y = _n(circle.at.real), _n(circle.at.imag)
    colour = "" if drawn.rings else f" sw-k{circle.kind}"
    parts = [f'<circle class="sw-state{colour}" cx="{x}" cy="{y}" r="{_n(drawn.radius)}"/>']
    if drawn.rings and circle.kind == 1:
        parts.append(f'<circle class="sw-ring" cx="{x}" cy="{y}" r="{_n(drawn.radius - 3.5)}"/>')
    parts.append(_text(circle.at + 0.35j * FONT, circle.text, "sw-name"))
    return f"<g>{_tip(circle.title)}{''.join(parts)}</g>"


def _label(arrow: Arrow) -> str:
    if arrow.box is None:
        return ""
    left, top, right, bottom = map(float, arrow.box)
    at = complex((left + right) / 2, (top + bottom) / 2 + 0.35 * FONT)
    return f"<g>{_tip(arrow.title)}{_text(at, arrow.text, 'sw-label')}</g>"


def _foot(drawn: Picture) -> list[str]:
    """The legend of the classes and the notes, from the bottom up."""
    lines = []
    y = drawn.size.imag - 0.8 * FONT
    for note in reversed(drawn.notes):
        lines.append(_text(complex(drawn.size.real / 2, y), note, "sw-name"))
        y -= LINE
    for kind in reversed(range(len(drawn.classes)) if not drawn.rings else ()):
        lines.append(f'<circle class="sw-state sw-k{kind}" cx="24" cy="{_n(y - 0.35 * FONT)}" r="6"/>')
        name = _escaped(drawn.classes[kind])
        lines.append(f'<text class="sw-name" style="text-anchor:start" x="38" y="{_n(y)}">{name}</text>')
        y -= LINE
    return lines


def _text(at: complex, text: str, style: str) -> str:
    return f'<text class="{style}" x="{_n(at.real)}" y="{_n(at.imag)}">{_escaped(text)}</text>'


def _tip(text: str) -> str:
    return f"<title>{_escaped(text)}</title>" if text else ""


def _point(point: complex) -> str:
    return f"{_n(point.real)},{_n(point.imag)}"


def _n(number: float) -> str:
    """A number with one digit behind the point at most; the same on every machine."""
    return f"{round(float(number), 1) + 0.0:g}"


def _escaped(text: str) -> str:
    """Text for XML, which has no place for most control characters at all."""
    return escape("".join(sign if sign.isprintable() or sign in "\t\n" else "\ufffd" for sign in text))
