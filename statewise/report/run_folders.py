"""Which kind of folder is which: a run, runs that were compared, a search for capacities, or a line-up."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statewise.errors import RunFolderError
from statewise.files import read_object
from statewise.report.html import Bar, Bullets, DataTable, Note, Section, Series, bar_chart, line_chart, shown
from statewise.report.html.pieces import Part
from statewise.report.run_sections.run import Run, read_run
from statewise.sweep.capacity import RESULT
from statewise.sweep.capacity_result import CapacityResult
from statewise.sweep.capacity_table import COLUMNS
from statewise.train.stored import as_written

COMPARED, LINEUP = "compared.json", "lineup.json"


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a folder holds.

    Args:
        title: what it is called.
        says: what it comes to, in a sentence.
        sections: of the folder as a whole.
        runs: in it.
    """

    title: str
    says: str = ""
    sections: Sequence[Section] = ()
    runs: Sequence[Run] = field(default=())


@dataclass(frozen=True, kw_only=True)
class FolderKind:
    """A kind of folder that pages can be made of.

    Args:
        name: of the kind.
        recognises: whether a folder is of it.
        read: makes of a folder, and of the options of its runs, what a page shows.
    """

    name: str
    recognises: Callable[[Path], bool]
    read: Callable[[Path, Mapping[str, Any]], Found]


def read_folder(folder: Path, options: Mapping[str, Any], kinds: Sequence[FolderKind] | None = None) -> Found:
    """What a folder holds.

    Args:
        folder: of a run, or of several.
        options: of the runs, see :class:`~.Run`.
        kinds: of folders, the first that recognises it counts; None for all that are known here.
    """
    for kind in KINDS if kinds is None else kinds:
        if kind.recognises(folder):
            with as_written(folder, f"the files of a {kind.name} as they were written"):
                return kind.read(folder, options)
    missing = "no such folder" if not folder.exists() else "a file" if folder.is_file() else "no config.json"
    raise RunFolderError(
        where=str(folder),
        got=missing,
        wanted="the folder of a run, of a comparison or of a search",
        remedy="statewise train, statewise compare and statewise memory capacity make such folders.",
    )


def _lone(folder: Path, options: Mapping[str, Any]) -> Found:
    run = read_run(folder, **options)
    return Found(title=run.name, runs=[run])


def _compared(folder: Path, options: Mapping[str, Any]) -> Found:
    """Runs of ``statewise train lm --compare`` or ``statewise train tag --compare``: a folder each."""
    inside = sorted(place.parent for place in folder.glob("*/config.json"))
    if not inside:
        raise RunFolderError(
            where=str(folder), got="a comparison without runs", wanted="one run at least", remedy="Go on with --resume."
        )
    runs = [read_run(place, **options) for place in inside]
    return Found(title=folder.resolve().name, runs=runs, sections=_gains(folder))


def _gains(folder: Path) -> list[Section]:
    """What a comparison of taggers has written down: the gain over the standard training, with a test."""
    written = folder / "results.json"
    if not written.exists():
        return []
    document = read_object(written, wanted="what a comparison has found, as JSON")
    parts: list[Part] = []
    for name, variants in document.items():
        if not isinstance(variants, Mapping) or not all(isinstance(each, Mapping) for each in variants.values()):
            continue
        bars = [
            Bar(label=variant, value=100 * each["gain"], low=100 * each["interval"][0], high=100 * each["interval"][1])
            for variant, each in variants.items()
            if "gain" in each
        ]
        if bars:
            caption = "Above 0 the variant is better. The interval is that of a paired bootstrap over sentences."
            parts.append(
                bar_chart(bars, title=f"Gain in F1 over the standard training, {name}", value="points of F1",
                          caption=caption, heading="variant", interval="95 %")
            )  # fmt: skip
    return [Section("What mixing gains", parts)] if parts else []


def _capacity(folder: Path, options: Mapping[str, Any]) -> Found:
    """A search of ``statewise memory capacity``."""
    name, command = folder.resolve().name, f"statewise memory capacity --resume --out {shlex.quote(str(folder))}"
    if not (folder / RESULT).exists():
        note = Note(kind="missing", words="The search has not ended, so there is no result yet.", command=command)
        says = "A search for capacities that has not ended."
        return Found(title=name, says=says, sections=[Section("Capacities", [note])])
    result = CapacityResult.of(read_object(folder / RESULT, wanted="what a search has found, as JSON"))
    table = DataTable(
        headings=COLUMNS, rows=result.rows(), caption="The largest value that each network solves", left=0
    )
    parts: list[Part] = [table]
    series = []
    for depth, points in result.points("parameters").items():
        held = [(float(size), float(value)) for size, value, _ in points if value is not None]
        if held:
            series.append(Series(name=f"depth {depth}", x=[x for x, _ in held], y=[y for _, y in held]))
    if series:
        caption = "Farther up remembers more at the same cost. A capacity marked ≥ in the table was not bounded."
        title, solved = "Capacity against parameters", "largest value solved"
        parts.insert(0, line_chart(series, title=title, x="parameters", y=solved, log_x=True, caption=caption))
    parts.append(Bullets(result.notes()))
    task = (
        result.search.get("like", {}).get("task", "the task")
        if isinstance(result.search.get("like"), Mapping)
        else "it"
    )
    says = f"A search for the hardest task that {len(result.networks)} networks can solve."
    prose = (
        f"For each network the largest value of {task} that enough of its runs solve, and what ended the search there."
    )
    return Found(title=name, says=says, sections=[Section("Capacities", parts, prose=prose)])


