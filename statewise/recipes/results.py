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
from statewise.recipes.cases import Adaptation, Measured, Step
from statewise.recipes.running import Outcome
from statewise.train.metrics import strict
from statewise.train.settings import as_json

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
    recipe, corpus = outcome.recipe, outcome.corpus
    return {
        "recipe": recipe.name,
        "title": recipe.title,
        "comparable": not outcome.request.smoke,
        "request": asdict(outcome.request),
        "data": {
            "name": corpus.name,
            "words": len(corpus.vocabulary),
            "tokens": {part: len(getattr(corpus, part)) for part in ("train", "valid", "test")},
        },
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


def _run(measured: Measured, step: Step) -> dict[str, Any]:
    line = measured.line
    settings = step.told if isinstance(step, Adaptation) else as_json(step.settings)
    return {
        "name": measured.name,
        "row": line.row,
        "size": line.size,
        "placement": line.placement,
        "stage": line.stage,
        "gamma": line.gamma,
        "seed": measured.seed,
        "parameters": measured.parameters,
        "valid_perplexity": measured.valid,
        "test_perplexity": measured.test,
        "published": None if line.published is None else line.published._asdict(),
        "best_epoch": measured.best_epoch,
        "epochs": measured.epochs,
        "seconds": measured.seconds,
        "model": None if isinstance(step, Adaptation) else as_json(step.config),
        "settings": settings,
        "curve": [dict(record) for record in measured.curve],
    }
