"""What a recipe came to, as a file that another program can read."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import statewise
from statewise.files import write_atomically
from statewise.recipes.driving import Outcome
from statewise.recipes.lines import Made, Step
from statewise.train.metrics import strict

RESULTS = "results.json"


def write_results(outcome: Outcome, folder: Path, *, device: torch.device, command: str = "") -> Path:
    """Write everything that was asked and measured, as strict JSON.

    Args:
        outcome: what came out so far.
        folder: where the file goes; it exists.
        device: where it was computed.
        command: by which it can be made again.
    """
    path = folder / RESULTS
    document = strict(_document(outcome, device, command), "results")
    write_atomically(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    return path


def device_name(device: torch.device) -> str:
    """The device in words.

    >>> device_name(torch.device("cpu")).startswith("CPU")
    True
    """
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU ({platform.machine()}), {torch.get_num_threads()} threads"


def _document(outcome: Outcome, device: torch.device, command: str) -> dict[str, Any]:
    recipe = outcome.recipe
    return {
        "recipe": recipe.name,
        "title": recipe.title,
        "comparable": recipe.comparable and not outcome.request.smoke,
        "request": asdict(outcome.request),
        "data": recipe.describe(outcome.data),
        "command": command,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": device_name(device),
        "versions": {
            "statewise": statewise.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "runs": [_run(one, outcome.steps[one.name]) for one in outcome.measured],
        "failed": outcome.failed,
    }


def _run(measured: Made, step: Step) -> dict[str, Any]:
    return {
        "name": measured.name,
        "row": measured.line.row,
        "size": measured.line.size,
        "seed": measured.seed,
        "parameters": measured.parameters,
        **measured.numbers(),
        "best_epoch": measured.best_epoch,
        "epochs": measured.epochs,
        "seconds": measured.seconds,
        **step.recorded,
        "curve": [dict(record) for record in measured.curve],
    }
