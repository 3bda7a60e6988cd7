"""The page in a real browser: what a person does, what a person sees, and that nothing leaves the machine."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from explorer.serving import Served, served

CHROMIUM = shutil.which("chromium")
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
OPTIONS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
Open = Callable[..., Any]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield started
        started.close()


@contextmanager
def opened(browser: Any, url: str, *, width: int = 1200, scheme: str = "light") -> Iterator[Any]:
    """The page, ready; it must stay silent, and ask nobody but its own server."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, said, asked = context.new_page(), list[str](), list[str]()
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(f"dialog {dialog.message}"))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(url)
    page.wait_for_selector("body.ready")
    yield page
    context.close()
    assert said == []
    assert all(each.startswith(url.partition("#")[0]) for each in asked)


def type_in(page: Any, text: str) -> None:
    with page.expect_response("**/api/trace"):
        page.fill("#text", text)
    page.wait_for_selector("body:not(.busy)")


def test_a_word_is_typed_and_followed_step_by_step(browser: Any, server: Served) -> None:
    with opened(browser, server.url) as page:
        type_in(page, "1100")
        tokens = page.locator("#tokens .token")
        assert tokens.all_inner_texts() == ["START", "1", "1", "0", "0"]
        assert page.locator("#step-told").inner_text() == "step 4 of 4"
        page.locator("h1").click()
        page.keyboard.press("ArrowLeft")
        assert page.locator("#step-told").inner_text() == "step 3 of 4"
        page.keyboard.press("Home")
        assert page.locator("#tokens [aria-current]").inner_text() == "START"
        assert page.locator(".panel h3").first.inner_text().startswith("After 0 symbols")
        tokens.nth(2).click()
        assert page.locator("#step").input_value() == "2"
        page.click("#play")
        page.wait_for_selector("#step-told:text-is('step 4 of 4')", timeout=10_000)
        page.wait_for_selector("#play[aria-pressed=false]", timeout=10_000)
        page.keyboard.press("End")
        page.wait_for_selector("#live:has-text('accept')", state="attached")


def test_the_address_loses_its_key_and_a_reload_keeps_it(browser: Any, server: Served) -> None:
    with opened(browser, server.url) as page:
        assert "#" not in page.url
        page.reload()
        page.wait_for_selector("body.ready:not(.lost)")
        assert page.locator(".panel").count() == 2


def test_a_place_on_the_page_is_not_taken_for_its_key(browser: Any, server: Served) -> None:
    with opened(browser, server.url) as page:
        page.locator(".skip").focus()
        page.keyboard.press("Enter")
        assert page.url.endswith("#panels")
        page.reload()
        page.wait_for_selector("body.ready:not(.lost)")


def test_without_its_key_the_page_says_what_to_do(browser: Any, server: Served) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{server.base}/#wrong")
    page.wait_for_selector("body.lost")
    assert "Open the whole address" in page.locator("#trouble").inner_text()
    assert not page.locator("#asking").is_visible()
    context.close()


def test_the_automaton_shows_where_machine_and_network_are(browser: Any, server: Served) -> None:
    with opened(browser, server.url) as page:
        type_in(page, "000")
        panel = page.locator(".panel").first
        assert panel.locator("circle.sw-state.is-here").count() == 1
        assert "(reject)" in panel.locator(".told-machine").inner_text()
        assert panel.locator("g.is-taken").count() == 1
        assert "carries a memory" in page.locator(".panel").nth(1).inner_text()


def test_temperature_and_noise_are_slid(browser: Any, server: Served) -> None:
    with opened(browser, server.url) as page:
        type_in(page, "010011")
        lstm = page.locator(".panel").nth(1)
        note = lstm.locator(".strip:has(.name:text-is('centroids')) .note")
        before = note.inner_text()
        with page.expect_response("**/api/trace"):
            page.locator("#temperature").fill("-2")
        page.wait_for_selector("body:not(.busy)")
        assert note.inner_text() != before
        assert page.locator("#temperature-told").inner_text() == "0.01"
        assert float(note.inner_text().split()[-1]) > 0.5
        page.click("#as-trained")
        assert page.locator("#temperature-told").inner_text() == "1"
        with page.expect_response("**/api/trace"):
            page.locator("#noise").fill("0.5")
        page.wait_for_selector(".varied")
        assert "of 8 draws agree" in lstm.locator(".varied").inner_text()
        assert lstm.locator(".bars .range").count() == 2
        assert page.locator("#shown option").count() == 9


