"""What the columns of labels and of texts are called, where nobody says which ones are meant."""

from __future__ import annotations

from collections.abc import Sequence

#: The first one is what is told when none is there.
LABELS = ("label", "class", "sentiment", "target", "y")
TEXTS = ("text", "sentence", "review", "content")
_WEAK = "y"  # also an answer: of itself it makes no header


def names_columns(row: Sequence[str]) -> bool:
    """Whether a row looks like a header: it has one of these names, in any case.

    >>> names_columns(["Review", "stars"]), names_columns(["y", "abba"])
    (True, False)
    """
    return bool(set(_folded(row)) & {*LABELS, *TEXTS} - {_WEAK})


def place_of(wanted: Sequence[str], names: Sequence[str]) -> int | None:
    """The place of the first of some names, in any case; None if none is there.

    >>> place_of(LABELS, ["id", "Sentiment"]), place_of(TEXTS, ["id", "Sentiment"])
    (1, None)
    """
    folded = _folded(names)
    return next((folded.index(name) for name in _folded(wanted) if name in folded), None)


def _folded(names: Sequence[str]) -> list[str]:
    return [name.strip().casefold() for name in names]
