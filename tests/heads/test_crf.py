"""The conditional random field as a module: against pytorch-crf, against enumeration, and what it refuses."""

from __future__ import annotations

import pytest
import torch
import torchcrf
from torch import Tensor

from contracts.crf import Problem, every_path, gradients
from statewise.errors import ArgumentError, DeviceError, DtypeError, LengthError, ShapeError
from statewise.heads import CRF, Constraints, ForbiddenPathError
from support import needs_kernel, tolerance

DOUBLE = torch.float64


def peer_of(crf: CRF) -> torchcrf.CRF:
    peer = torchcrf.CRF(crf.tags).double()
    peer.load_state_dict({"transitions": crf.transitions, "start_transitions": crf.start, "end_transitions": crf.end})
    return peer


class TestAgainstPytorchCrf:
    @pytest.fixture
    def problem(self, generator: torch.Generator) -> Problem:
        return Problem.random(generator, steps=11, batch=6, tags=7, scale=2.0)

    @pytest.fixture
    def mask(self, problem: Problem) -> Tensor:
        return torch.arange(11)[:, None] < problem.lengths

    def test_losses_and_all_gradients_are_the_same(self, problem: Problem, mask: Tensor) -> None:
        peer = peer_of(problem.crf)
        mine = problem.emissions.clone().requires_grad_()
        theirs = problem.emissions.nan_to_num().requires_grad_()
        found = problem.crf.nll(mine, problem.tags, problem.lengths)
        expected = -peer(theirs, problem.tags.clamp(min=0), mask=mask, reduction="none")
        torch.testing.assert_close(found, expected, **tolerance(DOUBLE))
        grads = gradients(found.sum(), problem.crf, mine)
        right = torch.autograd.grad(
            expected.sum(), [theirs, peer.transitions, peer.start_transitions, peer.end_transitions]
        )
        for one, other in zip(grads, right, strict=True):
            torch.testing.assert_close(one, other, **tolerance(DOUBLE))

    def test_the_best_paths_are_the_same(self, problem: Problem, mask: Tensor) -> None:
        tags, _ = problem.crf.decode(problem.emissions, problem.lengths)
        expected = peer_of(problem.crf).decode(problem.emissions.nan_to_num(), mask)
        assert [tags[: len(path), row].tolist() for row, path in enumerate(expected)] == expected
        assert bool((tags[~mask] == -1).all())


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_marginals_are_sums_of_probabilities(engine: str, constrained: bool, generator: torch.Generator) -> None:
    problem = Problem.random(generator, constrained=constrained).like(engine, DOUBLE)
    single = problem.crf.marginals(problem.emissions, problem.lengths)
    pairs = problem.crf.pair_marginals(problem.emissions, problem.lengths)
    assert (single.shape, pairs.shape) == ((4, 5, 3), (3, 5, 3, 3))
    assert not single.requires_grad
    expected, both = torch.zeros_like(single), torch.zeros_like(pairs)
    for row, length in enumerate(problem.lengths.tolist()):
        paths, scores = every_path(problem.crf, problem.emissions[:, row], length)
        for path, probability in zip(paths.T.tolist(), scores.softmax(0).tolist(), strict=True):
            for step, tag in enumerate(path):
                expected[step, row, tag] += probability
                if step:
                    both[step - 1, row, path[step - 1], tag] += probability
    torch.testing.assert_close(single, expected)
    torch.testing.assert_close(pairs, both)


