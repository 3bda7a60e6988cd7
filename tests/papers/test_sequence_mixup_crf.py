"""Known answers for the losses of a mixed conditional random field (Karamzade et al. 2020, section on CRFs)."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from contracts.crf import Problem
from statewise.errors import ArgumentError, LengthError
from statewise.heads import CRF, Constraints, ForbiddenPathError
from statewise.mixup.crf_loss import InconsistentMixtureWarning, mixed_crf_loss
from support import Tolerance, doubles, fill

DOUBLE = torch.float64
FULL = torch.tensor([3])
EMISSIONS = doubles(1, 0, 0.5, -0.5, 0, 2).view(3, 1, 2)
TRANSITIONS = doubles(0.3, -0.2, 0.1, 0.4).view(2, 2)
Y, PARTNER = torch.tensor([[0], [0], [1]]), torch.tensor([[1], [1], [0]])
DIGITS: Tolerance = {"rtol": 0.0, "atol": 5e-8}


def plain(transitions: Tensor, **options: str) -> CRF:
    """A chain without scores for start and end."""
    crf = CRF(len(transitions), **options).double()  # type: ignore[arg-type]
    fill(crf, transitions=transitions, start=0.0, end=0.0)
    return crf


def loss(mode: str, *coefficients: float, emissions: Tensor = EMISSIONS, transitions: Tensor = TRANSITIONS) -> Tensor:
    return mixed_crf_loss(plain(transitions), emissions, Y, PARTNER, doubles(*coefficients)[:, None], FULL, FULL, mode)


def test_the_log_partition_and_both_scores_of_the_example() -> None:
    crf = plain(TRANSITIONS)
    torch.testing.assert_close(crf.log_partition(EMISSIONS), doubles(4.4496026013), rtol=0, atol=5e-11)
    torch.testing.assert_close(crf.score(EMISSIONS, Y), doubles(3.6))
    torch.testing.assert_close(crf.score(EMISSIONS, PARTNER), doubles(0.0))


class TestK17:
    @pytest.mark.parametrize("mode", ["paper", "prefix", "coupled"])
    def test_for_a_constant_coefficient_all_three_are_one(self, mode: str) -> None:
        torch.testing.assert_close(loss(mode, 0.3, 0.3, 0.3), doubles(3.3696026), **DIGITS)

    @pytest.mark.parametrize(
        ("coefficients", "paper", "prefix", "coupled"),
        [((0.9, 0.5, 0.2), 2.8246026, 2.5296026, 2.9396026), ((1.0, 0.0, 1.0), 1.6496026, 2.0496026, 1.7496026)],
    )
    def test_for_coefficients_that_vary_they_differ(
        self, coefficients: tuple[float, ...], paper: float, prefix: float, coupled: float
    ) -> None:
        with pytest.warns(InconsistentMixtureWarning, match="vary in time"):
            torch.testing.assert_close(loss("paper", *coefficients), doubles(paper), **DIGITS)
        torch.testing.assert_close(loss("prefix", *coefficients), doubles(prefix), **DIGITS)
        torch.testing.assert_close(loss("coupled", *coefficients), doubles(coupled), **DIGITS)

    def test_a_shift_that_leaves_the_distribution_alone_changes_the_papers_loss_only(self) -> None:
        emissions, transitions = EMISSIONS.clone(), TRANSITIONS.clone()
        emissions[:2, :, 0] += 7
        transitions[0] -= 7
        moved = {"emissions": emissions, "transitions": transitions}
        before, after = plain(TRANSITIONS).log_partition(EMISSIONS), plain(transitions).log_partition(emissions)
        torch.testing.assert_close(before, after)
        with pytest.warns(InconsistentMixtureWarning):
            torch.testing.assert_close(loss("paper", 0.9, 0.5, 0.2, **moved), doubles(0.3746026), **DIGITS)
        torch.testing.assert_close(loss("coupled", 0.9, 0.5, 0.2, **moved), doubles(2.9396026), **DIGITS)


@pytest.mark.parametrize("gap", [5.0, 10.0, 50.0])
def test_k18_the_papers_loss_has_no_lower_bound(gap: float) -> None:
    emissions = doubles(gap + 700, 0, 0, gap + 700).view(2, 1, 2)
    crf, full = plain(doubles(0, -gap, 0, 0).view(2, 2)), torch.tensor([2])
    arguments = (crf, emissions, torch.zeros(2, 1).long(), torch.ones(2, 1).long(), doubles(1, 0)[:, None], full, full)
    with pytest.warns(InconsistentMixtureWarning):
        torch.testing.assert_close(mixed_crf_loss(*arguments, "paper"), doubles(-gap))
    torch.testing.assert_close(mixed_crf_loss(*arguments, "coupled"), doubles(0.0))
    assert bool(mixed_crf_loss(*arguments, "prefix") >= 0)


@pytest.mark.parametrize("tags", [1, 2, 3, 4])
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 6])
def test_k19_the_log_partition_is_that_of_all_sequences(steps: int, tags: int, generator: torch.Generator) -> None:
    emissions = torch.randn(steps, 1, tags, generator=generator, dtype=DOUBLE)
    crf = plain(torch.randn(tags, tags, generator=generator))
    paths = torch.tensor(list(itertools.product(range(tags), repeat=steps))).T
    all_scores = crf.score(emissions.expand(-1, paths.shape[1], -1), paths)
    torch.testing.assert_close(crf.log_partition(emissions), all_scores.logsumexp(0)[None], rtol=0, atol=1e-10)


@pytest.mark.parametrize("mode", ["paper", "prefix", "coupled"])
def test_k19_the_gradient_of_emissions_is_marginals_less_mixed_tags(mode: str, generator: torch.Generator) -> None:
    emissions = torch.randn(5, 4, 3, generator=generator, dtype=DOUBLE).requires_grad_()
    crf = plain(torch.randn(3, 3, generator=generator))
    tags, partner = torch.randint(3, (2, 5, 4), generator=generator)
    coefficient = torch.rand(4, generator=generator, dtype=DOUBLE).expand(5, 4)
    full = torch.full((4,), 5)
    found = mixed_crf_loss(crf, emissions, tags, partner, coefficient, full, full, mode).sum()
    (grad,) = torch.autograd.grad(found, emissions)
    one_hot = torch.nn.functional.one_hot
    mixed = coefficient[..., None] * one_hot(tags, 3) + (1 - coefficient)[..., None] * one_hot(partner, 3)
    torch.testing.assert_close(grad, crf.marginals(emissions) - mixed)


# --- properties, on fresh inputs


class Mixture:
    """Pairs of unequal lengths with coefficients that vary in time and are sometimes 0 or 1."""

    def __init__(self, generator: torch.Generator) -> None:
        problem, other = (Problem.random(generator, steps=5, batch=6, tags=3) for _ in range(2))
        self.crf, self.tags, self.partner = problem.crf, problem.tags, other.tags
        self.lengths, self.others = problem.lengths, other.lengths
        self.whole = torch.maximum(self.lengths, self.others)
        beyond = torch.arange(5)[:, None] >= self.whole
        values = torch.randn(5, 6, 3, generator=generator, dtype=DOUBLE) * 3
        self.emissions = values.masked_fill(beyond[..., None], float("nan"))
        drawn = torch.rand(5, 6, generator=generator, dtype=DOUBLE) * 1.4 - 0.2
        self.coefficients = drawn.clamp(0, 1).masked_fill(beyond, float("nan"))

    def loss(self, mode: str | None, crf: CRF | None = None, emissions: Tensor | None = None) -> Tensor:
        return mixed_crf_loss(
            self.crf if crf is None else crf,
            self.emissions if emissions is None else emissions,
            *(self.tags, self.partner, self.coefficients, self.lengths, self.others),
            mode,
        )


@pytest.fixture
def mixture(generator: torch.Generator) -> Mixture:
    return Mixture(generator)


@pytest.mark.parametrize("mode", ["prefix", "coupled"])
def test_these_two_are_never_negative(mode: str, mixture: Mixture) -> None:
    assert bool((mixture.loss(mode) >= 0).all())


def test_prefix_mixes_the_losses_of_both_members_each_at_its_own_length(mixture: Mixture) -> None:
    m, crf = mixture, mixture.crf
    inside = torch.arange(5)[:, None] < m.whole
    mean = m.coefficients.where(inside, 0.0).sum(0) / m.whole
    losses = crf.nll(m.emissions, m.tags, m.lengths), crf.nll(m.emissions, m.partner, m.others)
    torch.testing.assert_close(m.loss("prefix"), mean * losses[0] + (1 - mean) * losses[1])


def test_coupled_is_the_expected_loss_of_a_path_that_changes_over_as_rarely_as_possible(mixture: Mixture) -> None:
    m, found = mixture, mixture.loss("coupled")
    for row, length in enumerate(m.whole.tolist()):
        weight = m.coefficients[:, row].clone()
        weight[int(m.others[row]) :], weight[int(m.lengths[row]) :] = 1.0, 0.0
        expected = torch.zeros((), dtype=DOUBLE)
        for members in itertools.product((0, 1), repeat=length):  # which of the two is followed at each step
            probability = weight[0] if members[0] == 0 else 1 - weight[0]
            for step in range(1, length):
                before, after = ((weight[at] if members[step - 1] == 0 else 1 - weight[at]) for at in (step - 1, step))
                stays = torch.minimum(before, after) / before if before > 0 else before
                probability = probability * (stays if members[step] == members[step - 1] else 1 - stays)
            if probability > 0:
                path = torch.stack([(m.tags, m.partner)[member][step, row] for step, member in enumerate(members)])
                expected += probability * m.crf.nll(m.emissions[:length, row : row + 1], path[:, None])[0]
        torch.testing.assert_close(found[row], expected)


def test_coupled_depends_on_the_distribution_alone(mixture: Mixture, generator: torch.Generator) -> None:
    """Scores of a tag may be counted with its step, with the transitions from it, or at the ends."""
    m = mixture
    shift, first = torch.randn(2, 3, generator=generator, dtype=DOUBLE)
    crf = CRF(3).double()
    fill(crf, transitions=m.crf.transitions - shift[:, None], start=m.crf.start - first, end=m.crf.end - shift)
    emissions = m.emissions + shift
    emissions[0] += first
    torch.testing.assert_close(crf.log_partition(emissions, m.whole), m.crf.log_partition(m.emissions, m.whole))
    torch.testing.assert_close(m.loss("coupled", crf, emissions), m.loss("coupled"))


@pytest.mark.parametrize("mode", ["prefix", "coupled"])
def test_gradients_equal_the_references_and_padding_has_none(mode: str, mixture: Mixture) -> None:
    grads = []
    for engine in ("auto", "reference"):
        crf = CRF(3, engine=engine).double()
        crf.load_state_dict(mixture.crf.state_dict())
        leaf = mixture.emissions.clone().requires_grad_()
        grads.append(torch.autograd.grad(mixture.loss(mode, crf, leaf).sum(), [leaf, *crf.parameters()]))
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other)
    assert not bool(grads[0][0][mixture.emissions.isnan()].any())


def test_a_change_that_is_always_forbidden_is_left_out_and_its_weight_given_to_the_rest() -> None:
    rules = Constraints(torch.tensor([[True, False], [True, True]]))
    crf = CRF(2, constraints=rules, constrain="always").double()
    emissions, full = torch.zeros(2, 1, 2, dtype=DOUBLE), torch.tensor([2])
    zeros, ones = torch.zeros(2, 1).long(), torch.ones(2, 1).long()
    found = mixed_crf_loss(crf, emissions, zeros, ones, doubles(0.9, 0.2)[:, None], full, full, "coupled")
    within, beside = 0.2 / 0.3, 0.1 / 0.3
    score = within * crf.transitions[0, 0] + beside * crf.transitions[1, 1]
    score = score + 0.9 * crf.start[0] + 0.1 * crf.start[1] + 0.2 * crf.end[0] + 0.8 * crf.end[1]
    torch.testing.assert_close(found, crf.log_partition(emissions) - score)
    certain = mixed_crf_loss(crf, emissions, zeros, ones, doubles(1, 0)[:, None], full, full, "coupled")
    assert bool(certain.isfinite())
    with pytest.raises(ForbiddenPathError, match="sequence 0, which at step 1 goes from tag 0 to tag 1"):
        mixed_crf_loss(crf, emissions, zeros, torch.tensor([[0], [1]]), doubles(1, 0)[:, None], full, full, "coupled")


def test_unless_asked_for_a_mode_the_loss_is_one_with_a_lower_bound(mixture: Mixture) -> None:
    """Coupled; with changes that are always forbidden that has none, and prefixes serve."""
    torch.testing.assert_close(mixture.loss(None), mixture.loss("coupled"))
    names = ["O", "B-X", "I-X", "E-X", "S-X"]
    crf = CRF(5, constraints=Constraints.of_tags(names, "bioes"), constrain="always").double()
    first, second = torch.tensor([[1], [2], [3], [0], [0]]), torch.tensor([[0], [1], [2], [2], [3]])
    emissions = torch.zeros(5, 1, 5, dtype=DOUBLE, requires_grad=True)
    coefficients, lengths = doubles(0.5, 0.5, 0.5, 0.0, 0.0)[:, None], (torch.tensor([3]), torch.tensor([5]))
    optimizer = torch.optim.Adam([emissions, *crf.parameters()], lr=0.1)
    losses = {}
    for mode in (None, "coupled"):
        for _ in range(150):
            optimizer.zero_grad()
            loss = mixed_crf_loss(crf, emissions, first, second, coefficients, *lengths, mode)
            loss.sum().backward()
            optimizer.step()
        losses[mode] = loss.item()
    assert losses[None] >= 0 > losses["coupled"]


def test_an_unknown_mode_and_unequal_lengths_in_mode_paper_are_refused(mixture: Mixture) -> None:
    with pytest.raises(ArgumentError, match="got mean, wanted one of prefix, paper, coupled"):
        mixture.loss("mean")
    with pytest.raises(LengthError, match=r"wanted pairs of equal length in mode .paper."):
        mixture.loss("paper")
