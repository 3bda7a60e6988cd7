"""Runs of ``killable.py``, and what a run came to, bit by bit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from statewise.train import RunFolder
from train.forks import Forks

Outcome = tuple[bytes, bytes, list[dict[str, Any]]]
SCRIPT = Path(__file__).with_name("killable.py")


@contextmanager
def killable() -> Iterator[Forks]:
    """A process that forks runs which can be killed."""
    runs = Forks(str(SCRIPT), "--serve")
    try:
        yield runs
    finally:
        runs.close()


def undisturbed_outcomes(forks: Forks, folder: Path, kinds: Sequence[str]) -> dict[str, Outcome]:
    """What runs of some kinds come to that write only at their end."""
    for kind in kinds:
        assert forks.run(str(folder / kind), "--kind", kind, "--every", "1000000") == 0
    return {kind: outcome(folder / kind) for kind in kinds}


def outcome(folder: Path) -> Outcome:
    """The bits of the best and the last model with all that belongs to it, and the metrics without their times."""
    run = RunFolder(folder)
    found = run.load_resume()
    assert found is not None
    tensors, document = found
    model, about = run.load_model()
    document.pop("seconds")
    document["about the model"] = about
    metrics = [{name: value for name, value in record.items() if name != "seconds"} for record in run.metrics()]
    return _bits(model), _bits(tensors) + json.dumps(document, sort_keys=True).encode(), metrics


def _bits(tensors: dict[str, Tensor]) -> bytes:
    return b"".join(name.encode() + tensors[name].numpy().tobytes() for name in sorted(tensors))
