"""``statewise evaluate``: how well a trained model predicts a text, tags sentences, or knows numeric sequences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands import series_sets
from statewise.commands.as_json import table_of
from statewise.commands.series_evaluate import evaluate_series
from statewise.commands.series_run import SERIES_CLASSES, kind_of_run
from statewise.commands.shared import DEVICE, JSON, command_parser, find_device
from statewise.commands.tag_evaluate import evaluate_tagger
from statewise.commands.tagged import READING, add_reading
from statewise.commands.tagger_run import task_of
from statewise.commands.texts import load_run, made_lower, read_part
from statewise.data import Text, TokenStream, Vocabulary
from statewise.errors import ArgumentError, DataError
from statewise.models import LanguageModel, Score, perplexity
from statewise.recipes.noisin_table5 import DYNAMIC
from statewise.report import Table
from statewise.train.adapting import dynamic_perplexity
from statewise.train.evaluation import evaluate_stream, evaluate_with_noise
from statewise.train.forecast_measure import FORECASTS
from statewise.train.precision import precisely, while_evaluating
from statewise.train.tag_folder import TASK
from statewise.train.telling import say

LINES_SHOWN = 60
#: What each way to score a text listens to; the last is the plain one.
_HEARD = {
    "text": (),
    "samples": ("data", "split", "batch", "seed"),
    "dynamic": ("data", "split", "lr", "decay", "epsilon"),
    "": ("data", "split", "batch"),
}


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "Score a text by a trained language model, tagged sentences by a trained tagger, or numeric sequences by a "
        "model of statewise train series; without --samples, with everything random switched off.",
        "statewise evaluate runs/book",
        "statewise evaluate runs/book --text new.txt",
        "statewise evaluate runs/names --data later.conll --json",
        "statewise evaluate runs/walks --data later.csv",
    )
    add = made.add_argument
    add("run", type=str, help="the folder of a run")
    add("--text", type=str, help="score each line of this file, instead of a part of a corpus")
    add("--data", type=str, help="the corpus to score, in the words of the run; else the one that it was trained on; "
        "of a tagger a file of tagged words, else those that it was tested on; of numbers likewise")  # fmt: skip
    add("--split", choices=("test", "valid", "train"), help="which part of it (default: test)")
    add("--batch", type=int, help="columns in which it is read: more are faster, and see less of the past (default: 1)")
    add("--dynamic", choices=("off", "new", "old"), default="off", help="dynamic evaluation: the model goes on "
        "learning from what it was scored on; in one of two conventions")  # fmt: skip
    add("--samples", type=int, help="leave noise and dropout on, and average the probabilities of so many draws")
    add("--seed", type=int, help="of those draws (default: 0)")
    add("--lr", type=float, help="of dynamic evaluation")
    add("--decay", type=float, help="of dynamic evaluation: the pull towards the trained weights")
    add("--epsilon", type=float, help="of dynamic evaluation")
    add("--vectors", type=str, help="tagger: a file with vectors of the words that the run has none for, from where "
        "its own are; or glove")  # fmt: skip
    add("--context", type=str, help="tagger: a file with the further vector of each word of --data, if it has such")
    add_reading(made, "tagger: ")
    series_sets.add_reading(made, "numbers: ")
    add("--device", **DEVICE)
    add("--json", **JSON)
    return made


def run(arguments: Any, console: Console) -> dict[str, Any]:
    """Score, and print.

    Args:
        arguments: as the parser gives them.
        console: where to print.
    """
    device = find_device(arguments.device)
    kind = kind_of_run(arguments.run, task_of(arguments.run))
    if kind == TASK:
        return evaluate_tagger(arguments, console, device)
    if kind in (SERIES_CLASSES, FORECASTS.name):
        return evaluate_series(arguments, console, device, kind=kind)
    way = _way(arguments)
    model, vocabulary, told = load_run(arguments.run, device)
    lower = made_lower(told)
    with precisely(while_evaluating(told["training"]["precision"]), device):
        if way == "text":
            lines = score_lines(model, vocabulary, Path(arguments.text), device=device, lower=lower)
            lines.print(console)
            return {"run": arguments.run, "text": arguments.text, **table_of(lines)}
        data, split = _data(arguments, told), arguments.split or "test"
        name, stream = read_part(data, split, vocabulary, lower=lower)
        if way == "dynamic":
            # What the gradients of training were is told by the text that the run was trained on.
            _, train = read_part(_own_data(told) or data, "train", vocabulary, lower=lower)
            found, how = _adapting(arguments, model, train, stream, {"device": device, "console": console})
        else:
            found, how = _standing(arguments, model, stream, device)
    unknown = int((stream[1:] == vocabulary.unknown_id).sum())
    among = f", {unknown:,} of them {vocabulary.unknown}" if unknown else ""
    say(console, f"{name} {split}{how}: {told_of(found.nll, found.tokens)}{among}")
    scores = {
        "nll": found.nll / found.tokens,
        "perplexity": found.perplexity,
        "tokens": found.tokens,
        "unknown": unknown,
    }
    return {"run": arguments.run, "data": name, "split": split, "how": way or "plain", **scores}


def _way(arguments: Any) -> str:
    """How the text is to be scored; refuses options that would do nothing."""
    of_numbers = tuple(name for name in series_sets.READING if name != "features")
    for name in ("vectors", "context", *READING, *of_numbers):
        if getattr(arguments, name):
            whose = "not on numbers" if name in of_numbers else "no tagger's"
            wanted = f"no such option for a run that is {whose}"
            raise ArgumentError(where=f"--{name}", got=str(getattr(arguments, name)), wanted=wanted)
    given = [name for name in _HEARD if name and getattr(arguments, name) not in (None, "off")]
    if len(given) > 1:
        raise ArgumentError(where=f"--{given[0]}", got=f"--{given[1]} with it", wanted="one of the two")
    way = given[0] if given else ""
    options = dict.fromkeys(name for names in _HEARD.values() for name in names)
    for name in options:
        if getattr(arguments, name) is None or name in _HEARD[way]:
            continue
        owner = next(other for other, heard in _HEARD.items() if name in heard)
        raise ArgumentError(
            where=f"--{name}",
            got=str(getattr(arguments, name)),
            wanted="no such option " + (f"with --{way}" if way else f"without --{owner}"),
            remedy="It would do nothing: leave it out.",
        )
    return way


def _standing(arguments: Any, model: LanguageModel, stream: TokenStream, device: torch.device) -> tuple[Score, str]:
    """The score by a model that stays as it is, and how it was made."""
    batch = 1 if arguments.batch is None else arguments.batch
    if arguments.samples is None:
        return evaluate_stream(model, stream, batch=batch, device=device), ""
    draws = torch.Generator(device).manual_seed(arguments.seed or 0)
    options: dict[str, Any] = {"samples": arguments.samples, "batch": batch, "generator": draws}
    found = evaluate_with_noise(model, stream, device=device, **options)
    return found, f", mean of {arguments.samples} draws of noise"


def _adapting(
    arguments: Any, model: LanguageModel, train: TokenStream, stream: TokenStream, where: dict[str, Any]
) -> tuple[Score, str]:
    """The score by a model that goes on learning, and how it was made."""
    given, usual = (arguments.lr, arguments.decay, arguments.epsilon), DYNAMIC[arguments.dynamic]
    lr, decay, epsilon = (known if asked is None else asked for asked, known in zip(given, usual, strict=True))
    steps: dict[str, Any] = {"lr": lr, "decay": decay, "epsilon": epsilon, "convention": arguments.dynamic}
    found = dynamic_perplexity(model, train, stream, **where, **steps)
    return found, f", dynamic evaluation ({arguments.dynamic})"


def told_of(nll: float, tokens: int) -> str:
    """A score in words.

    >>> told_of(2 * math.log(8), 2)
    'perplexity 8.00, 3.000 bits a token, 2 tokens'
    """
    mean = nll / tokens
    return f"perplexity {perplexity(mean):.2f}, {mean / math.log(2):.3f} bits a token, {tokens:,} tokens"


def score_lines(
    model: LanguageModel, vocabulary: Vocabulary, path: Path, *, device: torch.device, lower: bool = False
) -> Table:
    """The perplexity of each line of a file, and of all of them.

    Each line is read after the end of a sentence, by itself; its own end is predicted too.

    Args:
        model: the language model, on ``device``.
        vocabulary: of the model.
        path: the file, one sentence a line.
        device: where the model is.
        lower: whether letters are made lower case.
    """
    rows, nll, tokens, unknown = [], 0.0, 0, 0
    for number, line in enumerate(Text(path=path, lower=lower).lines(), start=1):
        words = line.split()
        if not words:
            continue
        ids = [vocabulary.end_id, *vocabulary.encode(words), vocabulary.end_id]
        found = evaluate_stream(model, TokenStream(np.array(ids)), device=device)
        missing = sum(word not in vocabulary for word in words)
        nll, tokens, unknown = nll + found.nll, tokens + found.tokens, unknown + missing
        shown = line if len(line) <= LINES_SHOWN else f"{line[: LINES_SHOWN - 1]}…"
        rows.append([shown, str(number), f"{found.perplexity:.2f}", str(found.tokens), str(missing)])
    if not rows:
        raise DataError(where=str(path), got="no words", wanted="one sentence a line")
    overall = f"All lines: {told_of(nll, tokens)}, {unknown:,} of them unknown words."
    return Table(columns=("text", "line", "perplexity", "tokens", "unknown"), rows=rows, notes=[overall])


def _own_data(told: Mapping[str, Any]) -> str | None:
    data = told.get("source", {}).get("data")
    return None if data is None else str(data)


def _data(arguments: Any, told: Mapping[str, Any]) -> str:
    data = arguments.data or _own_data(told)
    if data is None:
        raise ArgumentError(
            where="--data", got="nothing", wanted="a corpus", remedy="The run does not say where its text was: name it."
        )
    return str(data)
