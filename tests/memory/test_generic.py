from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from statewise.errors import ArgumentError
from statewise.memory.generic import generic_rank
from statewise.memory.primes import PRIMES

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
    assert generic_rank(inputs=3, width=3, steps=1, depth=2, split=1).rank == 1


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
