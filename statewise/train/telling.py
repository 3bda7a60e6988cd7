"""Telling a person what happens."""

from __future__ import annotations

from rich.console import Console


def say(console: Console | None, text: str) -> None:
    """Print a text as it is, without wrapping, colours or pictures for ``:words:``, so that it can be copied.

    Args:
        console: where; None for nowhere.
        text: what.

    >>> say(None, "nobody hears this")
    """
    if console is not None:
        console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)
