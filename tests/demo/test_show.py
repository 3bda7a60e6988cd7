"""The whole demonstration: what it trains, proves and measures, and the page that it writes."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from statewise import demo
from statewise.demo import Shown
from statewise.demo.language import LENGTHS
from statewise.demo.networks import NETWORKS
from statewise.demo.remembering import remembered
from statewise.errors import ArgumentError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Shown, str, Path]:
    """A short demonstration: what it came to, what it printed, and its page."""
    page = tmp_path_factory.mktemp("demo") / "report.html"
    console = Console(file=io.StringIO(), width=100)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    shown = demo.run(steps=3, epochs=2, out=page, console=console)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.get_num_threads() == threads
    assert isinstance(console.file, io.StringIO)
    return shown, console.file.getvalue(), page


def test_the_state_regularized_network_has_learnt_the_rule_and_that_is_proved(made: tuple[Shown, str, Path]) -> None:
    shown, printed, _ = made
    learnt = shown.learnt
    assert learnt.right["state-regularized"] == (1.0,) * len(LENGTHS)
    assert learnt.language.minimal is not None
    assert len(learnt.automaton.machine) == len(learnt.language.minimal) == 3
    assert learnt.verified.proven
    assert learnt.verified.proof is not None
    assert learnt.verified.proof.sentence in printed
    certificate, other = learnt.trust
    assert 0 < certificate.value < 0.02
    assert other.vacuous
    assert certificate.sentence in printed


def test_the_halves_of_words_have_the_rank_of_the_language(made: tuple[Shown, str, Path]) -> None:
    """A count modulo 3: the table is that of the language itself, whose rank is three."""
    regular, plain = made[0].remembered
    language = made[0].learnt.language
    truth = [[float(language.run(first + second)) for second in regular.halves] for first in regular.halves]
    assert np.linalg.matrix_rank(np.array(truth)) == 3
    np.testing.assert_allclose(regular.table.numpy(), truth, atol=0.05)
    assert regular.spectrum.rank(1e-6) == 3
    assert plain.table.shape == regular.table.shape
    torch.testing.assert_close(remembered(made[0].learnt.plain).table, plain.table)


class Texts(HTMLParser):
    """All text of a page, and what its tags refer to."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.links, self.tags = "", list[str](), list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_tells_all_of_it_and_needs_no_network(made: tuple[Shown, str, Path]) -> None:
    shown, printed, page = made
    assert str(page) in printed
    seen = Texts()
    seen.feed(page.read_text(encoding="utf-8"))
    words = " ".join(seen.text.split())
    for question in ("What has it learnt?", "How far can it be trusted?", "How much does it remember?"):
        assert question in words
    assert shown.learnt.trust[0].sentence in words
    assert shown.rank.sentence in words
    for outcome in shown.outcomes:
        assert outcome.name in words
        assert f"{outcome.test.nll:.3f}" in words
    assert [outcome.name for outcome in shown.outcomes] == list(NETWORKS)
    assert seen.tags.count("svg") >= 8
    assert "script" not in seen.tags
    assert all(link.startswith("#") for link in seen.links)
    assert "@inproceedings" in seen.text


def test_nothing_for_a_terminal_reaches_a_file(made: tuple[Shown, str, Path]) -> None:
    assert not re.search(r"[\x1b\r]", made[1])


def test_a_file_that_is_no_page_of_ours_is_kept(tmp_path: Path) -> None:
    mine = tmp_path / "report.html"
    mine.write_text("my own notes", encoding="utf-8")
    with pytest.raises(ArgumentError, match="not a page of statewise"):
        demo.run(out=mine, console=Console(file=io.StringIO()))
    assert mine.read_text(encoding="utf-8") == "my own notes"


@pytest.mark.parametrize(("name", "value"), [("seed", -1), ("seed", 2**63), ("steps", 0), ("steps", -3), ("epochs", 0)])
def test_bad_settings_are_refused_by_name(name: str, value: int, tmp_path: Path) -> None:
    options: dict[str, Any] = {name: value, "out": tmp_path / "page.html"}
    with pytest.raises(ArgumentError, match=rf"demo\.{name}: got"):
        demo.run(**options)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_plain_network_learns_the_words_and_not_the_rule(tmp_path: Path) -> None:
    """What the page says of it, over three seeds."""
    for seed in range(3):
        shown = demo.run(seed=seed, steps=1, out=tmp_path / "page.html", console=Console(file=io.StringIO()))
        assert shown.learnt.right["state-regularized"] == (1.0,) * len(LENGTHS)
        assert shown.learnt.plain_right > 0.95
        assert shown.learnt.right["plain LSTM"][-1] < 0.9
