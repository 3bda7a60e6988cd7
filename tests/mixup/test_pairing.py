"""Who is mixed with whom."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from contracts.passes import seeds
from statewise.errors import ArgumentError, DtypeError, ShapeError
from statewise.mixup import InputMixup, LonelyBatchWarning, Pairs, pair
from statewise.mixup.pairing import PAIRINGS, RULES, Couples

batches = st.lists(st.integers(1, 9), min_size=2, max_size=12).map(torch.tensor)


def couples(rule: str, lengths: Tensor, seed: int) -> Couples:
    return pair(rule, lengths, torch.Generator().manual_seed(seed))


@given(lengths=batches, seed=seeds, rule=st.sampled_from(sorted(RULES)))
def test_every_rule_repeats_its_pairs_and_touches_no_other_generator(lengths: Tensor, seed: int, rule: str) -> None:
    state = torch.random.get_rng_state()
    first, again = couples(rule, lengths, seed), couples(rule, lengths, seed)
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
    assert torch.equal(torch.random.get_rng_state(), state)


@given(lengths=batches, seed=seeds, rule=st.sampled_from(["permute", "derange", "sorted"]))
def test_permutations_make_every_sequence_first_once_and_second_once(lengths: Tensor, seed: int, rule: str) -> None:
    first, second = couples(rule, lengths, seed)
    assert torch.equal(first, torch.arange(len(lengths)))
    assert torch.equal(second.sort().values, first)
    if rule != "permute":
        assert (first != second).all()


@given(lengths=batches, seed=seeds, rule=st.sampled_from(["double", "double_sorted"]))
def test_doubling_puts_every_sequence_into_one_pair_but_an_odd_one(lengths: Tensor, seed: int, rule: str) -> None:
    found = torch.cat(couples(rule, lengths, seed)).tolist()
    assert len(found) == 2 * (len(lengths) // 2) == len(set(found))


def test_all_derangements_are_equally_probable() -> None:
    """Of four there are nine."""
    found: Counter[tuple[int, ...]] = Counter()
    source = torch.Generator().manual_seed(0)
    for _ in range(1800):
        found[tuple(pair("derange", torch.ones(4, dtype=torch.long), source).second.tolist())] += 1
    assert len(found) == 9
    assert sum((times - 200) ** 2 / 200 for times in found.values()) < 26.1  # the chi-square of eight at 0.1 per cent


@given(lengths=batches, seed=seeds)
def test_sorting_wastes_no_more_than_chance(lengths: Tensor, seed: int) -> None:
    """Of an even number neighbours have the smallest sum of differences that there is."""

    def waste(rule: str) -> int:
        first, second = couples(rule, lengths, seed)
        return int((lengths[first] - lengths[second]).abs().sum())

    if len(lengths) % 2 == 0:
        assert waste("sorted") <= waste("derange")
    first, second = couples("double_sorted", lengths, seed)
    assert (lengths[first].diff() >= 0).all()
    assert (lengths[second].diff() >= 0).all()


@pytest.mark.parametrize("rule", ["permute", "sorted"])
def test_a_batch_of_one_has_no_partner_and_says_so(rule: str) -> None:
    with pytest.warns(LonelyBatchWarning, match="a batch of 1"):
        assert pair(rule, torch.tensor([3])).second.tolist() == [0]


def test_the_warning_is_shown_once() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for _ in range(3):
            InputMixup().draw([3])
    assert [one.category for one in shown] == [LonelyBatchWarning]


@pytest.mark.parametrize("rule", ["derange", "double", "double_sorted"])
def test_where_two_are_needed_one_is_refused(rule: str) -> None:
    with pytest.raises(ArgumentError, match="at least two"):
        pair(rule, torch.tensor([3]))


def test_a_rule_of_ones_own_is_used_and_checked() -> None:
    def backwards(lengths: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        rows = torch.arange(len(lengths))
        return rows, rows.flip(0)

    assert InputMixup(pairing=backwards).draw([1, 2, 3]).second.tolist() == [2, 1, 0]
    wrong: list[tuple[Any, Any, type[Exception]]] = [
        (torch.tensor([0]), torch.tensor([3]), ArgumentError),
        (torch.tensor([0.0]), torch.tensor([1]), DtypeError),
        (torch.tensor([0, 1]), torch.tensor([1]), ShapeError),
    ]
    for first, second, error in wrong:
        with pytest.raises(error, match="pairing"):
            pair(lambda lengths, generator, both=(first, second): both, torch.tensor([2, 2]))  # type: ignore[misc]


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"InputMixup\.pairing: got shuffle, wanted one of permute"):
        InputMixup(pairing="shuffle")
    with pytest.raises(ArgumentError, match="pairing: got shuffle"):
        pair("shuffle", torch.tensor([2, 2]))


@pytest.mark.usefixtures("as_users_have_it")
def test_pairs_are_no_rule_and_the_remedy_says_where_they_belong() -> None:
    wrong: Any = [1, 0]
    with pytest.raises(ArgumentError, match=r"InputMixup\.pairing: got \[1, 0\], wanted one of permute, .*Pairs\.of"):
        InputMixup(pairing=wrong)
    assert set(PAIRINGS) == set(RULES)


def test_the_share_of_tails_is_counted_and_sorting_makes_it_smaller(generator: torch.Generator) -> None:
    lengths = torch.randint(1, 40, (64,), generator=generator)
    found = {rule: InputMixup(pairing=rule).draw(lengths, generator=generator) for rule in ("derange", "sorted")}
    own, other = (lengths[side] for side in (found["derange"].first, found["derange"].second))
    assert found["derange"].tail_share == pytest.approx(
        float((own - other).abs().sum() / torch.maximum(own, other).sum())
    )
    assert found["sorted"].tail_share < found["derange"].tail_share / 3
    assert InputMixup(lengths="truncate").draw(lengths, generator=generator).tail_share == 0
    assert Pairs.alone(lengths).tail_share == 0
