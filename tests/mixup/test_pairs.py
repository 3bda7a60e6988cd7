"""Pairs: what they say of lengths and labels, what they mix, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from contracts.passes import seeds
from statewise.errors import ArgumentError, DtypeError, LengthError, ShapeError
from statewise.heads import CRF
from statewise.mixup import (
    InputMixup,
    Pairs,
    ThroughTimeMixup,
    class_frequencies,
    mixed_crf_loss,
    treat,
    unlike_share,
)
from statewise.mixup.crf_loss import MODES
from statewise.mixup.lengths import POLICIES
from support import Tolerance

DOUBLE = torch.float64
EXACT: Tolerance = {"rtol": 1e-12, "atol": 1e-12}

lengths = st.lists(st.integers(1, 6), min_size=2, max_size=5)


def drawn(lengths: list[int], seed: int, policy: str = "handover", **options: Any) -> Pairs:
    generator = torch.Generator().manual_seed(seed)
    return InputMixup(rho=0.5, lengths=policy).draw(lengths, generator=generator, dtype=DOUBLE, **options)


class TestLengths:
    @given(lengths=lengths, seed=seeds, policy=st.sampled_from(POLICIES))
    def test_weights_and_lengths_are_those_of_the_treatment(self, lengths: list[int], seed: int, policy: str) -> None:
        pairs = drawn(lengths, seed, policy)
        plain = drawn(lengths, seed, "zero").coefficients  # as drawn, where a pair has steps
        own, other = (torch.tensor(lengths)[side].tolist() for side in (pairs.first, pairs.second))
        for place, (mine, its) in enumerate(zip(own, other, strict=True)):
            steps = min(mine, its) if policy == "truncate" else max(mine, its)
            assert int(pairs.lengths[place]) == steps
            for time in range(pairs.steps):
                here, there = time < min(mine, steps), time < min(its, steps)
                share = float(plain[time, place])
                if policy == "handover" and here != there:
                    share = float(here)
                assert float(pairs.weights[time, place]) == (share if here else 0)
                assert float(pairs.partner_weights[time, place]) == (1 - share if there else 0)
                assert float(pairs.coefficients[time, place]) == (share if here or there else 0)
        total = pairs.weights + pairs.partner_weights
        inside = torch.arange(pairs.steps).unsqueeze(1) < pairs.lengths
        if policy != "zero":
            torch.testing.assert_close(total, inside.to(DOUBLE))

    def test_padding_draws_nothing(self) -> None:
        short, long = drawn([3, 2], 5), drawn([3, 2], 5, steps=7)
        assert torch.equal(long.coefficients[:3], short.coefficients)
        assert not long.coefficients[3:].any()
        assert torch.equal(long.mean_coefficient, short.mean_coefficient)

    def test_a_treatment_has_a_table(self) -> None:
        found = treat("truncate", torch.ones(3, 1, dtype=DOUBLE), torch.tensor([3]), torch.tensor([1]))
        assert (int(found.lengths), found.weights.flatten().tolist()) == (1, [1, 0, 0])

    def test_length_one_is_valid(self) -> None:
        assert drawn([1, 1], 0).coefficients.shape == (1, 2)


class TestMixing:
    @given(lengths=lengths, seed=seeds, policy=st.sampled_from(POLICIES), padding=st.integers(0, 2))
    def test_absent_members_are_zero_whatever_padding_holds(
        self, lengths: list[int], seed: int, policy: str, padding: int
    ) -> None:
        """And so are their gradients."""
        pairs = drawn(lengths, seed, policy, steps=max(lengths) + padding)
        x = torch.randn(pairs.steps, len(lengths), 2, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))
        ended = (torch.arange(pairs.steps).unsqueeze(1) >= torch.tensor(lengths)).unsqueeze(2)
        junk = x.masked_fill(ended, torch.nan).requires_grad_()
        found = pairs.mix(junk)
        clean, share = x.masked_fill(ended, 0), pairs.coefficients.unsqueeze(2)
        inside = (torch.arange(pairs.steps).unsqueeze(1) < pairs.lengths).unsqueeze(2)
        expected = inside * (share * clean[:, pairs.first] + (1 - share) * clean[:, pairs.second])
        torch.testing.assert_close(found, expected, **EXACT)
        (grad,) = torch.autograd.grad(found.sum(), junk)
        assert grad.isfinite().all()
        assert not grad.masked_select(ended).any()

    def test_half_precision_is_mixed_in_single_and_given_back(self) -> None:
        pairs = InputMixup().draw([3, 3], generator=torch.Generator().manual_seed(0))
        x = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(0)).bfloat16()
        found = pairs.mix(x)
        assert found.dtype == torch.bfloat16
        torch.testing.assert_close(found, pairs.mix(x.float()).bfloat16())

    def test_what_is_shorter_than_the_pairs_is_refused(self) -> None:
        with pytest.raises(ShapeError, match=r"Pairs\.mix: got \(2, 2, 1\), wanted \(3, 2, width\)"):
            drawn([3, 2], 0).mix(torch.zeros(2, 2, 1, dtype=DOUBLE))

    def test_the_pairing_of_a_layer_says_the_same(self) -> None:
        pairs = ThroughTimeMixup(pairing="double", lengths="truncate", layer=1).draw([3, 2, 4, 4], steps=6)
        pairing = pairs.pairing
        assert pairing.first is not None
        assert pairing.lengths is not None
        assert torch.equal(pairing.first, pairs.first)
        assert torch.equal(pairing.partner, pairs.second)
        assert torch.equal(pairing.lengths, pairs.lengths)
        assert pairing.layer == 1
        assert torch.equal(pairing.coefficients.float(), pairs.coefficients[:4])


class TestLosses:
    @given(lengths=lengths, seed=seeds, policy=st.sampled_from(POLICIES))
    def test_an_ignored_label_takes_its_own_weight_and_leaves_its_partners(
        self, lengths: list[int], seed: int, policy: str
    ) -> None:
        pairs, generator = drawn(lengths, seed, policy), torch.Generator().manual_seed(seed)
        logits = torch.randn(pairs.steps, len(pairs), 4, generator=generator, dtype=DOUBLE)
        labels = torch.randint(-1, 4, (pairs.steps, len(lengths)), generator=generator)
        losses = -logits.log_softmax(2)
        own, other = labels[:, pairs.first], labels[:, pairs.second]
        weights = pairs.weights * (own >= 0), pairs.partner_weights * (other >= 0)
        expected = sum(
            weight * losses.gather(2, label.clamp(min=0).unsqueeze(2)).squeeze(2)
            for weight, label in zip(weights, (own, other), strict=True)
        )
        found = pairs.cross_entropy(logits, labels, reduction="none", ignore_index=-1)
        torch.testing.assert_close(found, expected, **EXACT)
        total = float(weights[0].sum() + weights[1].sum())
        mean = pairs.cross_entropy(logits, labels, reduction="token", ignore_index=-1)
        assert float(mean) == pytest.approx(float(found.sum()) / total if total else 0.0)

    def test_logits_of_minus_infinity_do_no_harm_where_they_do_not_count(self) -> None:
        pairs = Pairs.of(torch.ones(1, 2, dtype=DOUBLE), second=torch.tensor([1, 0]), dtype=DOUBLE)
        logits = torch.tensor([[[0.0, -torch.inf], [0.0, 1.0]]], dtype=DOUBLE, requires_grad=True)
        loss = pairs.cross_entropy(logits, torch.tensor([[0, 1]]))
        loss.backward()
        assert loss.isfinite()
        assert logits.grad is not None
        assert logits.grad.isfinite().all()

    @pytest.mark.parametrize("impossible", [(0,), (1,), (0, 1)])
    def test_a_label_that_is_impossible_costs_infinitely_much(self, impossible: tuple[int, ...]) -> None:
        pairs = Pairs.of(torch.full((1, 1), 0.5), first=torch.tensor([0]), second=torch.tensor([1]), lengths=[1, 1])
        logits = torch.zeros(1, 1, 3)
        logits[..., list(impossible)] = -torch.inf
        assert pairs.cross_entropy(logits, torch.tensor([[0, 1]])).item() == torch.inf

    @given(lengths=lengths, seed=seeds, policy=st.sampled_from(POLICIES))
    def test_losses_of_ones_own_are_weighted_alike(self, lengths: list[int], seed: int, policy: str) -> None:
        pairs, generator = drawn(lengths, seed, policy), torch.Generator().manual_seed(seed)
        logits = torch.randn(pairs.steps, len(pairs), 4, generator=generator, dtype=DOUBLE)
        labels = torch.randint(4, (pairs.steps, len(lengths)), generator=generator)
        each = [
            F.cross_entropy(logits.flatten(0, 1), labels[:, side].flatten(), reduction="none").view(pairs.steps, -1)
            for side in (pairs.first, pairs.second)
        ]
        ended = torch.arange(pairs.steps).unsqueeze(1) >= pairs.member_lengths[1]
        for reduction in ("pair", "token", "none"):
            found = pairs.weighted(each[0], each[1].masked_fill(ended, torch.nan), reduction=reduction)
            torch.testing.assert_close(found, pairs.cross_entropy(logits, labels, reduction=reduction), **EXACT)

    @given(lengths=lengths, seed=seeds)
    def test_the_irreducible_part_is_reached_by_the_mixed_label_and_by_nothing_else(
        self, lengths: list[int], seed: int
    ) -> None:
        pairs, generator = drawn(lengths, seed), torch.Generator().manual_seed(seed)
        labels = torch.randint(3, (pairs.steps, len(lengths)), generator=generator)
        best = pairs.mix(F.one_hot(labels, 3).to(DOUBLE)).clamp(min=1e-300).log()
        floor = pairs.irreducible(labels)
        torch.testing.assert_close(pairs.cross_entropy(best, labels), floor, rtol=1e-9, atol=1e-9)
        other = best + torch.randn(best.shape, generator=generator, dtype=DOUBLE)
        assert pairs.cross_entropy(other, labels) >= floor - 1e-9

    @given(lengths=lengths, seed=seeds)
    def test_in_a_tail_of_less_weight_the_squared_error_is_that_of_the_member_there(
        self, lengths: list[int], seed: int
    ) -> None:
        pairs, generator = drawn(lengths, seed, "zero"), torch.Generator().manual_seed(seed)
        targets = torch.randn(pairs.steps, len(lengths), 2, generator=generator, dtype=DOUBLE)
        ended = torch.arange(pairs.steps).unsqueeze(1) >= torch.tensor(lengths)
        outputs = torch.randn(pairs.steps, len(pairs), 2, generator=generator, dtype=DOUBLE)
        found = pairs.squared_error(outputs, targets.masked_fill(ended.unsqueeze(2), torch.nan), reduction="none")
        for place, (own, other) in enumerate(zip(*(side.tolist() for side in pairs.member_lengths), strict=True)):
            for time in range(min(own, other), max(own, other)):
                row = pairs.first[place] if own > other else pairs.second[place]
                weight = pairs.weights[time, place] + pairs.partner_weights[time, place]
                expected = weight * (outputs[time, place] - targets[time, row]).square().sum()
                torch.testing.assert_close(found[time, place], expected, **EXACT)

    def test_labels_of_sequences_can_be_ignored_too(self) -> None:
        pairs = drawn([2, 2], 1)
        logits = torch.zeros(2, 4, dtype=DOUBLE)
        assert float(pairs.classification(logits, torch.tensor([-100, -100]))) == 0
        assert pairs.classification(logits, torch.tensor([0, 3]), reduction="none").shape == (2,)

    def test_half_precision_is_widened(self) -> None:
        pairs = InputMixup().draw([2, 2])
        assert pairs.cross_entropy(torch.zeros(2, 2, 4).bfloat16(), torch.zeros(2, 2, dtype=torch.long)).dtype == (
            torch.float32
        )

    @pytest.mark.parametrize("name", ["cross_entropy", "classification", "squared_error", "weighted", "irreducible"])
    def test_an_unknown_reduction_is_refused(self, name: str) -> None:
        pairs = drawn([2, 2], 1)
        given_to: dict[str, tuple[Tensor, ...]] = {
            "cross_entropy": (torch.zeros(2, 2, 4), torch.zeros(2, 2, dtype=torch.long)),
            "classification": (torch.zeros(2, 4), torch.zeros(2, dtype=torch.long)),
            "squared_error": (torch.zeros(2, 2, 4), torch.zeros(2, 2, 4)),
            "weighted": (torch.zeros(2, 2), torch.zeros(2, 2)),
            "irreducible": (torch.zeros(2, 2, dtype=torch.long),),
        }
        with pytest.raises(ArgumentError, match=rf"Pairs\.{name} reduction: got mean"):
            getattr(pairs, name)(*given_to[name], reduction="mean")

    def test_other_shapes_are_refused(self) -> None:
        pairs, tags = drawn([3, 2], 0), torch.zeros(3, 2, dtype=torch.long)
        with pytest.raises(ShapeError, match=r"got \(2, 2, 4\), wanted \(3, 2, \.\.\.\) of the pairs"):
            pairs.cross_entropy(torch.zeros(2, 2, 4), tags)
        with pytest.raises(ShapeError, match=r"targets: got \(3, 1\), wanted \(3, 2\), those of the sequences"):
            pairs.cross_entropy(torch.zeros(3, 2, 4), tags[:, :1])

    @pytest.mark.usefixtures("as_users_have_it")
    def test_shapes_that_would_broadcast_or_be_cut_are_refused(self) -> None:
        pairs, losses = drawn([3, 2], 0), torch.zeros(3, 2)
        for wrong in ((losses[:, :1], losses), (losses, losses[:2]), (losses, losses[..., None])):
            with pytest.raises(ShapeError, match=r"Pairs\.weighted of_\w+: got .*, wanted \(3, 2\) of the pairs"):
                pairs.weighted(*wrong)
        with pytest.raises(ShapeError, match=r"classification labels: got \(9,\), wanted \(2,\)"):
            pairs.classification(torch.zeros(2, 4), torch.zeros(9, dtype=torch.long))
        with pytest.raises(ShapeError, match=r"classification: got \(3, 4\), wanted \(2, classes\)"):
            pairs.classification(torch.zeros(3, 4), torch.zeros(2, dtype=torch.long))
        with pytest.raises(ShapeError, match=r"squared_error targets: got \(3, 2, 1\), wanted \(steps, batch, 4\)"):
            pairs.squared_error(torch.zeros(3, 2, 4), torch.zeros(3, 2, 1))

    @pytest.mark.usefixtures("as_users_have_it")
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bool])
    def test_labels_that_are_no_whole_numbers_are_refused(self, dtype: torch.dtype) -> None:
        pairs = drawn([3, 2], 0)
        with pytest.raises(DtypeError, match=rf"Pairs\.cross_entropy targets: got {dtype}"):
            pairs.cross_entropy(torch.zeros(3, 2, 4), torch.zeros(3, 2, dtype=dtype))
        with pytest.raises(DtypeError, match=rf"Pairs\.classification labels: got {dtype}"):
            pairs.classification(torch.zeros(2, 4), torch.zeros(2, dtype=dtype))

    @pytest.mark.parametrize("label", [4, -1])
    def test_a_label_that_is_no_class_is_refused_and_the_remedy_helps(self, label: int) -> None:
        pairs, tags = drawn([3, 2], 0), torch.zeros(3, 2, dtype=torch.long)
        tags[1, 1] = label
        told = rf"Pairs\.cross_entropy targets: got {label}, wanted classes from 0 to 3, or -100.*ignore_index="
        with pytest.raises(ArgumentError, match=told):
            pairs.cross_entropy(torch.zeros(3, 2, 4), tags)
        assert pairs.cross_entropy(torch.zeros(3, 2, 4), tags, ignore_index=label).isfinite()
        with pytest.raises(ArgumentError, match=f"Pairs\\.classification labels: got {label}"):
            pairs.classification(torch.zeros(2, 4), tags[1])

    @pytest.mark.usefixtures("as_users_have_it")
    @pytest.mark.parametrize("dtype", [torch.uint8, torch.int32])
    def test_labels_may_be_any_whole_numbers(self, dtype: torch.dtype) -> None:
        pairs, tags = drawn([3, 2], 0), torch.tensor([[0, 3], [1, 2], [9, 9]], dtype=dtype)
        logits = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(0))
        found = pairs.cross_entropy(logits, tags, ignore_index=9)
        assert torch.equal(found, pairs.cross_entropy(logits, tags.long(), ignore_index=9))


class TestCrf:
    @given(
        lengths=lengths,
        seed=seeds,
        policy=st.sampled_from(POLICIES),
        mode=st.sampled_from(["prefix", "coupled"]),
        padding=st.integers(0, 2),
    )
    def test_a_batch_gives_the_mean_of_its_pairs_alone(
        self, lengths: list[int], seed: int, policy: str, mode: str, padding: int
    ) -> None:
        """Whatever the tags beyond the ends are."""
        pairs, generator = (
            drawn(lengths, seed, policy, steps=max(lengths) + padding),
            torch.Generator().manual_seed(seed),
        )
        crf = CRF(3, generator=generator).double()
        emissions = torch.randn(pairs.steps, len(pairs), 3, generator=generator, dtype=DOUBLE)
        tags = torch.randint(3, (pairs.steps, len(lengths)), generator=generator)
        ended = torch.arange(pairs.steps).unsqueeze(1) >= torch.tensor(lengths)
        found = pairs.crf(crf, emissions, tags.masked_fill(ended, -100), mode=mode, reduction="none")
        for place, (own, other) in enumerate(zip(*(side.tolist() for side in pairs.member_lengths), strict=True)):
            steps = int(pairs.lengths[place])
            alone = mixed_crf_loss(
                crf,
                emissions[:steps, place : place + 1],
                tags[:steps, pairs.first[place : place + 1]],
                tags[:steps, pairs.second[place : place + 1]],
                pairs.coefficients[:steps, place : place + 1],
                torch.tensor([own]),
                torch.tensor([other]),
                mode,
            )
            torch.testing.assert_close(found[place], alone[0], rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(pairs.crf(crf, emissions, tags, mode=mode), found.mean(), rtol=1e-10, atol=1e-10)

    @pytest.mark.usefixtures("as_users_have_it")
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize(
        ("coefficients", "told"),
        [
            (torch.full((3, 2), 1.7), r"got 1\.7 in pair 0 at step 0, wanted numbers from 0 to 1"),
            (torch.full((3, 2), torch.nan), "got nan in pair 0 at step 0"),
            (torch.full((2, 3), 0.5), r"got \(2, 3\), wanted \(3, 2\), time first"),
            (torch.tensor(0.5), r"got \(\), wanted \(3, 2\)"),
        ],
    )
    def test_what_is_no_coefficient_is_refused(self, coefficients: Tensor, told: str, mode: str) -> None:
        tags, lengths = torch.zeros(3, 2, dtype=torch.long), torch.tensor([3, 3])
        with pytest.raises(ArgumentError, match=rf"mixed_crf_loss\.coefficients: {told}"):
            mixed_crf_loss(CRF(4), torch.zeros(3, 2, 4), tags, tags, coefficients, lengths, lengths, mode)

    @given(lengths=lengths, seed=seeds)
    def test_alone_it_is_the_plain_loss(self, lengths: list[int], seed: int) -> None:
        generator, own = torch.Generator().manual_seed(seed), torch.tensor(lengths)
        crf, pairs = CRF(3, generator=generator).double(), Pairs.alone(lengths, dtype=DOUBLE)
        emissions = torch.randn(pairs.steps, len(pairs), 3, generator=generator, dtype=DOUBLE)
        tags = torch.randint(3, (pairs.steps, len(lengths)), generator=generator)
        for mode in ("prefix", "paper", "coupled"):
            found = pairs.crf(crf, emissions, tags, mode=mode, reduction="none")
            torch.testing.assert_close(found, crf.nll(emissions, tags, own), rtol=1e-10, atol=1e-10)


class TestReports:
    @given(seed=seeds)
    def test_the_share_of_unlike_labels_is_what_their_frequencies_promise(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        tags = (torch.rand(40, 400, generator=generator) > 0.83).long()
        pairs = InputMixup().draw([40] * 400, generator=generator)
        expected = unlike_share(class_frequencies(tags))
        assert pairs.unlike_share(tags) == pytest.approx(expected, abs=0.02)
        assert expected == pytest.approx(2 * 0.83 * 0.17, abs=0.02)

    def test_a_tail_mixes_no_labels(self) -> None:
        pairs = Pairs.of(torch.full((4, 2), 0.5), second=torch.tensor([1, 0]), lengths=[4, 1])
        assert pairs.unlike_share(torch.tensor([[0, 1], [0, 1], [0, 1], [0, 1]])) == 0.25

    @pytest.mark.usefixtures("as_users_have_it")
    def test_labels_of_a_third_dimension_are_refused(self) -> None:
        pairs = Pairs.of(torch.full((4, 2), 0.5), second=torch.tensor([1, 0]))
        with pytest.raises(ShapeError, match=r"unlike_share targets: got \(4, 2, 7\), wanted \(4, 2\)"):
            pairs.unlike_share(torch.zeros(4, 2, 7, dtype=torch.long))

    def test_labels_that_do_not_count_are_not_unlike(self) -> None:
        pairs = Pairs.of(torch.full((4, 2), 0.5), second=torch.tensor([1, 0]))
        tags = torch.tensor([[0, 1], [0, 0], [0, -1], [-1, -1]])
        assert pairs.unlike_share(tags, ignore_index=-1) == pytest.approx(1 / 3)
        assert pairs.unlike_share(torch.full((4, 2), -100)) == 0

    def test_they_are_told_in_a_line(self) -> None:
        pairs = ThroughTimeMixup(pairing="double").draw([2, 3, 3, 2])
        assert repr(pairs) == "Pairs('through_time', layer=0, pairs=2, steps=3, sequences=4)"


class TestRefusals:
    def test_coefficients_beyond_0_and_1_are_refused(self) -> None:
        with pytest.raises(ArgumentError, match=r"Pairs\.coefficients"):
            Pairs.of(torch.full((2, 2), 1.5), second=torch.tensor([1, 0]))
        with pytest.raises(ArgumentError, match=r"Pairs\.coefficients: got nan"):
            Pairs.of(torch.full((2, 2), torch.nan), second=torch.tensor([1, 0]))

    @pytest.mark.usefixtures("as_users_have_it")
    def test_coefficients_without_steps_are_refused(self) -> None:
        second, wrong = torch.tensor([1, 0]), [[0.5, 0.5]]
        with pytest.raises(ShapeError, match=r"got \(2,\), wanted \(steps, pairs\).*coefficients\.expand\(steps, -1\)"):
            Pairs.of(torch.ones(2), second=second)
        with pytest.raises(ShapeError, match=r"got \(0, 2\), wanted \(steps, pairs\), at least one step"):
            Pairs.of(torch.ones(0, 2), second=second)
        with pytest.raises(DtypeError, match=r"Pairs\.coefficients: got list"):
            Pairs.of(wrong, second=second)  # type: ignore[arg-type]

    def test_members_that_do_not_exist_are_refused(self) -> None:
        with pytest.raises(ArgumentError, match=r"Pairs\.second: got \[2, 0\]"):
            Pairs.of(torch.ones(2, 2), second=torch.tensor([2, 0]))

    def test_unknown_names_are_refused(self) -> None:
        options: dict[str, Any] = {"second": torch.tensor([1, 0])}
        with pytest.raises(ArgumentError, match=r"Pairs\.policy"):
            Pairs.of(torch.ones(2, 2), policy="pad", **options)
        with pytest.raises(ArgumentError, match=r"Pairs\.site"):
            Pairs.of(torch.ones(2, 2), site="output", **options)

    def test_too_few_steps_are_refused(self) -> None:
        with pytest.raises(ShapeError, match="at least 3"):
            InputMixup().draw([3, 3], steps=2)
        with pytest.raises(LengthError, match="3 steps, wanted at most 2"):
            Pairs.of(torch.ones(2, 2), second=torch.tensor([1, 0]), lengths=[3, 2])

    def test_an_empty_batch_or_sequence_is_refused(self) -> None:
        with pytest.raises(LengthError, match="empty sequence in pair"):
            InputMixup().draw([3, 0])
        with pytest.raises(LengthError, match="an empty batch"):
            InputMixup().draw([])
