"""Language operations: by their meaning on all short words, and against automata-lib."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from automata.fa.nfa import NFA
from hypothesis import given, settings

from contracts.machines import machines, tomita
from statewise.automata import (
    MooreMachine,
    all_words,
    cardinality,
    complement,
    concatenation,
    difference,
    equivalent,
    from_automata_lib,
    from_regex,
    intersection,
    is_empty,
    is_finite,
    is_subset,
    left_quotient,
    over,
    prefixes,
    product,
    reversal,
    right_quotient,
    shortest_word,
    star,
    suffixes,
    symmetric_difference,
    to_automata_lib,
    union,
    words_of,
)
from statewise.automata.operations import constant
from statewise.errors import ArgumentError, LengthError

AB = ("a", "b")
PAIR = (machines(states=4, alphabet=AB), machines(states=4, alphabet=AB))
WORDS = [str(word) for word in all_words(AB, 6)]


def language(machine: MooreMachine) -> set[str]:
    return {word for word, accepted in zip(WORDS, machine.classify(WORDS).tolist(), strict=True) if accepted}


@settings(max_examples=100)
@given(*PAIR)
def test_boolean_operations_are_those_of_sets_and_of_automata_lib(a: MooreMachine, b: MooreMachine) -> None:
    one, other = language(a), language(b)
    theirs_a, theirs_b = to_automata_lib(a), to_automata_lib(b)
    for ours, expected, theirs in (
        (a | b, one | other, theirs_a | theirs_b),
        (a & b, one & other, theirs_a & theirs_b),
        (a - b, one - other, theirs_a - theirs_b),
        (a ^ b, one ^ other, theirs_a ^ theirs_b),
        (~a, set(WORDS) - one, ~theirs_a),
    ):
        assert language(ours) == expected
        assert ours == ours.minimise()
        assert equivalent(ours, from_automata_lib(theirs, alphabet=AB))


def test_the_operators_are_the_named_functions() -> None:
    a, b = from_regex("a*", "ab"), from_regex(".b", "ab")
    assert (a | b, a & b, a - b, a ^ b, ~a) == (
        union(a, b),
        intersection(a, b),
        difference(a, b),
        symmetric_difference(a, b),
        complement(a),
    )


@settings(max_examples=100)
@given(*PAIR)
def test_rational_operations_are_those_of_automata_lib(a: MooreMachine, b: MooreMachine) -> None:
    nfa_a, nfa_b = (NFA.from_dfa(to_automata_lib(machine)) for machine in (a, b))
    for ours, theirs in (
        (concatenation(a, b), nfa_a + nfa_b),
        (star(a), nfa_a.kleene_star()),
        (reversal(a), nfa_a.reverse()),
        (right_quotient(a, b), nfa_a.right_quotient(nfa_b)),
        (left_quotient(a, b), nfa_a.left_quotient(nfa_b)),
    ):
        assert to_automata_lib(ours) == ours_as(theirs)


def ours_as(theirs: NFA) -> object:
    from automata.fa.dfa import DFA

    return DFA.from_nfa(theirs)


@given(*PAIR)
def test_concatenation_quotients_prefixes_and_suffixes_mean_what_they_say(a: MooreMachine, b: MooreMachine) -> None:
    one, other = language(a), language(b)
    short = [word for word in WORDS if len(word) <= 3]
    joined, ends, cut = concatenation(a, b), suffixes(a), prefixes(a)
    for word in short:
        assert joined.accepts(word) == any(word[:i] in one and word[i:] in other for i in range(len(word) + 1))
    # Four states: what completes a word to an accepted one need not be longer than three symbols.
    for word in short:
        assert cut.accepts(word) == any(word + rest in one for rest in short)
        assert ends.accepts(word) == any(rest + word in one for rest in short)


@given(*PAIR)
def test_the_laws_of_languages_hold(a: MooreMachine, b: MooreMachine) -> None:
    assert ~(a | b) == ~a & ~b
    assert a - b == a & ~b
    assert ~~a == a.minimise()
    assert reversal(reversal(a)) == a.minimise()
    assert star(star(a)) == star(a)
    assert reversal(concatenation(a, b)) == concatenation(reversal(b), reversal(a))
    assert is_subset(a & b, a)
    assert is_subset(a, b) == is_empty(a - b)


@given(machines(states=6, alphabet=AB))
def test_questions_get_the_answers_of_automata_lib(machine: MooreMachine) -> None:
    theirs = to_automata_lib(machine)
    assert is_empty(machine) == theirs.isempty()
    assert is_finite(machine) == theirs.isfinite()
    if is_finite(machine):
        assert cardinality(machine) == len(theirs)
        assert len(list(words_of(machine))) == len(theirs)
    else:
        assert cardinality(machine) == math.inf
    shortest = shortest_word(machine)
    assert (shortest is None) == is_empty(machine)
    if shortest is not None:
        assert len(shortest) == theirs.minimum_word_length()
        assert shortest == next(words_of(machine))


@pytest.mark.parametrize(
    ("pattern", "words"), [("", 1), ("[]", 0), ("a{5}", 1), ("(a|b){0,4}", 31), ("ab?c?", 4), ("a*", math.inf)]
)
def test_known_languages_have_the_known_number_of_words(pattern: str, words: float) -> None:
    if pattern == "[]":
        machine = from_regex("a") - from_regex("a")
    else:
        machine = from_regex(pattern)
    assert cardinality(machine) == words


def test_counts_are_exact_where_floats_are_not() -> None:
    assert from_regex("[ab]*").count(200) == (0, 2**200)
    rejected, accepted = tomita(4).count(300)
    assert rejected + accepted == 2**300


def test_drawn_words_are_evenly_drawn() -> None:
    machine = from_regex("a*b*c*")
    words = machine.sample("accept", 4, seed=7, number=6000)
    names, counts = np.unique(words, return_counts=True)
    assert sorted(names) == sorted(words_of(machine, min_length=4, max_length=4))
    expected = 6000 / len(names)
    assert ((counts - expected) ** 2 / expected).sum() < 40  # chi-square of 14 degrees of freedom: p < 0.0003
    assert words == machine.sample("accept", 4, seed=7, number=6000)
    assert words != machine.sample("accept", 4, seed=8, number=6000)


def test_no_word_of_that_length_is_an_error_that_names_it() -> None:
    with pytest.raises(LengthError, match="no word of length 3 in class 'accept'"):
        from_regex("(ab)*").sample("accept", 3, seed=0)


def test_products_of_many_classes_combine_as_asked() -> None:
    a = MooreMachine(
        alphabet=("x",), transitions=np.array([[1], [2], [0]]), outputs=np.array([0, 1, 2]), classes=("0", "1", "2")
    )
    b = MooreMachine(
        alphabet=("x",), transitions=np.array([[1], [0]]), outputs=np.array([0, 1]), classes=("even", "odd")
    )
    both = product(a, b, lambda one, other: 2 * one + other, classes=tuple("abcdef"))
    assert [both.run("x" * length) for length in range(6)] == [2 * (n % 3) + n % 2 for n in range(6)]
    assert both.labels[1] == "1,1"


def test_operations_of_languages_need_two_classes_and_one_alphabet() -> None:
    three = MooreMachine(alphabet=("a",), transitions=np.array([[0]]), outputs=np.array([0]), classes=("x", "y", "z"))
    with pytest.raises(ArgumentError, match="3 classes"):
        three | three
    with pytest.raises(ArgumentError, match="one alphabet"):
        from_regex("a") | from_regex("b")
    with pytest.raises(ArgumentError, match="all of the machine's symbols"):
        over(from_regex("ab"), "a")


def test_names_of_classes_are_kept() -> None:
    named = replace(from_regex("a*b"), classes=("no", "yes"))
    for machine in (~named, named | named, star(named), reversal(named), concatenation(named, named), prefixes(named)):
        assert machine.classes == ("no", "yes")


def test_a_machine_that_would_explode_stops_with_an_error() -> None:
    with pytest.raises(ArgumentError, match="more than 100000 states"):
        from_regex("[ab]*a[ab]{40}")


def in_other_order(machine: MooreMachine) -> MooreMachine:
    """The same classes for all words, numbered the other way round."""
    return replace(machine, outputs=1 - machine.outputs, classes=machine.classes[::-1])


@given(*PAIR)
def test_classes_in_another_order_are_the_same_classes(a: MooreMachine, b: MooreMachine) -> None:
    turned = in_other_order(b)
    for operation in (union, intersection, difference, symmetric_difference, concatenation, left_quotient):
        assert operation(a, turned) == operation(a, b)
    assert right_quotient(a, turned) == right_quotient(a, b)
    assert is_subset(a, turned) == is_subset(a, b)
    assert equivalent(b, turned)


def test_classes_of_other_names_are_taken_by_their_places() -> None:
    a, b = from_regex("a*", "ab"), from_regex("b*", "ab")
    assert a | replace(b, classes=("no", "yes")) == a | b


def test_a_product_knows_the_classes_of_both_machines_by_their_own_numbers() -> None:
    a, turned = from_regex("a*", "ab"), in_other_order(from_regex("b*", "ab"))
    both = product(a, turned, lambda one, other: 2 * one + other, classes=("0", "1", "2", "3"))
    assert [both.run(word) for word in ("", "a", "b", "ab")] == [2, 3, 0, 1]


def test_a_constant_machine_gives_every_word_the_class() -> None:
    machine = constant(tomita(4), "reject")
    assert (len(machine), machine.classes) == (1, ("reject", "accept"))
    assert machine.classify(["", "0", "11"]).tolist() == [0, 0, 0]
