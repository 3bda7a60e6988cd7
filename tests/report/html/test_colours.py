"""The colours of the style sheet: enough contrast on both papers, and told apart by colour-blind readers."""

from __future__ import annotations

import itertools
import re
from importlib import resources

import numpy as np
import pytest

STYLE = resources.files("statewise.report.html").joinpath("page.css").read_text(encoding="utf-8")
#: Linear RGB as a person without one kind of cone sees it (Machado, Oliveira & Fernandes 2009, severity 1).
BLIND = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


def colours(scheme: str) -> dict[str, np.ndarray]:
    """The colours by name, in linear RGB; dark ones replace light ones."""
    light, dark = STYLE.split("@media screen and (prefers-color-scheme: dark)")[:2]
    source = light if scheme == "light" else light + dark.split("\n}\n")[0]
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", source))
    return {name: _linear(code) for name, code in found.items()}


def _linear(code: str) -> np.ndarray:
    share = np.array([int(code[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    """The ratio of WCAG 2."""
    bright, dim = sorted((float(colour @ [0.2126, 0.7152, 0.0722]) for colour in (one, other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_the_contrast_of_aa(scheme: str) -> None:
    named = colours(scheme)
    for ink, papers in {
        "ink": ("paper", "raised", "code", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"),
        "quiet": ("paper", "raised", "code"),
        "link": ("paper", "raised"),
        **dict.fromkeys(("holds", "care", "missing", "remark"), ("raised",)),
    }.items():
        for paper in papers:
            assert contrast(named[ink], named[paper]) >= 4.5, (ink, paper)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_have_the_contrast_of_graphics(scheme: str) -> None:
    named = colours(scheme)
    assert all(contrast(named[f"s{number}"], named["paper"]) >= 3 for number in range(6))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_in_a_map_can_be_read_on_every_step(scheme: str) -> None:
    named = colours(scheme)
    for step in range(10):
        ink = named["heat-high-ink" if step >= 6 else "heat-low-ink"]
        assert contrast(ink, named[f"heat-{step}"]) >= 4.5, step


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_steps_of_a_map_go_one_way_in_brightness(scheme: str) -> None:
    bright = [float(colours(scheme)[f"heat-{step}"] @ [0.2126, 0.7152, 0.0722]) for step in range(10)]
    assert bright == sorted(bright, reverse=scheme == "light")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", sorted(BLIND))
def test_the_first_four_lines_differ_for_the_colour_blind(scheme: str, kind: str) -> None:
    """By more than ten times what is just noticeable (CIE76 in L*a*b*)."""
    named = colours(scheme)
    seen = [_lab(np.clip(np.array(BLIND[kind]) @ named[f"s{number}"], 0, 1)) for number in range(4)]
    closest = min(float(np.linalg.norm(one - other)) for one, other in itertools.combinations(seen, 2))
    assert closest > 23


def _lab(linear: np.ndarray) -> np.ndarray:
    to_xyz = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
    )
    ratio = (to_xyz @ linear) / (to_xyz @ np.ones(3))
    curve = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * curve[1] - 16, 500 * (curve[0] - curve[1]), 200 * (curve[1] - curve[2])])
