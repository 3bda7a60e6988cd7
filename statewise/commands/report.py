"""``statewise report``: one HTML page about runs, which needs nothing but a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands.report_sources import CommandSources
from statewise.commands.shared import JSON, command_parser
from statewise.engine.threads import one_thread
from statewise.report.run_page import Reported, report_runs
from statewise.train.telling import say

NAME = "report.html"


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "Write one self-contained HTML page about trained runs: scores, curves, the automaton and what its states "
        "stand for, what can be proved, what it can remember, every setting, and how to cite it. No network, no "
        "script.",
        "statewise report runs/reviews",
        "statewise report runs/lm-a runs/lm-b --out both.html",
        'statewise report runs/tomita-4 --iid --title "Tomita 4"',
    )
    add = made.add_argument
    add("runs", type=str, nargs="+", help="folders of statewise train, of its --compare, of statewise compare or of "
        "statewise memory capacity")  # fmt: skip
    add("--out", type=str, help=f"the file; else {NAME} in the folder of the run, or here if there are several")
    add("--quick", action="store_true", help="leave out what takes long: certificates, ranks and calibration")
    add("--iid", action="store_true", help="you vouch that the training sequences are independent draws of one law, "
        "which certificates need")  # fmt: skip
    add("--title", type=str, default="", help="of the page; else the names of the runs")
    add("--force", action="store_true", help="replace the file even if it is not a page of statewise")
    add("--json", **JSON)
    return made


def run(arguments: Any, console: Console) -> dict[str, Any]:
    """Write the page, and say where it is.

    Args:
        arguments: as the parser gives them.
        console: where to print.
    """
    folders = [Path(each).expanduser() for each in arguments.runs]
    out = (
        Path(arguments.out).expanduser() if arguments.out else (folders[0] / NAME if len(folders) == 1 else Path(NAME))
    )
    with one_thread():
        made = report_runs(
            folders,
            out,
            quick=arguments.quick,
            iid=arguments.iid,
            title=arguments.title,
            force=arguments.force,
            sources=CommandSources(),
        )
    for name, failed in made.failed.items():
        for section, why in failed.items():
            say(console, f"{name}: no “{section}”: {why}")
    say(console, f"Written: {out} ({out.stat().st_size / 1024:,.0f} KiB). Open it in a browser.")
    return _document(made)


def _document(made: Reported) -> dict[str, Any]:
    told = {"path": str(made.path), "title": made.title, "runs": list(made.runs)}
    return {**told, "seconds": made.seconds, "failed": made.failed}
