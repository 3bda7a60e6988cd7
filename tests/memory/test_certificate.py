from __future__ import annotations

import pytest

from statewise.memory.certificate import GenericRank, certify, failure_bound
from statewise.memory.degrees import weight_degree
from statewise.memory.grid import Weights
from statewise.memory.primes import PRIMES


def certified(found: list[int], *, runs: int = 3, samples: int | None = None, start: str = "ones") -> GenericRank:
    """What is made of given ranks: M = R = 2, T = 10, L = 2 has at most 12."""
    ranks = iter(found)

    def measure(weights: Weights, seed: int) -> int:
        assert weights.arithmetic.prime == PRIMES[seed - 5]
        return next(ranks)

    sizes = {"inputs": 2, "width": 2, "steps": 10, "depth": 2, "split": 5}
    return certify(measure, where="here", **sizes, seed=5, runs=runs, start=start, primes=PRIMES, samples=samples)


def test_the_largest_rank_counts_and_a_proof_ends_the_runs() -> None:
    known = certified([11, 12, 10])
    assert (known.rank, known.upper, known.proved, known.found) == (12, 12, True, (11, 12))
    assert (known.primes, known.seeds, known.failure_probability) == (PRIMES[:2], (5, 6), 0.0)
    assert known.sentence.endswith("rank 12: proved.")


@pytest.mark.parametrize("start", ["ones", "drawn"])
def test_what_is_not_proved_has_a_probability(start: str) -> None:
    known = certified([11, 10], runs=2, start=start)
    single = [12 * weight_degree(10, 2, start=start) / (prime - 1) for prime in PRIMES[:2]]
    assert known.failure_probability == pytest.approx(single[0] * single[1], rel=1e-12)
    assert (known.rank, known.proved) == (11, False)
    assert "at least 11 and at most 12" in known.sentence
    assert known.describe().count("a minor of that size is not 0") == 2


def test_a_table_of_samples_can_show_no_more_than_its_side() -> None:
    known = certified([9], samples=9)
    assert (known.rank, known.found, known.failure_probability) == (9, (9,), 1.0)
    assert "could show no more" in known.sentence


def test_inputs_that_are_drawn_too_count_for_the_probability() -> None:
    """Two layers over ten steps read 55 copies of the inputs, which are drawn like the weights."""
    known = certified([11, 10], runs=2, samples=40)
    single = [12 * (weight_degree(10, 2) + 55) / (prime - 1) for prime in PRIMES[:2]]
    assert known.failure_probability == pytest.approx(single[0] * single[1], rel=1e-12)


def test_what_has_more_roots_than_a_float_has_room_for_is_told_nothing_of() -> None:
    assert failure_bound(10**400, 10**400, PRIMES[:1]) == 1.0


def test_chance_is_never_above_one() -> None:
    assert failure_bound(10**9, 10**9, PRIMES) == 1.0
