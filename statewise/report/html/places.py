"""Names of places in a page, each given once."""

from __future__ import annotations

from dataclasses import dataclass

from statewise.report.html.markup import slug

_TAKEN = ("content", "contents-title")


@dataclass(frozen=True)
class Heading:
    """A heading that the table of contents may lead to.

    Args:
        title: its text.
        level: 2 for a section of the page, 3 for one under it.
        place: its id.
    """

    title: str
    level: int
    place: str


class Places:
    """Gives every part of a page an id of its own.

    >>> places = Places()
    >>> places.take("Curves"), places.take("Curves"), places.take("content")
    ('curves', 'curves-2', 'content-2')
    """

    def __init__(self) -> None:
        self._taken: dict[str, int] = dict.fromkeys(_TAKEN, 1)
        self.headings: list[Heading] = []

    def head(self, title: str, level: int) -> str:
        """A name for a heading, which is noted for the table of contents.

        Args:
            title: its text.
            level: of it.
        """
        place = self.take(title)
        self.headings.append(Heading(title, level, place))
        return place

    def take(self, title: str) -> str:
        """A name that no other part has.

        Args:
            title: that it is made from.
        """
        name = slug(title)
        number = self._taken.get(name, 0)
        while True:
            number += 1
            made = name if number == 1 else f"{name}-{number}"
            if number == 1 or made not in self._taken:
                break
        self._taken[name] = number
        self._taken.setdefault(made, 1)
        return made
