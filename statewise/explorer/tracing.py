"""Everything that one input does in one network, as the page shows it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from statewise.errors import ArgumentError
from statewise.explorer.classifying import ClassifierSubject
from statewise.explorer.disturbance import Setting
from statewise.explorer.machines import ShownMachine
from statewise.explorer.numbers import number, plain
from statewise.explorer.speaking import LanguageSubject
from statewise.explorer.subjects import Followed, Row, Subject
from statewise.explorer.tagging import TaggerSubject

MOST_UNITS = 96  # of a layer that are shown
ALL_OUTCOMES, TOP_OUTCOMES = 12, 8  # up to so many all are shown, of more the likeliest


@dataclass(frozen=True, kw_only=True, eq=False)
class Disturbed:
    """The same input under several draws of noise.

    Args:
        followed: a row for each draw.
        plain: what happens without noise, one row.
    """

    followed: Followed
    plain: Followed

    @property
    def agreement(self) -> Float[Tensor, " steps"]:
        """The share of draws whose likeliest outcome is the undisturbed one, at each step."""
        return torch.eq(self.followed.best, self.plain.best).double().mean(0)

    @property
    def moved(self) -> Float[Tensor, " steps"]:
        """How far the top state is from the undisturbed one, on average over the draws."""
        distances: Tensor = torch.linalg.vector_norm(self.followed.top - self.plain.top, dim=2, dtype=torch.double)
        return distances.mean(0)


def trace_of(
    subject: Subject, tokens: Row, setting: Setting, *, machine: ShownMachine | None = None, shown: int = 0
) -> dict[str, Any]:
    """What happens at every step.

    Args:
        subject: the network.
        tokens: what it reads.
        setting: temperature and noise.
        machine: its automaton, where it has one.
        shown: whose inside is shown: 0 for the undisturbed network's, else that of a draw of noise, counted from 1.
    """
    calm = subject.follow([tokens], setting)
    disturbed: Disturbed | None = None
    if setting.noisy:
        most = subject.fitting(len(tokens) + 1)
        if setting.draws > most:
            raise ArgumentError(
                where="draws",
                got=setting.draws,
                wanted=f"at most {most} for {len(tokens)} tokens and {len(subject.outcomes):,} outcomes",
                remedy="Ask for fewer draws, or explore a part of the text.",
            )
        disturbed = Disturbed(followed=subject.follow([tokens] * setting.draws, setting, noisy=True), plain=calm)
    followed, row = (calm, 0) if disturbed is None or shown == 0 else (disturbed.followed, shown - 1)
    chosen = shown_outcomes(calm.shares[0])
    told: dict[str, Any] = {
        "tokens": [{"text": token, "known": subject.known(token)} for token in tokens],
        "steps": list(subject.steps(tokens)),
        "layers": _layers(followed, row),
        "outcomes": _outcomes(subject, followed.shares[row], chosen),
        "answer": list(subject.answers(calm)[0]),
        "machine": None if machine is None else _places(machine, followed, row, _heard(subject, tokens)),
        "variation": None if disturbed is None else _variation(subject, disturbed, chosen, machine),
    }
    if isinstance(subject, LanguageSubject):
        told["expected"] = _expected(subject, followed.shares[row], tokens)
    if isinstance(subject, TaggerSubject):
        told["prefixes"] = [list(tags) for tags in subject.prefixes(tokens, setting)]
    return told


def shown_outcomes(shares: Float[Tensor, "steps outcomes"]) -> Int[Tensor, "steps shown"]:
    """Which outcomes are shown at each step: all in their order, or of many the likeliest.

    Args:
        shares: of one sequence.

    >>> shown_outcomes(torch.tensor([[0.9, 0.1]])).tolist()
    [[0, 1]]
    """
    count = shares.shape[1]
    if count <= ALL_OUTCOMES:
        return torch.arange(count).expand(len(shares), -1)
    return shares.topk(TOP_OUTCOMES, dim=1).indices


def _layers(followed: Followed, row: int) -> list[dict[str, Any]]:
    trace = followed.trace
    length = int(trace.lengths[row])

    def cut(values: Tensor) -> Any:
        return plain(values[row, :length, :MOST_UNITS])

    return [
        {
            "units": states.shape[2],
            "shown": min(MOST_UNITS, states.shape[2]),
            "states": cut(states),
            "cells": cut(trace.cells[place]) if trace.cells else None,
            "gates": {name: cut(gate) for name, gate in trace.gates[place].items()},
            "centroids": None if (found := trace.probabilities[place]) is None else cut(found),
        }
        for place, states in enumerate(trace.states)
    ]


def _outcomes(
    subject: Subject, shares: Float[Tensor, "steps outcomes"], chosen: Int[Tensor, "steps shown"]
) -> list[list[list[Any]]]:
    """For each step the names of the chosen outcomes and how probable they are."""
    values = plain(shares.gather(1, chosen))
    return [
        [[subject.outcomes[place], share] for place, share in zip(places, row, strict=True)]
        for places, row in zip(chosen.tolist(), values, strict=True)
    ]


def _expected(subject: LanguageSubject, shares: Float[Tensor, "steps words"], tokens: Row) -> list[float | None]:
    """How probable the word was that came next; None after the last."""
    ids = subject.vocabulary.encode(list(tokens))
    return [*(number(float(shares[step, word])) for step, word in enumerate(ids)), None]


def _heard(subject: Subject, tokens: Row) -> Row:
    return subject.heard(tokens) if isinstance(subject, ClassifierSubject) else tokens


def _places(machine: ShownMachine, followed: Followed, row: int, tokens: Row) -> dict[str, Any]:
    return {
        "machine": machine.path(tokens, has_start=followed.trace.has_start),
        "network": machine.visited(followed)[row],
    }


def _variation(
    subject: Subject, disturbed: Disturbed, chosen: Int[Tensor, "steps shown"], machine: ShownMachine | None
) -> dict[str, Any]:
    shares = disturbed.followed.shares
    those = shares.gather(2, chosen.expand(len(shares), -1, -1))
    answers = Counter(" ".join(answer) for answer in subject.answers(disturbed.followed))
    told: dict[str, Any] = {
        "draws": len(shares),
        "agreement": plain(disturbed.agreement),
        "moved": plain(disturbed.moved),
        "low": plain(those.amin(0)),
        "high": plain(those.amax(0)),
        "answers": [[answer, count] for answer, count in answers.most_common(TOP_OUTCOMES)],
        "places": None,
    }
    if machine is not None:
        paths = machine.visited(disturbed.followed)
        told["places"] = [
            [[state, round(count / len(paths), 4)] for state, count in Counter(step).most_common()]
            for step in zip(*paths, strict=True)
        ]
    return told