@needs_kernel  # the plain formulas lose digits here
@pytest.mark.parametrize("scale", [100.0, 1000.0])
def test_marginals_of_pairs_keep_their_digits_over_many_large_scores(scale: float, generator: torch.Generator) -> None:
    crf, emissions = CRF(4, generator=generator), torch.randn(300, 2, 4, generator=generator) * scale
    single, pairs = crf.marginals(emissions), crf.pair_marginals(emissions)
    torch.testing.assert_close(pairs.sum(2), single[1:], rtol=0, atol=1e-6)
    torch.testing.assert_close(pairs.sum(3), single[:-1], rtol=0, atol=1e-4)  # a score of 1000 has 6e-5 between two
    torch.testing.assert_close(pairs.double(), crf.double().pair_marginals(emissions.double()), rtol=0, atol=1e-4)


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_marginals_are_to_be_had_in_inference_mode(engine: str, generator: torch.Generator) -> None:
    rules = Constraints.of_tags(["O", "B-X", "I-X"])
    emissions, lengths = torch.randn(4, 2, 3, generator=generator), torch.tensor([4, 2])
    crf = CRF(3, constraints=rules, constrain="always", engine=engine, generator=generator)
    expected = crf.marginals(emissions, lengths), crf.pair_marginals(emissions, lengths)
    with torch.inference_mode():
        made = CRF(3, constraints=rules, constrain="always", engine=engine)
        made.load_state_dict(crf.state_dict())
        found = [
            (one.marginals(E, n), one.pair_marginals(E, n))
            for one, E, n in ((crf, emissions, lengths), (made, emissions.clone(), lengths.clone()))
        ]
    for each in found:
        assert all(torch.equal(*both) for both in zip(each, expected, strict=True))


def test_padding_is_never_looked_at(generator: torch.Generator) -> None:
    problem = Problem.random(generator, steps=6)
    assert bool(problem.emissions.isnan().any())
    weights = torch.rand(6, 5, generator=generator).masked_fill(problem.tags == -100, float("nan"))
    crf, lengths = problem.crf, problem.lengths
    for emissions in (problem.emissions, problem.emissions.nan_to_num(7.0)):
        leaf = emissions.clone().requires_grad_()
        found = crf.nll(leaf, problem.tags, lengths, weights=weights) + crf.prefix_log_partitions(leaf, lengths).sum(0)
        grads = gradients(found.sum(), crf, leaf)
        assert all(bool(grad.isfinite().all()) for grad in (found, *grads))
        assert not bool(grads[0][problem.tags == -100].any())
    more = torch.nn.functional.pad(problem.emissions, (0, 0, 0, 0, 0, 3), value=float("nan"))
    assert torch.equal(crf.log_partition(more, lengths), crf.log_partition(problem.emissions, lengths))


def test_prefixes_are_the_partitions_of_shorter_sequences(generator: torch.Generator) -> None:
    problem = Problem.random(generator, steps=6)
    prefixes = problem.crf.prefix_log_partitions(problem.emissions, problem.lengths)
    for until in range(1, 7):
        there = problem.lengths >= until
        shorter = problem.crf.log_partition(problem.emissions[:until, there])
        torch.testing.assert_close(prefixes[until - 1, there], shorter)
        assert not bool(prefixes[until - 1, ~there].any())


def test_losses_are_linear_in_their_weights(generator: torch.Generator) -> None:
    problem = Problem.random(generator, steps=6)
    crf, given = problem.crf, (problem.emissions, problem.tags, problem.lengths)
    one, other = torch.rand(2, 6, 5, generator=generator, dtype=DOUBLE)
    sum_of_both = crf.nll(*given, weights=one) + 2 * crf.nll(*given, weights=other)
    torch.testing.assert_close(crf.nll(*given, weights=one + 2 * other), sum_of_both)
    torch.testing.assert_close(crf.nll(*given, weights=torch.full_like(one, 0.3)), 0.3 * crf.nll(*given))
    torch.testing.assert_close(crf(*given), crf.nll(*given))


def test_results_are_in_at_least_single_precision(generator: torch.Generator) -> None:
    crf, tags = CRF(4, generator=generator), torch.zeros(3, 2).long()
    emissions = torch.randn(3, 2, 4, generator=generator)
    for dtype, expected in ((torch.bfloat16, torch.float32), (torch.float16, torch.float32), (DOUBLE, DOUBLE)):
        leaf = emissions.to(dtype).requires_grad_()
        loss = crf.nll(leaf, tags)
        assert loss.dtype == crf.prefix_log_partitions(leaf).dtype == crf.decode(leaf)[1].dtype == expected
        assert [grad.dtype for grad in gradients(loss.sum(), crf, leaf)] == [dtype] + [torch.float32] * 3
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(crf.nll(emissions, tags), CRF.nll(crf, emissions, tags))
    assert crf.bfloat16().nll(emissions, tags).dtype == torch.float32


