"""``statewise evaluate``: how well a trained model predicts a text."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands.shared import command_parser, find_device, load_run, read_text, say
from statewise.data import Corpus, Text, TokenStream, Vocabulary
from statewise.errors import ArgumentError, DataError
from statewise.models import LanguageModel, score
from statewise.models.text import Score
from statewise.report import Table
from statewise.train.adapting import dynamic_perplexity
from statewise.train.evaluation import evaluate_stream, evaluate_with_noise

LINES_SHOWN = 60
#: Rate, decay and epsilon of public code for AWD-LSTM (new) and AWD-LSTM-MoS (old) on Penn Treebank.
ADAPTING = {"new": (5e-5, 0.002, 2e-5), "old": (0.002, 0.075, 0.001)}


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser("Score a text by a trained model; without --samples, with everything random switched off.")
    add = made.add_argument
    add("run", type=str, help="the folder of a run")
    add("--text", type=str, help="score each line of this file, instead of a part of the corpus")
    add("--data", type=str, help="the corpus; else the one that the run was trained on")
    add("--split", choices=("test", "valid", "train"), default="test", help="which part of it")
    add("--batch", type=int, default=1, help="columns in which it is read: more are faster, and see less of the past")
    add("--dynamic", choices=("off", "new", "old"), default="off", help="dynamic evaluation: the model goes on "
        "learning from what it was scored on; in one of two conventions")  # fmt: skip
    add("--samples", type=int, help="leave noise and dropout on, and average the probabilities of so many draws")
    add("--seed", type=int, default=0, help="of those draws")
    add("--lr", type=float, help="of dynamic evaluation")
    add("--decay", type=float, help="of dynamic evaluation: the pull towards the trained weights")
    add("--epsilon", type=float, help="of dynamic evaluation")
    add("--device", type=str, default="auto", help="auto, cpu, cuda or cuda:1")
    return made


def run(arguments: Any, console: Console) -> None:
    """Score, and print.

    Args:
        arguments: as the parser gives them.
        console: where to print.
    """
    device = find_device(arguments.device)
    model, vocabulary, told = load_run(arguments.run, device)
    if arguments.text is not None:
        score_lines(model, vocabulary, Path(arguments.text), device=device).print(console)
        return
    corpus = _corpus(arguments, told, vocabulary)
    stream = getattr(corpus, arguments.split)
    found, how = _found(arguments, model, corpus, stream, device)
    say(console, f"{corpus.name} {arguments.split}{how}: {told_of(found.nll, found.tokens)}")


def _found(
    arguments: Any, model: LanguageModel, corpus: Corpus, stream: TokenStream, device: torch.device
) -> tuple[Score, str]:
    """The score, and how it was made."""
    if arguments.samples is not None and arguments.dynamic != "off":
        raise ArgumentError(where="--samples", got="--dynamic with it", wanted="one of the two")
    if arguments.samples is not None:
        draws = torch.Generator(device).manual_seed(arguments.seed)
        options: dict[str, Any] = {"samples": arguments.samples, "batch": arguments.batch, "generator": draws}
        found = evaluate_with_noise(model, stream, device=device, **options)
        return found, f", mean of {arguments.samples} draws of noise"
    if arguments.dynamic == "off":
        return evaluate_stream(model, stream, batch=arguments.batch, device=device), ""
    given = (arguments.lr, arguments.decay, arguments.epsilon)
    usual = ADAPTING[arguments.dynamic]
    lr, decay, epsilon = (known if asked is None else asked for asked, known in zip(given, usual, strict=True))
    steps: dict[str, Any] = {"lr": lr, "decay": decay, "epsilon": epsilon, "convention": arguments.dynamic}
    found = dynamic_perplexity(model, corpus.train, stream, device=device, **steps)
    return found, f", dynamic evaluation ({arguments.dynamic})"


def told_of(nll: float, tokens: int) -> str:
    """A score in words.

    >>> told_of(2 * math.log(8), 2)
    'perplexity 8.00, 3.000 bits a token, 2 tokens'
    """
    mean = nll / tokens
    return f"perplexity {math.exp(mean):.2f}, {mean / math.log(2):.3f} bits a token, {tokens:,} tokens"


def score_lines(model: LanguageModel, vocabulary: Vocabulary, path: Path, *, device: torch.device) -> Table:
    """The perplexity of each line of a file, and of all of them.

    Each line is read after the end of a sentence, by itself; its own end is predicted too.

    Args:
        model: the language model, on ``device``.
        vocabulary: of the model.
        path: the file, one sentence a line.
        device: where the model is.
    """
    rows, nll, tokens, unknown = [], 0.0, 0, 0
    for number, line in enumerate(Text(path=path).lines(), start=1):
        words = line.split()
        if not words:
            continue
        ids = [vocabulary.end_id, *vocabulary.encode(words), vocabulary.end_id]
        row = torch.tensor(ids, device=device).unsqueeze(1)
        found = score(model, [(row[:-1], row[1:])])
        missing = sum(word not in vocabulary for word in words)
        nll, tokens, unknown = nll + found.nll, tokens + found.tokens, unknown + missing
        shown = line if len(line) <= LINES_SHOWN else f"{line[: LINES_SHOWN - 1]}…"
        rows.append([shown, str(number), f"{found.perplexity:.2f}", str(found.tokens), str(missing)])
    if not rows:
        raise DataError(where=str(path), got="no words", wanted="one sentence a line")
    overall = f"All lines: {told_of(nll, tokens)}, {unknown:,} of them unknown words."
    return Table(columns=("text", "line", "perplexity", "tokens", "unknown"), rows=rows, notes=[overall])


def _corpus(arguments: Any, told: dict[str, Any], vocabulary: Vocabulary) -> Corpus:
    """The corpus in the model's own words."""
    source = told.get("source", {})
    data = arguments.data or source.get("data")
    if data is None:
        raise ArgumentError(
            where="--data", got="nothing", wanted="a corpus", remedy="The run does not say where its text was: name it."
        )
    options = {name: source[name] for name in ("limit", "min_count", "lower") if name in source}
    return read_text(data, vocabulary=vocabulary, **options)
