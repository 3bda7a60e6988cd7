"""From a machine to its picture: which arrows there are, what they say, and where all stands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Complex

from statewise.automata.captions import shortened, symbols_text, text_width
from statewise.automata.drawing.geometry import bezier
from statewise.automata.drawing.label_places import bounds, place_labels
from statewise.automata.drawing.layout import place_states
from statewise.automata.drawing.picture import FONT, LINE, Arrow, Circle, Picture
from statewise.automata.drawing.routes import Routes, head
from statewise.automata.moore import MooreMachine
from statewise.automata.questions import dead_ends
from statewise.errors import ArgumentError

_MARGIN = 14.0


def compose(machine: MooreMachine, *, hide_sinks: bool = False, label_width: int = 16, seed: int = 0) -> Picture:
    """Lay a machine out on paper.

    Args:
        machine: with two classes or more.
        hide_sinks: leave out rejecting states that nothing leaves, and the arrows into them, and say so in a note.
        label_width: characters of an arrow's text before it is shortened.
        seed: of the search for places; another one gives another picture.

    >>> even = MooreMachine(alphabet=("0", "1"), transitions=np.array([[0, 1], [1, 0]]), outputs=np.array([1, 0]))
    >>> [(arrow.source, arrow.target, arrow.text) for arrow in compose(even).arrows]
    [(-1, 0, ''), (0, 1, '1'), (1, 0, '1'), (0, 0, '0'), (1, 1, '0')]
    """
    if label_width < 2:
        raise ArgumentError(where="label_width", got=label_width, wanted="at least 2 characters")
    hidden = sinks(machine) if hide_sinks else []
    shown = [state for state in range(len(machine)) if state not in hidden]
    titles = _titles(machine, shown)
    texts = {ends: shortened(title, label_width) for ends, title in titles.items()}
    names = [shortened(_name(machine, state), 9) for state in shown]
    radius = max([19.0, *(text_width(name, FONT) / 2 + 7 for name in names)])
    spacing = _spacing(radius, list(texts.values()))
    places = place_states(_moves(titles, len(shown)), start=shown.index(machine.start), seed=seed)
    places = places.real * spacing.real + 1j * places.imag * spacing.imag
    arrows = _arrows(places, radius, shown.index(machine.start), titles, texts)
    circles = [
        Circle(
            state=state, at=complex(at), text=name, title=_described(machine, state), kind=int(machine.outputs[state])
        )
        for state, at, name in zip(shown, places, names, strict=True)
    ]
    drawn = Picture(
        circles=tuple(circles),
        arrows=tuple(
            replace(arrow, source=-1 if arrow.source < 0 else shown[arrow.source], target=shown[arrow.target])
            for arrow in arrows
        ),
        radius=radius,
        size=0j,
        classes=machine.classes,
        rings=len(machine.classes) <= 2,
        notes=_notes(machine, hidden),
    )
    return _framed(drawn)


def _arrows(
    places: Complex[np.ndarray, " states"],
    radius: float,
    start: int,
    titles: dict[tuple[int, int], str],
    texts: dict[tuple[int, int], str],
) -> list[Arrow]:
    """The entry, then arrows between states, then loops, each with its text in place."""
    routes = Routes(places=places, radius=radius, arrows=[ends for ends in titles if ends[0] != ends[1]])
    entry = routes.entry(start)
    loops = [ends for ends in titles if ends[0] == ends[1]]
    ends = [*routes.arrows, *loops]
    curves = np.concatenate([routes.curves, *(routes.loop(state)[None] for state, _ in loops)])
    sizes = np.array([(text_width(texts[pair], FONT) + 2, 1.15 * FONT) for pair in ends]).reshape(-1, 2)
    boxes = place_labels(curves, sizes, circles=places, radius=radius, obstacles=entry[None])
    arrows = [Arrow(source=-1, target=start, curve=entry, head=head(entry))]
    for pair, curve, box in zip(ends, curves, boxes, strict=True):
        known = {"text": texts[pair], "title": titles[pair]}
        arrows.append(Arrow(source=pair[0], target=pair[1], curve=curve, head=head(curve), box=box, **known))
    return arrows


def sinks(machine: MooreMachine) -> list[int]:
    """Rejecting states, other than the start, that nothing leaves; only a machine of two classes has any.

    Args:
        machine: any.

    >>> moves = np.array([[0, 1], [1, 1]])
    >>> sinks(MooreMachine(alphabet=("0", "1"), transitions=moves, outputs=np.array([1, 0])))
    [1]
    """
    if len(machine.classes) != 2:
        return []
    return [int(state) for state in np.flatnonzero(dead_ends(machine)) if state != machine.start]


def _titles(machine: MooreMachine, shown: list[int]) -> dict[tuple[int, int], str]:
    """The symbols between each two states that are shown, as one text, by their positions among those shown."""
    position = {state: number for number, state in enumerate(shown)}
    symbols: dict[tuple[int, int], list[str]] = {}
    for state in shown:
        for symbol, target in zip(machine.alphabet, map(int, machine.transitions[state]), strict=True):
            if target in position:
                symbols.setdefault((position[state], position[target]), []).append(symbol)
    return {ends: symbols_text(held, machine.alphabet) for ends, held in symbols.items()}


def _moves(titles: dict[tuple[int, int], str], states: int) -> np.ndarray:
    """The arrows as a table of next states, filled up with loops."""
    targets: list[list[int]] = [[] for _ in range(states)]
    for source, target in titles:
        targets[source].append(target)
    width = max(map(len, targets), default=0)
    rows = [row + [state] * (width - len(row)) for state, row in enumerate(targets)]
    return np.array(rows, dtype=np.int64).reshape(states, width)


def _spacing(radius: float, texts: list[str]) -> complex:
    longest = max((text_width(text, FONT) for text in texts), default=0.0)
    return complex(2 * radius + max(64.0, longest + 34.0), 2 * radius + 62.0)


def _name(machine: MooreMachine, state: int) -> str:
    return machine.labels[state] if machine.labels else str(state)


def _described(machine: MooreMachine, state: int) -> str:
    start = ", start" if state == machine.start else ""
    return f"state {_name(machine, state)}: {machine.classes[machine.outputs[state]]}{start}"


def _notes(machine: MooreMachine, hidden: list[int]) -> tuple[str, ...]:
    if not hidden:
        return ()
    names = ", ".join(_name(machine, state) for state in hidden)
    what = "state" if len(hidden) == 1 else "states"
    return (f"Not drawn: {machine.classes[0]} {what} {shortened(names, 40)}; missing arrows lead there.",)


def _framed(drawn: Picture) -> Picture:
    """Shift all so that it begins at the margin, and leave room for the notes and the legend under it."""
    radius = drawn.radius
    corners = [np.array([circle.at + radius * corner for corner in (1 + 1j, -1 - 1j)]) for circle in drawn.circles]
    corners += [part for arrow in drawn.arrows for part in (bezier(arrow.curve, 25), arrow.head)]
    corners += [arrow.box[[0, 2]] + 1j * arrow.box[[1, 3]] for arrow in drawn.arrows if arrow.box is not None]
    low, high = bounds(corners)
    lines = list(drawn.notes) + ([] if drawn.rings else [f"●● {name}" for name in drawn.classes])
    width = max([high.real - low.real, *(text_width(line, FONT) for line in lines)]) + 2 * _MARGIN
    height = high.imag - low.imag + 2 * _MARGIN + LINE * len(lines)
    moved = drawn.shifted(complex(_MARGIN, _MARGIN) - low)
    return replace(moved, size=complex(np.ceil(width), np.ceil(height)))
