"""Descriptions of networks are proper prefix codes, find what was rounded, and cost what the formulas say."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from statewise.bounds.description import _mixture_nats
from statewise.bounds.grid import nats, prefix_nats
from statewise.bounds.levels import find_levels, round_to_levels
from statewise.bounds.quantised import (
    describe,
    integer_nats,
    occam_certificate,
    quantise,
    quantise_,
    rounded,
)
from statewise.errors import ArgumentError


def noise(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("prior", ["counted", "adaptive"])
def test_each_code_of_integers_has_probabilities_that_sum_to_one(prior: str) -> None:
    weight = {"counted": 1.0, "adaptive": 0.5}[prior]
    total = sum(
        math.exp(-_mixture_nats([word.count(level) for level in range(3)], weight))
        for word in itertools.product(range(3), repeat=6)
    )
    assert total == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("levels", [2, 3, 4])
def test_the_best_of_the_forms_obeys_krafts_inequality(levels: int) -> None:
    """The name of the form is paid for, and then no code may promise more than there is."""
    lowest = -(levels // 2)
    words = torch.cartesian_prod(*[torch.arange(lowest, lowest + levels)] * 4).view(-1, 2, 2)
    assert sum(math.exp(-integer_nats(word, levels=levels)[1] - math.log(4)) for word in words) <= 1


def test_the_counted_form_is_the_multinomial_coefficient_and_the_number_of_count_vectors() -> None:
    integers = torch.tensor([0] * 5 + [1] * 4 + [-1] * 3)
    arrangements = math.factorial(12) / (math.factorial(5) * math.factorial(4) * math.factorial(3))
    assert _mixture_nats([3, 5, 4], 1.0) == pytest.approx(math.log(arrangements * math.comb(14, 2)), rel=1e-12)
    assert integer_nats(integers, levels=3)[1] <= math.log(arrangements * math.comb(14, 2))


@pytest.mark.parametrize("levels", [2, 3, 4, 5, 7, 16, 31])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_what_was_rounded_is_found_again(levels: int, dtype: torch.dtype) -> None:
    tensor = noise(20, 10, seed=levels).to(dtype)
    held = quantise(tensor, levels=levels)
    found = find_levels(held.dequantise(dtype))
    assert found is not None
    assert found.index == held.index
    assert found.levels <= levels
    assert torch.equal(found.integers, held.integers)


@given(index=st.integers(-120, 40), levels=st.integers(2, 40), seed=st.integers(0, 10**6))
def test_a_found_step_gives_the_tensor_back_exactly(index: int, levels: int, seed: int) -> None:
    tensor = round_to_levels(noise(30, seed=seed) * 2.0 ** (index / 8), levels=levels, index=index).dequantise()
    found = find_levels(tensor)
    assert found is not None
    assert torch.equal(found.dequantise(), tensor + 0.0)
    assert found.levels <= levels


def test_any_float_as_a_step_is_found_and_its_bits_are_paid() -> None:
    integers = torch.randint(-3, 4, (50, 40), generator=torch.Generator().manual_seed(0))
    tensor = integers.float() * torch.tensor(0.123456789)
    part = describe({"w": tensor}).tensors[0]
    assert part.levels == 7
    expected = math.log(5) + prefix_nats(7) + math.log(2) + 32 * math.log(2) + integer_nats(integers, levels=7)[1]
    assert part.nats == pytest.approx(expected, rel=1e-12)


def test_a_tensor_off_the_levels_costs_its_raw_bits() -> None:
    layer = nn.Linear(6, 5)
    description = describe(layer)
    assert [part.form for part in description.tensors] == ["raw", "raw"]
    assert description.nats == pytest.approx(35 * 32 * math.log(2) + 2 * math.log(5), rel=1e-12)
    assert describe(layer.double()).nats == pytest.approx(35 * 64 * math.log(2) + 2 * math.log(5), rel=1e-12)


def test_one_number_off_the_levels_by_one_unit_in_the_last_place_is_noticed() -> None:
    tensor = quantise(noise(30, 30), levels=3).dequantise()
    assert describe({"w": tensor}).tensors[0].levels == 3
    tensor[3, 4] = torch.nextafter(tensor[tensor > 0][0], torch.tensor(10.0))
    part = describe({"w": tensor}).tensors[0]
    assert part.levels is None or part.levels > 1000


def test_every_nat_of_a_ternary_matrix() -> None:
    held = quantise(noise(30, 20), levels=3)
    part = describe({"w": held.dequantise()}).tensors[0]
    assert held.index is not None
    form, length = integer_nats(held.integers, levels=3)
    expected = math.log(5) + prefix_nats(3) + math.log(2) + nats(held.index) + length
    assert part.form == form
    assert part.nats == pytest.approx(expected, rel=1e-12)
    assert length <= 600 * math.log(3)


def test_pruned_weights_are_cheap() -> None:
    tensor = noise(40, 40)
    full = describe({"w": quantise(tensor, levels=3).dequantise()}).nats
    tensor[noise(40, 40, seed=1) < 1.5] = 0
    sparse = describe({"w": quantise(tensor, levels=3, scale=1.0).dequantise()}).nats
    assert sparse < 0.4 * full
    gone = noise(40, 40)
    gone[5:], gone[:, 6:] = 0, 0
    part = describe({"w": quantise(gone, levels=15).dequantise()}).tensors[0]
    assert part.form == "supported"
    assert part.nats < 80 * math.log(2) + 30 * math.log(15) + 60


def test_zeros_cost_next_to_nothing() -> None:
    assert describe({"w": torch.zeros(100, 100)}).nats < 30
    assert find_levels(torch.zeros(0)) is None


def test_tied_weights_are_described_once_and_fixed_ones_not_at_all() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(7, 4)
            self.decoder = nn.Linear(4, 7, bias=False)
            self.decoder.weight = self.embedding.weight

    assert describe(Tied()).entries == 28
    assert describe(nn.Linear(4, 3), fixed=["weight"]).entries == 3
    with pytest.raises(ArgumentError, match="names among"):
        describe(nn.Linear(4, 3), fixed=["wait"])


@pytest.mark.parametrize("cell", [nn.RNN, nn.GRU, nn.LSTM])
def test_a_recurrent_network_rounded_in_place(cell: type[nn.Module]) -> None:
    network = quantise_(cell(5, 6), levels=3, levels_of={"bias_hh_l0": 9})
    assert all(part.levels is not None and part.levels <= 9 for part in describe(network).tensors)
    assert describe(network.state_dict()) == describe(network)


def test_training_with_rounded_weights_sees_the_network_that_is_certified() -> None:
    free = noise(30, 20).requires_grad_()
    scale = torch.tensor(0.7).requires_grad_()
    seen = rounded(free, levels=5, scale=scale)
    assert torch.equal(seen, quantise(free, levels=5, scale=0.7).dequantise())
    seen.square().sum().backward()
    assert free.grad is not None
    assert scale.grad is not None
    inside = (free.detach() / 0.7).abs() < 2
    assert torch.allclose(free.grad[inside], 2 * seen.detach()[inside])
    assert not free.grad[~inside].any()
    assert scale.grad.abs() > 0


def test_the_chosen_scale_is_the_best_of_the_grid() -> None:
    tensor = noise(50, 10)
    chosen = quantise(tensor, levels=4)
    error = (chosen.dequantise() - tensor).square().sum()
    assert all(
        error <= (round_to_levels(tensor, levels=4, index=index).dequantise() - tensor).square().sum()
        for index in range(-64, 64)
    )


def test_bits_are_levels() -> None:
    tensor = noise(10)
    assert torch.equal(quantise(tensor, bits=math.log2(3)).integers, quantise(tensor, levels=3).integers)
    assert quantise(tensor, bits=4).levels == 16
    with pytest.raises(ArgumentError, match="whole"):
        quantise(tensor, bits=1.7)
    with pytest.raises(ArgumentError, match="at least 2"):
        quantise(tensor, levels=1)
    with pytest.raises(ArgumentError, match="finite"):
        quantise(torch.tensor([math.nan]), levels=3)


def test_the_certificate_is_the_inverted_chernoff_bound() -> None:
    assert occam_certificate(errors=0, m=100, nats=10 - math.log(20), delta=0.05) == pytest.approx(-math.expm1(-0.1))
    with pytest.raises(ArgumentError):
        occam_certificate(errors=5, m=4, nats=1, delta=0.05)
    with pytest.raises(ArgumentError):
        occam_certificate(errors=1, m=4, nats=1, delta=0.0)


def test_networks_chosen_by_looking_at_random_labels_are_not_believed() -> None:
    """The best of all 3^8 ternary linear rules on coin flips: its training error lies, its certificate does not."""
    m, dimension = 64, 8
    inputs = noise(m, dimension, seed=3)
    labels = noise(m, seed=4) > 0
    rules = torch.cartesian_prod(*[torch.tensor([-1, 0, 1])] * dimension)
    errors = ((inputs @ rules.float().T > 0) != labels[:, None]).sum(0)
    best = int(errors.argmin())
    assert errors[best] < 0.36 * m
    length = integer_nats(rules[best], levels=3)[1]
    assert occam_certificate(errors=int(errors[best]), m=m, nats=length, delta=0.05) > 0.5
