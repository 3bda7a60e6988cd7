"""Exactly what a run was told, and with what it was looked at."""

from __future__ import annotations

import platform
import sys

import numpy as np
import torch

import statewise
from statewise.report.html import DataTable, Disclosure, Section
from statewise.report.run_sections.run import Run
from statewise.report.run_sections.words import flattened


def settings(run: Run) -> Section:
    """The whole of ``config.json``, and the versions that made this page.

    Args:
        run: any.
    """
    rows = flattened(run.told)
    table = DataTable(headings=("setting", "value"), rows=rows, caption=f"config.json of {run.name}", left=2)
    made = [
        ("statewise", statewise.__version__),
        ("Python", sys.version.split()[0]),
        ("PyTorch", torch.__version__),
        ("NumPy", np.__version__),
        ("system", f"{platform.system()} {platform.machine()}"),
    ]
    versions = DataTable(headings=("what", "version"), rows=made, caption="With what this page was made", left=2)
    folds = [Disclosure(f"All {len(rows)} settings", [table]), Disclosure("Versions", [versions])]
    return Section("Settings", folds, prose="Every setting of the run, those that nobody named among them.")
