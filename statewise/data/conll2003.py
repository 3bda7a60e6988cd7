"""The CoNLL-2003 benchmark of named entities, and the word vectors that go with it, which this package may not ship."""

from __future__ import annotations

from pathlib import Path

from statewise.data.sets import files_of_set, find_data_set
from statewise.data.tagged import TaggedSentences
from statewise.data.tagged_read import read_tagged
from statewise.data.word_vectors import WordVectors, read_vectors

_PARTS = ("train", "valid", "test")


def conll2003_sets(
    *, data: Path | str | None = None, scheme: str = "bioes", documents: str = "drop"
) -> dict[str, TaggedSentences]:
    """The English part of CoNLL-2003: "train", "valid" (eng.testa) and "test" (eng.testb).

    Args:
        data: the folder of the set, or the one that has it; None for the usual places, see :func:`find_data_set`.
        scheme: into which the tags are converted; the files are in IOB1.
        documents: "drop" leaves the one-word sentences -DOCSTART- out, "keep" leaves them in.
    """
    files = files_of_set("conll2003", find_data_set("conll2003", data=data))
    found = {}
    for name, path in zip(_PARTS, files, strict=True):
        found[name] = read_tagged(path, scheme="iob1", documents=documents).converted(scheme)
    return found


def glove_vectors(*, data: Path | str | None = None) -> WordVectors:
    """The 100-dimensional GloVe vectors of 6 billion tokens (Pennington et al. 2014), or a part of them.

    Args:
        data: the folder of the vectors, or the one that has it; None for the usual places, see :func:`find_data_set`.
    """
    return read_vectors(files_of_set("glove", find_data_set("glove", data=data))[0])