def _lineup(folder: Path, options: Mapping[str, Any]) -> Found:
    """A comparison of ``statewise compare``: its verdict, its finalists, and the best run."""
    name = folder.resolve().name
    document = read_object(folder / LINEUP, wanted="what a comparison has found, as JSON")
    result = document.get("result")
    best = folder / "best"
    runs = [read_run(best, name="best", **options)] if (best / "config.json").exists() else []
    if result is None:
        command = f"statewise compare --resume --out {shlex.quote(str(folder))}"
        note = Note(kind="missing", words="The comparison has not ended, so there is no verdict yet.", command=command)
        unfinished = "A comparison that has not ended."
        return Found(title=name, says=unfinished, sections=[Section("The verdict", [note])], runs=runs)
    says = [str(sentence) for sentence in result.get("says", [])]
    parts: list[Part] = [Bullets(says)] if says else []
    metrics = [str(metric["name"]) for metric in result.get("metrics", [])]
    lines = result.get("lines", [])
    parts += [chart for metric in metrics if (chart := _ranked(lines, metric)) is not None]
    parts.append(_finalists(lines, metrics))
    for title, held in (("Came to nothing", "failed"), ("Could not take part", "unavailable")):
        if result.get(held):
            rows = [(key, str(why)) for key, why in result[held].items()]
            parts.append(DataTable(headings=("candidate", "why"), rows=rows, caption=title, left=2))
    return Found(title=name, says=says[0] if says else "", sections=[Section("The verdict", parts)], runs=runs)


def _ranked(lines: Sequence[Mapping[str, Any]], metric: str) -> Part | None:
    bars = []
    for line in lines:
        score = line.get("scores", {}).get(metric)
        if score is not None:
            value, low, high = _ends(score)
            bars.append(Bar(label=str(line["name"]), value=value, low=low, high=high))
    if not bars:
        return None
    return bar_chart(bars, title=f"{metric[0].upper()}{metric[1:]} on test data", value=metric, zero=False,
                     heading="candidate", interval="95 %")  # fmt: skip


def _ends(score: Any) -> tuple[float, float | None, float | None]:
    """A score with its interval, by whatever names a line-up keeps them under."""
    if not isinstance(score, Mapping):
        return float(score), None, None
    value = score.get("value", score.get("mean", score.get("middle")))
    low, high = score.get("low"), score.get("high")
    held = [end for end in (low, high) if end is not None]
    if value is None:
        value = sum(held) / len(held)
    return float(value), None if low is None else float(low), None if high is None else float(high)


def _finalists(lines: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> Part:
    rows = []
    for line in lines:
        held = line.get("scores", {})
        scores = [shown(_ends(held[metric])[0]) if metric in held else "" for metric in metrics]
        chance = line.get("p_holm")
        rows.append((
            str(line["name"]),
            str(line.get("says") or "the plain network"),
            *scores,
            "" if chance is None else shown(float(chance), digits=3),
            f"{float(line.get('cost', 1.0)):.2f}",
        ))  # fmt: skip
    headings = ("candidate", "verdict", *metrics, "p (Holm)", "cost")
    caption = "The finalists; cost is the time of an epoch over that of the plain network"
    return DataTable(headings=headings, rows=rows, caption=caption, left=2)


def _is_search(folder: Path) -> bool:
    if not (folder / "config.json").is_file():
        return False
    try:
        told = read_object(folder / "config.json", wanted="settings")
    except RunFolderError:
        return False
    return told.keys() >= {"like", "networks"}


#: All kinds there are; a comparison and a search have a config.json too, so they are asked first.
KINDS: tuple[FolderKind, ...] = (
    FolderKind(name="line-up", recognises=lambda folder: (folder / LINEUP).is_file(), read=_lineup),
    FolderKind(name="comparison", recognises=lambda folder: (folder / COMPARED).is_file(), read=_compared),
    FolderKind(name="capacity search", recognises=_is_search, read=_capacity),
    FolderKind(name="run", recognises=lambda folder: (folder / "config.json").is_file(), read=_lone),
)
