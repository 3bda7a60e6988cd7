"""One thing to do: train a candidate's run somewhat further, or test it; wherever it is done."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch

from statewise.errors import ArgumentError, DivergedError, RunInUseError
from statewise.lineup.adaptor import PARTS, Adaptor, Tested, Told, Trained
from statewise.lineup.candidates import Candidate

#: Seconds for which a run that another process still holds is waited for: a worker whose master was killed takes a
#: moment to end.
PATIENCE = 30.0
_ADAPTORS = {
    "lm": ("language", "Language"),
    "tag": ("tagging", "Tagging"),
    "classify": ("classifying", "Classifying"),
    "series": ("series", "LabelledSeries"),
    "forecast": ("forecasting", "Forecasting"),
}


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run of a candidate, and how far it shall be trained; or that it shall be tested.

    Args:
        kind: of the data.
        data: the folder with its parts.
        reading: what readers of the parts must know.
        candidate: who.
        told: what was said of model and training.
        seed: of the run.
        epochs: that it shall have.
        folder: of the run.
        test: whether it is to be tested, instead of trained.
    """

    kind: str
    data: Path
    reading: Mapping[str, Any] = field(default_factory=dict)
    candidate: Candidate
    told: Told
    seed: int
    epochs: int
    folder: Path
    test: bool = False

    @property
    def run(self) -> str:
        """The name of the run."""
        return run_name(self.candidate.name, self.seed)


class Report(NamedTuple):
    """What came of a job: a number for training or testing, or why the run came to nothing."""

    done: Trained | Tested | None
    failed: str = ""


def run_name(candidate: str, seed: int) -> str:
    """What a run is called.

    Args:
        candidate: its name.
        seed: of the run.

    >>> run_name("dropout-0.3", 1)
    'dropout-0.3-s1'
    """
    return f"{candidate}-s{seed}"


def adaptor_of(kind: str) -> Adaptor:
    """What is known of a kind of data.

    Args:
        kind: of the data.

    >>> adaptor_of("lm").metrics[0].name
    'perplexity'
    """
    if kind not in _ADAPTORS:
        raise ArgumentError(where="--kind", got=kind, wanted=f"one of {', '.join(_ADAPTORS)}")
    module, name = _ADAPTORS[kind]
    made = getattr(import_module(f"statewise.lineup.{module}"), name)()
    assert isinstance(made, Adaptor)
    return made


def perform(job: Job, device: torch.device) -> Report:
    """Do it; a run that diverges is a report, every other error is raised.

    Args:
        job: what to do.
        device: where to compute.
    """
    return _patiently(lambda: _performed(job, device))


def _performed(job: Job, device: torch.device) -> Report:
    adaptor = adaptor_of(job.kind)
    sets = _sets(job, adaptor)
    if job.test:
        return Report(adaptor.test(sets, job.folder, device))
    config, settings = adaptor.configured(job.candidate, job.told, seed=job.seed, epochs=job.epochs)
    try:
        source = adaptor.source(job.data, job.reading)
        return Report(adaptor.train(sets, config, settings, job.folder, source, device))
    except DivergedError as error:
        return Report(None, str(error))


def _sets(job: Job, adaptor: Adaptor) -> Any:
    files = [job.data / f"{part}.{adaptor.ending}" for part in PARTS]
    stamp = tuple((path.stat().st_size, path.stat().st_mtime_ns) for path in files if path.exists())
    return _loaded(job.kind, job.data, json.dumps(dict(job.reading), sort_keys=True), stamp)


@functools.lru_cache(maxsize=1)
def _loaded(kind: str, folder: Path, reading: str, stamp: tuple[Any, ...]) -> Any:
    """The sets, kept from one job of a process to the next; other files have another stamp."""
    return adaptor_of(kind).load(folder, json.loads(reading))


def _patiently(work: Callable[[], Report]) -> Report:
    enough, pause = time.monotonic() + PATIENCE, 0.05
    while True:
        try:
            return work()
        except RunInUseError:
            if time.monotonic() + pause > enough:
                raise
        time.sleep(pause)
        pause = min(2 * pause, 2.0)
