"""``statewise certify``: how far a trained classifier can be trusted, with a proof."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
from jsonargparse import ArgumentParser
from rich.console import Console
from torch import Tensor

from statewise.automata import random_words
from statewise.bounds import METHODS, Certificate, certify
from statewise.commands.labelled import FILES, Labelled, read_examples
from statewise.commands.predict_classes import Line, Words
from statewise.commands.shared import DEVICE, column, command_parser, find_device, require_classifier_run, split_list
from statewise.data import Images, LabelledFile, Sequences
from statewise.errors import ArgumentError, DataError, RunFolderError, StatewiseError
from statewise.models import SequenceClassifier
from statewise.train import callbacks_of, load_classifier, promises
from statewise.train.telling import say

NAME = "certificate.json"
MEASURED: Literal["measured"] = "measured"
BATCH = 1024
#: Tasks whose words are chosen by length and class.
_BALANCED = ("parentheses", "parentheses-small", "palindromes")
_OPTIONS = ("delta", "iid", "input_bound", "longest", "promised", "methods", "data", "fresh")
_REMEDIES = {
    "iid": "Say --iid if the sequences are independent draws of one law. Windows of one stream, steps of one sequence "
    "and augmented copies are not, and then there is no certificate.",
    "longest": "Leave it out: then the longest is paid for.",
}


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "Prove how often a trained classifier errs at most on new sequences, from those it was trained on: the best of "
        "all bounds that apply, with what each rests on. Say --iid if the sequences are independent draws: no program "
        "can see that.",
        "statewise certify runs/words --iid",
        "statewise certify runs/words --iid --fresh later.tsv --json",
    )
    add = made.add_argument
    add("run", type=str, help="the folder of a run of statewise train classify")
    add("--data", type=str, help="the sequences, in the words of statewise train classify; else those that the run was "
        "trained on")  # fmt: skip
    add("--fresh", type=str, help="sequences on which nothing was chosen, neither weights nor settings: adds the bound "
        "of a held-out set")  # fmt: skip
    add("--iid", action="store_true", help="you vouch that the sequences are independent draws of one law")
    add("--delta", type=float, default=0.05, help="the probability that the certificate is wrong")
    add("--input-bound", type=str, help="of numbers: the greatest length of a step, known before the data was seen; or "
        f'"{MEASURED}": paid for, and longer ones count as errors. Pictures have theirs')  # fmt: skip
    add("--longest", type=int, help="the most steps of a sequence, known before the data was seen; else paid for")
    add("--promise", type=str, default="", help="norms fixed before training, such as U=1,W=3,V=3, beside those "
        "that the run was projected to; all others are paid for")  # fmt: skip
    add("--methods", type=str, default="", help=f"some of {', '.join(METHODS)}; else all that apply")
    add("--format", choices=("text", "json"), default="text", help="how it is printed")
    add("--json", action="store_true", help="the same as --format json")
    add("--out", type=str, help=f"the file it is written to; else {NAME} in the folder of the run")
    add("--device", **DEVICE)
    return made


def run(arguments: Any, console: Console) -> None:
    """Certify, print and write.

    Args:
        arguments: as the parser gives them.
        console: where to print.
    """
    if arguments.json:
        arguments.format = "json"
    found = certificate_of(arguments)
    out = Path(arguments.out) if arguments.out else Path(arguments.run) / NAME
    out.parent.mkdir(parents=True, exist_ok=True)
    found.save(out)
    say(console, found.json_text().rstrip() if arguments.format == "json" else str(found))
    if arguments.format == "text":
        say(console, f"\nWritten: {out}")


def certificate_of(arguments: Any) -> Certificate:
    """What can be proved of the classifier of a run.

    Args:
        arguments: as the parser gives them.
    """
    require_classifier_run(arguments.run)
    device = find_device(arguments.device)
    model, told = load_classifier(arguments.run, device=device)
    if told["examples"].get("kind") == "series":
        got, remedy = (
            "a classifier of numeric sequences",
            "statewise.bounds.certify takes such a model and its sequences.",
        )
        raise RunFolderError(where=arguments.run, got=got, wanted="one of symbols or of pictures", remedy=remedy)
    data = _sequences(arguments.data, model, told, of="--data")
    fresh = None if arguments.fresh is None else _sequences(arguments.fresh, model, told, of="--fresh")
    with _in_our_words():
        return certify(
            model,
            list(_batches(data, device)),
            delta=arguments.delta,
            iid=arguments.iid or None,
            input_bound=_input_bound(arguments.input_bound, data),
            longest=arguments.longest,
            promised={**promises(callbacks_of(told), model), **_numbers(arguments.promise)},
            fresh=None if fresh is None else list(_batches(fresh, device)),
            methods=split_list(arguments.methods) or None,
        )


@contextmanager
def _in_our_words() -> Iterator[None]:
    """A region whose errors speak of options, not of arguments."""
    try:
        yield
    except StatewiseError as error:
        _, _, name = error.where.partition("certify.")
        if name.split(",")[0] not in _OPTIONS:
            raise
        where = f"--{name.replace('_', '-').replace('promised', 'promise')}"
        raise error.told(where=where, remedy=_REMEDIES.get(name, error.remedy)) from None


def _sequences(asked: str | None, model: SequenceClassifier, told: Mapping[str, Any], *, of: str) -> Any:
    """The sequences that are named, in the symbols and classes of the run."""
    source, seed = dict(told.get("source", {})), told["training"]["seed"]
    if asked is not None and Path(asked).expanduser().is_file():
        path = Path(asked).expanduser()
        if of == "--fresh" and path.resolve() in [
            Path(source[name]).expanduser().resolve() for name in ("data", "valid") if source.get(name)
        ]:
            raise ArgumentError(where=of, got=asked, wanted="examples that the run was neither trained nor chosen by")
        return _from_file(path, model, told)
    if asked is None:
        if "data" not in source:
            raise ArgumentError(
                where=of, got="nothing", wanted="the sequences: this run does not say where it had its own from"
            )
    else:
        source = {name: value for name, value in source.items() if name not in (*FILES, "data")} | {"data": asked}
    try:
        sets = read_examples(source, seed=seed)
    except StatewiseError as error:
        raise error.told(where=error.where.replace("--data", of)) from None
    found: Any = _independent(sets, seed, of)
    about = told["examples"]
    mine = about["symbols"] if not isinstance(found, Images) else None
    if (mine is not None and list(found.symbols) != mine) or list(found.classes) != about["classes"]:
        raise DataError(where=of, got="other symbols or classes", wanted="those of the run")
    if isinstance(found, Images) and about.get("permutation") is not None:
        found = found.in_order(about["permutation"])
    return found


def _independent(sets: Labelled, seed: int, of: str) -> Sequences | Images:
    """The examples of a source that are independent draws of one law.

    Words of a language are chosen so that all lengths and both classes occur, which no independent draws are: as many
    are drawn anew, with even lengths and symbols, and others for ``--fresh``.
    """
    if sets.language is not None and isinstance(sets.train, Sequences):
        longest = int(sets.train.lengths.max())
        count, apart = len(sets.train), {"--data": 1, "--fresh": 2}[of]
        words = random_words(sets.train.symbols, count, max_length=longest, seed=3 * seed + apart)
        return Sequences.from_words(
            words,
            [sets.language.run(word) for word in words],
            symbols=sets.train.symbols,
            classes=sets.train.classes,
        )
    if isinstance(sets.train, Images):
        return sets.train if of == "--data" else sets.tests["test"]
    if of == "--data" and sets.name not in _BALANCED:
        return sets.train
    raise ArgumentError(
        where=of,
        got=sets.name,
        wanted="independent draws: a file of labels and texts, a language, or pictures",
        remedy="Its examples are balanced by lengths and classes, or were used to choose the model.",
    )


def _from_file(path: Path, model: SequenceClassifier, told: Mapping[str, Any]) -> Sequences:
    """Labelled texts of a file, cut as those of the run were."""
    about, source = told["examples"], told.get("source", {})
    if model.symbols is None:
        raise DataError(where=str(path), got="a file of texts", wanted="pictures, as the run was trained on")
    words, numbers = Words(model.symbols, source), {name: at for at, name in enumerate(about["classes"])}
    texts, labels = list[list[str]](), list[int]()
    file = LabelledFile(path=path, label=column(source.get("label")), text=column(source.get("text")))
    for row in file.rows():
        if row.label not in numbers:
            raise DataError(
                where=f"{path}, line {row.line}",
                got=f"the label {row.label!r}",
                wanted=f"one of {', '.join(about['classes'])}",
            )
        texts.append(words.of(Line(row.text, row.line), path))
        labels.append(numbers[row.label])
    return Sequences.from_words(texts, labels, symbols=model.symbols, classes=about["classes"])


def _batches(examples: Any, device: torch.device) -> Iterator[tuple[Tensor, Tensor | None, Tensor]]:
    """The examples where the model is."""
    for begin in range(0, len(examples), BATCH):
        inputs, lengths, labels = examples.padded(range(begin, min(begin + BATCH, len(examples))))
        yield inputs.to(device), lengths, labels.to(device)


def _input_bound(asked: str | None, data: Any) -> float | Literal["measured"] | None:
    if asked is None:
        # Grey values are from 0 to 1 by the format of the files, so that no step is longer.
        return math.sqrt(data.features) if isinstance(data, Images) else None
    if asked == MEASURED:
        return MEASURED
    try:
        return float(asked)
    except ValueError:
        raise ArgumentError(where="--input-bound", got=asked, wanted=f"a number, or {MEASURED}") from None


def _numbers(text: str) -> dict[str, float]:
    """The norms of ``--promise``.

    >>> _numbers("U=1,W=3.5")
    {'U': 1.0, 'W': 3.5}
    """
    found = {}
    for entry in split_list(text):
        name, _, value = entry.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise ArgumentError(where="--promise", got=entry, wanted="names and norms, such as U=1,W=3") from None
    return found
