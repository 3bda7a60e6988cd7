"""The page in a real browser: offline, on a phone, in the dark and on paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from report.html.browsing import browser, visit
from report.html.gallery import gallery
from statewise.report.html import write_page


@pytest.fixture(scope="module")
def opened() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "gallery.html"
    write_page(path, gallery())
    return path


def test_it_opens_without_a_word_of_complaint_and_asks_for_nothing_else(opened: Any, shown: Path) -> None:
    with visit(opened, shown) as seen:
        assert seen.page.title().startswith("Every piece")
        assert seen.page.evaluate("document.scripts.length") == 0
    assert seen.said == []
    assert seen.asked == [shown.resolve().as_uri()]


@pytest.mark.parametrize("width", [360, 700, 1000, 1280])
def test_the_page_never_scrolls_sideways(opened: Any, shown: Path, width: int) -> None:
    with visit(opened, shown, width=width) as seen:
        seen.page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_phone_gets_charts_that_fit_it(opened: Any, shown: Path) -> None:
    with visit(opened, shown, width=360) as seen:
        assert seen.page.locator("figure .narrow").first.is_visible()
        assert not seen.page.locator("figure .wide").first.is_visible()
        overflow = "box => box.scrollWidth - box.clientWidth"
        boxes = seen.page.locator("figure .narrow").all()
        assert boxes
        assert all(box.evaluate(overflow) <= 0 for box in boxes)


def test_no_text_of_a_drawing_is_cut_off_at_its_border(opened: Any, shown: Path) -> None:
    out = """() => [...document.querySelectorAll('figure svg')].filter(svg => svg.clientWidth).flatMap(svg => {
        const frame = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('text')].filter(node => {
            const box = node.getBoundingClientRect();
            return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
                || box.bottom > frame.bottom + 1;
        }).map(node => node.textContent);
    })"""
    for width in (360, 1280):
        with visit(opened, shown, width=width) as seen:
            assert seen.page.evaluate(out) == []


def test_dark_and_light_differ(opened: Any, shown: Path) -> None:
    pictures = []
    for dark in (False, True):
        with visit(opened, shown, dark=dark) as seen:
            pictures.append(seen.page.screenshot())
    assert pictures[0] != pictures[1]


def test_on_paper_it_is_light_and_the_folds_are_open(opened: Any, shown: Path) -> None:
    with visit(opened, shown, dark=True) as seen:
        seen.page.emulate_media(media="print", color_scheme="dark")
        assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        hidden = seen.page.locator("details p", has_text="There are none.")
        assert hidden.bounding_box()["height"] > 5
        assert seen.page.pdf()[:5] == b"%PDF-"
