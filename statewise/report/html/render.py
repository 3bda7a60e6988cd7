"""A page as one HTML text, with everything in it."""

from __future__ import annotations

from importlib import resources

from statewise.report.html.inline import plain, words_markup
from statewise.report.html.markup import Markup, element, joined, text
from statewise.report.html.parts import part_markup
from statewise.report.html.pieces import Listing, Page, Part, Section
from statewise.report.html.places import Heading, Places

#: What a page may load: nothing, but for the style and the pictures that are in it. No script runs.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
#: By this a file is known as made here; see :func:`~.may_replace`.
MARK = "statewise-report"
_CITE = "How to cite"


def render(page: Page) -> str:
    """The page as HTML: no file beside it, no network, no script.

    Args:
        page: what it shows.

    >>> from statewise.report.html.pieces import Prose
    >>> made = render(Page(title="A <run>", summary="Fine.", sections=[Section("Curves", [Prose("None.")])]))
    >>> made.splitlines()[0], "<h1>A &lt;run&gt;</h1>" in made, '<h2 id="curves">' in made
    ('<!doctype html>', True, True)
    """
    places = Places()
    sections = [*page.sections, *([_citation(page.cite)] if page.cite else [])]
    drawn = [_section(section, 2, places) for section in sections]
    header = element(
        "header",
        element("p", text(page.kind), class_="kind"),
        element("h1", text(page.title)),
        element("p", words_markup(page.summary), class_="summary"),
    )
    body = element(
        "body",
        element("a", text("Skip to the content"), class_="skip", href="#content"),
        element("div", header, _contents(places), element("main", *drawn, id="content"), class_="page"),
        element("footer", element("p", text(page.foot))) if page.foot else Markup(""),
    )
    return f"<!doctype html>\n{element('html', _head(page), body, lang='en')}\n"


def _head(page: Page) -> Markup:
    style = resources.files("statewise.report.html").joinpath("page.css").read_text(encoding="utf-8")
    return element(
        "head",
        element("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="color-scheme", content="light dark"),
        element("meta", name_="generator", content=MARK),
        element("meta", name_="description", content=plain(page.summary)),
        element("title", text(page.title)),
        element("style", Markup(style)),  # ours, not the user's
    )


def _contents(places: Places) -> Markup:
    """The table of contents: sections, and what is directly under them."""
    chapters: list[list[Heading]] = []
    for heading in places.headings:
        if heading.level == 2:
            chapters.append([heading])
        elif heading.level == 3:
            chapters[-1].append(heading)
    if len(chapters) < 2:
        return Markup("")
    items = [element("li", _link(first), _list(*map(_entry, rest))) for first, *rest in chapters]
    title = element("p", text("Contents"), class_="kind", id="contents-title")
    return element("nav", title, _list(*items), class_="contents", aria_labelledby="contents-title")


def _list(*items: Markup) -> Markup:
    return element("ol", *items) if items else Markup("")


def _entry(heading: Heading) -> Markup:
    return element("li", _link(heading))


def _link(heading: Heading) -> Markup:
    return element("a", text(heading.title), href=f"#{heading.place}")


def _citation(entries: str) -> Section:
    return Section(
        _CITE,
        [Listing(entries, name="BibTeX entries")],
        prose="Papers that what is shown here rests on, and the library itself.",
    )


def _section(section: Section, level: int, places: Places) -> Markup:
    place = places.head(section.title, level)
    heading = element(f"h{min(level, 6)}", text(section.title), id=place)
    first = [element("p", words_markup(section.prose))] if section.prose else []
    inside = [_part(part, level, places) for part in section.parts]
    return element("section", heading, *first, *inside, aria_labelledby=place, class_="top" if level == 2 else None)


def _part(part: Part, level: int, places: Places) -> Markup:
    if isinstance(part, Section):
        return _section(part, level + 1, places)
    return part_markup(part, places, lambda inner: joined(*(_part(each, level, places) for each in inner)))
