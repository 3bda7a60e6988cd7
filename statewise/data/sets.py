"""Where the benchmark data sets are, which this package may not ship."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from statewise.data.corpus import SPLITS, find_parts
from statewise.errors import ArgumentError, DataError

#: The folders that a set may lie in, under the folder of all data.
_FOLDERS: Mapping[str, tuple[str, ...]] = {
    "ptb": ("ptb", "penn", "simple-examples/data"),
    "wikitext-2": ("wikitext-2", "wikitext-2-v1"),
}
_ORIGINS: Mapping[str, str] = {
    "ptb": "Its text belongs to the Linguistic Data Consortium (LDC99T42). The preprocessed files ptb.train.txt, "
    "ptb.valid.txt and ptb.test.txt are those of Tomas Mikolov's archive simple-examples.tgz, in its folder data",
    "wikitext-2": "Get the word-level files wiki.train.tokens, wiki.valid.tokens and wiki.test.tokens, called "
    "wikitext-2-v1, from Salesforce's page of the WikiText data set or from the Hugging Face hub (Salesforce/wikitext)",
}


def find_data_set(name: str, *, data: Path | str | None = None) -> Path:
    """The folder of a benchmark data set, for `read_corpus`.

    Args:
        name: ``"ptb"`` or ``"wikitext-2"``.
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
            if len(find_parts(folder)) == len(SPLITS):
                return folder
        searched.append(str(place))
    raise DataError(
        where=f"data set {name}",
        got=f"nothing in {', '.join(searched)}",
        wanted="train, valid and test",
        remedy=f"{_ORIGINS[name]}; then name their folder: --data, data=... or STATEWISE_DATA.",
    )


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
