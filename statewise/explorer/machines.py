"""The automaton of a network, drawn, and where in it the network is."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import torch

from statewise.automata import Extraction, MooreMachine, describe, extract
from statewise.automata.drawing.compose import compose
from statewise.automata.drawing.draw import svg_of
from statewise.automata.drawing.picture import Picture
from statewise.errors import NotMemorylessError, StatewiseError
from statewise.explorer.classifying import ClassifierSubject
from statewise.explorer.subjects import Followed, Row, Subject

MOST_STATES = 30  # that are drawn: more can hardly be read
MOST_TABLE = 5_000  # tuples of centroids that are read off a stack
_STYLE = re.compile(r"<style>.*?</style>\n?", re.DOTALL)


@dataclass(frozen=True, kw_only=True, eq=False)
class ShownMachine:
    """A machine and its drawing.

    Args:
        machine: minimal.
        svg: the drawing without colours, which the page has in its own style sheet.
        drawn: the state of each circle of the drawing, in its order.
        arrows: source and target of each arrow of the drawing, in its order; -1 for the entry.
        of_centroids: the machine's state for each combination of centroids that words reach.
        exact: how the drawing is to be read, in a sentence.
    """

    machine: MooreMachine
    svg: str
    drawn: tuple[int, ...]
    arrows: tuple[tuple[int, int], ...]
    of_centroids: dict[tuple[int, ...], int]
    exact: str

    @classmethod
    def of(cls, found: Extraction) -> ShownMachine:
        """The drawing of what was extracted.

        Args:
            found: the machine and the table behind it.
        """
        machine = found.machine
        picture = compose(machine)
        used, of = sum(map(len, found.used)), sum(map(len, found.used)) + sum(map(len, found.unused))
        told = (
            f"Read off the weights: {len(machine)} states, {used} of {of} centroids are reached. "
            "At argmax the network is this machine on every word; as trained it follows as far as its steps are sharp."
        )
        return cls(
            machine=machine,
            svg=plain_svg(picture, machine),
            drawn=tuple(circle.state for circle in picture.circles),
            arrows=tuple((arrow.source, arrow.target) for arrow in picture.arrows),
            of_centroids=merged_states(found),
            exact=told,
        )

    @property
    def names(self) -> Row:
        """The names of the states, as they are drawn."""
        return self.machine.labels or tuple(map(str, range(len(self.machine))))

    @property
    def description(self) -> str:
        """The machine in words."""
        return describe(self.machine)

    def path(self, tokens: Row, *, has_start: bool) -> list[int]:
        """Where the machine is after each step.

        Args:
            tokens: that it reads.
            has_start: whether a step before the first token is among the steps.
        """
        states = self.machine.path(tokens)
        return [int(state) for state in (states if has_start else states[1:])]

    def visited(self, followed: Followed) -> list[list[int | None]]:
        """Where each network is after each step by its likeliest centroids; None where no word leads the machine to.

        Args:
            followed: what happened.
        """
        layers = [part.argmax(2) for part in followed.trace.probabilities if part is not None]
        combined = torch.stack(layers, dim=2)
        return [
            [self.of_centroids.get(tuple(step)) for step in row[:length]]
            for row, length in zip(combined.tolist(), followed.trace.lengths.tolist(), strict=True)
        ]


def machine_of(subject: Subject) -> ShownMachine | str:
    """The machine of a network, or the reason why there is none to be shown.

    Args:
        subject: any network.
    """
    if not isinstance(subject, ClassifierSubject):
        return f"A {subject.kind} gives no class to a word, so that no automaton can be read off it."
    try:
        found = extract(subject.model, classes=subject.outcomes, max_states=MOST_TABLE)
    except NotMemorylessError:
        return f"No automaton equals this network: {subject.model.why_not_memoryless}."
    except StatewiseError as error:
        return f"The automaton could not be read: {error}"
    if len(found.machine) > MOST_STATES:
        return f"The automaton has {len(found.machine):,} states, too many to be drawn; up to {MOST_STATES} are."
    return ShownMachine.of(found)


def merged_states(found: Extraction) -> dict[tuple[int, ...], int]:
    """The state of the minimal machine that each reachable combination of centroids was merged into.

    Both machines read the same words from their starts on, in step.

    Args:
        found: the machine and the table behind it.
    """
    pairs = {int(found.table.start): int(found.machine.start)}
    waiting = list(pairs)
    for state in waiting:
        for symbol in range(len(found.machine.alphabet)):
            ahead = int(found.table.transitions[state, symbol])
            if ahead not in pairs:
                pairs[ahead] = int(found.machine.transitions[pairs[state], symbol])
                waiting.append(ahead)
    return {tuple(np.asarray(found.states[state]).tolist()): merged for state, merged in pairs.items()}


def plain_svg(picture: Picture, machine: MooreMachine) -> str:
    """The drawing without a style of its own: the page allows none but that of its style sheet.

    Args:
        picture: where everything stands.
        machine: that is drawn.
    """
    drawn = _STYLE.sub("", svg_of(picture, machine))
    return drawn.replace('class="sw-name" style="text-anchor:start"', 'class="sw-name sw-legend"')
