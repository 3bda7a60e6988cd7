"""One page about one run, or about several beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import statewise
from statewise.citations import cite
from statewise.errors import ArgumentError, StatewiseError
from statewise.report.html import DataTable, Page, Section, may_replace, sparkline, write_page
from statewise.report.html.pieces import Cell, Part
from statewise.report.run_folders import Found, read_folder
from statewise.report.run_sections import SECTIONS, Run, SectionKind, Sources, sections_of
from statewise.report.run_sections.curves import overlaid
from statewise.report.run_sections.overview import headline, network_of, score_of, score_text
from statewise.report.run_sections.run import FORECASTER, LANGUAGE

_LIBRARY = "@software{statewise,\n  title   = {statewise},\n  version = {%s}\n}"


@dataclass(frozen=True, kw_only=True)
class Reported:
    """What came of a report.

    Attributes:
        path: the file.
        title: of the page.
        runs: the names of the runs on it.
        seconds: how long each section took, by run and title.
        failed: sections that could not be made, and why, by run and title.
    """

    path: Path
    title: str
    runs: tuple[str, ...]
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)
    failed: dict[str, dict[str, str]] = field(default_factory=dict)


def report_runs(
    folders: Sequence[Path | str],
    out: Path | str,
    *,
    quick: bool = False,
    iid: bool = False,
    title: str = "",
    force: bool = False,
    sources: Sources | None = None,
    sections: Sequence[SectionKind] = SECTIONS,
) -> Reported:
    """Write a self-contained HTML page about runs, and say what is on it.

    Nothing is trained, and nothing is written beside the page. A section that fails says so in its place.

    Args:
        folders: of runs, comparisons or searches.
        out: the file; it replaces a page of this library, and another file only with ``force``.
        quick: leave out what takes long: certificates, ranks, calibration.
        iid: you vouch that the training sequences are independent draws of one law, which certificates need.
        title: of the page; else the names of the runs.
        force: replace whatever is there.
        sources: who knows where examples are, as ``statewise report`` does; None for nobody.
        sections: those that a run may have.
    """
    path = Path(out)
    may_replace(path, force=force)
    if not folders:
        raise ArgumentError(where="report_runs.folders", got="none", wanted="the folder of a run at least")
    options = {"sources": sources, "quick": quick, "iid": iid}
    found = [read_folder(Path(folder).expanduser(), options) for folder in folders]
    runs = _named_apart([run for each in found for run in each.runs])
    made = {run.name: sections_of(run, sections) for run in runs}
    named = title or ", ".join(dict.fromkeys(each.title for each in found))
    whole = [section for each in found for section in each.sections]
    if len(runs) == 1 and not whole:
        # The summary of the page says what its first section would begin with.
        first, *rest = made[runs[0].name].sections
        body = [replace(first, prose=""), *rest]
    else:
        body = [*_beside(runs), *whole, *(Section(f"Run {run.name}", made[run.name].sections) for run in runs)]
    page = Page(title=named, summary=_summary(runs, found), sections=body, cite=_bibliography(runs), foot=_foot())
    path.parent.mkdir(parents=True, exist_ok=True)
    write_page(path, page)
    return Reported(
        path=path,
        title=named,
        runs=tuple(run.name for run in runs),
        seconds={name: each.seconds for name, each in made.items()},
        failed={name: each.failed for name, each in made.items() if each.failed},
    )


def _named_apart(runs: Sequence[Run]) -> list[Run]:
    """Runs whose names differ: where folders have the same name, the folder above is named too."""
    names = [run.name for run in runs]
    if len(set(names)) == len(names):
        return list(runs)
    longer = [f"{run.folder.resolve().parent.name}/{run.name}" for run in runs]
    if len(set(longer)) < len(longer):
        longer = [f"{name} ({place})" for place, name in enumerate(longer, start=1)]
    return [replace(run, name=name) for run, name in zip(runs, longer, strict=True)]


def _summary(runs: Sequence[Run], found: Sequence[Found]) -> str:
    says = [each.says for each in found if each.says]
    if says:
        return " ".join(says)
    if len(runs) == 1:
        return headline(runs[0])
    ranked = _ranked(runs)
    if ranked is None:
        return f"{len(runs)} runs, of different kinds."
    best, measure = ranked
    names = " and ".join(run.name for run in best)
    return f"{len(runs)} runs of the same kind; the best {measure} is that of {names}: {score_text(best[0])}."


def _ranked(runs: Sequence[Run]) -> tuple[list[Run], str] | None:
    """The best of several runs, all that share it, and by what; None where they cannot be compared."""
    scored = [(run, score) for run in runs if (score := score_of(run)) is not None]
    measures = {(run.task, score[0]) for run, score in scored}
    if len(measures) != 1 or len(scored) < 2:
        return None
    lower = scored[0][0].task in (LANGUAGE, FORECASTER)
    best = (min if lower else max)(score for _, (_, score) in scored)
    return [run for run, (_, score) in scored if score == best], scored[0][1][0]


def _beside(runs: Sequence[Run]) -> list[Section]:
    """Several runs beside each other: a table, and their curves in one chart."""
    if len(runs) < 2:
        return []
    ranked = _ranked(runs)
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        measure = score_of(run)
        curve = [float(value) for record in run.epochs if (value := _validation(record)) is not None]
        told = f"{measure[0]}: {score_text(run)}" if measure is not None else "not finished"
        rows.append((run.name, network_of(run), told, str(len(run.epochs) or ""), sparkline(curve) if curve else ""))
    best = [2 if ranked is not None and run in ranked[0] else None for run in runs]
    headings = ("run", "network", "result", "epochs", "validation loss")
    parts: list[Part] = [DataTable(headings=headings, rows=rows, caption="The runs", left=3, best=best)]
    parts += overlaid(runs)
    prose = "A difference between two single runs may be chance: another seed moves a score too. "
    prose += "statewise compare trains several seeds of each and says what can be told apart."
    return [Section("The runs beside each other", parts, prose=prose)]


def _validation(record: object) -> float | None:
    if not isinstance(record, dict):
        return None
    for key in ("valid_perplexity", "valid_loss", "valid_error"):
        if isinstance(record.get(key), int | float):
            return float(record[key])
    held = record.get("valid")
    return float(held["loss"]) if isinstance(held, dict) and "loss" in held else None


def _bibliography(runs: Sequence[Run]) -> str:
    """The papers of all models, each once, and the library."""
    entries: dict[str, None] = {_LIBRARY % statewise.__version__: None}
    for run in runs:
        try:
            entries.update(dict.fromkeys(cite(run.model).split("\n\n")))
        except (StatewiseError, OSError):
            continue  # a model that cannot be read has said so in its section
    return "\n\n".join(entries)


def _foot() -> str:
    made = datetime.now(tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"Made by statewise {statewise.__version__} on {made}. This file needs no network and holds no script."
