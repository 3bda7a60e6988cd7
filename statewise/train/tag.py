"""A tagger from beginning to end: train, validate, test; killed at any moment, it goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from rich.console import Console
from torch import Tensor

from statewise.data import TaggedSentences, WordVectors
from statewise.data.spans import OUTSIDE, split_tag
from statewise.data.tag_schemes import LETTERS
from statewise.errors import ArgumentError, DtypeError
from statewise.models import Lexicon, TaggerConfig
from statewise.train.classify_run import refuse_fewer
from statewise.train.distributed import own_device
from statewise.train.driver import Checkpoints, Driver, Snapshot, seeded
from statewise.train.progress import Progress
from statewise.train.run import RunFolder
from statewise.train.settings import as_json, defaults_of
from statewise.train.tag_data import TagMeasured, TagSet, calibrate, check_scheme, judged, predict
from statewise.train.tag_folder import (
    TASK,
    checksum_of,
    describe_sets,
    tagged_path,
    write_lexicon,
    write_tagged,
)
from statewise.train.tag_settings import TaggerSettings
from statewise.train.tagging import TaggerTraining

_FREE = ("training.patience", "training.evaluation_batch", "source")
Context = npt.NDArray[np.floating[Any]]


def may_differ(settings: TaggerSettings, *, vectors: bool) -> tuple[str, ...]:
    """What a run that goes on may be told anew.

    Not its epochs where they say how the rate falls, and not the test sets where word vectors are given: those of their
    words are part of the model.

    Args:
        settings: how it is trained.
        vectors: whether word vectors are given.
    """
    epochs = () if settings.plans_ahead else ("training.epochs",)
    return (*epochs, *_FREE) if vectors else (*epochs, "data.tests", *_FREE)


@dataclass(frozen=True)
class TaggerResult:
    """What a run came to.

    Attributes:
        folder: the run's folder.
        valid: what the tagger that was kept does on the validation set; None without one.
        tests: and on each test set, by name.
        best_epoch: when it was found.
        epochs: how many there were.
        seconds: how long they took, all processes of a resumed run together.
    """

    folder: Path
    valid: TagMeasured | None
    tests: dict[str, TagMeasured]
    best_epoch: int
    epochs: int
    seconds: float

    def __str__(self) -> str:
        parts = {**({} if self.valid is None else {"valid": self.valid}), **self.tests}
        told = "\n".join(f"{name}: {tested}" for name, tested in parts.items())
        return f"{told}\nkept after epoch {self.best_epoch} of {self.epochs}"


def train_tagger(
    config: TaggerConfig,
    settings: TaggerSettings,
    train: TaggedSentences,
    valid: TaggedSentences | None,
    tests: Mapping[str, TaggedSentences],
    folder: Path | str,
    *,
    vectors: WordVectors | None = None,
    context: Mapping[str, Context] | None = None,
    device: torch.device | str = "cpu",
    resume: bool = False,
    checkpoints: Checkpoints | None = None,
    console: Console | None = None,
    on_epoch: Callable[[dict[str, Any]], None] | None = None,
    source: Mapping[str, Any] | None = None,
) -> TaggerResult:
    """Train a tagger in a folder of its own, validate it after every epoch, and test the one that is kept.

    The best has the highest F1 by the rules of conlleval on the validation set and, among those, the smallest loss
    there. Killed at any moment it goes on with ``resume=True``, and on a CPU ends with the same bits as a run that was
    not. Torch's global generators are seeded for the run, and are afterwards as they were. The tags given to each test
    set lie in the folder, in columns that conlleval reads.

    Args:
        config: the model.
        settings: how it is trained.
        train: on what.
        valid: what chooses the best; None with ``keep="last"``.
        tests: sets on which it is tested, by name.
        folder: where the run is kept: see :class:`RunFolder`; beside its files lie words, characters and tags.
        vectors: of words; None for random ones, which are trained.
        context: further vectors for each token, by "train", "valid" and the names of the tests; None for none.
        device: where to compute.
        resume: go on with the run in the folder; without one, begin.
        checkpoints: how often to write where it is.
        console: where to tell of the progress; None for silence.
        on_epoch: called with the record of each epoch.
        source: where the sentences came from, kept with the run's settings.

    >>> import tempfile
    >>> data = TaggedSentences(sentences=(("Anna", "saw"),) * 4, tags=(("B-PER", "O"),) * 4, scheme="iob2", name="x")
    >>> with tempfile.TemporaryDirectory() as place:
    ...     result = train_tagger(TaggerConfig(hidden=4), TaggerSettings(epochs=2), data, data, {}, Path(place) / "run")
    >>> result.epochs
    2
    """
    _check_names(tests)
    sets = {"train": train, **({} if valid is None else {"valid": valid}), **tests}
    _check(sets, config, settings, context)
    lexicon = Lexicon.of(
        train.sentences,
        tags=_all_tags(train),
        vectors=None if vectors is None else vectors.words,
        also=[sentence for each in sets.values() for sentence in each.sentences],
        scheme=train.scheme,
    )
    rows = None if vectors is None else torch.from_numpy(vectors.matrix(lexicon.words)[0])
    width = 0 if context is None else next(iter(context.values())).shape[1]
    described = {"task": TASK, "model": as_json(config), "training": as_json(settings)}
    described |= {"data": describe_sets(train, valid, tests)} | ({"source": dict(source)} if source else {})
    if vectors is not None:
        described["vectors"] = checksum_of(vectors.vectors, words=vectors.words)
    if context is not None:
        described["context"] = {name: checksum_of(each) for name, each in context.items() if name in ("train", "valid")}
    device = own_device(torch.device(device))
    with seeded(settings.seed, device):
        # First what may be refused: a folder becomes a run only when it can be one.
        model = config.build(
            lexicon, vectors=rows, context=width, generator=torch.Generator().manual_seed(settings.seed)
        )
        made = {
            name: TagSet(lexicon, each, context=None if context is None else context[name], where=name)
            for name, each in sets.items()
        }
        training = TaggerTraining(model.to(device), settings, made["train"], made.get("valid"), device=device)
        free = may_differ(settings, vectors=vectors is not None)
        if resume and "training.epochs" in free:
            refuse_fewer(Path(folder), settings.epochs)
        known = defaults_of(config, settings)
        with RunFolder.create(folder, described, resume=resume, may_differ=free, defaults=known) as run:
            driver = _TaggerDriver(training, Path(folder), run, checkpoints or Checkpoints(), console, on_epoch)
            driver.about = {"width": None if rows is None else rows.shape[1], "context": width}
            driver.drive()
            return driver.finish({name: made[name] for name in tests})


def _all_tags(train: TaggedSentences) -> tuple[str, ...]:
    """The tags of a set and, where they mark spans, all others of their types: a small set has not met every one."""
    if train.scheme == "none":
        return train.tag_names
    types = {kind for tag in train.tag_names if (kind := split_tag(tag)[1])}
    return (OUTSIDE, *sorted(f"{letter}-{kind}" for letter in LETTERS[train.scheme] for kind in types))


def _check_names(tests: Mapping[str, TaggedSentences]) -> None:
    """Refuse test sets whose tags would go into the same file, or that have the name of another set."""
    for taken in ("train", "valid"):
        if taken in tests:
            raise ArgumentError(
                where="tests",
                got=f"a set called {taken!r}",
                wanted="another name",
                remedy="This one belongs to what the tagger learns from or is chosen by.",
            )
    files: dict[Path, str] = {}
    for name in tests:
        other = files.setdefault(tagged_path(Path(), name), name)
        if other != name:
            raise ArgumentError(
                where="tests", got=f"{other!r} and {name!r}", wanted="names that differ in more than signs"
            )


def _check(
    sets: Mapping[str, TaggedSentences],
    config: TaggerConfig,
    settings: TaggerSettings,
    context: Mapping[str, Context] | None,
) -> None:
    """Refuse what could not be trained: sets that are empty or in another scheme, and settings that contradict."""
    train = sets["train"]
    for name, each in sets.items():
        if not isinstance(each, TaggedSentences):
            got, wanted = type(each).__name__, "TaggedSentences, as read_tagged gives them"
            raise DtypeError(where=name, got=got, wanted=wanted)
        if len(each) == 0:
            raise ArgumentError(where=name, got="no sentences", wanted="at least one")
        check_scheme(each, train.scheme, where=name)
        _check_columns(name, each)
        if context is not None and name not in context:
            raise ArgumentError(where=f"context[{name!r}]", got="nothing", wanted="vectors for every set, or for none")
    mixed = config.head == "crf" and settings.mixup != "none"
    if mixed and settings.crf_mode == "paper" and settings.lengths != "truncate":
        raise ArgumentError(
            where="TaggerSettings.lengths",
            got=f'"{settings.lengths}" with crf_mode="paper"',
            wanted='"truncate": that loss is defined for members of equal length',
            remedy='crf_mode="prefix" and "coupled" take all lengths.',
        )
    if "valid" not in sets and settings.keep == "best":
        raise ArgumentError(
            where="valid", got="None", wanted='sentences to choose the best by, or keep="last" in the settings'
        )


def _check_columns(name: str, sentences: TaggedSentences) -> None:
    """Refuse what columns of text cannot hold, since the tags that are given are written so."""
    for number, (words, tags) in enumerate(zip(sentences.sentences, sentences.tags, strict=True)):
        wrong = next((word for word in words if "\n" in word or "\r" in word), None)
        wrong = wrong or next((tag for tag in tags if not tag or tag.split() != [tag]), None)
        if wrong is not None:
            raise ArgumentError(
                where=f"{name}[{number}]",
                got=repr(wrong),
                wanted="words without line ends, and tags without white space",
                remedy="Leave such words out, or write them otherwise.",
            )


class _TaggerDriver(Driver[TaggerTraining]):
    """The loop around the training of a tagger."""

    about: dict[str, Any]

    def _prepare(self) -> None:
        write_lexicon(self.folder, self.training.model.lexicon, **self.about)

    def _snapshot(self) -> Snapshot:
        return self.training.snapshot()

    def _restore(self, tensors: Mapping[str, Tensor], document: Mapping[str, Any]) -> None:
        self.training.restore(tensors, document)

    def _about_the_best(self) -> dict[str, Any]:
        best = self.training.best
        return {"epoch": best.epoch} | ({} if best.measured is None else {"valid_f1": best.measured.f1})

    def _progress(self) -> Progress:
        return Progress(self.console, epochs=self.training.settings.epochs, perplexity=False, unit="tokens")

    def _tell(self, progress: Progress, record: Mapping[str, Any]) -> None:
        called = "accuracy" if self.training.model.lexicon.scheme == "none" else "F1"
        note = f"{called} {100 * record['valid_f1']:.2f} %" if "valid_f1" in record else ""
        if record["skipped"]:
            note += f", {record['skipped']} updates left out: their gradient overflowed"
        losses = {name: record[f"{name}_loss"] for name in ("train", "valid") if f"{name}_loss" in record}
        progress.end_epoch(note=note, **losses)

    def finish(self, tests: Mapping[str, TagSet]) -> TaggerResult:
        """Test the tagger that was kept, and write down what it said."""
        training, batch = self.training, self.training.settings.evaluation_batch
        assert self.run is not None
        found, calibrated = {}, {}
        with training.best_weights():
            for name, examples in tests.items():
                nll, tagged = predict(training.model, examples, batch=batch)
                found[name] = judged(examples.sentences, tagged, nll=nll)
                calibrated[name] = calibrate(training.model, examples, batch=batch)
                write_tagged(tagged_path(self.folder, name), examples.sentences, tagged)
        result = TaggerResult(
            folder=self.folder,
            valid=training.best.measured,
            tests=found,
            best_epoch=training.best.epoch,
            epochs=training.position.epoch,
            seconds=self.seconds,
        )
        tested = {
            name: {**each.record(), "ece": calibrated[name].ece, "token_nll": calibrated[name].nll}
            for name, each in found.items()
        }
        self.run.append_metrics(
            {
                "best_epoch": result.best_epoch,
                "valid": None if result.valid is None else result.valid.record(),
                "tests": tested,
                "parameters": sum(each.numel() for each in training.model.parameters() if each.requires_grad),
                "seconds": round(result.seconds, 3),
            }
        )
        return result
