"""A page as a file, and whether a file there may be replaced."""

from __future__ import annotations

from pathlib import Path

from statewise.errors import ArgumentError
from statewise.files import write_atomically
from statewise.report.html.pieces import Page
from statewise.report.html.render import MARK, render

_HEAD = 4096  # the mark stands in the first lines


def write_page(path: Path, page: Page) -> None:
    """Write a page to a file, whole or not at all.

    Args:
        path: the file; its folder exists.
        page: what it shows.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(Path(folder) / "report.html", Page(title="A run", summary="Fine.", sections=[]))
    ...     made_here(Path(folder) / "report.html")
    True
    """
    write_atomically(path, render(page))


def made_here(path: Path) -> bool:
    """Whether a file is a page of this library, by the mark in its head.

    Args:
        path: of a file that is there.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return f'<meta name="generator" content="{MARK}">'.encode() in head


def may_replace(path: Path, *, force: bool = False) -> None:
    """Refuse to replace a file that is not a page of this library.

    Args:
        path: where a page shall be.
        force: replace any file.
    """
    if path.is_dir():
        raise ArgumentError(where=str(path), got="a folder", wanted="a file to write", remedy="Name a file in it.")
    if force or not path.exists() or made_here(path):
        return
    raise ArgumentError(
        where=str(path),
        got="a file that is not a page of statewise",
        wanted="a new name, or such a page to replace",
        remedy="Name another file, or replace it with --force.",
    )
