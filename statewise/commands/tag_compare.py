"""The same tagger without mixing and with each kind of it: what helps on these sentences, and by how much."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from statewise.commands.compare import COMPARED, note
from statewise.commands.curves import curves
from statewise.commands.shared import first_process
from statewise.commands.tagged import Tagged, alone
from statewise.data import compare_spans
from statewise.data.span_comparison import SpanComparison
from statewise.errors import DivergedError
from statewise.files import write_atomically
from statewise.models import TaggerConfig
from statewise.report import Table
from statewise.train import RunFolder, TaggerResult, TaggerSettings, TagMeasured, train_tagger
from statewise.train.settings import MIXUPS, as_json
from statewise.train.tag_folder import read_given, tagged_path
from statewise.train.telling import say

STANDARD = "standard"
#: The kinds of training, by the folders of their runs.
VARIANTS: Mapping[str, str] = {STANDARD if name == "none" else name: name for name in MIXUPS}
SURE = 0.05  # a difference that the draw of sentences would make less often is told as one
TABLES, RESULTS = "compared.md", "results.json"


@dataclass(frozen=True)
class Variant:
    """What a kind of training came to on a test set.

    Attributes:
        valid: how it does on the validation set; None without one.
        f1: of the spans of the test set.
        loss: the mean over its sentences of the negative log-likelihood.
        ece: the expected calibration error, token by token.
        against: the comparison with the standard training; None of itself.
        best_epoch: whose weights were kept.
        seconds: how long it took.
    """

    valid: TagMeasured | None
    f1: float
    loss: float
    ece: float
    against: SpanComparison | None
    best_epoch: int
    seconds: float

    def record(self) -> dict[str, Any]:
        """As a file has it."""
        told = {name: getattr(self, name) for name in ("f1", "loss", "ece", "best_epoch", "seconds")}
        told["valid_f1"] = None if self.valid is None else self.valid.f1
        one = self.against
        return told if one is None else {**told, "gain": one.difference, "p": one.p, "interval": list(one.interval)}


def compare_mixing(
    config: TaggerConfig,
    settings: TaggerSettings,
    sets: Tagged,
    folder: Path,
    *,
    mixed: TaggerConfig,
    console: Console,
    told: Console | None,
    drawn: bool,
    source: Mapping[str, Any],
    **options: Any,
) -> dict[str, dict[str, Variant]]:
    """Train each variant with the same seed, and print how each does beside the standard one; by test set and variant.

    Args:
        config: the tagger of the standard variant.
        settings: how each variant is trained, but for what is mixed.
        sets: the sentences; compared on each test set.
        folder: gets a folder for each variant, a file that says what was asked, the tables and their numbers.
        mixed: the tagger of the others, which may drop other shares of words.
        console: where to print the table.
        told: where to tell of the progress.
        drawn: whether each variant's curves are written too.
        source: where the sentences came from.
        **options: as for :func:`~statewise.train.train_tagger`.
    """
    document = {"model": as_json(config), "training": as_json(settings), "source": dict(source)}
    document["mixed"] = {"word_dropout": mixed.word_dropout}
    if not options["resume"] or not (folder / COMPARED).exists():
        note(folder, document)
    results: dict[str, TaggerResult] = {}
    failed: dict[str, DivergedError] = {}
    for name, mixup in VARIANTS.items():
        say(told, f"{name}:")
        model, variant = config if name == STANDARD else mixed, replace(settings, mixup=mixup)
        try:
            with curves(folder / name, wanted=drawn) as write:
                parts = (sets.train, sets.valid, sets.tests)
                more = {"source": source, "console": told, "on_epoch": write, **options}
                results[name] = train_tagger(model, variant, *parts, folder / name, **more)
                note(folder, document)  # not before: what is refused is not what the folder has
        except DivergedError as error:
            failed[name] = error
            say(told, f"{name} came to nothing: {error}")
    if not results:
        raise next(iter(failed.values()))
    spans = sets.scheme != "none"
    found = {test: judged(results, test, spans=spans) for test in sets.tests}
    lost = [f"{name} came to nothing: {error}" for name, error in failed.items()]
    said = [*dropping(config, mixed), *lost]
    tables = [gains(each, test, said, measure="F1" if spans else "accuracy") for test, each in found.items()]
    for table in tables:
        table.print(console)
    keep(folder, tables, found)
    return found


def keep(folder: Path, tables: Sequence[Table], found: Mapping[str, Mapping[str, Variant]]) -> None:
    """Write the tables of a comparison into its folder, and the numbers; under torchrun, in the first process.

    Args:
        folder: of the comparison.
        tables: one for each test set.
        found: by test set and variant.
    """
    if first_process():
        numbers = {test: {name: one.record() for name, one in each.items()} for test, each in found.items()}
        write_atomically(folder / TABLES, "\n\n".join(table.markdown().strip() for table in tables) + "\n")
        write_atomically(folder / RESULTS, json.dumps(numbers, indent=2) + "\n")


def judged(results: Mapping[str, TaggerResult], test: str, *, spans: bool) -> dict[str, Variant]:
    """What runs came to on a test set, beside the standard one.

    Args:
        results: by name.
        test: the name of the set.
        spans: whether tags mark spans; else each is judged by itself.
    """
    given = {name: read_given(tagged_path(result.folder, test)) for name, result in results.items()}
    if not spans:
        given = {name: (alone(right), alone(tags)) for name, (right, tags) in given.items()}
    found = {}
    for name, result in results.items():
        against = None
        if name != STANDARD and STANDARD in results:
            against = compare_spans(given[name][0], given[name][1], given[STANDARD][1])
        record = RunFolder(result.folder).metrics()[-1]["tests"][test]
        numbers = (record["f1"], record["loss"], record["ece"])
        found[name] = Variant(result.valid, *numbers, against, result.best_epoch, result.seconds)
    return found


def dropping(config: TaggerConfig, mixed: TaggerConfig) -> list[str]:
    """What is to be said of word dropout; nothing where all variants have the same.

    Args:
        config: the tagger of the standard variant.
        mixed: that of the others.

    >>> dropping(TaggerConfig(), TaggerConfig(word_dropout=0.0))
    ['Word dropout: 0.05 in the standard training, 0 where sentences are mixed; --word-dropout X has X in all.']
    """
    if config.word_dropout == mixed.word_dropout:
        return []
    standard, other = f"{config.word_dropout:g} in the standard training", f"{mixed.word_dropout:g}"
    return [f"Word dropout: {standard}, {other} where sentences are mixed; --word-dropout X has X in all."]


def gains(found: Mapping[str, Variant], test: str, more: list[str], *, measure: str = "F1") -> Table:
    """The variants beside each other, and what the numbers say.

    Args:
        found: by name.
        test: the set that they are compared on.
        more: what else is to be said.
        measure: what is compared, in a word.
    """
    columns = ("training", f"valid {measure} %", f"{measure} %", "gain", "p", "loss", "ECE %", "best epoch", "seconds")
    rows = [
        [
            *(name, "-" if one.valid is None else f"{100 * one.valid.f1:.2f}", f"{100 * one.f1:.2f}"),
            *(*_gain(one.against), f"{one.loss:.3f}", f"{100 * one.ece:.2f}"),
            *(str(one.best_epoch), f"{one.seconds:.0f}"),
        ]
        for name, one in found.items()
    ]
    what = "F1 of spans by the rules of conlleval" if measure == "F1" else "the share of right tags"
    told = (
        f"On {test}: {what}; gain: "
        "by how much it is higher than without mixing; p: how often the draw of test sentences alone would make such a "
        "gain or loss, by exchanging the tags of whole sentences. It leaves out the chance between trainings, of which "
        "there is one of each with one seed, and that there are three comparisons; loss: of a sentence, in nats; ECE: "
        "how far probabilities are from how often they are right."
    )
    return Table(columns=columns, rows=rows, notes=[conclusion(found, measure=measure), told, *more])


def conclusion(found: Mapping[str, Variant], *, measure: str = "F1") -> str:
    """What the numbers say, in a sentence: validation chooses, the test tells how good the choice is.

    Where mixing is only as good as the standard training, that is the best.

    Args:
        found: by name.
        measure: what is compared, in a word.
    """
    standard, told = found.get(STANDARD), list[str]()
    chosen = {name: one.valid for name, one in found.items() if one.valid is not None}
    if chosen:
        best = max(chosen, key=lambda name: (chosen[name].f1, name == STANDARD, -chosen[name].loss))
        told.append(f"Best by validation is {best}{_beside(found[best].against, measure)}.")
    if standard is not None:
        least = min(found, key=lambda name: found[name].loss)
        share = f"{100 * (1 - found[least].loss / standard.loss):.0f} %"
        lowest = f"The lowest loss is that of {least}, {share} below the standard one."
        told.append("Mixing does not lower the loss." if least == STANDARD else lowest)
    return " ".join(told)


def _beside(against: SpanComparison | None, measure: str) -> str:
    if against is None:
        return ""
    draw = "the draw of test sentences"
    sure = f"more than {draw} would do" if against.p < SURE else f"which {draw} would do"
    return f", whose {measure} is {100 * against.difference:+.2f} points from the standard one's, {sure}"


def _gain(against: SpanComparison | None) -> tuple[str, str]:
    return ("-", "-") if against is None else (f"{100 * against.difference:+.2f}", _chance(against.p))


def _chance(p: float) -> str:
    """A p-value as it is printed.

    >>> _chance(0.0001), _chance(0.25)
    ('<0.001', '0.250')
    """
    return f"{p:.3f}" if p >= 0.001 else "<0.001"
