"""The sections of a run, in their order; one that fails says so, and the others stand."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from statewise.errors import StatewiseError
from statewise.report.html import Note, Section
from statewise.report.run_sections.automaton import automaton, prototypes
from statewise.report.run_sections.certificate import certificate
from statewise.report.run_sections.curves import learning_curves
from statewise.report.run_sections.overview import overview
from statewise.report.run_sections.remembering import remembering
from statewise.report.run_sections.run import Run
from statewise.report.run_sections.scores import calibration, scores
from statewise.report.run_sections.settings import settings
from statewise.report.run_sections.spectra import recurrent_spectra


@dataclass(frozen=True, kw_only=True)
class SectionKind:
    """A section that a page may have.

    Args:
        title: its heading, also where it could not be made.
        build: makes it; None where the run has no such thing.
        remedy: what a reader can do where it fails.

    >>> SectionKind(title="Scores", build=lambda run: None).remedy
    ''
    """

    title: str
    build: Callable[[Run], Section | None]
    remedy: str = ""


#: All sections there are. ``report_runs(sections=...)`` takes others.
SECTIONS: tuple[SectionKind, ...] = (
    SectionKind(title="What it is", build=overview),
    SectionKind(title="Scores", build=scores),
    SectionKind(title="Learning curves", build=learning_curves),
    SectionKind(title="Calibration", build=calibration, remedy="It needs the run's examples, where they were."),
    SectionKind(title="The automaton", build=automaton),
    SectionKind(title="What the centroids stand for", build=prototypes, remedy="It needs the run's examples."),
    SectionKind(title="Singular values of the recurrent matrices", build=recurrent_spectra),
    SectionKind(title="The certificate", build=certificate),
    SectionKind(title="How much it can remember", build=remembering),
    SectionKind(title="Settings", build=settings),
)


@dataclass(frozen=True)
class Made:
    """The sections of a run, and how long each took.

    Args:
        sections: in their order.
        seconds: by title.
        failed: what could not be made, by title.
    """

    sections: tuple[Section, ...]
    seconds: dict[str, float]
    failed: dict[str, str]


def sections_of(run: Run, kinds: Sequence[SectionKind] = SECTIONS) -> Made:
    """All sections that a run has.

    Args:
        run: any.
        kinds: of sections, in their order.
    """
    made: list[Section] = []
    seconds: dict[str, float] = {}
    failed: dict[str, str] = {}
    for kind in kinds:
        began = time.monotonic()
        try:
            section = kind.build(run)
        except Exception as error:  # a page with all but one section is worth more than none
            told = str(error) if isinstance(error, StatewiseError | OSError) else f"{type(error).__name__}: {error}"
            failed[kind.title] = told
            note = Note(kind="missing", words=f"This could not be made. {told} {kind.remedy}".rstrip())
            section = Section(kind.title, [note])
        if section is not None:
            made.append(section)
            seconds[kind.title] = round(time.monotonic() - began, 3)
    return Made(tuple(made), seconds, failed)