def test_a_transition_that_costs_all_but_everything_is_taken_if_there_is_no_other(generator: torch.Generator) -> None:
    """A score of -10000 is no -inf: where it is the only way, it counts."""
    crf = CRF(2)
    with torch.no_grad():
        crf.transitions.copy_(torch.tensor([[float("-inf"), -10000.0], [float("-inf"), float("-inf")]]))
        crf.start.zero_()
        crf.end.zero_()
    emissions = torch.zeros(2, 1, 2)
    torch.testing.assert_close(crf.log_partition(emissions), torch.tensor([-10000.0]))
    torch.testing.assert_close(crf.marginals(emissions)[:, 0], torch.tensor([[1.0, 0.0], [0.0, 1.0]]))


def test_constraints_move_with_the_module_and_are_not_saved() -> None:
    rules = Constraints(torch.eye(3, dtype=torch.bool))
    crf = CRF(3, constraints=rules, constrain="always")
    assert set(crf.state_dict()) == {"transitions", "start", "end"}
    assert crf.to("meta").allowed is not None
    assert crf.allowed is not None
    assert crf.allowed.device.type == "meta"
    assert repr(CRF(3, constraints=rules)) == "CRF(3, constrain='decoding')"


def test_one_seed_gives_the_same_parameters() -> None:
    one, other = (CRF(4, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


class TestForbiddenPaths:
    RULES = Constraints.of_tags(["O", "B-X", "I-X"])

    @pytest.mark.parametrize(
        ("tags", "message"),
        [
            ([[0, 0], [1, 0], [2, 2]], "sequence 1, which at step 2 goes from tag 0 to tag 2"),
            ([[0, 2], [1, 2], [2, 2]], "sequence 1, which at step 0 begins with tag 2"),
        ],
    )
    def test_a_path_that_is_given_as_right_must_be_possible(self, tags: list[list[int]], message: str) -> None:
        emissions, path = torch.zeros(3, 2, 3), torch.tensor(tags)
        crf = CRF(3, constraints=self.RULES, constrain="always")
        for refuse in (lambda: crf.nll(emissions, path), lambda: crf.score(emissions, path), lambda: crf.check(path)):
            with pytest.raises(ForbiddenPathError, match=message):
                refuse()
        later = CRF(3, constraints=self.RULES)
        assert bool(later.nll(emissions, path).isfinite().all())
        with pytest.raises(ForbiddenPathError, match=message):
            later.check(path)

    def test_it_must_end_where_one_may_end(self) -> None:
        crf = CRF(3, constraints=Constraints.of_tags(["O", "B-X", "E-X"], "bioes"), constrain="always")
        with pytest.raises(ForbiddenPathError, match="sequence 0, which at step 1 ends with tag 1"):
            crf.nll(torch.zeros(3, 1, 3), torch.tensor([[0], [1], [2]]), torch.tensor([2]))

    def test_beyond_its_length_it_may_be_anything(self) -> None:
        crf = CRF(3, constraints=self.RULES, constrain="always")
        loss = crf.nll(torch.zeros(3, 1, 3), torch.tensor([[0], [0], [2]]), torch.tensor([2]))
        assert bool(loss.isfinite().all())


@pytest.mark.usefixtures("as_users_have_it")
class TestRefusals:
    CRF, EMISSIONS, TAGS = CRF(3), torch.zeros(4, 2, 3), torch.zeros(4, 2).long()

    @pytest.mark.parametrize(
        ("lengths", "error", "message"),
        [
            (torch.tensor([4, 0]), LengthError, "an empty sequence at 1, wanted lengths from 1 to 4"),
            (torch.tensor([5, 1]), LengthError, "length 5 at 0.*Count the steps"),
            (torch.tensor([4, 4, 4]), ShapeError, r"got \(3,\), wanted \(2,\)"),
            (torch.tensor([4.0, 4.0]), DtypeError, "torch.float32, wanted a tensor of whole numbers"),
            ([4, 4], DtypeError, "got list"),
            (torch.empty(2, dtype=torch.long, device="meta"), DeviceError, "got meta, wanted the CPU"),
        ],
    )
    def test_lengths(self, lengths: Tensor, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            self.CRF.log_partition(self.EMISSIONS, lengths)

    def test_emissions_and_tags_of_another_shape_or_dtype(self) -> None:
        with pytest.raises(ShapeError, match=r"CRF\.emissions: got \(4, 2, 5\), wanted \(steps, batch, 3\)"):
            self.CRF.decode(torch.zeros(4, 2, 5))
        with pytest.raises(LengthError, match="0 steps of 2 sequences"):
            self.CRF.decode(torch.zeros(0, 2, 3))
        with pytest.raises(DtypeError, match=r"CRF\.emissions: got torch.int64"):
            self.CRF.log_partition(self.TAGS)
        with pytest.raises(ShapeError, match=r"CRF\.tags: got \(2, 4\)"):
            self.CRF.nll(self.EMISSIONS, self.TAGS.T)
        with pytest.raises(DtypeError, match=r"CRF\.tags: got torch.float32"):
            self.CRF.nll(self.EMISSIONS, self.TAGS.float())

    @pytest.mark.parametrize("engine", ["auto", "reference"])
    @pytest.mark.parametrize("shape", [(2,), (2, 4), (4, 1), (1, 2), (3, 2), (5, 2), (4, 2, 1), ()])
    def test_weights_of_another_shape(self, shape: tuple[int, ...], engine: str) -> None:
        crf = CRF(3, engine=engine)
        for loss in (crf.score, crf.nll, crf):
            with pytest.raises(ShapeError, match=r"CRF\.weights: got \(.*, wanted \(4, 2\), time first.*expand"):
                loss(self.EMISSIONS, self.TAGS, weights=torch.ones(shape))

    def test_weights_that_are_no_real_numbers_or_elsewhere(self) -> None:
        with pytest.raises(DtypeError, match=r"CRF\.weights: got torch.int64, wanted a tensor of real numbers"):
            self.CRF.nll(self.EMISSIONS, self.TAGS, weights=self.TAGS)
        with pytest.raises(DeviceError, match=r"CRF\.weights: got meta, wanted cpu, as the emissions"):
            self.CRF.nll(self.EMISSIONS, self.TAGS, weights=torch.ones(4, 2, device="meta"))

    @pytest.mark.parametrize("tag", [-100, 3])
    def test_a_tag_that_does_not_exist(self, tag: int) -> None:
        tags = self.TAGS.clone()
        tags[2, 1] = tag
        with pytest.raises(ArgumentError, match=f"got tag {tag} in sequence 1 at step 2, wanted tags from 0 to 2"):
            self.CRF.nll(self.EMISSIONS, tags)
        assert bool(self.CRF.nll(self.EMISSIONS, tags, torch.tensor([4, 2])).isfinite().all())

    def test_settings(self) -> None:
        with pytest.raises(ArgumentError, match=r"CRF\.tags: got 0"):
            CRF(0)
        with pytest.raises(ArgumentError, match=r"CRF\.constrain: got never, wanted one of decoding, always"):
            CRF(3, constrain="never")
        with pytest.raises(ShapeError, match=r"CRF\.constraints: got those of 2 tags, wanted 3 tags"):
            CRF(3, constraints=Constraints(torch.eye(2, dtype=torch.bool)))
        with pytest.raises(ArgumentError, match=r"CRF\.k_best\.k: got 0"):
            self.CRF.k_best(self.EMISSIONS, k=0)
