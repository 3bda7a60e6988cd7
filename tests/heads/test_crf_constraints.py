"""What the schemes of tags allow, against a grammar of whole sequences."""

from __future__ import annotations

import itertools
import re

import pytest
import torch

from statewise.errors import ArgumentError, DtypeError, ShapeError
from statewise.heads import Constraints

# Whole sequences of tags as words: lower case letters for type P, upper case for type L.
SPANS = {"iob2": "{b}{i}*", "bioes": "{s}|{b}{i}*{e}"}
NAMES = {
    "iob2": ["O", "B-P", "I-P", "B-L", "I-L"],
    "iob1": ["O", "B-P", "I-P", "B-L", "I-L"],
    "bioes": ["O", "B-P", "I-P", "E-P", "S-P", "B-L", "S-L"],
}


def word(path: tuple[str, ...]) -> str:
    return "".join("o" if name == "O" else name[0].lower() if name.endswith("P") else name[0] for name in path)


def valid(path: tuple[str, ...], scheme: str) -> bool:
    if scheme == "iob1":
        return not re.search(r"(?<![bi])b|(?<![BI])B", word(path))  # B only right after a span of its type
    spans = [SPANS[scheme].format(**dict(zip("bies", letters, strict=True))) for letters in ("bies", "BIES")]
    return re.fullmatch(f"(o|{'|'.join(spans)})*", word(path)) is not None


@pytest.mark.parametrize("scheme", ["iob2", "iob1", "bioes"])
def test_a_scheme_allows_exactly_its_sequences(scheme: str) -> None:
    names = NAMES[scheme]
    rules = Constraints.of_tags(names, scheme)
    assert rules.start is not None
    assert rules.end is not None
    for length in (1, 2, 3, 4):
        for path in itertools.product(range(len(names)), repeat=length):
            steps = all(bool(rules.allowed[one, other]) for one, other in itertools.pairwise(path))
            found = bool(rules.start[path[0]]) and steps and bool(rules.end[path[-1]])
            assert found == valid(tuple(names[tag] for tag in path), scheme), path


@pytest.mark.parametrize(
    ("names", "scheme"),
    [
        (["O", "E-P"], "iob2"),
        (["O", "BI-P"], "iob2"),
        (["O", "B"], "iob2"),
        (["O", "B-"], "bioes"),
        (["O", "O-P"], "bioes"),
        (["PER"], "iob1"),
        ([""], "iob1"),
    ],
)
def test_names_that_the_scheme_does_not_have_are_refused(names: list[str], scheme: str) -> None:
    with pytest.raises(ArgumentError, match=f"of_tags.names: got {names[-1]!r}, wanted .* the scheme is {scheme}"):
        Constraints.of_tags(names, scheme)


def test_names_twice_none_or_of_no_known_scheme_are_refused() -> None:
    for names in (["O", "O"], []):
        with pytest.raises(ArgumentError, match="names, each of them once"):
            Constraints.of_tags(names)
    with pytest.raises(ArgumentError, match="wanted one of iob2, iob1, bioes"):
        Constraints.of_tags(["O"], "bilou")


def test_what_was_given_can_change_later_without_effect() -> None:
    allowed = torch.ones(2, 2, dtype=torch.bool)
    rules = Constraints(allowed)
    allowed.zero_()
    assert bool(rules.allowed.all())
    assert rules.tags == 2
    with pytest.raises(AttributeError):
        rules.allowed = allowed  # type: ignore[misc]


@pytest.mark.usefixtures("as_users_have_it")
def test_tensors_of_another_kind_are_refused() -> None:
    with pytest.raises(DtypeError, match=r"Constraints\.allowed: got torch.float32"):
        Constraints(torch.ones(2, 2))
    with pytest.raises(ShapeError, match=r"Constraints\.allowed: got \(2, 3\)"):
        Constraints(torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(ShapeError, match=r"Constraints\.end: got \(3,\)"):
        Constraints(torch.ones(2, 2, dtype=torch.bool), end=torch.ones(3, dtype=torch.bool))
