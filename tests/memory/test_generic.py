from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from statewise.errors import ArgumentError
from statewise.memory.generic import generic_rank
from statewise.memory.primes import PRIMES
from statewise.memory.sampled import sampled_rank

SMALL: dict[str, Any] = {"inputs": 3, "width": 2, "steps": 4, "depth": 2}


@pytest.mark.parametrize("backend", ["flint", "numpy", "auto"])
@pytest.mark.parametrize("start", ["ones", "drawn"])
@pytest.mark.parametrize("prime", [PRIMES[0], PRIMES[5], 1048583])
def test_the_rank_does_not_depend_on_how_it_is_found(backend: str, start: str, prime: int) -> None:
    found = generic_rank(**SMALL, backend=backend, start=start, primes=[prime], seed=7)
    assert (found.rank, found.proved, found.primes) == (6, True, (prime,))


def test_the_sharper_bound_proves_what_the_state_bound_does_not() -> None:
    found = generic_rank(inputs=4, width=2, steps=8, depth=3, seed=10)
    assert (found.rank, found.upper, found.proved) == (106, 106, True)
    assert (found.found, found.primes, found.seeds) == ((106,), PRIMES[:1], (10,))
    assert found.failure_probability == 0


def test_an_empty_half_has_rank_one_however_long_the_other_is() -> None:
    for split in (0, 1000):
        found = generic_rank(inputs=5, width=5, steps=1000, depth=3, split=split)
        assert (found.rank, found.proved) == (1, True)
    assert [generic_rank(inputs=3, width=3, steps=1, depth=2, split=split).rank for split in (None, 0, 1)] == [1] * 3


def test_one_symbol_needs_no_run_however_long_the_sequence_is() -> None:
    found = generic_rank(inputs=1, width=3, steps=10_000, depth=2)
    assert (found.rank, found.proved, found.found) == (1, True, ())


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"steps": 5}, "give split"),
        ({"steps": 200}, "shallow_rank"),
        ({"inputs": 0}, "at least 1"),
        ({"width": 0}, "at least 1"),
        ({"depth": 0}, "at least 1"),
        ({"runs": 0}, "at least 1"),
        ({"start": "zeros"}, "ones, drawn"),
        ({"backend": "sage"}, "flint"),
        ({"primes": [2**31 - 3]}, "prime"),
        ({"primes": [65537]}, "prime"),
        ({"primes": []}, "at least one prime"),
        ({"split": 9}, "from 0 to 4"),
        ({"seed": -1}, "seed"),
    ],
)
def test_what_cannot_be_answered_is_refused(wrong: dict[str, Any], word: str) -> None:
    arguments: dict[str, Any] = {**SMALL, **wrong}
    with pytest.raises(ArgumentError, match=word):
        generic_rank(**arguments)


def test_a_rank_is_a_record_that_can_be_written() -> None:
    fields = dataclasses.asdict(generic_rank(**SMALL))
    assert {"rank", "upper", "primes", "seeds", "found", "failure_probability", "seconds"} <= set(fields)


def test_one_step_and_one_sample_are_singular() -> None:
    assert "Start of 1 step has" in generic_rank(inputs=2, width=2, steps=2, depth=2).sentence
    lone = sampled_rank(inputs=3, width=3, steps=8, depth=2, samples=1)
    assert "the table of 1 sample could" in lone.sentence


def test_bounds_of_thousands_of_digits_are_told_in_short() -> None:
    found = dataclasses.replace(generic_rank(inputs=2, width=2, steps=2, depth=2), upper=2**20_000)
    assert "and at most about 3.98e6020" in found.sentence
    assert "upper bound  about 3.98e6020" in found.describe()
    assert "at most 12;" in dataclasses.replace(found, upper=12).sentence


def test_sizes_beyond_the_memory_are_refused_at_once() -> None:
    with pytest.raises(ArgumentError, match=r"generic_rank\.width: got 100,000 channels"):
        generic_rank(inputs=2, width=100_000, steps=4, depth=2)
    with pytest.raises(ArgumentError, match=r"3\^500000 x 3\^500000 entries.*another question: .* continuous inputs"):
        generic_rank(inputs=3, width=3, steps=10**6, depth=2)
    with pytest.raises(ArgumentError, match=r"generic_rank\.steps: got 0"):
        generic_rank(inputs=3, width=3, steps=0, depth=2)
