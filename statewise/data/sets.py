"""Where the benchmark data sets are, which this package may not ship."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from statewise.data.corpus import SPLITS, find_parts
from statewise.data.text import ENDINGS
from statewise.errors import ArgumentError, DataError

#: The folders that a set may lie in, under the folder of all data.
_FOLDERS: Mapping[str, tuple[str, ...]] = {
    "ptb": ("ptb", "penn", "simple-examples/data"),
    "wikitext-2": ("wikitext-2", "wikitext-2-v1"),
    "mnist": ("mnist", "MNIST"),
    "fashion-mnist": ("fashion-mnist", "FashionMNIST"),
    "imdb": ("imdb",),
    "conll2003": ("conll2003", "CoNLL-2003"),
    "glove": ("glove", "glove.6B"),
}
_ORIGINS: Mapping[str, str] = {
    "ptb": "Its text belongs to the Linguistic Data Consortium (LDC99T42). The preprocessed files ptb.train.txt, "
    "ptb.valid.txt and ptb.test.txt are those of Tomas Mikolov's archive simple-examples.tgz, in its folder data",
    "wikitext-2": "Get the word-level files wiki.train.tokens, wiki.valid.tokens and wiki.test.tokens, called "
    "wikitext-2-v1, from Salesforce's page of the WikiText data set or from the Hugging Face hub (Salesforce/wikitext)",
    "mnist": "Get train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz and the two files t10k-... of Yann LeCun, "
    "Corinna Cortes and Christopher Burges, e.g. by torchvision.datasets.MNIST, which puts them into MNIST/raw",
    "fashion-mnist": "Get train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz and the two files t10k-... from "
    "github.com/zalandoresearch/fashion-mnist, e.g. by torchvision.datasets.FashionMNIST",
    "imdb": "Get the Large Movie Review Dataset (aclImdb, Maas et al. 2011) from ai.stanford.edu/~amaas/data/sentiment "
    "and write imdb.train.tsv and imdb.test.tsv: label (1 or 0), stars, id and text, with tabs between them",
    "conll2003": "The annotation is that of the CoNLL-2003 shared task (Tjong Kim Sang and De Meulder 2003); its text "
    "is the Reuters Corpus (RCV1), which needs an agreement with NIST. Get eng.train, eng.testa and eng.testb",
    "glove": "Get glove.6B.zip from nlp.stanford.edu/projects/glove (Pennington et al. 2014) and unpack it",
}

#: What must lie in the folder of a set that is no text for language models; each file may be compressed.
_FILES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("mnist", "fashion-mnist"),
        tuple(f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")),
    ),
    "imdb": ("imdb.train.tsv", "imdb.test.tsv"),
    "conll2003": ("eng.train", "eng.testa", "eng.testb"),
    "glove": ("glove.6B.100d.txt",),
}
#: A part of the vectors, cut to the words of a data set, serves as well.
_INSTEAD: Mapping[str, tuple[str, ...]] = {"glove": ("glove.6B.100d.conll2003.npz",)}


def find_data_set(name: str, *, data: Path | str | None = None) -> Path:
    """The folder of a benchmark data set, for `read_corpus`, `read_images` or `imdb_sets`.

    Args:
        name: ``"ptb"``, ``"wikitext-2"``, ``"mnist"``, ``"fashion-mnist"``, ``"imdb"``, ``"conll2003"`` or ``"glove"``.
        data: the folder of the set, or the one that has it. When it is None, the set is looked for in the folder that
            the environment variable STATEWISE_DATA names; then in ``shared/data`` beside the working directory, and
            beside the checkout that the package runs from.

    Raises:
        DataError: it is in none of these places; says where to get it.
    """
    if name not in _FOLDERS:
        raise ArgumentError(where="find_data_set.name", got=name, wanted=f"one of {', '.join(_FOLDERS)}")
    searched: list[str] = []
    for place in _places(data):
        # The set's own folder comes last: what lies under a folder of many sets has its name, this one has not.
        for folder in (*(place / below for below in _FOLDERS[name]), place):
            if _is_whole(name, folder):
                return folder
        searched.append(str(place))
    raise DataError(
        where=f"data set {name}",
        got=f"nothing in {', '.join(searched)}",
        wanted=" and ".join(_FILES[name]) if name in _FILES else "train, valid and test",
        remedy=f"{_ORIGINS[name]}; then name their folder: --data, data=... or STATEWISE_DATA.",
    )


def files_of_set(name: str, folder: Path) -> tuple[Path, ...]:
    """The files of a set that is no text for language models, in a folder or below it in one called raw.

    Args:
        name: ``"mnist"``, ``"fashion-mnist"``, ``"imdb"``, ``"conll2003"`` or ``"glove"``.
        folder: that `find_data_set` found.

    Returns:
        None of them unless all are there.
    """
    wanted = [_FILES[name], *([_INSTEAD[name]] if name in _INSTEAD else [])]
    return next(filter(None, (find_together(place, each) for each in wanted for place in (folder, folder / "raw"))), ())


def find_together(folder: Path, names: Sequence[str]) -> tuple[Path, ...]:
    """The files of these names in one folder, plain or compressed; none of them unless all are there.

    Args:
        folder: where they are.
        names: without the ending of an archive; some copies of idx files have a dot before idx.
    """
    found = tuple(next(filter(Path.is_file, _spellings(folder, name)), None) for name in names)
    return () if None in found else tuple(filter(None, found))


def _spellings(folder: Path, name: str) -> Iterator[Path]:
    # A reader of idx files knows gzip only.
    endings = ("", ".gz") if "-idx" in name else ENDINGS
    for called in dict.fromkeys((name, name.replace("-idx", ".idx"))):
        yield from (folder / (called + ending) for ending in endings)


def _is_whole(name: str, folder: Path) -> bool:
    """Whether all parts of a set are in a folder, or below it in a folder called raw."""
    return bool(files_of_set(name, folder)) if name in _FILES else len(find_parts(folder)) == len(SPLITS)


def _places(data: Path | str | None) -> Iterator[Path]:
    if data is not None:
        # Whoever names a folder means it: a slip must not lead to other data.
        yield Path(data).expanduser()
        return
    if os.environ.get("STATEWISE_DATA"):
        yield Path(os.environ["STATEWISE_DATA"]).expanduser()
    neighbours = [folder.resolve().parent / "shared" / "data" for folder in (Path.cwd(), _checkout()) if folder]
    yield from dict.fromkeys(neighbours)


def _checkout() -> Path | None:
    """The repository that the package runs from; None where it is installed."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / "pyproject.toml").exists() else None
