"""Make the pictures of docs/explore.md again: train two small networks, serve them, and photograph the page.

Run it in the root of the checkout: ``python docs/pictures/make_explorer.py``. It needs chromium, playwright and Pillow.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from camera import STATEWISE, browser, keep, opened

WORD = "110010001"


def main() -> None:
    """Make all pictures."""
    with tempfile.TemporaryDirectory() as folder:
        runs = train(Path(folder))
        with browser() as started:
            with served(runs[:1]) as url:
                photograph(started, url, "explorer-light.png", height=1000)
            with served(runs) as url:
                photograph(started, url, "explorer-dark.png", height=1180, scheme="dark", noise="0.3")
                photograph(started, url, "explorer-phone.png", height=1000, width=390)


def train(folder: Path) -> list[Path]:
    """An automaton and an LSTM of Tomita's fourth language."""
    runs = {"automaton": "--automaton --seed 3", "lstm": "--cell lstm --hidden 16 --centroids 10 --epochs 4"}
    for name, options in runs.items():
        command = [*STATEWISE, "train", "classify", "--data", "tomita:4", *options.split(), "--quiet"]
        subprocess.run([*command, "--out", str(folder / name)], check=True, stdout=subprocess.DEVNULL)
    return [folder / name for name in runs]


@contextmanager
def served(runs: list[Path]) -> Iterator[str]:
    """The address of the page for as long as it is needed."""
    command = [*STATEWISE, "explore", *map(str, runs), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


def photograph(
    started: Any, url: str, name: str, *, height: int, width: int = 1180, scheme: str = "light", noise: str = "0"
) -> None:
    """One picture of the page at the sixth step of a word."""
    with opened(started, url, width=width, height=height, scheme=scheme) as page:
        page.wait_for_selector("body.ready")
        page.fill("#text", WORD)
        page.locator("#noise").fill(noise)
        page.wait_for_timeout(1500)
        page.locator("#step").fill("6")
        page.locator("#step").blur()
        page.wait_for_timeout(400)
        keep(page.screenshot(), name)


if __name__ == "__main__":
    main()
