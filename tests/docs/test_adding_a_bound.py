"""The worked example of docs/adding-a-bound.md runs as it is printed, and the bound that it adds keeps the contract."""

from __future__ import annotations

import doctest
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from markdown_it import MarkdownIt

from contracts.bounds import BoundContract
from statewise.bounds import BOUNDS, Bound, kl_inverse

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adding-a-bound.md"


@cache
def added() -> ModuleType:
    """The blocks of the page, run from top to bottom as one module."""
    module = ModuleType("adding_a_bound")
    sys.modules[module.__name__] = module  # dataclasses look a class up in the module it names
    for token in MarkdownIt().parse(PAGE.read_text(encoding="utf-8")):
        if token.type == "fence" and token.info.strip() == "python" and token.map:
            # The blank lines make a traceback name the line of the page.
            source = "\n" * (token.map[0] + 1) + token.content
            exec(compile(source, str(PAGE), "exec", dont_inherit=True), module.__dict__)
    return module


class TestTheWorkedBound(BoundContract):
    name, scale_free = "kl_bernstein", True

    @property
    def bound(self) -> Bound:
        made: Bound = added().KL_BERNSTEIN
        return made

    def test_the_class_of_the_page_says_the_same(self) -> None:
        printed = added().TestKlBernstein
        assert issubclass(printed, BoundContract)
        assert (printed.name, printed.scale_free) == (self.name, self.scale_free)
        assert printed.bound is self.bound

    def test_the_catalogue_does_not_have_it_yet(self) -> None:
        """Or the page would show how to add what is there."""
        assert self.name not in BOUNDS

    def test_it_is_never_below_what_it_is_derived_from_and_at_most_twice_as_far_from_the_risk(self) -> None:
        for risk in (0.0, 1e-9, 0.003, 0.1, 0.5):
            for budget in (1e-12, 1e-6, 1e-3, 0.05):
                searched, closed = kl_inverse(risk, budget), added().bernstein(risk, budget)
                assert searched <= closed * (1 + 1e-12)
                assert closed - risk <= 2.1 * (searched - risk) + 1e-9


def test_the_doctests_of_the_page_hold() -> None:
    found = doctest.DocTestFinder(recurse=False).find(added().bernstein, globs=vars(added()))
    runner = doctest.DocTestRunner()
    assert [runner.run(each).failed for each in found] == [0]
    assert runner.tries == 1
