"""What every head that reads words off states must do."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pytest
import torch
from torch import Tensor

from statewise.heads import Head
from support import tolerance

WIDTH, WORDS = 6, 23


class HeadContract(ABC):
    """Inherit, and give a constructor."""

    @abstractmethod
    def make(self) -> Head:
        """A head for states of WIDTH and WORDS words."""

    @pytest.fixture
    def head(self, generator: torch.Generator) -> Head:
        head = self.make().double()
        head.initialise(generator)
        return head.eval()

    @pytest.fixture
    def states(self, generator: torch.Generator) -> Tensor:
        return torch.randn(5, 3, WIDTH, generator=generator, dtype=torch.float64) * 3

    @pytest.fixture
    def targets(self, generator: torch.Generator) -> Tensor:
        return torch.randint(WORDS, (5, 3), generator=generator)

    def test_probabilities_of_every_step_sum_to_one(self, head: Head, states: Tensor) -> None:
        found = head.log_prob(states)
        assert found.shape == (5, 3, WORDS)
        torch.testing.assert_close(found.exp().sum(-1), torch.ones(5, 3, dtype=torch.float64))

    def test_the_loss_is_minus_the_targets_log_probability(self, head: Head, states: Tensor, targets: Tensor) -> None:
        chosen = head.log_prob(states).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
        torch.testing.assert_close(head.nll(states, targets), -chosen, **tolerance(torch.float64))

    def test_gradients_of_loss_and_log_probability_agree(self, head: Head, states: Tensor, targets: Tensor) -> None:
        leaf = states.requires_grad_()
        sources = (leaf, *head.parameters())
        one = torch.autograd.grad(head.nll(leaf, targets).sum(), sources)
        chosen = head.log_prob(leaf).gather(-1, targets.unsqueeze(-1))
        other = torch.autograd.grad(-chosen.sum(), sources)
        for a, b in zip(one, other, strict=True):
            torch.testing.assert_close(a, b, **tolerance(torch.float64))
        assert all(bool(grad.any()) for grad in one)

    def test_a_certain_loss_stays_finite(self, head: Head, targets: Tensor) -> None:
        states = torch.full((5, 3, WIDTH), 300.0, dtype=torch.float64)
        assert bool(head.nll(states, targets).isfinite().all())

    def test_half_precision_states_give_a_loss_in_single_precision(self, states: Tensor, targets: Tensor) -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert self.make().nll(states.float(), targets).dtype == torch.float32

    def test_one_seed_gives_the_same_weights(self) -> None:
        one, other = self.make(), self.make()
        for head in (one, other):
            head.initialise(torch.Generator().manual_seed(5))
        assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
