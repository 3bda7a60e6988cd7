"""The worked examples of CONTRIBUTING.md run as they are printed, and what they add keeps the contracts."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import statewise
from contracts.cells import CellContract
from contracts.members import MEMBERS, Member
from contracts.passes import Case, assert_same, cases, few_examples, run
from contracts.transforms import StrengthContract
from statewise import Transform
from statewise.cells import Cell
from statewise.errors import ArgumentError
from statewise.transforms import Sizes
from support import needs_kernel

PAGE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"


@cache
def contributed() -> tuple[ModuleType, Member]:
    """The blocks of the page, run from top to bottom as one module, and the member that they register."""
    module = ModuleType("contributed")
    # Dataclasses and pickle look a class up in the module it names.
    sys.modules[module.__name__] = module
    with patch.dict(MEMBERS):  # the other tests do not see the new member
        for token in MarkdownIt().parse(PAGE.read_text(encoding="utf-8")):
            if token.type == "fence" and token.info.strip() == "python" and token.map:
                # The blank lines make a traceback name the line of the page.
                source = "\n" * (token.map[0] + 1) + token.content
                exec(compile(source, str(PAGE), "exec", dont_inherit=True), module.__dict__)
        return module, MEMBERS["UGRNN"]


@pytest.fixture(scope="module", autouse=True)
def page() -> None:
    """Run the page before all tests: if it fails, it fails once, and no property searches for a smaller failure."""
    contributed()


def test_the_blocks_of_the_page_run_in_order() -> None:
    """They define what the tests below ask the contracts of."""
    module, _ = contributed()
    assert issubclass(module.TestUGRNN, CellContract)
    assert module.TestUGRNN.cell == module.UGRNNCell()
    assert issubclass(module.TestLeak, StrengthContract)


class TestTheWorkedCell(CellContract):
    name = "UGRNN"

    @property
    def cell(self) -> Cell:  # type: ignore[override]
        made: Cell = contributed()[0].UGRNNCell()
        return made

    @property
    def member(self) -> Member:
        return contributed()[1]

    @few_examples
    @given(case=cases())
    def test_values_and_gradients_are_those_of_the_formula_for_all_sizes(self, case: Case) -> None:
        layer = self.member.build(case)
        assert_same(run(layer, case), self.member.by_hand(layer, case))

    @needs_kernel
    def test_without_code_in_the_kernel_the_plan_says_so(self) -> None:
        assert_left_to_the_reference(statewise.RecurrentLayer(self.cell, 3, 4), "it has no code for the cell UGRNN")


class TestTheWorkedTransform(StrengthContract):
    @property
    def printed(self) -> StrengthContract:
        """The class of the page, which says all that the contract asks."""
        made: StrengthContract = contributed()[0].TestLeak()
        return made

    @property
    def kind(self) -> type[Any]:  # type: ignore[override]
        return self.printed.kind

    def settings(self) -> st.SearchStrategy[dict[str, Any]]:
        return self.printed.settings()

    def silent(self) -> list[dict[str, Any]]:
        return self.printed.silent()

    def shapes(self, transform: Any, sizes: Sizes) -> list[tuple[int, ...]] | None:
        return self.printed.shapes(transform, sizes)

    def off_in_eval(self, transform: Any) -> bool:
        return self.printed.off_in_eval(transform)

    def leak(self, **options: float) -> Transform:
        made: Transform = contributed()[0].Leak(**options)
        return made

    def test_a_unit_goes_its_share_of_the_way(self, generator: torch.Generator) -> None:
        leaky = statewise.GRU(3, 4, transforms=self.leak(), dtype=torch.float64)
        plain = statewise.GRU(3, 4, dtype=torch.float64)
        plain.load_state_dict(leaky.state_dict(), strict=False)
        x, old = (torch.randn(1, 2, n, dtype=torch.float64, generator=generator) for n in (3, 4))
        leak = leaky.get_parameter("leak_l0")
        torch.nn.init.normal_(leak, generator=generator)
        torch.testing.assert_close(leaky(x, old)[0], old + leak.sigmoid() * (plain(x, old)[0] - old))

    def test_a_unit_that_goes_all_the_way_is_a_plain_one(self, generator: torch.Generator) -> None:
        leaky = statewise.GRU(3, 4, transforms=self.leak(), dtype=torch.float64)
        plain = statewise.GRU(3, 4, dtype=torch.float64)
        plain.load_state_dict(leaky.state_dict(), strict=False)
        torch.nn.init.constant_(leaky.get_parameter("leak_l0"), 50.0)
        x = torch.randn(5, 2, 3, dtype=torch.float64, generator=generator)
        torch.testing.assert_close(leaky(x)[0], plain(x)[0])

    @needs_kernel
    def test_without_code_in_the_kernel_the_plan_says_so(self) -> None:
        assert_left_to_the_reference(statewise.GRU(3, 4, transforms=self.leak()), "it has no code for Leak")

    def test_a_share_outside_its_range_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match=r"Leak.start: got 1.5, wanted a number above 0, at most 1"):
            self.leak(start=1.5)


def assert_left_to_the_reference(layer: statewise.RecurrentLayer, reason: str) -> None:
    """With a kernel or without: what it has no code for is the reason that lasts."""
    assert layer.plan(torch.zeros(2, 1, 3)) == statewise.Plan("reference", "loop", (f"cpu: {reason}",))
