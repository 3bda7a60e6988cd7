"""Small texts and numbers that several sections share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_LEVEL = 1.959963984540054  # of the normal law, for 95 %


def counted(number: int, what: str) -> str:
    """A number and its noun.

    Args:
        number: how many.
        what: of one.

    >>> counted(1, "run"), counted(1200, "run")
    ('1 run', '1,200 runs')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def percent(share: float, digits: int = 2) -> str:
    r"""A share in per cent.

    Args:
        share: from 0 to 1.
        digits: behind the point.

    >>> percent(0.12345)
    '12.35\xa0%'
    """
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


def wilson(right: float, count: int) -> tuple[float, float]:
    """The interval of Wilson (1927) for a share: 95 % of such intervals hold the true one, if answers are independent.

    Args:
        right: the share that was seen.
        count: of how many.

    >>> [round(end, 3) for end in wilson(1.0, 100)]
    [0.963, 1.0]
    """
    if count < 1:
        return 0.0, 1.0
    square = _LEVEL**2
    middle = (right + square / (2 * count)) / (1 + square / count)
    half = _LEVEL / (1 + square / count) * math.sqrt(right * (1 - right) / count + square / (4 * count**2))
    return max(0.0, min(middle - half, right)), min(1.0, max(middle + half, right))


def flattened(document: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """A document of settings as rows of a name and a text.

    Args:
        document: with further documents inside.
        prefix: before the names.

    >>> flattened({"model": {"hidden": [8, 4], "cell": "gru"}, "seed": None})
    [('model.hidden', '8, 4'), ('model.cell', 'gru'), ('seed', 'none')]
    """
    rows: list[tuple[str, str]] = []
    for key, value in document.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            rows += flattened(value, f"{name}.")
        elif isinstance(value, list | tuple):
            rows.append((name, ", ".join(map(str, value)) or "none"))
        elif isinstance(value, bool):
            rows.append((name, "yes" if value else "no"))
        else:
            rows.append((name, "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)))
    return rows
