"""The best paths through a chain, against all paths sorted."""

from __future__ import annotations

import pytest
import torch

from contracts.crf import NEVER, Problem, every_path
from statewise.heads import CRF, Constraints


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("k", [1, 2, 7, 100])
def test_the_k_best_are_the_first_of_all_paths_sorted(k: int, constrained: bool, generator: torch.Generator) -> None:
    problem = Problem.random(generator, constrained=constrained, constrain="decoding")
    tags, scores = problem.crf.k_best(problem.emissions, problem.lengths, k=k)
    assert (tags.shape, scores.shape) == ((k, 4, 5), (k, 5))
    for row, length in enumerate(problem.lengths.tolist()):
        paths, values = every_path(problem.crf, problem.emissions[:, row], length, decoding=True)
        order = values.argsort(descending=True)[:k]
        order = order[values[order] != NEVER]
        count = len(order)
        assert torch.equal(tags[:count, :length, row], paths[:, order].T)
        torch.testing.assert_close(scores[:count, row], values[order])
        assert bool((tags[count:, :, row] == -1).all())
        assert bool((scores[count:, row] == NEVER).all())
        assert bool((tags[:, length:, row] == -1).all())
    best, score = problem.crf.decode(problem.emissions, problem.lengths)
    assert torch.equal(best, tags[0])
    assert torch.equal(score, scores[0])
    assert not score.requires_grad


def test_what_is_decoded_obeys_the_constraints_whatever_the_emissions(generator: torch.Generator) -> None:
    rules = Constraints.of_tags(["O", "B-X", "I-X", "E-X", "S-X"], "bioes")
    emissions = torch.randn(12, 50, 5, generator=generator) * 100
    lengths = torch.randint(1, 13, (50,), generator=generator)
    crf = CRF(5, constraints=rules)
    tags, _ = crf.decode(emissions, lengths)
    crf.check(tags, lengths)


def test_where_no_path_exists_there_is_none() -> None:
    crf = CRF(2, constraints=Constraints(torch.zeros(2, 2, dtype=torch.bool)))
    tags, score = crf.decode(torch.zeros(2, 2, 2), torch.tensor([2, 1]))
    assert tags[:, 0].tolist() == [-1, -1]
    assert score.tolist()[0] == NEVER
    assert tags[0, 1] in (0, 1)
    several, scores = crf.k_best(torch.zeros(2, 2, 2), torch.tensor([2, 1]), k=3)
    assert several[:, :, 0].unique().tolist() == [-1]
    assert scores[:, 0].tolist() == [NEVER] * 3
    assert [value == NEVER for value in scores[:, 1].tolist()] == [False, False, True]
