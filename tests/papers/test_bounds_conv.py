"""The convolutional network of Chen, Li & Zhao 2019, Theorem 6: its known answers, and what its proof gets wrong."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from contracts.passes import seeds
from statewise import ConvRNN
from statewise.bounds.conv import ConvClass
from statewise.bounds.kl import kl_inverse
from statewise.bounds.penalties import theorem_2
from statewise.weights.filters import convolution_matrix

DOUBLE = torch.float64
NET = ConvClass(size=16, filter_size=3, classes=2, steps=10, input_bound=1.0)
MARGIN = 0.5


class TestKnownAnswers:
    """Size 16, 3 filters of length 3, 10 steps, inputs of length at most 1, margin 1/2."""

    def test_of_the_paper(self) -> None:
        """``pen = 2 (4/(mγ) + 24 sqrt(P) r sqrt(ln(8 q m Λ)) / (sqrt(m) γ))``, repaired, at m = 1e6."""
        profile, many = NET.paper(), 1e6
        largest = max(math.log(block.radius) + block.log_lipschitz for block in profile.blocks)
        assert math.exp(largest) == pytest.approx(160, rel=1e-12)
        assert profile.parameters == 27
        assert [block.radius for block in profile.blocks] == [1, 1, 1]
        inner = math.log(8 * len(profile.blocks) * many) + largest
        second = 24 * math.sqrt(profile.parameters * inner / many) * math.exp(profile.log_output) / MARGIN
        assert 2 * (4 / (many * MARGIN) + second) == pytest.approx(9.373517599, rel=1e-9)
        assert theorem_2(profile, gamma=MARGIN, m=int(many)).value == pytest.approx(9.373517599, rel=1e-9)

    def test_of_the_mean_filters(self) -> None:
        profile = NET.tight()
        constants = {block.name: math.exp(block.log_lipschitz) for block in profile.blocks}
        nats = profile.cover_nats(math.log(MARGIN / (2 * math.sqrt(2))))
        assert profile.parameters == 9
        assert math.exp(profile.log_growth) == pytest.approx(1 / math.sqrt(3))
        assert math.exp(profile.log_hidden) == pytest.approx(1.360403900, rel=1e-9)
        assert constants["U"] == pytest.approx(1.802131250, rel=1e-9)
        assert constants["V"] == constants["W"] == pytest.approx(1.360403900, rel=1e-9)
        assert nats == pytest.approx(30.696213291, rel=1e-9)
        assert kl_inverse(0.0, (nats + math.log(1 / 0.05)) / 1e4) == pytest.approx(0.003363525, abs=5e-10)


def stacked(bank: Tensor, size: int) -> Tensor:
    """``W_I``: below each other the valid convolutions with every filter, k(d-k+1) x d."""
    taps, places = len(bank), size - len(bank) + 1
    rows = torch.zeros(taps, places, size, dtype=DOUBLE)
    for channel in range(taps):
        for place in range(places):
            rows[channel, place, place : place + taps] = bank[:, channel]
    return rows.flatten(0, 1)


def pool(taps: int, places: int) -> Tensor:
    """The average of the channels, ``(1/k) [1 ... 1]``."""
    return torch.eye(places, dtype=DOUBLE).repeat(1, taps) / taps


def norm(matrix: Tensor) -> float:
    return float(torch.linalg.matrix_norm(matrix, ord=2))


class TestIdentities:
    @given(seed=seeds, taps=st.integers(1, 6), more=st.integers(0, 8))
    def test_of_orthogonal_filters(self, seed: int, taps: int, more: int) -> None:
        size, places = taps + more, more + 1
        layer = ConvRNN(size, taps, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))
        bank, other = (layer.filters(name)[0].detach() for name in ("weight_ih_l0", "weight_hh_l0"))
        mean, W, average = bank.mean(1), stacked(bank, size), pool(taps, places)
        toeplitz = convolution_matrix(mean, size=size)
        assert float(bank.norm()) == pytest.approx(1, rel=1e-14)
        assert norm(W) <= 1 + 1e-14
        assert norm(average) == pytest.approx(1 / math.sqrt(taps), rel=1e-14)
        assert (average @ W - toeplitz).abs().max() <= 1e-15
        assert float(mean.norm()) == pytest.approx(1 / taps, rel=1e-14)
        assert norm(toeplitz) <= float(mean.abs().sum()) * (1 + 1e-14)
        assert float(mean.abs().sum()) <= 1 / math.sqrt(taps) + 1e-14
        gap = (W - stacked(other, size)).square().sum()
        assert float(gap) == pytest.approx(places * float((bank - other).square().sum()), rel=1e-12, abs=1e-25)
        around = torch.nn.functional.pad(toeplitz, (0, 0, (taps - 1) // 2, taps // 2))
        torch.testing.assert_close(layer.weight_ih_l0.detach(), around, rtol=0, atol=1e-15)


class TestPrintedButWrong:
    def test_the_norm_of_the_pooling_is_not_one(self) -> None:
        assert norm(pool(4, 3)) == pytest.approx(0.5)

    def test_the_squared_distance_of_two_stacks_has_one_term_more(self) -> None:
        """Printed with d-k in the place of d-k+1; at d = k it would be 0."""
        bank = torch.eye(3, dtype=DOUBLE) / math.sqrt(3)
        gap = (stacked(bank, 3) - stacked(-bank, 3)).square().sum()
        assert float(gap) == pytest.approx(4)
