"""Pages that need nothing but a browser: pieces of a page, charts as inline SVG, and one HTML file with all in it.

>>> from statewise.report.html import Page, Section, Series, line_chart, render
>>> curve = line_chart([Series(name="valid", x=[1, 2, 3], y=[5.0, 4.2, 4.0])], title="Loss", x="epoch", y="nats")
>>> page = Page(title="A run", summary="It still learns.", sections=[Section("Curves", [curve])])
>>> render(page).startswith("<!doctype html>")
True
"""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.report.html.bars import Bar, bar_chart
    from statewise.report.html.files import made_here, may_replace, write_page
    from statewise.report.html.foreign import drawing_of
    from statewise.report.html.heat import heat_map
    from statewise.report.html.lines import Series, line_chart
    from statewise.report.html.markup import Markup, element, joined, text
    from statewise.report.html.numbers import shown
    from statewise.report.html.pieces import (
        Bullets,
        Code,
        DataTable,
        Disclosure,
        Drawing,
        Figure,
        KeyFigure,
        KeyFigures,
        Listing,
        Note,
        Page,
        Prose,
        Section,
        Strong,
        Terminal,
    )
    from statewise.report.html.render import render
    from statewise.report.html.scatter import Points, reliability_chart, scatter_chart
    from statewise.report.html.sparks import sparkline

__all__ = [
    "Bar",
    "Bullets",
    "Code",
    "DataTable",
    "Disclosure",
    "Drawing",
    "Figure",
    "KeyFigure",
    "KeyFigures",
    "Listing",
    "Markup",
    "Note",
    "Page",
    "Points",
    "Prose",
    "Section",
    "Series",
    "Strong",
    "Terminal",
    "bar_chart",
    "drawing_of",
    "element",
    "heat_map",
    "joined",
    "line_chart",
    "made_here",
    "may_replace",
    "reliability_chart",
    "render",
    "scatter_chart",
    "shown",
    "sparkline",
    "text",
    "write_page",
]

lazy_imports(__name__)
