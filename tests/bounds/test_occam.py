"""The margin-Occam certificate, and its cover that is fine only near low ranks."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from contracts.bounds import NET_A, BoundContract, about
from statewise.bounds.catalogue import bound_named
from statewise.bounds.occam import (
    RankedNats,
    low_rank_nats,
    margin_scale,
    occam_hoeffding,
    occam_kl,
    occam_penalty,
)
from statewise.bounds.profile import Block, Profile
from statewise.errors import ArgumentError, AssumptionError

LN20 = math.log(20)


class TestKlOccam(BoundContract):
    name = "kl_occam"
    scale_free = True


class TestKlLowRank(BoundContract):
    name = "kl_low_rank"
    scale_free = True


class TestTheCertificate:
    def test_one_member_is_a_binomial_tail(self) -> None:
        """No nats: P(no error in m tries) = (1-p)^m, and 1 - δ^(1/m) is what it cannot exclude."""
        assert occam_kl(0.0, 0.0, m=50, log_failures=LN20) == pytest.approx(1 - 0.05 ** (1 / 50), rel=1e-12)

    def test_hoeffding_is_never_below(self) -> None:
        for risk in (0.0, 0.01, 0.3, 0.9):
            for nats in (0.0, 10.0, 1000.0):
                given: dict[str, Any] = {"m": 1000, "log_failures": LN20}
                assert occam_kl(risk, nats, **given) <= occam_hoeffding(risk, nats, **given) <= 1

    def test_the_family_gives_the_same(self) -> None:
        nats = NET_A.tight().cover_nats(margin_scale(0.5))
        found = bound_named("kl_occam").value(about(NET_A), gamma=0.5, risk=0.02, m=10**6, delta=0.01, paid=7.0)
        assert found == pytest.approx(occam_kl(0.02, nats, m=10**6, log_failures=math.log(100) + 7), rel=1e-12)
        assert occam_penalty(nats, m=10**6, log_failures=LN20).nats == pytest.approx(nats)

    def test_one_sequence_says_nothing(self) -> None:
        with pytest.raises(ArgumentError, match=r"^m: got 1"):
            occam_kl(0.0, 1.0, m=1, log_failures=LN20)
        with pytest.raises(ArgumentError, match=r"^m: got 1"):
            occam_hoeffding(0.0, 1.0, m=1, log_failures=LN20)


def one_block(rows: int, columns: int, *, bound: float = 1.0, **changes: Any) -> Profile:
    block = Block(name="A", rows=rows, columns=columns, bound=bound, log_lipschitz=0.0, **changes)
    return Profile(architecture="one", blocks=(block,), steps=1, log_hidden=0.0, log_output=0.0, log_growth=0.0)


def ranked(values: list[float], distance: float, *, ball: bool = True, rows: int = 6, columns: int = 9) -> RankedNats:
    return low_rank_nats(one_block(rows, columns), math.log(distance), {"A": values}, balls={"A"} if ball else set())[
        "A"
    ]


class TestLowRank:
    @pytest.mark.parametrize("ball", [True, False])
    def test_the_price_of_each_rank(self, ball: bool) -> None:
        factor = 8 if ball else 16
        for rank in range(3):
            found = ranked([0.9] * rank + [0.0] * (6 - rank), 0.01, ball=ball)
            assert found.rank == rank
            assert found.nats == pytest.approx(rank * 15 * math.log1p(factor / 0.01) + math.log(7), rel=1e-12)

    def test_high_ranks_have_the_usual_cover_and_pay_for_the_choice(self) -> None:
        found = ranked([0.9] * 6, 0.01)
        assert found.rank is None
        assert found.nats == pytest.approx(54 * math.log1p(2 / 0.01) + math.log(7), rel=1e-12)

    def test_what_is_cut_off_must_be_near(self) -> None:
        half, quarter, whole = 0.1 / 2, 0.1 / 4, 0.1
        tail = [0.0] * 4
        assert ranked([0.9, half - 1e-8, *tail], 0.1).rank == 1
        assert ranked([0.9, half + 1e-8, *tail], 0.1).rank == 2
        assert ranked([0.9, quarter - 1e-8, *tail], 0.1, ball=False).rank == 1
        assert ranked([0.9, quarter + 1e-8, *tail], 0.1, ball=False).rank == 2
        assert ranked([whole - 1e-8, 0.0, *tail], 0.1).rank == 0
        assert ranked([whole + 1e-8, 0.0, *tail], 0.1).rank == 1
        assert ranked([half - 1e-8, 0.0, *tail], 0.1, ball=False).rank == 0
        assert ranked([half + 1e-8, 0.0, *tail], 0.1, ball=False).rank == 1

    def test_rounding_does_not_make_a_rank(self) -> None:
        """At distances where a float cannot tell a singular value from 0, the full cover is taken."""
        assert ranked([0.9] + [0.0] * 5, 1e-12).rank is None

    def test_one_member_for_all_leaves_nothing_to_choose(self) -> None:
        assert ranked([0.9] + [0.0] * 5, 1.0) == RankedNats(None, 0.0)

    def test_blocks_in_another_norm_or_not_named_have_their_usual_cover(self) -> None:
        filters = one_block(3, 3, free=3, stretch=2.0)
        usual = filters.cover_nats(math.log(0.1))
        assert low_rank_nats(filters, math.log(0.1), {"A": [0.1, 0.0, 0.0]})["A"] == RankedNats(None, usual)
        plain = one_block(3, 3)
        assert low_rank_nats(plain, math.log(0.1), {})["A"].nats == plain.cover_nats(math.log(0.1))

    def test_the_order_of_singular_values_does_not_matter(self) -> None:
        assert ranked([0.0, 0.9, 0.0, 0.0, 0.0, 0.0], 0.01) == ranked([0.9] + [0.0] * 5, 0.01)

    @pytest.mark.parametrize("wrong", [[0.9] * 5, [1.1] + [0.0] * 5, [math.nan] * 6])
    def test_values_that_are_not_those_of_the_class(self, wrong: list[float]) -> None:
        with pytest.raises(AssumptionError, match="singular_values of A"):
            ranked(wrong, 0.01)

    def test_the_cover_that_the_price_is_for(self) -> None:
        """The proof, by numbers: cut off and with factors moved as far as allowed, a matrix stays near and inside."""
        draw = np.random.default_rng(0)
        for _ in range(200):
            rank, distance = int(draw.integers(1, 4)), float(draw.uniform(0.01, 0.5))
            left, _, right = np.linalg.svd(draw.normal(size=(6, 9)), full_matrices=False)
            values = np.sort(draw.uniform(0, 1, 6))[::-1].copy()
            values[rank:] = np.minimum(values[rank:], distance / 2)
            matrix = left * values @ right
            factors = [left[:, :rank] * np.sqrt(values[:rank]), (np.sqrt(values[:rank])[:, None] * right[:rank]).T]
            moved = []
            for factor in factors:
                step = draw.normal(size=factor.shape)
                other = factor + step * distance / 4 / np.linalg.norm(step, 2)
                norm = np.linalg.norm(other, 2)
                moved.append(other / max(1.0, norm))  # members of the cover are in the ball, as are the factors
            allowed = [np.linalg.norm(a - b, 2) <= distance / 4 for a, b in zip(factors, moved, strict=True)]
            if all(allowed):
                member = moved[0] @ moved[1].T
                assert np.linalg.norm(member, 2) <= 1 + 1e-12
                assert np.linalg.norm(matrix - member, 2) <= distance + 1e-12

    def test_a_network_of_low_rank_gets_a_better_certificate(self) -> None:
        net = replace(NET_A, hidden=40, inputs=20)
        low = {"U": [1.0] + [0.0] * 39, "V": [2.0, 0.0], "W": [1.0] + [0.0] * 19}
        subject = about(net, singular_values=low)
        plain, refined = (
            bound_named(name).value(subject, gamma=0.5, risk=0.0, m=10**4) for name in ("kl_occam", "kl_low_rank")
        )
        assert refined < 0.2 < 0.8 < plain
        constrained = replace(subject, balls=frozenset())
        assert refined < bound_named("kl_low_rank").value(constrained, gamma=0.5, risk=0.0, m=10**4) < 0.25
