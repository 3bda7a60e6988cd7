"""Make the pictures of the README again: run the demonstration, and photograph the top of its page.

Run it in the root of the checkout: ``python docs/pictures/make_demo.py``, or with the name of a page that
``statewise demo`` has made already. It needs chromium, playwright and Pillow.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from camera import STATEWISE, browser, keep, opened

WIDTH = 1000
#: A page is read from top to bottom; a picture of it has the two figures side by side, and no more than fits.
ARRANGED = """
.page { display: block; max-width: none; padding: 1.6rem 2rem 1.2rem; }
.contents, .summary, h2, main details, main > section > p, footer, .skip { display: none; }
h1 { font-size: 1.9rem; margin: 0 0 .4rem; }
main > section:nth-of-type(n + 4) { display: none; }
main > section:nth-of-type(3) > :not(.note) { display: none; }
main > section:nth-of-type(2) { display: grid; grid-template-columns: 6fr 4fr; column-gap: 2.5rem; }
main > section:nth-of-type(2) > .note { grid-column: 1 / -1; }
.key-figures { margin: .8rem 0 1.2rem; }
figure { margin: 0 0 .4rem; min-width: 0; }
figure .scroll { overflow: visible; }
figure .caption { font-size: .85rem; }
figcaption { font-size: .9rem; }
figure svg { width: 100%; min-width: 0 !important; }
.note { margin: .6rem 0 0; font-size: .95rem; }
"""


def main() -> None:
    """Make both pictures."""
    with tempfile.TemporaryDirectory() as folder, browser() as started:
        page = Path(sys.argv[1]) if len(sys.argv) > 1 else demonstrated(Path(folder))
        for scheme in ("light", "dark"):
            photograph(started, page, scheme)


def demonstrated(folder: Path) -> Path:
    """The page of a demonstration."""
    page = folder / "report.html"
    subprocess.run([*STATEWISE, "demo", "--out", str(page)], check=True, stdout=subprocess.DEVNULL)
    return page


def photograph(started: Any, page: Path, scheme: str) -> None:
    """What the page says at a glance, both figures of what was learnt, the proof and the certificate."""
    with opened(started, page.resolve().as_uri(), width=WIDTH, height=700, scheme=scheme) as shown:
        shown.add_style_tag(content=ARRANGED)
        keep(shown.locator(".page").screenshot(), f"demo-{scheme}.png", colours=128)


if __name__ == "__main__":
    main()
