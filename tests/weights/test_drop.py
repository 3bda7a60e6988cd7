"""Weight drop: what is dropped, when it is drawn, and from where."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils import parametrize

from statewise.errors import ArgumentError, ShapeError
from statewise.weights import WeightDrop, orthogonality_error, redraw_weight_drop, scaled_cayley, weight_drop


def raw_of(module: nn.Module, name: str = "weight_hh") -> Tensor:
    return module.get_parameter(f"parametrizations.{name}.original")


def weight_of(module: nn.Module, name: str = "weight") -> Tensor:
    weight = getattr(module, name)
    assert isinstance(weight, Tensor)
    return weight


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(p=st.floats(0, 0.95), seed=st.integers(0, 2**32 - 1))
def test_entries_are_zero_or_scaled_by_the_keep_probability(p: float, seed: int) -> None:
    drop = WeightDrop(p=p)
    drop.redraw((7, 5), generator=seeded(seed))
    dropped = drop(torch.ones(7, 5))
    kept = dropped[dropped != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - p)))


def test_about_the_right_share_is_dropped_and_the_mean_is_kept() -> None:
    drop = WeightDrop(p=0.3)
    drop.redraw((300, 300), generator=seeded(0))
    dropped = drop(torch.ones(300, 300))
    # Five standard deviations of a mean of 90,000 Bernoulli draws.
    assert abs((dropped == 0).double().mean().item() - 0.3) < 5 * (0.21 / 90_000) ** 0.5
    assert abs(dropped.double().mean().item() - 1) < 5 * (0.3 / 0.7 / 90_000) ** 0.5


def test_the_mask_holds_until_the_next_redraw(generator: torch.Generator) -> None:
    cell = weight_drop(nn.RNNCell(3, 8), "weight_hh", p=0.5)
    redraw_weight_drop(cell, generator)
    first = cell.weight_hh.detach().clone()
    assert torch.equal(cell.weight_hh, first)
    redraw_weight_drop(cell, generator)
    assert not torch.equal(cell.weight_hh, first)


def test_eval_mode_uses_the_raw_weight_and_draws_nothing(generator: torch.Generator) -> None:
    cell = weight_drop(nn.RNNCell(3, 8), "weight_hh", p=0.5)
    redraw_weight_drop(cell, generator)
    cell.eval()
    assert torch.equal(cell.weight_hh, raw_of(cell))
    state = generator.get_state()
    redraw_weight_drop(cell, generator)
    assert torch.equal(generator.get_state(), state)


def test_before_the_first_redraw_nothing_is_dropped() -> None:
    cell = weight_drop(nn.RNNCell(3, 8), "weight_hh", p=0.5)
    assert torch.equal(cell.weight_hh, raw_of(cell))


def test_p_of_zero_changes_nothing(generator: torch.Generator) -> None:
    cell = weight_drop(nn.RNNCell(3, 8), "weight_hh", p=0.0)
    redraw_weight_drop(cell, generator)
    assert torch.equal(cell.weight_hh, raw_of(cell))


def test_the_gradient_reaches_only_kept_entries_with_their_scale(generator: torch.Generator) -> None:
    linear = weight_drop(nn.Linear(4, 4), "weight", p=0.5)
    redraw_weight_drop(linear, generator)
    linear.weight.sum().backward()
    gradient = raw_of(linear, "weight").grad
    assert gradient is not None
    assert torch.equal(gradient, 2.0 * (linear.weight != 0))


def test_one_seed_drops_the_same_entries_in_every_dtype() -> None:
    masks = []
    for dtype in (torch.float16, torch.float32, torch.float64):
        cell = weight_drop(nn.RNNCell(3, 8), "weight_hh", p=0.5).to(dtype)
        redraw_weight_drop(cell, seeded(4))
        assert cell.weight_hh.dtype == dtype
        masks.append(cell.weight_hh == 0)
    assert torch.equal(masks[0], masks[1])
    assert torch.equal(masks[1], masks[2])


def test_redraw_walks_a_whole_model_with_independent_masks() -> None:
    model = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6))
    for layer in model:
        with torch.no_grad():
            layer.get_parameter("weight").fill_(1)
        weight_drop(layer, "weight", p=0.5)
    redraw_weight_drop(model, seeded(0))
    first, second = (weight_of(layer).detach().clone() for layer in model)
    assert not torch.equal(first, second)
    redraw_weight_drop(model, seeded(0))
    assert torch.equal(weight_of(model[0]), first)
    assert torch.equal(weight_of(model[1]), second)


def test_a_torch_lstm_gets_a_new_mask_each_training_call(generator: torch.Generator) -> None:
    names = ["weight_hh_l0", "weight_hh_l1"]
    lstm = weight_drop(nn.LSTM(3, 6, num_layers=2), names, p=0.5, every_forward=True, generator=generator)
    inputs, plain = torch.randn(4, 2, 3, generator=generator), nn.LSTM(3, 6, num_layers=2)
    seen = []
    for _ in range(2):
        output, _ = lstm(inputs)
        seen.append(weight_of(lstm, "weight_hh_l0").detach().clone())
        with torch.no_grad():
            for name, parameter in plain.named_parameters():
                parameter.copy_(getattr(lstm, name))
        torch.testing.assert_close(output, plain(inputs)[0])
    assert not torch.equal(seen[0], seen[1])
    assert not torch.equal(*(lstm.eval()(inputs)[0] for lstm in (lstm, plain)))


def test_the_hook_leaves_the_generator_alone_in_eval_mode(generator: torch.Generator) -> None:
    cell = weight_drop(nn.RNNCell(3, 4), "weight_hh", every_forward=True, generator=generator).eval()
    state = generator.get_state()
    cell(torch.zeros(1, 3))
    assert torch.equal(generator.get_state(), state)


def test_it_composes_with_an_orthogonal_weight(generator: torch.Generator) -> None:
    cell = scaled_cayley(nn.RNNCell(3, 6), "weight_hh", generator=generator)
    weight_drop(cell, "weight_hh", p=0.5)
    redraw_weight_drop(cell, generator)
    assert (cell.weight_hh == 0).any()
    assert orthogonality_error(cell.eval().weight_hh) < 1e-6


def test_within_cached_the_mask_of_the_first_read_holds(generator: torch.Generator) -> None:
    cell = weight_drop(nn.RNNCell(3, 8), "weight_hh", p=0.5)
    with parametrize.cached():
        redraw_weight_drop(cell, generator)
        assert cell.weight_hh is cell.weight_hh
        assert (cell.weight_hh == 0).any()


def test_the_mask_is_not_saved_and_the_raw_weight_is(tmp_path: Path, generator: torch.Generator) -> None:
    source, target = (weight_drop(nn.RNNCell(3, 5), "weight_hh", p=0.5) for _ in range(2))
    redraw_weight_drop(source, generator)
    assert not any("mask" in key for key in source.state_dict())
    torch.save(source.state_dict(), tmp_path / "cell.pt")
    target.load_state_dict(torch.load(tmp_path / "cell.pt", weights_only=True))
    assert torch.equal(raw_of(target), raw_of(source))


def test_a_deep_copy_with_mask_and_hook_draws_on_its_own() -> None:
    cell = weight_drop(nn.RNNCell(3, 5), "weight_hh", p=0.5, every_forward=True, generator=seeded(0))
    cell(torch.zeros(1, 3))
    clone = copy.deepcopy(cell)
    assert torch.equal(clone.weight_hh, cell.weight_hh)
    clone(torch.zeros(1, 3))
    expected = clone.weight_hh.detach().clone()
    cell(torch.zeros(1, 3))
    assert torch.equal(cell.weight_hh, expected)


def test_assigning_a_weight_sets_the_raw_matrix_and_does_not_tie_it(generator: torch.Generator) -> None:
    linear, given_weight = weight_drop(nn.Linear(3, 3), "weight"), torch.eye(3)
    linear.weight = given_weight
    with torch.no_grad():
        raw_of(linear, "weight").add_(1)
    assert torch.equal(given_weight, torch.eye(3))


@pytest.mark.parametrize("p", [-0.1, 1.0, float("nan")])
def test_p_must_be_a_probability_below_one(p: float) -> None:
    with pytest.raises(ArgumentError, match=r"WeightDrop.p: got .*wanted a probability in \[0, 1\)"):
        WeightDrop(p=p)


def test_a_mask_of_another_shape_is_an_error(generator: torch.Generator) -> None:
    drop = WeightDrop(p=0.5)
    drop.redraw((1, 3), generator=generator)
    with pytest.raises(ShapeError, match=r"WeightDrop mask: got shape \(1, 3\), wanted the weight's \(3, 3\)"):
        drop(torch.ones(3, 3))


def test_an_unknown_weight_is_an_error() -> None:
    with pytest.raises(
        ArgumentError, match=r"Linear.weight_hh: got no such weight, wanted one of \['weight', 'bias'\]"
    ):
        weight_drop(nn.Linear(2, 2), ["weight_hh"])


def test_a_generator_without_the_hook_is_an_error(generator: torch.Generator) -> None:
    with pytest.raises(ArgumentError, match="give the generator to redraw_weight_drop"):
        weight_drop(nn.Linear(2, 2), "weight", every_forward=False, generator=generator)


def test_a_module_that_does_not_redraw_gets_a_hook_that_does() -> None:
    lstm, x = weight_drop(nn.LSTM(3, 6), "weight_hh_l0", p=0.5), torch.randn(4, 2, 3)
    assert not torch.equal(lstm(x)[0], lstm(x)[0])
    assert torch.equal(lstm.eval()(x)[0], lstm(x)[0])
