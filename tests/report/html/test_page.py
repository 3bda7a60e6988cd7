"""Pages: what a parser finds in them, and what may be replaced on the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from report.html.gallery import HOSTILE, URL, gallery
from report.html.reading import check_structure, read
from statewise.errors import ArgumentError, ShapeError
from statewise.report.html import (
    DataTable,
    Drawing,
    Figure,
    Listing,
    Markup,
    Page,
    Prose,
    Section,
    drawing_of,
    element,
    made_here,
    may_replace,
    render,
    text,
    write_page,
)


def page(*sections: Section, **options: str) -> Page:
    return Page(title="A page", summary="What it is.", sections=sections, **options)


def test_every_piece_is_well_formed_and_has_a_text_alternative() -> None:
    check_structure(render(gallery()))


def test_what_a_name_says_is_text_and_never_an_element() -> None:
    root = read(render(gallery()))
    assert not root.all("script", "img")
    assert root.all("h1")[0].text.endswith(HOSTILE)
    assert URL in root.all("code")[0].text
    assert any(HOSTILE in node.text for node in root.all("text"))
    assert any(HOSTILE in node.text for node in root.all("desc"))


@pytest.mark.parametrize("sign", ["\x00", "\x1b", "\x7f", "\ud800", "\ufffe", "\u202e", "\u2066"])
def test_signs_that_html_has_no_place_for_or_that_turn_a_text_are_replaced(sign: str) -> None:
    made = render(page(Section("Signs", [Prose(f"a{sign}b")])))
    assert "a\ufffdb" in made
    made.encode()


def test_an_attribute_cannot_be_left() -> None:
    assert element("p", id='x" onclick="y') == '<p id="x&quot; onclick=&quot;y"></p>'


def test_ids_stay_unique_where_titles_repeat() -> None:
    repeated = [Section("Curves", [Section("Curves", [])]), Section("curves", []), Section("Curves 2", [])]
    root = check_structure(render(page(*repeated, Section("content", []), Section("漢字", []), Section("⁂", []))))
    ids = [node.attributes["id"] for node in root.all("h2", "h3")]
    assert ids[0] == "curves"
    assert len(set(ids)) == 7


def test_the_contents_lead_to_sections_and_to_what_is_under_them() -> None:
    root = read(render(page(Section("One", [Section("Under", [Section("Deep", [])])]), Section("Two", []))))
    (contents,) = root.all("nav")
    assert [link.text for link in contents.all("a")] == ["One", "Under", "Two"]
    assert not read(render(page(Section("One", [])))).all("nav")


def test_a_citation_is_the_last_section() -> None:
    root = read(render(page(Section("One", []), cite="@book{a}")))
    assert root.all("h2")[-1].text == "How to cite"
    assert root.all("pre")[-1].whole_text() == "@book{a}"


def test_line_ends_at_the_beginning_of_a_listing_are_kept() -> None:
    """HTML drops the first line end after <pre>; here a <code> stands between."""
    assert "<pre><code>\n\nx</code></pre>" in render(page(Section("One", [Listing("\n\nx")])))


def test_a_figure_without_words_is_refused() -> None:
    with pytest.raises(ArgumentError, match="those who do not see"):
        Figure(svg=Drawing(1, 1, Markup("")), title="T", alt="")


def test_a_table_whose_rows_do_not_fit_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"rows\[1\]"):
        DataTable(headings=("a", "b"), rows=[("1", "2"), ("1",)], caption="C")


def test_a_drawing_of_another_room_loses_scripts_styles_and_addresses() -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10" onload="x()"><script>x()</script>'
        '<style>*{fill:url(http://x)}</style><g onclick="x()" style="fill:red"><a href="http://x"><text>t</text></a>'
        '<text class="sw-name" x="1">a &lt; b</text></g></svg>'
    )
    assert drawing_of(svg).content == '<g><text class="sw-name" x="1">a &lt; b</text></g>'


def test_a_page_replaces_pages_of_ours_and_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    may_replace(path)
    write_page(path, page())
    assert made_here(path)
    may_replace(path)
    theirs = tmp_path / "notes.html"
    theirs.write_text("<p>my notes</p>", encoding="utf-8")
    with pytest.raises(ArgumentError, match="not a page of statewise"):
        may_replace(theirs)
    may_replace(theirs, force=True)
    with pytest.raises(ArgumentError, match="a folder"):
        may_replace(tmp_path, force=True)


def test_a_file_that_only_shows_our_mark_as_text_is_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "theirs.html"
    path.write_text(str(text('<meta name="generator" content="statewise-report">')), encoding="utf-8")
    assert not made_here(path)
