"""What the folder of a tagger's run says of its sentences, its best model, and the tags it gave."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from statewise.data import TaggedSentences
from statewise.errors import RunFolderError
from statewise.files import read_object, write_atomically
from statewise.models import Lexicon, Tagger, TaggerConfig
from statewise.train.run import RunFolder
from statewise.train.stored import as_written, filled

TASK = "tagger"
LEXICON = "lexicon.json"
Tags = tuple[tuple[str, ...], ...]


def describe_sets(
    train: TaggedSentences, valid: TaggedSentences | None, tests: Mapping[str, TaggedSentences]
) -> dict[str, Any]:
    """The sets of a run, such that others are told apart from them: their sizes, and a checksum of each.

    Args:
        train: the training set.
        valid: the validation set, or None.
        tests: the test sets, by name.
    """
    parts = {"train": _counted(train), "valid": None if valid is None else _counted(valid)}
    return {"scheme": train.scheme, **parts, "tests": {name: _counted(each) for name, each in tests.items()}}


def checksum_of(vectors: npt.NDArray[np.generic], *, words: Sequence[str] = ()) -> str:
    """A number for vectors, and for the words that they belong to.

    Args:
        vectors: as they were given.
        words: in their order; none for vectors of tokens.

    >>> checksum_of(np.zeros(2)) == checksum_of(np.zeros(2), words=("a", "b"))
    False
    """
    named = zlib.crc32("\n".join(words).encode("utf-8", "surrogatepass"))
    return f"{zlib.crc32(np.ascontiguousarray(vectors).data, named):08x}"


def write_lexicon(folder: Path, lexicon: Lexicon, *, width: int | None, context: int) -> None:
    """Write what a reader of a tagger must know beside the files of its run.

    Args:
        folder: of the run.
        lexicon: words, characters and tags.
        width: of given word vectors; None if they were learnt from nothing.
        context: the width of vectors from outside; 0 for none.
    """
    told = {name: list(getattr(lexicon, name)) for name in ("tags", "characters", "words")}
    document = {"scheme": lexicon.scheme, "vectors": width, "context": context, **told}
    write_atomically(folder / LEXICON, json.dumps(document, ensure_ascii=False) + "\n")


def read_lexicon(folder: Path) -> tuple[Lexicon, dict[str, Any]]:
    """What :func:`write_lexicon` wrote: the lexicon, and the rest.

    Args:
        folder: of the run.
    """
    path = folder / LEXICON
    told = read_object(path, wanted="words, characters and tags as JSON")
    with as_written(path, "words, characters and tags as JSON"):
        names = {name: tuple(told.pop(name)) for name in ("tags", "characters", "words")}
        for name in ("vectors", "context"):
            if type(told[name]) is not int and (name == "context" or told[name] is not None):
                raise RunFolderError(where=f"{path}, field {name!r}", got=told[name], wanted="a whole number")
        return Lexicon(**names, scheme=told["scheme"]), told


def load_tagger(folder: Path | str, *, device: torch.device | str = "cpu") -> tuple[Tagger, dict[str, Any]]:
    """The tagger that a run kept, in eval mode, and what the run was told; under "lexicon" its scheme and widths.

    Args:
        folder: of the run.
        device: where the model goes.
    """
    run = RunFolder(folder)
    told = run.config()
    if told.get("task") != TASK:
        raise RunFolderError(where=str(run.config_path), got=f"task {told.get('task')!r}", wanted=repr(TASK))
    lexicon, about = read_lexicon(Path(folder))
    state, _ = run.load_model()
    with as_written(run.config_path, "the settings of a tagger"):
        config, width = TaggerConfig(**told["model"]), about["vectors"]
        built = filled(
            lambda: config.build(
                lexicon,
                vectors=None if width is None else torch.zeros(len(lexicon.words), width),
                context=about["context"],
            ),
            state,
            layers=config.layers,
            path=run.model_path,
        )
    return built.to(device).eval(), {**told, "lexicon": about}


def write_tagged(path: Path, gold: TaggedSentences, tagged: Sequence[Sequence[str]]) -> None:
    """Write words, right tags and given ones in columns, as conlleval reads them.

    Args:
        path: of the file.
        gold: the sentences with their right tags.
        tagged: those that were given.
    """
    sentences = (
        "\n".join(f"{word} {right} {given}" for word, right, given in zip(*rows, strict=True))
        for rows in zip(gold.sentences, gold.tags, tagged, strict=True)
    )
    write_atomically(path, "\n\n".join(sentences) + "\n")


def read_given(path: Path) -> tuple[Tags, Tags]:
    """The right tags and those that were given, from what :func:`write_tagged` wrote.

    Args:
        path: of the file.
    """
    try:
        blocks = path.read_text(encoding="utf-8").rstrip("\n").split("\n\n")
        rows = [[row.rsplit(" ", 2)[1:] for row in block.split("\n")] for block in blocks]
        right, given = (tuple(tuple(row[at] for row in block) for block in rows) for at in (0, 1))
    except (OSError, ValueError, IndexError) as error:
        raise RunFolderError(
            where=str(path), got=str(error), wanted="a word, its tag and a given one a line"
        ) from error
    return right, given


def tagged_path(folder: Path, name: str) -> Path:
    """Where the tags of a test set are.

    Args:
        folder: of the run.
        name: of the set.

    >>> tagged_path(Path("run"), "eng.testb").as_posix()
    'run/tagged-eng.testb.txt'
    """
    return folder / f"tagged-{re.sub(r'[^A-Za-z0-9._-]', '_', name)}.txt"


def _counted(sentences: TaggedSentences) -> dict[str, Any]:
    text = json.dumps([sentences.sentences, sentences.tags], ensure_ascii=False).encode()
    tokens = sum(map(len, sentences.sentences))
    return {"sentences": len(sentences), "tokens": tokens, "checksum": f"{zlib.crc32(text):08x}"}
