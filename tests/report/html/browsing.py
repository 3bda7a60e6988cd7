"""A page in a real browser, without a network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


@dataclass
class Visit:
    """A page that is open, and what happened to it."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@contextmanager
def browser() -> Iterator[Any]:
    """A browser; the test is skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium here")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=program, args=_ARGUMENTS.split())
        try:
            yield opened
        finally:
            opened.close()


@contextmanager
def visit(opened: Any, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> Iterator[Visit]:
    """Open a file, as by a double click, with no way to the network."""
    scheme = "dark" if dark else "light"
    context = opened.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, offline=True)
    page = context.new_page()
    seen = Visit(page)
    page.on("console", lambda message: seen.said.append(message.text))
    page.on("pageerror", lambda error: seen.said.append(str(error)))
    page.on("request", lambda request: seen.asked.append(request.url))
    page.goto(path.resolve().as_uri())
    try:
        yield seen
    finally:
        context.close()
