"""How well a trained tagger tags sentences: by type of span, by two conventions, and how far to trust it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from statewise.commands.as_json import table_of
from statewise.commands.tagged import (
    READING,
    Context,
    alone,
    encoded,
    find_context,
    read_file,
    read_sets,
    reading_like,
)
from statewise.commands.tagger_run import check_context, check_width, load_for
from statewise.data import SpanScores, TaggedSentences, score_spans
from statewise.data.span_scores import SpanCounts
from statewise.data.tagged_read import kind_of
from statewise.errors import ArgumentError, DataError
from statewise.models import Tagger
from statewise.report import Table
from statewise.train import RunFolder
from statewise.train.precision import precisely, while_evaluating
from statewise.train.tag_data import TagSet, calibrate, judged, predict
from statewise.train.tag_folder import Tags, describe_sets

#: What a tagger's run listens to.
HEARD = ("run", "json", "data", "split", "batch", "vectors", "context", "device", *READING)
BATCH = 256
ALL = "all"
_RATES = ("precision %", "recall %", "F1 %")


def evaluate_tagger(asked: Any, console: Console, device: torch.device) -> dict[str, Any]:
    """Score tagged sentences, and print a table for each set.

    Args:
        asked: the options.
        console: where to print.
        device: where to compute.
    """
    for name, value in vars(asked).items():
        if name not in HEARD and value not in (None, "off", False):
            raise ArgumentError(where=f"--{name}", got=str(value), wanted="no such option for a tagger's run")
    if asked.batch is not None and asked.batch < 1:
        raise ArgumentError(where="--batch", got=asked.batch, wanted="a whole number of at least 1")
    told = RunFolder(asked.run).config()
    sets = list(_sets(asked, told))
    words = [sentence for _, each, _ in sets for sentence in each.sentences]
    tagger, about = load_for(asked.run, words, vectors=asked.vectors, device=device)
    strange = "not seen in training" if about["lexicon"]["vectors"] is None else "without a vector"
    for _, _, context in sets:
        check_context(tagger, given=context is not None)
        check_width(tagger, context)
    with precisely(while_evaluating(told["training"]["precision"]), device):
        found = {}
        for name, each, context in sets:
            table = score(tagger, each, name, context, batch=asked.batch or BATCH, strange=strange)
            table.print(console)
            found[name] = table_of(table)
    return {"run": asked.run, "sets": found}


def score(
    tagger: Tagger, gold: TaggedSentences, name: str, context: Context | None, *, batch: int, strange: str
) -> Table:
    """What a tagger does on a set, as a table.

    Args:
        tagger: the model.
        gold: the set, in the scheme of the tagger.
        name: of the set.
        context: vectors from outside; None for none.
        batch: how many sentences run at once.
        strange: what to call words that the tagger has no vector for.
    """
    examples = TagSet(tagger.lexicon, gold, context=context, where=name)
    nll, tagged = predict(tagger, examples, batch=batch)
    found, trust = judged(gold, tagged, nll=nll), calibrate(tagger, examples, batch=batch)
    columns, rows = by_type(gold, tagged)
    notes = [
        f"accuracy {100 * found.accuracy:.2f} %, loss {found.loss:.4f} a sentence, calibration error "
        f"{100 * trust.ece:.2f} % (mean confidence {100 * trust.mean_confidence:.2f} %); {found.sentences:,} "
        f"sentences, {found.tokens:,} words, {examples.encoded.unknown:,} of them {strange}",
    ]
    return Table(columns=columns, rows=rows, title=name, notes=notes)


def by_type(gold: TaggedSentences, tagged: Tags) -> tuple[Sequence[str], list[list[str]]]:
    """The heads and the rows of a table: one for each type of span, or for each tag where they mark none, and for all.

    Args:
        gold: the sentences with their right tags.
        tagged: those that were given.
    """
    if gold.scheme == "none":
        scores = score_spans(alone(gold.tags), alone(tagged))
        return ("tag", *_RATES, "words", "found"), [
            [*_percent(scores, name), *_counts(scores, name)] for name in _names(scores)
        ]
    conll, strict = (score_spans(gold.tags, tagged, convention, gold.scheme) for convention in ("conll", "strict"))
    rows = [[*_percent(conll, name), _percent(strict, name)[-1], *_counts(conll, name)] for name in _names(conll)]
    return ("type", *_RATES, "strict F1 %", "spans", "found"), rows


def _names(scores: SpanScores) -> tuple[str, ...]:
    return (*scores.by_type, ALL)


def _of(scores: SpanScores, name: str) -> SpanCounts:
    return scores.overall if name == ALL else scores.by_type.get(name, SpanCounts(0, 0, 0))


def _percent(scores: SpanScores, name: str) -> list[str]:
    counts = _of(scores, name)
    return [name, *(f"{100 * rate:.2f}" for rate in (counts.precision, counts.recall, counts.f1))]


def _counts(scores: SpanScores, name: str) -> list[str]:
    counts = _of(scores, name)
    return [f"{counts.gold:,}", f"{counts.predicted:,}"]


def _sets(asked: Any, told: Mapping[str, Any]) -> Iterator[tuple[str, TaggedSentences, Context | None]]:
    """The sets that are asked for: their names, their sentences and their vectors from outside."""
    source, learnt = told.get("source", {}), told["data"]["scheme"]
    if asked.data is not None and Path(asked.data).expanduser().is_file():
        if asked.split is not None:
            raise ArgumentError(where="--split", got=asked.split, wanted="no such option for a file of its own")
        path = Path(asked.data).expanduser()
        given = {name: value for name in READING if (value := getattr(asked, name))}
        read = read_file(path, reading_like(source, kind_of(path)) | given)
        context = None if asked.context is None else find_context(asked.context, read)
        yield path.name, encoded(read, learnt), context
        return
    for name in ("context", *READING):
        if getattr(asked, name):
            raise ArgumentError(where=f"--{name}", got=str(getattr(asked, name)), wanted="a file for it: --data FILE")
    if asked.data is None and "data" not in source:
        remedy = "The run does not say where its sentences were: name some."
        raise ArgumentError(where="--data", got="nothing", wanted="tagged sentences", remedy=remedy)
    named = source if asked.data is None else {"data": asked.data, "encoding": learnt}
    training = told["training"]
    own = read_sets(named, seed=training["seed"], valid=training["keep"] == "best")
    parts = {
        "train": {"train": own.train},
        "valid": {} if own.valid is None else {"valid": own.valid},
        "test": own.tests,
    }
    if asked.data is None:
        _check_unchanged(told["data"], describe_sets(own.train, own.valid, own.tests))
    chosen = parts[asked.split] if asked.split else own.tests or parts["valid"]
    if not chosen:
        raise ArgumentError(where="--data", got="no such set in the run", wanted="tagged sentences: --data FILE")
    for name, each in chosen.items():
        yield name, each, None if own.context is None else own.context[name]


def _check_unchanged(trained: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Refuse files that have changed since the training: what is held back of them now may have been trained on."""
    changed = [name for name in ("train", "valid") if trained[name] != found[name]]
    changed += [name for name, each in found["tests"].items() if trained["tests"].get(name) != each]
    if changed:
        raise DataError(
            where="--data",
            got=f"nothing, and other sentences than the run was trained with: {', '.join(changed)}",
            wanted="the files of the run as they were, or one of sentences that it has not seen",
            remedy="Name it: --data FILE.",
        )
