"""What was made of a text file is kept, so that it is made once; it is made again when the text has changed.

Kept under ``cache=``, else in the package's own cache (``$STATEWISE_CACHE``, ``$XDG_CACHE_HOME/statewise``,
``~/.cache/statewise``, or a private folder among the temporary files), in a folder for each text file. Nothing is ever
written beside the text. What is found there is checked before it is used; the damaged is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from statewise.data.stream import TokenStream
from statewise.data.text import Text
from statewise.data.vocabulary import Vocabulary
from statewise.errors import ArgumentError, DataError
from statewise.files import cache_roots, locked

Kept = TypeVar("Kept")
_STAMP = 20  # so many digits of a hash tell the states of a file apart
_logger = logging.getLogger("statewise")


def cached_stream(text: Text, vocabulary: Vocabulary, *, cache: Path | None = None) -> TokenStream:
    """The encoded text, from the cache if it is there.

    Args:
        text: the file, or some lines of it.
        vocabulary: the words and their ids.
        cache: the folder of the cache; None for the usual places.
    """
    key = f"{text.fingerprint()}{vocabulary.fingerprint}.npy"
    return _kept(text, key, cache, TokenStream.open, lambda path: TokenStream.write(path, text, vocabulary))


def cached_vocabulary(
    text: Text, *, limit: int | None = None, min_count: int = 1, cache: Path | None = None
) -> Vocabulary:
    """The vocabulary of a text, from the cache if it is there.

    Args:
        text: the file, or some lines of it.
        limit: the most words there may be; None for all.
        min_count: words that occur less often are left out.
        cache: the folder of the cache; None for the usual places.
    """

    def make(path: Path) -> Vocabulary:
        vocabulary = Vocabulary.build(text.pieces(), limit=limit, min_count=min_count)
        vocabulary.save(path)
        return vocabulary

    key = repr((text.fingerprint(), limit, min_count)) + ".json"
    return _kept(text, key, cache, Vocabulary.load, make)


def _kept(text: Text, key: str, cache: Path | None, load: Callable[[Path], Kept], make: Callable[[Path], Kept]) -> Kept:
    stamp = text.stamp()
    name = f"{stamp[:_STAMP]}-{_digest(key)}{Path(key).suffix}"
    folders = [root / "texts" / _digest(str(text.path.resolve())) for root in _roots(cache)]
    for folder in folders:
        # A finished entry is good even where nothing can be written any more.
        if (folder / name).exists():
            with contextlib.suppress(DataError):
                return load(folder / name)
            _logger.warning("%s is damaged and is made again from %s", folder / name, text.path)
    folder = _writable(folders)
    with locked(folder / "lock"):
        with contextlib.suppress(DataError):  # another process was faster
            return load(folder / name)
        _logger.info("preparing %s (once), in %s", text.path, folder)
        made = make(folder / name)
        if text.stamp() != stamp:
            (folder / name).unlink()
            got, remedy = "a file that changed while it was read", "Start again when nothing writes to it any more."
            raise DataError(where=str(text.path), got=got, wanted="a file at rest", remedy=remedy)
        _drop_stale(folder, stamp)
    return made


def _roots(cache: Path | None) -> list[Path]:
    if cache is not None:
        return [Path(cache)]
    own, shared = cache_roots()
    return [own, *_trusted(shared)]


def _trusted(folder: Path) -> Iterator[Path]:
    """The folder, unless another user made it: all may write among the temporary files."""
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022):
            yield folder


def _writable(folders: list[Path]) -> Path:
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
    got = " and ".join(str(folder.parent.parent) for folder in folders)
    remedy = "Name a folder of yours: cache=... or the environment variable STATEWISE_CACHE."
    raise ArgumentError(where="cache", got=got, wanted="a folder that can be written", remedy=remedy)


def _drop_stale(folder: Path, stamp: str) -> None:
    """Remove what was made of earlier states of the file, and what a killed process left; who has it open keeps it."""
    yesterday = time.time() - 24 * 3600
    for entry in folder.glob("*-*"):
        with contextlib.suppress(OSError):
            left = entry.name.startswith(".") and entry.stat().st_mtime < yesterday
            if left or not entry.name.startswith((stamp[:_STAMP], ".")):
                entry.unlink()


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:_STAMP]
