"""What the scripts that make the pictures share: a browser, and how a photograph is kept small.

The pictures need chromium, playwright and Pillow, which the extra ``test`` brings along (but for chromium itself).
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PICTURES = Path(__file__).resolve().parent
STATEWISE = (sys.executable, "-m", "statewise")
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
OPTIONS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]


@contextmanager
def browser() -> Iterator[Any]:
    """A browser for as long as it is needed."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=shutil.which("chromium"), args=OPTIONS)
        try:
            yield started
        finally:
            started.close()


@contextmanager
def opened(started: Any, url: str, *, width: int, height: int, scheme: str = "light") -> Iterator[Any]:
    """A page in a window of its own.

    Args:
        started: the browser.
        url: of the page.
        width: of the window, in pixels.
        height: of the window, in pixels.
        scheme: ``light`` or ``dark``.
    """
    context = started.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    try:
        page = context.new_page()
        page.goto(url)
        yield page
    finally:
        context.close()


def keep(photograph: bytes, name: str, *, colours: int = 160) -> None:
    """Write a photograph beside this file, with few enough colours to be small.

    Args:
        photograph: as the browser takes it, a PNG of all colours.
        name: of the file.
        colours: how many are left.
    """
    from PIL import Image

    taken = Image.open(io.BytesIO(photograph)).convert("RGB")
    taken.quantize(colours).save(PICTURES / name, optimize=True)