def test_two_runs_are_compared_on_one_input(browser: Any, server: Served) -> None:
    with opened(browser, server.url) as page:
        type_in(page, "110")
        assert page.locator(".panel h2").all_inner_texts() == ["automaton", "lstm"]
        page.locator("#step").fill("1")
        titles = page.locator(".panel .left section:first-child h3").all_inner_texts()
        assert all(title.startswith("After 1 symbol: ") for title in titles)
        assert page.locator(".panel canvas[aria-label*='at step 1']").count() == page.locator(".panel canvas").count()


def test_edits_neighbours_and_fragile_inputs_are_asked_for(browser: Any, server: Served) -> None:
    with opened(browser, server.url) as page:
        type_in(page, "1100100")
        page.click("#tool-disturb button.main")
        page.wait_for_selector("#tool-disturb table")
        assert "single edits" in page.locator("#tool-disturb .result p").first.inner_text()
        other = page.locator("#tool-disturb tbody .quiet").first
        text = other.inner_text()
        other.click()
        assert page.locator("#text").input_value() == text
        page.locator("#tab-disturb").focus()
        page.keyboard.press("ArrowRight")
        page.click("#tool-nearest button.main")
        page.wait_for_selector("#tool-nearest table")
        assert page.locator("#tool-nearest tbody tr").count() == 10
        page.click("#tab-fragile")
        page.click("#tool-fragile button.main")
        assert "move the slider" in page.locator("#tool-fragile .trouble").inner_text()
        page.locator("#noise").fill("0.8")
        page.click("#tool-fragile button.main")
        page.wait_for_selector("#tool-fragile table")
        assert page.locator("#tool-fragile tbody tr").count() == 10


def test_a_symbol_that_is_not_known_is_refused_in_place(browser: Any, server: Served) -> None:
    context = browser.new_context()
    page = context.new_page()  # the browser itself reports an answer of 422 in its console
    page.goto(server.url)
    page.wait_for_selector("body.ready")
    type_in(page, "01<img src=x onerror=alert(1)>")
    assert (
        page.locator(".panel .trouble").first.inner_text().startswith("text, symbol 3: got '<', wanted one of '0', '1'")
    )
    type_in(page, "01")
    assert page.locator(".panel .trouble:visible").count() == 0
    context.close()


def test_values_can_be_read_without_the_pictures(browser: Any, server: Served) -> None:
    with opened(browser, server.url) as page:
        type_in(page, "01")
        page.locator("summary").first.click()
        page.locator("details").first.locator("tbody tr").nth(6).wait_for()  # opening is an event of its own
        unnamed = """() => [...document.querySelectorAll('button, input, select, canvas, [role=region]')]
            .filter(each => each.offsetParent && !each.getAttribute('aria-label') && !each.labels?.length)
            .filter(each => !each.textContent.trim()).length"""
        assert page.evaluate(unnamed) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_page_does_not_run_over(browser: Any, server: Served, scheme: str) -> None:
    with opened(browser, server.url, width=360, scheme=scheme) as page:
        type_in(page, "1100100110010011001001100100")
        page.click("#tool-disturb button.main")
        page.wait_for_selector("#tool-disturb table")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_what_is_typed_is_text_for_every_kind(browser: Any, runs: dict[str, Path]) -> None:
    """A text classifier and a tagger: marks in the input stay marks, and a strange word is underlined."""
    with served([runs["texts"], runs["tagger"]], "--examples", "30") as found, opened(browser, found.url) as page:
        word = "<script>window.broken=1</script><img/src=x/onerror=alert(1)>"
        type_in(page, f"the film {word}")
        assert page.locator("script").count() == 1
        assert page.locator("main img").count() == 0
        assert page.evaluate("window.broken") is None
        tagged = page.locator(".panel").nth(1)
        assert word in tagged.locator("table").first.inner_text()
        assert page.locator("#tokens .strange").count() >= 1
        # One network begins with START and the other does not: both are at the first word.
        page.locator("#step").fill("1")
        titles = page.locator(".panel .left section:first-child h3").all_inner_texts()
        assert titles[0].startswith("After 1 word: ")
        assert titles[1].startswith("Tag of “the”: ")
        page.click("#tool-disturb button.main")
        page.wait_for_selector("#tool-disturb table")
        assert page.locator("main img").count() == 0
