"""Regular expressions: Python's own matcher is the judge."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.machines import TOMITA, tomita
from statewise.automata import all_words, cardinality, from_regex
from statewise.errors import ArgumentError

WORDS = [str(word) for word in all_words("ab.", 5)]


def patterns() -> st.SearchStrategy[str]:
    atoms = st.sampled_from(["a", "b", r"\.", ".", "[ab]", "[^a]", "[a-b]", "[^.]", "[.b]", r"[\.a]", "()", "(?:a|)"])
    counts = st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{,2}", "{0,1}", "{2,3}", "{0}"])
    return st.recursive(
        atoms,
        lambda part: st.one_of(
            st.lists(part, max_size=3).map("".join),
            st.lists(part, min_size=2, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
            st.tuples(part, counts).map(lambda pair: f"({pair[0]}){pair[1]}"),
        ),
        max_leaves=6,
    )


@settings(max_examples=150)
@given(patterns())
def test_a_machine_accepts_what_pythons_fullmatch_matches(pattern: str) -> None:
    machine = from_regex(pattern, "ab.")
    judge = re.compile(pattern)
    expected = [int(judge.fullmatch(word) is not None) for word in WORDS]
    assert machine.classify(WORDS).tolist() == expected
    assert machine == machine.minimise()


@pytest.mark.parametrize(
    ("pattern", "accepted", "rejected"),
    [
        ("", [""], ["a"]),
        ("|a", ["", "a"], ["aa"]),
        ("a|b|", ["a", "b", ""], ["ab"]),
        ("[]a]", ["]", "a"], ["", "a]"]),
        ("[a-]", ["a", "-"], ["", "a-"]),
        (r"\(\)\[\]\{\}\*\+\?\|\.\\\^\$", [r"()[]{}*+?|.\^$"], [""]),
        ("]}", ["]}"], ["]"]),
        (r"a\nb", ["a\nb"], ["anb"]),
        (r"[\t,]", ["\t", ","], ["t"]),
        ("(?:ab){2}", ["abab"], ["ab", "ababab"]),
        ("a{12}", ["a" * 12], ["a" * 11, "a" * 13]),
        ("é+", ["éé"], ["e"]),
    ],
)
def test_the_corners_of_the_syntax(pattern: str, accepted: list[str], rejected: list[str]) -> None:
    alphabet = sorted(set("".join(accepted + rejected)))
    machine = from_regex(pattern, alphabet)
    assert all(machine.accepts(word) for word in accepted)
    assert not any(machine.accepts(word) for word in rejected)
    assert all(re.fullmatch(pattern, word) for word in accepted)


@pytest.mark.parametrize(
    ("number", "pattern"),
    [(1, "1*"), (2, "(10)*"), (4, "(0{0,2}1)*0{0,2}"), (5, "(00|11|(01|10)(00|11)*(01|10))*"), (7, "0*1*0*1*")],
)
def test_tomitas_languages_from_their_expressions_are_the_tables(number: int, pattern: str) -> None:
    assert number in TOMITA
    assert from_regex(pattern, "01") == tomita(number).canonical()


@pytest.mark.parametrize(
    ("pattern", "position", "text"),
    [
        ("a(b", 1, r"a '\(' that is never closed"),
        ("a)b", 1, r"a '\)' that closes nothing"),
        ("a[b", 1, r"a '\[' that is never closed"),
        ("[b-a]", 1, "a range that is none"),
        ("*a", 0, r"'\*' with nothing before it to repeat"),
        ("a|+b", 2, r"'\+' with nothing before it"),
        ("a**", 2, "a repeat of a repeat"),
        ("a+?", 2, "a repeat of a repeat"),
        ("a{", 1, "a '{' that begins no count"),
        ("a{b}", 1, "a '{' that begins no count"),
        ("a{,}", 1, "a '{' that begins no count"),
        ("a{3,2}", 1, "at least 3 and at most 2 times"),
        ("a{2000}", 1, "a count over 1000"),
        ("ab\\", 2, "a backslash at the end"),
        (r"a\q", 1, r"the escape '\\q'"),
        ("^a", 0, r"the anchor '\^'"),
        ("a$", 1, r"the anchor '\$'"),
        ("(?=a)", 0, r"an extension '\(\?'"),
        ("(" * 41 + ")" * 41, 40, "parentheses deeper than 40"),
        ("abc", 2, "'c', which is not in the alphabet"),
        ("a[bc]", 3, "'c', which is not in the alphabet"),
    ],
)
def test_an_error_points_at_the_place(pattern: str, position: int, text: str) -> None:
    with pytest.raises(ArgumentError, match=rf"position {position}: got {text}") as caught:
        from_regex(pattern, "ab")
    lines = str(caught.value).splitlines()
    assert lines[-2] == f"    {pattern}"
    assert lines[-1] == " " * (4 + position) + "^"


@pytest.mark.parametrize("pattern", [".", "[^a]", r"\d"])
def test_what_means_everything_else_needs_an_alphabet(pattern: str) -> None:
    with pytest.raises(ArgumentError, match="without an alphabet"):
        from_regex(pattern)


def test_without_an_alphabet_the_symbols_are_those_of_the_pattern() -> None:
    assert from_regex("cb*[x-z]").alphabet == ("b", "c", "x", "y", "z")
    assert from_regex("").alphabet == ()


def test_ranges_and_classes_take_from_the_alphabet_what_it_has() -> None:
    assert from_regex("[a-z]", "ab1").classify(["a", "b", "1"]).tolist() == [1, 1, 0]
    assert from_regex(r"\d\W", "1_-").classify(["1-", "1_", "--"]).tolist() == [1, 0, 0]
    assert cardinality(from_regex("[^ab]", "ab")) == 0


def test_an_alphabet_of_long_symbols_is_refused() -> None:
    with pytest.raises(ArgumentError, match="one character each"):
        from_regex("a", ("a", "go"))


def test_counts_that_multiply_stop_with_an_error_and_those_of_nothing_are_nothing() -> None:
    with pytest.raises(ArgumentError, match="more than 20000 places"):
        from_regex("((a{1000}){1000}){1000}")
    assert from_regex("((((){1000}){1000}){1000}){,1000}", "a") == from_regex("", "a")
