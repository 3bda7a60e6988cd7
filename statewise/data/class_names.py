"""The names of classes, from the labels that a file has."""

from __future__ import annotations

import re
from collections.abc import Sequence

from statewise.automata.captions import shortened
from statewise.data.examples import TWO_CLASSES
from statewise.errors import DataError


def class_names(labels: Sequence[str], *, where: str) -> tuple[str, ...]:
    """The labels that occur, each once and sorted, numbers by value; but ``accept`` comes after ``reject``.

    The second of two classes is the one that accepts. So ``0`` and ``1``, ``no`` and ``yes``, ``neg`` and ``pos`` stand
    rightly when they are sorted, and ``accept`` and ``reject`` do not.

    Args:
        labels: one for each row.
        where: the file.

    Raises:
        DataError: there are more than two rows, and no two have the same label: it is another column that was read.

    >>> class_names(["accept", "reject", "accept"], where="words.tsv")
    ('reject', 'accept')
    >>> class_names(["10", "9", "9"], where="words.tsv")
    ('9', '10')
    """
    found = set(labels)
    if 2 < len(labels) == len(found):
        raise DataError(
            where=where,
            got=f"another label in each of {len(labels)} rows, such as {shortened(labels[0], 40)!r}",
            wanted="labels that occur again, as each names a class",
            remedy="Name the columns: LabelledFile(label=..., text=...), or --label and --text.",
        )
    if {name.casefold() for name in found} == set(TWO_CLASSES) and len(found) == 2:
        return tuple(sorted(found, key=lambda name: TWO_CLASSES.index(name.casefold())))
    return tuple(sorted(found, key=_by_number))


def _by_number(label: str) -> tuple[bool, int, str]:
    number = re.fullmatch("-?[0-9]{1,18}", label) is not None
    return (not number, int(label) if number else 0, label)
