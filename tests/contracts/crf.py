"""What every engine of the conditional random field must do: equal a sum over all sequences, and all its gradients."""

from __future__ import annotations

import itertools
from abc import ABC
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from statewise.heads import CRF, Constraints
from statewise.heads.crf_score import path_score
from statewise.heads.crf_span import Span
from support import tolerance

NEVER = float("-inf")


@dataclass(frozen=True)
class Problem:
    """Emissions with NaN beyond ragged lengths, a chain, and paths through it."""

    crf: CRF
    emissions: Tensor
    tags: Tensor
    lengths: Tensor

    @classmethod
    def random(
        cls,
        generator: torch.Generator,
        *,
        steps: int = 4,
        batch: int = 5,
        tags: int = 3,
        scale: float = 1.0,
        constrained: bool = False,
        **options: Any,
    ) -> Problem:
        """All that a test needs, in double precision; under constraints all paths keep to the first tag."""
        constraints = None
        if constrained:
            allowed, start, end = (
                torch.rand(*size, generator=generator) < 0.6 for size in ((tags, tags), (tags,), (tags,))
            )
            start[0] = end[0] = True
            constraints = Constraints(allowed.fill_diagonal_(True), start, end)
            options["constrain"] = options.get("constrain", "always")
        crf = CRF(tags, constraints=constraints, **options).double()
        with torch.no_grad():
            for parameter in crf.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)
        lengths = torch.randint(1, steps + 1, (batch,), generator=generator)
        lengths[-1] = steps
        emissions = torch.randn(steps, batch, tags, generator=generator, dtype=torch.float64) * scale
        path = torch.randint(tags, (steps, batch), generator=generator)
        path = torch.zeros_like(path) if constrained else path
        beyond = torch.arange(steps)[:, None] >= lengths
        return cls(crf, emissions.masked_fill(beyond[..., None], float("nan")), path.masked_fill(beyond, -100), lengths)

    def like(self, engine: str, dtype: torch.dtype) -> Problem:
        """The same in another dtype, for another engine."""
        crf = CRF(self.crf.tags, constraints=self.crf.constraints, constrain=self.crf.constrain, engine=engine)
        crf.load_state_dict(self.crf.state_dict())
        return Problem(
            crf.to(torch.promote_types(dtype, torch.float32)), self.emissions.to(dtype), self.tags, self.lengths
        )

    def rounded(self, dtype: torch.dtype) -> Problem:
        """The same with the numbers that are left in another dtype, back in double precision."""
        problem = self.like("reference", dtype)
        return Problem(problem.crf.double(), problem.emissions.double(), self.tags, self.lengths)


def every_path(crf: CRF, emissions: Tensor, length: int, *, decoding: bool = False) -> tuple[Tensor, Tensor]:
    """All paths of a length, (length, paths), and their scores, -inf if forbidden, written out term by term.

    Args:
        crf: the chain.
        emissions: (steps, tags) of one sequence.
        length: of the paths.
        decoding: whether constraints for decoding count.
    """
    paths = torch.tensor(list(itertools.product(range(crf.tags), repeat=length))).T
    found = crf.start[paths[0]] + crf.end[paths[-1]]
    possible = torch.ones(paths.shape[1], dtype=torch.bool)
    rules = crf.constraints if decoding or crf.constrain == "always" else None
    if rules is not None:
        assert rules.start is not None
        assert rules.end is not None
        possible &= rules.start[paths[0]] & rules.end[paths[-1]]
    for step in range(length):
        found = found + emissions[step][paths[step]]
        if step:
            found = found + crf.transitions[paths[step - 1], paths[step]]
            possible &= True if rules is None else rules.allowed[paths[step - 1], paths[step]]
    return paths, torch.where(possible, found, NEVER)


def enumerated_prefixes(crf: CRF, emissions: Tensor, lengths: Tensor) -> Tensor:
    """``log Z`` of every prefix by enumeration, 0 beyond the lengths."""
    rows = []
    for row, length in enumerate(lengths.tolist()):
        found = []
        for until in range(1, length + 1):
            scores = every_path(crf, emissions[:, row], until)[1]
            possible = scores[scores != NEVER]
            found.append(possible.logsumexp(0) if len(possible) else scores.new_tensor(NEVER))
        rows.append(torch.stack(found + [emissions.new_zeros(())] * (len(emissions) - length)))
    return torch.stack(rows, 1)


