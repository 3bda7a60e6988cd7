"""What a page is made of: immutable pieces that know nothing of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from statewise.errors import ArgumentError, ShapeError
from statewise.report.html.markup import Markup


@dataclass(frozen=True)
class Code:
    """A word of a program inside a sentence, such as the name of a file.

    Args:
        text: as it is typed.

    >>> Code("config.json").text
    'config.json'
    """

    text: str


@dataclass(frozen=True)
class Strong:
    """Words that matter most in a sentence.

    Args:
        text: of them.

    >>> Strong("not a proof").text
    'not a proof'
    """

    text: str


@dataclass(frozen=True)
class Drawing:
    """A picture as SVG: its size and what is inside.

    Args:
        width: in pixels.
        height: in pixels.
        content: elements of SVG, made by :func:`~.element`, so that every text in it is escaped.

    >>> from statewise.report.html.markup import element
    >>> Drawing(20, 10, element("circle", r=3.0)).width
    20
    """

    width: float
    height: float
    content: Markup


#: What stands in a sentence or in a cell.
Inline: TypeAlias = str | Code | Strong
#: A sentence or several: a text, or pieces of it one after the other.
Words: TypeAlias = Inline | Sequence[Inline]
Cell: TypeAlias = Inline | Drawing


@dataclass(frozen=True)
class Prose:
    """A paragraph.

    Args:
        words: a text, or texts with :class:`Code` and :class:`Strong` between them.
        quiet: smaller and paler, for remarks.

    >>> Prose(["Read ", Code("metrics.jsonl"), "."]).quiet
    False
    """

    words: Words
    quiet: bool = False


@dataclass(frozen=True)
class Bullets:
    """A list.

    Args:
        items: a paragraph each.

    >>> len(Bullets(["one", "two"]).items)
    2
    """

    items: Sequence[Words]


@dataclass(frozen=True)
class Terminal:
    """A command to type, or several.

    Args:
        command: a line each; no prompt in front.
        says: what it prints, where that is shown.

    >>> Terminal("statewise doctor").command
    'statewise doctor'
    """

    command: str
    says: str = ""


@dataclass(frozen=True)
class Listing:
    """A text whose blanks and line ends count, such as BibTeX.

    Args:
        text: as it is.
        name: what it is, for those who do not see it.

    >>> Listing("@book{...}", name="BibTeX").name
    'BibTeX'
    """

    text: str
    name: str = "Listing"


@dataclass(frozen=True, kw_only=True)
class KeyFigure:
    """One number that is worth a glance.

    Args:
        value: as it is shown.
        label: what it is.
        note: a few words under it, such as an interval.

    >>> KeyFigure(value="97.1 %", label="accuracy").note
    ''
    """

    value: str
    label: str
    note: str = ""


@dataclass(frozen=True)
class KeyFigures:
    """A row of numbers that are worth a glance.

    Args:
        figures: two to five read best.

    >>> len(KeyFigures([KeyFigure(value="3", label="states")]).figures)
    1
    """

    figures: Sequence[KeyFigure]


@dataclass(frozen=True, kw_only=True)
class Note:
    """A sentence in a box: something holds, asks for care, is missing, or is worth knowing.

    Args:
        kind: says which; a word stands for it, so that it does not depend on a colour.
        words: what it says.
        command: to type for it, if any.

    >>> Note(kind="missing", words="No test data was given.").command
    ''
    """

    kind: Literal["holds", "care", "missing", "remark"]
    words: Words
    command: str = ""


@dataclass(frozen=True, kw_only=True)
class DataTable:
    """A table; the first column names its rows.

    Args:
        headings: of the columns.
        rows: a cell a column: texts, codes or small drawings.
        caption: what it shows.
        left: how many columns are aligned at the left; the others hold numbers.
        best: for each row, the column of the cell that stands out, if any.

    >>> DataTable(headings=("word", "count"), rows=[("the", "12")], caption="Words").left
    1
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str
    left: int = 1
    best: Sequence[int | None] = ()

    def __post_init__(self) -> None:
        if not self.headings or not self.caption:
            raise ArgumentError(where="DataTable", got="no heading or no caption", wanted="both")
        for index, row in enumerate(self.rows):
            if len(row) != len(self.headings):
                raise ShapeError(
                    where=f"DataTable.rows[{index}]",
                    got=f"{len(row)} cells",
                    wanted=f"{len(self.headings)}, one a column",
                )
        if self.best and len(self.best) != len(self.rows):
            raise ShapeError(
                where="DataTable.best", got=f"{len(self.best)} entries", wanted=f"{len(self.rows)}, one a row"
            )


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A drawing with what it says in words and in numbers.

    Args:
        svg: the drawing.
        title: over it.
        alt: what it shows, for those who do not see it.
        caption: how to read it, under it.
        table: its numbers, behind a fold; None where ``alt`` says all.
        narrow: the same drawing for a phone; None lets the one for wide pages scroll in its box.

    >>> from statewise.report.html.markup import element
    >>> Figure(svg=Drawing(9, 9, element("g")), title="A dot", alt="A dot at the origin.").caption
    ''
    """

    svg: Drawing
    title: str
    alt: str
    caption: Words = ""
    table: DataTable | None = None
    narrow: Drawing | None = None

    def __post_init__(self) -> None:
        if not self.title or not self.alt:
            raise ArgumentError(
                where="Figure",
                got=f"title {self.title!r} and alt {self.alt!r}",
                wanted="a title, and a text for those who do not see the drawing",
            )


@dataclass(frozen=True)
class Disclosure:
    """Parts behind a fold, for what is long; on paper it is open.

    Args:
        title: what is behind it.
        parts: as in a section.
        open: whether it is open at first.

    >>> Disclosure("Every setting", [Prose("None.")]).open
    False
    """

    title: str
    parts: Sequence[Part]
    open: bool = False


@dataclass(frozen=True)
class Section:
    """A heading and what is under it.

    Args:
        title: the heading.
        parts: in their order; a section among them is one level deeper.
        prose: the paragraph that the section begins with.

    >>> Section("Learning curves", [], prose="Lower is better.").title
    'Learning curves'
    """

    title: str
    parts: Sequence[Part] = ()
    prose: Words = ""

    def __post_init__(self) -> None:
        if not self.title.strip():
            raise ArgumentError(where="Section.title", got=self.title, wanted="a heading")


@dataclass(frozen=True, kw_only=True)
class Page:
    """A whole page.

    Args:
        title: its first heading.
        summary: the paragraph under it.
        sections: in their order; the table of contents is made from them.
        cite: BibTeX entries, which become the last section; nothing leaves it out.
        foot: a line at the end.
        kind: a few words over the title.

    >>> Page(title="A run", summary="It went well.", sections=[]).kind
    'statewise report'
    """

    title: str
    summary: Words
    sections: Sequence[Section]
    cite: str = ""
    foot: str = ""
    kind: str = field(default="statewise report")

    def __post_init__(self) -> None:
        if not self.title.strip():
            raise ArgumentError(where="Page.title", got=self.title, wanted="a title")


Part: TypeAlias = Prose | Bullets | Terminal | Listing | KeyFigures | Note | DataTable | Figure | Disclosure | Section
