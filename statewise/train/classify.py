"""A classifier from beginning to end: train, validate, keep the best, test; killed at any moment, it goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from statewise.data import Copying, Images, Sequences, Series
from statewise.errors import ArgumentError
from statewise.models import ClassifierConfig, SequenceClassifier
from statewise.models.steps import StepClassifier, StepConfig
from statewise.train.callbacks import Callback
from statewise.train.classify_folder import about_examples, sizes_of, standardise
from statewise.train.classify_run import ClassifierResult, ExampleRun
from statewise.train.classify_settings import ClassifierSettings
from statewise.train.driver import Checkpoints
from statewise.train.tasks import CLASSES, STEPS

Examples = Sequences | Images | Copying | Series


def train_classifier(
    config: ClassifierConfig,
    settings: ClassifierSettings,
    train: Sequences | Images | Series,
    valid: Sequences | Images | Series,
    tests: Mapping[str, Sequences | Images | Series],
    folder: Path | str,
    *,
    device: torch.device | str = "cpu",
    resume: bool = False,
    checkpoints: Checkpoints | None = None,
    graph: Any = "auto",
    console: Console | None = None,
    on_epoch: Callable[[dict[str, Any]], None] | None = None,
    weights: Mapping[str, Tensor] | None = None,
    source: Mapping[str, Any] | None = None,
    callbacks: Sequence[Callback] = (),
) -> ClassifierResult:
    """Train a classifier in a folder of its own, validate it after every epoch, and test the best.

    The best has the fewest errors on the validation set and, among those, the smallest loss there. Where transitions
    are trained to be hard, before the loss come the errors with the nearest centroids, and the noise. Killed at any
    moment it goes on with ``resume=True``, and on a CPU ends with the same bits as a run that was not. A run that is
    complete goes on if ``epochs`` is raised, unless they say how rate or temperature fall. Torch's global generators
    are seeded for the run, and are afterwards as they were.

    Args:
        config: the model.
        settings: how it is trained.
        train: on what; of two classes at least.
        valid: what chooses the best.
        tests: sets on which the best is tested, by name.
        folder: where the run is kept: see :class:`RunFolder`; beside its files lie alphabet and classes.
        device: where to compute.
        resume: go on with the run in the folder; without one, begin.
        checkpoints: how often to write where it is.
        graph: as for :class:`TrainingStep`; sequences of several lengths run without graphs.
        console: where to tell of the progress; None for silence.
        on_epoch: called with the record of each epoch.
        weights: what the model begins with; None for fresh ones.
        source: where the examples came from, kept with the run's settings.
        callbacks: what acts on the weights: :class:`SpectralProjection`, :class:`CoverPenalty`, :class:`Quantised`, or
            a :class:`Callback` of one's own. They are kept with the run's settings; a step with them is not captured.

    >>> import tempfile
    >>> words = [format(n, "b") for n in range(64)]
    >>> data = Sequences.from_words(words, [int("11" in word) for word in words])
    >>> with tempfile.TemporaryDirectory() as place:
    ...     result = train_classifier(
    ...         ClassifierConfig(hidden=8), ClassifierSettings(epochs=2), data, data, {}, Path(place) / "run"
    ...     )
    >>> result.epochs
    2
    """
    train.check_classes(where="train")
    for name, examples in {"valid": valid, **tests}.items():
        check_like(train, examples, name)
    about = about_examples(train)

    def build(generator: torch.Generator) -> SequenceClassifier:
        made = config.build(**sizes_of(about), symbols=about["symbols"], generator=generator)
        return standardise(made, about)  # type: ignore[no-any-return]

    options = {"device": device, "resume": resume, "checkpoints": checkpoints, "graph": graph, "console": console}
    options |= {"on_epoch": on_epoch, "weights": weights, "source": source, "callbacks": callbacks}
    run: ExampleRun[SequenceClassifier] = ExampleRun(CLASSES, config, settings, build, about)
    result: ClassifierResult = run(train, valid, tests, folder, **options)
    return result


def train_steps(
    config: StepConfig,
    settings: ClassifierSettings,
    train: Copying,
    valid: Copying,
    tests: Mapping[str, Copying],
    folder: Path | str,
    **options: Any,
) -> ClassifierResult:
    """Train a classifier of every step, such as for copying memory; the best has the smallest loss.

    Args:
        config: the model.
        settings: how it is trained.
        train: sequences of one length with a target at each step.
        valid: what chooses the best.
        tests: sets on which the best is tested, by name.
        folder: where the run is kept.
        **options: as for :func:`train_classifier`.
    """
    for name, examples in {"train": train, "valid": valid, **tests}.items():
        check_like(train, examples, name)
    if settings.mixup != "none":
        raise ArgumentError(
            where="ClassifierSettings.mixup",
            got=f'"{settings.mixup}" for a classifier of steps',
            wanted='"none": sequences with one class each are mixed here',
            remedy="statewise.mixup mixes steps and their labels in a loop of your own; train_tagger does for words.",
        )
    about = about_examples(train)

    def build(generator: torch.Generator) -> StepClassifier:
        return config.build(**sizes_of(about), generator=generator)

    run: ExampleRun[StepClassifier] = ExampleRun(STEPS, config, settings, build, about)
    result: ClassifierResult = run(train, valid, tests, folder, **options)
    return result


def check_like(train: Examples, other: Examples, name: str) -> None:
    """Refuse a set that is empty, or made of other symbols or classes."""
    if len(other) == 0:
        raise ArgumentError(where=name, got="no examples", wanted="at least one")
    mine, yours = about_examples(train), about_examples(other)
    for what in ("symbols", "classes", "height", "width", "by", "permutation", "features"):
        if mine.get(what) != yours.get(what):
            raise ArgumentError(
                where=name,
                got=f"examples with other {what} than the training set",
                wanted="the same",
                remedy="Read all sets with one alphabet and one list of classes.",
            )