def gradients(value: Tensor, crf: CRF, emissions: Tensor) -> list[Tensor]:
    """Those of emissions, transitions, start and end; zeros for what has no part in it."""
    return list(torch.autograd.grad(value, [emissions, *crf.parameters()], materialize_grads=True))


def weighed(prefixes: Tensor, weights: Tensor) -> Tensor:
    """A sum in which what is impossible has no part."""
    return (torch.where(prefixes == NEVER, 0.0, prefixes) * weights.to(prefixes)).sum()


def assert_alike(found: list[Tensor], expected: list[Tensor], dtype: torch.dtype, scale: float = 1.0) -> None:
    """Equal up to what the dtype rounds, of numbers as large as ``scale``."""
    close = tolerance(dtype)
    close["atol"] *= max(1.0, scale)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.detach().double(), other.detach().double(), **close)


class ChainContract(ABC):
    """Inherit, and name the engine and its dtypes."""

    engine: ClassVar[str]
    dtypes: ClassVar[tuple[torch.dtype, ...]]
    sizes: ClassVar[tuple[tuple[int, int, int], ...]] = ((13, 7, 9), (5, 3, 33), (1, 4, 2), (6, 1, 1))

    def both(self, problem: Problem, dtype: torch.dtype) -> tuple[Problem, Problem]:
        """The engine's problem, and the truth's on the same numbers; emissions of both are leaves."""
        mine, truth = problem.like(self.engine, dtype), problem.rounded(dtype)
        mine.emissions.requires_grad_()
        truth.emissions.requires_grad_()
        assert mine.crf.plan(mine.emissions) == self.engine
        return mine, truth

    @pytest.mark.parametrize("constrained", [False, True])
    def test_prefixes_and_all_gradients_equal_the_sum_over_all_sequences(
        self, constrained: bool, generator: torch.Generator
    ) -> None:
        for dtype in self.dtypes:
            mine, truth = self.both(Problem.random(generator, constrained=constrained), dtype)
            found = mine.crf.prefix_log_partitions(mine.emissions, mine.lengths)
            expected = enumerated_prefixes(truth.crf, truth.emissions, truth.lengths)
            assert_alike([found], [expected], found.dtype)
            weights = torch.randn(found.shape, generator=generator)
            grads = gradients(weighed(found, weights), mine.crf, mine.emissions)
            right = gradients(weighed(expected, weights), truth.crf, truth.emissions)
            assert_alike(grads[:1], right[:1], dtype)
            assert_alike(grads[1:], right[1:], found.dtype, scale=10)

    def test_losses_and_all_gradients_equal_those_of_enumeration(self, generator: torch.Generator) -> None:
        for dtype in self.dtypes:
            mine, truth = self.both(Problem.random(generator, constrained=True), dtype)
            found = mine.crf.nll(mine.emissions, mine.tags, mine.lengths)
            losses = []
            for row, length in enumerate(truth.lengths.tolist()):
                scores = every_path(truth.crf, truth.emissions[:, row], length)[1]
                losses.append(scores[scores != NEVER].logsumexp(0) - scores[0])  # the path of the first tag alone
            expected = torch.stack(losses)
            assert_alike([found], [expected], found.dtype)
            grads = gradients(found.sum(), mine.crf, mine.emissions)
            right = gradients(expected.sum(), truth.crf, truth.emissions)
            assert_alike(grads[:1], right[:1], dtype)
            assert_alike(grads[1:], right[1:], found.dtype, scale=10)

    @pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
    @pytest.mark.parametrize("constrained", [False, True])
    def test_larger_problems_equal_the_reference(
        self, constrained: bool, scale: float, generator: torch.Generator
    ) -> None:
        dtype = self.dtypes[0]
        for steps, batch, tags in self.sizes:
            problem = Problem.random(
                generator, steps=steps, batch=batch, tags=tags, scale=scale, constrained=constrained
            )
            mine, truth = self.both(problem, dtype)
            for every in (True, False):
                values = [
                    each.crf.prefix_log_partitions(each.emissions, each.lengths)
                    if every
                    else each.crf.log_partition(each.emissions, each.lengths)
                    for each in (mine, truth)
                ]
                assert_alike(values[:1], values[1:], dtype, scale)
                weights = torch.randn(values[0].shape, generator=generator)
                grads, right = (
                    gradients(weighed(value, weights), each.crf, each.emissions)
                    for value, each in zip(values, (mine, truth), strict=True)
                )
                assert_alike(grads, right, dtype, scale * 10)

    def test_weighted_scores_and_all_gradients_equal_the_reference(self, generator: torch.Generator) -> None:
        dtype = self.dtypes[0]
        mine, truth = self.both(Problem.random(generator, steps=9, tags=5), dtype)
        weights = torch.rand(9, 5, generator=generator).masked_fill(mine.tags == -100, float("nan"))
        weights[0, 0] = 0.0
        values = [each.crf.nll(each.emissions, each.tags, each.lengths, weights=weights) for each in (mine, truth)]
        assert_alike(values[:1], values[1:], dtype, scale=10)
        grads, right = (
            gradients(value.sum(), each.crf, each.emissions) for value, each in zip(values, (mine, truth), strict=True)
        )
        assert_alike(grads, right, dtype, scale=10)

    def test_transitions_may_have_weights_of_their_own(self, generator: torch.Generator) -> None:
        dtype = self.dtypes[0]
        mine, truth = self.both(Problem.random(generator, steps=9, tags=5), dtype)
        weights, pairs = torch.rand(9, 5, generator=generator), torch.rand(8, 5, generator=generator)
        for given in (weights, None):
            values, grads = [], []
            for each in (mine, truth):
                span = Span.of(each.lengths, each.emissions)
                made = each.crf.alike(each.emissions), each.tags, span
                value = path_score(*made[0], *made[1:], weights=given, pair_weights=pairs, engine=each.crf.engine)
                values.append(value)
                grads.append(gradients(value.sum(), each.crf, each.emissions))
            assert_alike(values[:1], values[1:], dtype, scale=10)
            assert_alike(grads[0], grads[1], dtype, scale=10)

    def test_where_nothing_is_possible_gradients_are_zero(self) -> None:
        none = Constraints(torch.ones(2, 2, dtype=torch.bool), torch.tensor([False, False]))
        crf = CRF(2, constraints=none, constrain="always", engine=self.engine).to(self.dtypes[0])
        emissions = torch.zeros(3, 1, 2, dtype=self.dtypes[0], requires_grad=True)
        found = crf.log_partition(emissions)
        assert found.item() == NEVER
        assert not any(bool(grad.any()) for grad in gradients(found.sum(), crf, emissions))

    @pytest.mark.parametrize("mask", [-1e12, -1e17, -1e30])
    def test_large_finite_masks_leave_every_step_one_path(self, mask: float, generator: torch.Generator) -> None:
        """A step that is masked everywhere, and another in part: the marginals of each step still add up to 1."""
        crf = CRF(20, engine=self.engine).to(self.dtypes[0])
        emissions = torch.randn(12, 2, 20, generator=generator, dtype=self.dtypes[0])
        emissions[0], emissions[6, :, 3:] = mask, mask
        (found,) = torch.autograd.grad(crf.log_partition(emissions.requires_grad_()).sum(), emissions)
        torch.testing.assert_close(found.sum(2), torch.ones(12, 2, dtype=found.dtype), **tolerance(found.dtype))

    def test_a_nan_within_a_sequence_is_not_hidden(self) -> None:
        crf = CRF(3, engine=self.engine).to(self.dtypes[0])
        emissions = torch.zeros(3, 2, 3, dtype=self.dtypes[0])
        emissions[1, 0, 1] = float("nan")
        assert crf.log_partition(emissions).isnan().tolist() == [True, False]
