"""Each piece of a section as markup."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from statewise.report.html.inline import cell_markup, words_markup
from statewise.report.html.markup import Markup, element, joined, text
from statewise.report.html.pieces import (
    Bullets,
    Cell,
    DataTable,
    Disclosure,
    Drawing,
    Figure,
    KeyFigures,
    Listing,
    Note,
    Part,
    Prose,
    Terminal,
)
from statewise.report.html.places import Places

_NOTES = {"holds": ("✓", "Holds"), "care": ("!", "Mind"), "missing": ("○", "Not here"), "remark": ("i", "Note")}
#: A drawing may be shown as small as this; on a narrower page it scrolls in its box, for its texts must be legible.
_SMALLEST = 0.82


def part_markup(part: Part, places: Places, inside: Callable[[Sequence[Part]], Markup]) -> Markup:
    """A piece as markup.

    Args:
        part: any but a section.
        places: that gives ids.
        inside: draws what is behind a fold.
    """
    if isinstance(part, Disclosure):
        return _fold(part.title, inside(part.parts), opened=part.open)
    if isinstance(part, Figure):
        return _figure(part, places)
    if isinstance(part, DataTable):
        return _table(part)
    return _small(part)


def _small(part: Part) -> Markup:
    if isinstance(part, Prose):
        return element("p", words_markup(part.words), class_="quiet" if part.quiet else None)
    if isinstance(part, Bullets):
        return element("ul", *(element("li", words_markup(item)) for item in part.items))
    if isinstance(part, Terminal):
        said = (element("samp", text(f"\n{part.says}")),) if part.says else ()
        return _scrolling(element("pre", element("code", text(part.command)), *said, class_="terminal"), "Command")
    if isinstance(part, Listing):
        return _scrolling(element("pre", element("code", text(part.text))), part.name)
    if isinstance(part, KeyFigures):
        return _key_figures(part)
    if isinstance(part, Note):
        return _note(part)
    raise TypeError(f"{type(part).__name__} is not a part of a page")


def _note(note: Note) -> Markup:
    sign, word = _NOTES[note.kind]
    label = element("strong", element("span", text(sign), class_="sign", aria_hidden="true"), text(f" {word}: "))
    command = [_small(Terminal(note.command))] if note.command else []
    return element("div", element("p", label, words_markup(note.words)), *command, class_=f"note {note.kind}")


def _key_figures(row: KeyFigures) -> Markup:
    boxes = [
        element(
            "div",
            element("dt", text(figure.label)),
            element("dd", text(figure.value), class_="value"),
            *([element("dd", text(figure.note), class_="under")] if figure.note else []),
        )
        for figure in row.figures
    ]
    return element("dl", *boxes, class_="key-figures")


def _fold(title: str, inside: Markup, *, opened: bool = False) -> Markup:
    return element("details", element("summary", text(title)), inside, open=opened)


def _scrolling(inside: Markup, name: str, style: str = "scroll") -> Markup:
    """A box that scrolls sideways by itself, by the keyboard too."""
    return element("div", inside, class_=style, role="region", tabindex="0", aria_label=name)


def _figure(figure: Figure, places: Places) -> Markup:
    place = places.take(f"figure {figure.title}")
    drawn = _drawn(figure, figure.svg, place, None if figure.narrow is None else "wide")
    if figure.narrow is not None:
        drawn = joined(drawn, _drawn(figure, figure.narrow, f"{place}-narrow", "narrow"))
    caption = [element("p", words_markup(figure.caption), class_="caption")] if figure.caption else []
    numbers = [_fold("The numbers of this figure", _table(figure.table))] if figure.table is not None else []
    heading = element("figcaption", text(figure.title))
    return element("figure", heading, drawn, *caption, *numbers, id=place)


def _drawn(figure: Figure, svg: Drawing, place: str, which: str | None) -> Markup:
    """One of the two drawings of a figure; the style sheet shows the one that fits."""
    inside = svg_markup(svg, title=figure.title, alt=figure.alt, place=place)
    return _scrolling(inside, figure.title, "scroll" if which is None else f"scroll {which}")


def svg_markup(svg: Drawing, *, title: str, alt: str, place: str) -> Markup:
    """A drawing as an element with a name and a description for those who do not see it.

    Args:
        svg: the drawing.
        title: its name.
        alt: its description.
        place: from which its ids are made.

    >>> svg_markup(Drawing(2, 1, Markup("<g></g>")), title="T", alt="A", place="f")[:60]
    '<svg viewBox="0 0 2 1" width="2" height="1" role="img" aria-'
    """
    return element(
        "svg",
        element("title", text(title), id=f"{place}-name"),
        element("desc", text(alt), id=f"{place}-text"),
        svg.content,
        viewBox=f"0 0 {svg.width:g} {svg.height:g}",
        width=svg.width,
        height=svg.height,
        role="img",
        aria_labelledby=f"{place}-name {place}-text",
        style=f"min-width:{_SMALLEST * svg.width:.0f}px",
    )


def _table(table: DataTable) -> Markup:
    heads = [
        element("th", text(heading), scope="col", class_=None if column < table.left else "number")
        for column, heading in enumerate(table.headings)
    ]
    best = table.best or [None] * len(table.rows)
    rows = [_row(row, table.left, stands_out) for row, stands_out in zip(table.rows, best, strict=True)]
    inside = joined(
        element("caption", text(table.caption)),
        element("thead", element("tr", *heads)),
        element("tbody", *rows),
    )
    return _scrolling(element("table", inside), table.caption)


def _row(row: Sequence[Cell], left: int, best: int | None) -> Markup:
    cells = [element("th", cell_markup(row[0]), scope="row", class_=None if left > 0 else "number")]
    for column, cell in enumerate(row[1:], start=1):
        inside = cell_markup(cell)
        inside = element("strong", inside) if column == best else inside
        cells.append(element("td", inside, class_=None if column < left else "number"))
    return element("tr", *cells)
