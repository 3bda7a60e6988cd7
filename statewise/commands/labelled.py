"""The labelled examples that ``--data`` names: a file of the user's, a language, or a benchmark set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statewise.automata import from_regex
from statewise.data import (
    Images,
    LabelledFile,
    Language,
    Sequences,
    TaskSets,
    image_sets,
    imdb_sets,
    palindrome_sets,
    parentheses_sets,
    read_labelled,
    sample_words,
    tomita,
    tomita_sets,
)
from statewise.data.class_names import class_names
from statewise.data.grammars import TRAIN_LENGTHS, VALID_LENGTHS
from statewise.data.rows import Row
from statewise.errors import ArgumentError, DataError

#: What may be said of a file of the user's, besides its name.
FILES = ("valid", "test", "label", "text", "unit", "limit", "truncate")
WORDS = ("limit", "truncate")  # what may be said of words only
#: What may be said of examples that are no file of the user's: of a regular expression, and of pictures.
MADE = ("alphabet", "by")
PICTURES = ("mnist", "permuted-mnist", "fashion-mnist")
UNITS = ("auto", "characters", "symbols", "words")
SAMPLE = "tomita:4"
HELD = 0.1  # of the examples, where no file is named to choose by
LONGER = (25, 30, 37, 44, 51)  # lengths to test on, beyond all that a network has seen; odd and even


@dataclass(frozen=True)
class Labelled:
    """Sets of examples.

    Attributes:
        name: what to call them.
        train: to train on.
        valid: to choose the best model by.
        tests: to report, by name.
        language: what says the class of every word, where an automaton does.
    """

    name: str
    train: Sequences | Images
    valid: Sequences | Images
    tests: dict[str, Any] = field(default_factory=dict)
    language: Language | None = None


def read_examples(source: Mapping[str, Any], *, seed: int, hold: bool = True) -> Labelled:
    """The sets that a source names.

    Args:
        source: ``data``, and for a file of the user's ``valid``, ``test``, ``label``, ``text``, ``unit``, ``limit`` and
            ``truncate``, for a regular expression ``alphabet``, for pictures ``by``.
        seed: of what is drawn: words of a language, and the examples that are held back.
        hold: whether some examples of a file are held back where no others are named to choose by; else all are trained
            on, and ``valid`` is ``train``.
    """
    data = str(source["data"])
    kind, _, rest = (SAMPLE if data == "sample" else data).partition(":")
    if kind in _MADE and not Path(data).is_file():
        found = _MADE[kind](rest, source, seed)
        _refuse_idle(source, data, allowed=("alphabet",) if kind == "regex" else ("by",) if kind in PICTURES else ())
        return found
    if Path(data).expanduser().is_file():
        _refuse_idle(source, data, allowed=FILES)
        return _read_files(source, seed, hold)
    known = "tomita:1 to tomita:7, regex:PATTERN, parentheses, parentheses-small, palindromes, mnist, permuted-mnist, "
    raise DataError(
        where="--data",
        got=f"{data}, which is no file",
        wanted=f"a file of labels and texts (.tsv, .csv, .jsonl), {known}fashion-mnist, imdb, or sample",
        remedy="Look at the spelling; statewise train classify --data sample needs no file.",
    )


def _tomita(number: str, source: Mapping[str, Any], seed: int) -> Labelled:
    if number not in tuple("1234567"):
        raise ArgumentError(where="--data", got=f"tomita:{number}", wanted="tomita:1 to tomita:7")
    language = tomita(int(number))
    train, valid = tomita_sets(int(number), seed)
    tests = {"longer words": sample_words(language, lengths=LONGER, seed=seed + 1)}
    return Labelled(f"tomita-{number}", train, valid, tests, language)


def _regex(pattern: str, source: Mapping[str, Any], seed: int) -> Labelled:
    try:
        language = Language.regex(pattern, source.get("alphabet") or from_regex(pattern).alphabet)
    except ArgumentError as error:
        # In the words of the command line.
        where = error.where.replace("from_regex.pattern", "--data regex")
        where = where.replace("from_regex.alphabet", "--alphabet").replace("Language.alphabet", "--alphabet")
        remedy = error.remedy.replace("alphabet=", "--alphabet abc")
        raise ArgumentError(where=where, got=error.got, wanted=error.wanted, remedy=remedy) from None
    parts = zip((TRAIN_LENGTHS, VALID_LENGTHS, LONGER), (0, 1, 2), strict=True)
    train, valid, test = (sample_words(language, lengths=each, seed=3 * seed + shift) for each, shift in parts)
    train.check_classes(where=f"the words of regex:{pattern}")
    return Labelled("regex", train, valid, {"longer words": test}, language)


def _task(name: str, sets: TaskSets[Any]) -> Labelled:
    if sets.valid is None:
        raise DataError(where=name, got="no examples to choose by", wanted="some that are held back")
    return Labelled(name, sets.train, sets.valid, dict(sets.tests))


def _pictures(name: str, source: Mapping[str, Any], permute: int | None = None) -> Labelled:
    by = source.get("by") or "pixels"
    shown = name if permute is None else f"permuted-{name}"
    return _task(shown if by == "pixels" else f"{shown}-{by}", image_sets(name, permute=permute, by=by))


_MADE: Mapping[str, Callable[[str, Mapping[str, Any], int], Labelled]] = {
    "tomita": _tomita,
    "regex": _regex,
    "parentheses": lambda _, __, seed: _task("parentheses", parentheses_sets("large", seed=seed)),
    "parentheses-small": lambda _, __, seed: _task("parentheses-small", parentheses_sets("small", seed=seed)),
    "palindromes": lambda _, __, seed: _task("palindromes", palindrome_sets(seed=seed)),
    "mnist": lambda _, source, __: _pictures("mnist", source),
    "permuted-mnist": lambda _, source, seed: _pictures("mnist", source, seed),
    "fashion-mnist": lambda _, source, __: _pictures("fashion-mnist", source),
    "imdb": lambda _, __, seed: _task("imdb", imdb_sets(seed=seed)),
}


def _read_files(source: Mapping[str, Any], seed: int, hold: bool) -> Labelled:
    files = {"train": Path(source["data"]).expanduser()}
    if source.get("valid"):
        files["valid"] = Path(source["valid"]).expanduser()
    tests = named_apart([Path(path).expanduser() for path in source.get("test") or ()])
    label, text = (_column(source.get(name)) for name in ("label", "text"))
    both = {
        name: LabelledFile(path=path, label=label, text=text)
        for name, path in {**files, **{f"test {name}": path for name, path in tests.items()}}.items()
    }
    rows = {name: list(file.rows()) for name, file in both.items()}
    for name, found in rows.items():
        if not found:
            wanted = "a label and a text in each row"
            raise DataError(where=str(both[name].path), got="no texts, only a header", wanted=wanted)
    unit = source.get("unit") or "auto"
    if unit not in UNITS:
        raise ArgumentError(where="--unit", got=unit, wanted=f"one of {', '.join(UNITS)}")
    if unit == "auto":
        unit = "words" if any(" " in row.text.strip() for row in rows["train"]) else "characters"
    if unit == "words":
        limit, length = source.get("limit"), source.get("truncate")
        cut: Any = None if length is None else ("last", length)
        parts = dict(read_labelled(both, truncate=cut, **({} if limit is None else {"limit": limit})).parts)
    else:
        _refuse_idle(source, f"{source['data']} by {unit}", allowed=tuple(name for name in FILES if name not in WORDS))
        parts = _symbols(rows, {name: file.path for name, file in both.items()}, split=unit == "symbols")
    train = parts["train"]
    train.check_classes(where=str(files["train"]))
    if "valid" not in parts and not hold:
        parts["valid"] = train
    elif "valid" not in parts:
        train, parts["valid"] = train.split(1 - HELD, seed=seed)
        train.check_classes(where=f"{files['train']}, less the {HELD:.0%} that are held back")
    return Labelled(file_name(files["train"]), train, parts["valid"], {name: parts[f"test {name}"] for name in tests})


def _symbols(rows: Mapping[str, list[Row]], files: Mapping[str, Path], *, split: bool) -> dict[str, Sequences]:
    """Words of a formal language, as they stand; a symbol or a class that train has not is an error."""
    words = {name: [row.text.split() if split else row.text for row in each] for name, each in rows.items()}
    symbols = sorted({symbol for word in words["train"] for symbol in word})
    classes = class_names([row.label for row in rows["train"]], where=str(files["train"]))
    if not symbols:
        raise DataError(where=str(files["train"]), got="no symbols", wanted="words that are not all empty")
    numbers, known, found = {name: at for at, name in enumerate(classes)}, set(symbols), {}
    for name, each in rows.items():
        for row, word in zip(each, words[name], strict=True):
            place, held = f"{files[name]}, line {row.line}", f"words and labels of {files['train'].name}"
            if strange := [symbol for symbol in word if symbol not in known]:
                told = f"one of {', '.join(map(repr, symbols[:12]))}, the symbols of {files['train'].name}"
                raise DataError(where=place, got=f"the symbol {strange[0]!r}", wanted=told, remedy=f"Use {held} only.")
            if row.label not in numbers:
                raise DataError(where=place, got=f"the label {row.label!r}", wanted=f"one of {', '.join(classes)}")
        labels = [numbers[row.label] for row in each]
        found[name] = Sequences.from_words(words[name], labels, symbols=symbols, classes=classes)
    return found


def _refuse_idle(source: Mapping[str, Any], data: str, *, allowed: tuple[str, ...]) -> None:
    idle = [f"--{name}" for name in (*FILES, *MADE) if source.get(name) and name not in allowed]
    if idle:
        raise ArgumentError(
            where=f"--data {data}",
            got=f"{' and '.join(idle)} with it",
            wanted="examples as they are",
            remedy=f"Leave {'it' if len(idle) == 1 else 'them'} out.",
        )


def _column(said: str | None) -> str | int | None:
    """A column as it was typed: a number is a place, all else a name.

    >>> _column("2"), _column("review")
    (2, 'review')
    """
    return int(said) if said is not None and said.isdecimal() else said


def named_apart(paths: list[Path]) -> dict[str, Path]:
    """Files by names that tell them apart, and from the set to choose by: as short as that can be.

    >>> list(named_apart([Path("one/test.tsv"), Path("two/test.tsv")]))
    ['one/test.tsv', 'two/test.tsv']
    """
    places = list(dict.fromkeys(path.resolve() for path in paths))
    lengths: list[Callable[[Path], str]] = [
        file_name,
        lambda path: path.name,
        lambda path: "/".join(path.parts[-2:]),
        str,
    ]
    for shorten in lengths:
        found = {shorten(path): path for path in places}
        if len(found) == len(places) and not {"train", "valid"} & found.keys():
            break
    return found


def file_name(path: Path | str) -> str:
    """The name of a file without its endings.

    >>> file_name("data/reviews.tsv.gz")
    'reviews'
    """
    return Path(path).name.partition(".")[0] or "data"
