"""Colours that stay apart on light and dark paper, and for most colour-blind people (after Okabe & Ito)."""

from __future__ import annotations

_FILLS = ("#dbe7f3", "#fbe3c4", "#cfeadf", "#f6d9e6", "#f7f2b8", "#d3ecf9", "#f5cfbd", "#e2e2e2")
_DARK_FILLS = ("#274562", "#6b4a16", "#17543f", "#66334f", "#5a561a", "#1d4f6b", "#6b3018", "#4a4a4a")


def fill(kind: int, *, dark: bool = False) -> str:
    """The colour of a class; after eight they begin again.

    Args:
        kind: the number of the class.
        dark: for dark paper.

    >>> fill(0), fill(8) == fill(0), fill(0, dark=True)
    ('#dbe7f3', True, '#274562')
    """
    fills = _DARK_FILLS if dark else _FILLS
    return fills[kind % len(fills)]
