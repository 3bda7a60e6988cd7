"""The scaled Cayley parametrization: what it maps to, back from, and how it lives in a module."""

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
from statewise.weights import (
    ScaledCayley,
    haar_orthogonal_,
    initial_skew,
    nearest_orthogonal,
    orthogonality_error,
    rotation_entries,
    scaled_cayley,
    skew_matrix,
)
from statewise.weights.skew import inverse_without_pivots
from support import tolerance

SEEDS = st.integers(0, 2**32 - 1)


def entries(size: int, seed: int, *, scale: float = 1.0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(size * (size - 1) // 2, generator=generator, dtype=dtype)


def theta_of(module: nn.Module, name: str = "weight_hh") -> nn.Parameter:
    original = module.get_parameter(f"parametrizations.{name}.original")
    assert isinstance(original, nn.Parameter)
    return original


# --- the map ---------------------------------------------------------------------------------------------------------


@given(size=st.integers(1, 12), scale=st.sampled_from([1e-3, 1.0, 1e3]), seed=SEEDS, data=st.data())
def test_every_theta_gives_an_orthogonal_matrix_with_the_determinant_of_rho(
    size: int, scale: float, seed: int, data: st.DataObject
) -> None:
    rho = data.draw(st.integers(0, size))
    weight = ScaledCayley(size, rho=rho)(entries(size, seed, scale=scale))
    assert orthogonality_error(weight) < 1e-11 * max(1.0, scale)
    torch.testing.assert_close(torch.linalg.det(weight), torch.tensor((-1.0) ** rho).double(), rtol=1e-8, atol=0)


@given(size=st.integers(1, 10), seed=SEEDS)
def test_the_map_is_the_printed_formula_with_explicit_inverses(size: int, seed: int) -> None:
    theta, constraint = entries(size, seed), ScaledCayley(size)
    upper = torch.zeros(size, size, dtype=torch.float64)
    position = 0
    for i in range(size):
        for j in range(i + 1, size):
            upper[i, j] = theta[position]
            position += 1
    skew, eye = upper - upper.T, torch.eye(size, dtype=torch.float64)
    expected = torch.linalg.inv(eye + skew) @ (eye - skew) @ torch.diag(constraint.signs.double())
    torch.testing.assert_close(constraint(theta), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_weight_has_the_dtype_of_theta_and_only_its_rounding_error(dtype: torch.dtype) -> None:
    theta = entries(64, 0, dtype=torch.float64).to(dtype)
    weight = ScaledCayley(64)(theta)
    assert weight.dtype == dtype
    # Rounding W moves W W^T by at most 2 ||rounding||_F <= eps ||W||_F = 8 eps.
    assert orthogonality_error(weight) <= 8.1 * torch.finfo(dtype).eps + 1e-12


def test_default_signs_are_half_ones_then_minus_ones() -> None:
    assert ScaledCayley(6).signs.tolist() == [1, 1, 1, -1, -1, -1]
    assert ScaledCayley(5).signs.tolist() == [1, 1, -1, -1, -1]
    assert ScaledCayley(5).rho == 3
    assert ScaledCayley(4, rho=1).signs.tolist() == [1, 1, 1, -1]


def test_size_one_has_no_parameters_and_is_plus_or_minus_one() -> None:
    assert ScaledCayley(1, rho=0)(torch.empty(0)).tolist() == [[1.0]]
    assert ScaledCayley(1, rho=1)(torch.empty(0)).tolist() == [[-1.0]]


def test_first_and_second_derivatives_pass_gradcheck() -> None:
    theta = entries(4, 3).requires_grad_()
    assert torch.autograd.gradcheck(ScaledCayley(4), theta)
    assert torch.autograd.gradgradcheck(ScaledCayley(4), theta)


def test_the_map_works_under_vmap() -> None:
    thetas = torch.stack([entries(5, seed) for seed in range(3)])
    constraint = ScaledCayley(5)
    expected = torch.stack([constraint(theta) for theta in thetas])
    torch.testing.assert_close(torch.func.vmap(constraint)(thetas), expected)
    gradients = torch.func.vmap(torch.func.grad(lambda theta: constraint(theta).pow(3).sum()))(thetas)
    assert gradients.shape == thetas.shape
    assert gradients.isfinite().all()


# --- the inverse -----------------------------------------------------------------------------------------------------


@given(size=st.integers(1, 12), seed=SEEDS, dtype=st.sampled_from([torch.float32, torch.float64]))
def test_right_inverse_returns_the_theta_that_made_the_weight(size: int, seed: int, dtype: torch.dtype) -> None:
    theta, constraint = entries(size, seed, scale=0.5, dtype=dtype), ScaledCayley(size)
    found = constraint.right_inverse(constraint(theta))
    assert found.dtype == dtype
    # The inverse amplifies the rounding of W by at most |1 + A|^2 / 2.
    amplification = float(1 + torch.linalg.matrix_norm(skew_matrix(theta, size=size), ord=2) ** 2)
    torch.testing.assert_close(found, theta, rtol=0, atol=20 * size * amplification * torch.finfo(dtype).eps)


@given(size=st.integers(1, 16), seed=SEEDS, dtype=st.sampled_from([torch.float32, torch.float64]))
def test_every_orthogonal_matrix_is_reached_with_the_signs_made_for_it(
    size: int, seed: int, dtype: torch.dtype
) -> None:
    weight = haar_orthogonal_(torch.empty(size, size, dtype=dtype), generator=torch.Generator().manual_seed(seed))
    constraint = ScaledCayley(size, signs=ScaledCayley.signs_for(weight))
    theta = constraint.right_inverse(weight)
    assert theta.numel() == 0 or theta.abs().max() <= 1 + 1e-5
    torch.testing.assert_close(constraint(theta), weight, **tolerance(dtype))


def test_right_inverse_of_a_weight_with_rounding_errors_is_that_of_the_nearest_orthogonal_matrix(
    generator: torch.Generator,
) -> None:
    constraint = ScaledCayley(32)
    noise = 1e-6 * torch.randn(32, 32, generator=generator)
    weight = constraint(0.2 * torch.randn(32 * 31 // 2, generator=generator)) + noise
    back = constraint(constraint.right_inverse(weight))
    torch.testing.assert_close(back, nearest_orthogonal(weight), rtol=0, atol=5e-7)


def test_right_inverse_rejects_a_matrix_that_is_not_orthogonal(generator: torch.Generator) -> None:
    with pytest.raises(
        ArgumentError, match=r"ScaledCayley weight: got a matrix with max\|W W\^T - I\|.*haar_orthogonal_"
    ):
        ScaledCayley(4).right_inverse(torch.randn(4, 4, generator=generator))


def test_right_inverse_rejects_nan() -> None:
    with pytest.raises(ArgumentError, match="NaN or infinity"):
        ScaledCayley(3).right_inverse(torch.full((3, 3), torch.nan))


def test_right_inverse_rejects_another_shape() -> None:
    with pytest.raises(ShapeError, match=r"got shape \(12, 3\), wanted a square matrix \(3, 3\).*gatewise=True"):
        ScaledCayley(3).right_inverse(torch.zeros(12, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_right_inverse_names_the_wrong_component_and_the_remedy(dtype: torch.dtype) -> None:
    """A weight of determinant +1 has no theta under a D of determinant -1: W D has the eigenvalue -1."""
    weight = ScaledCayley(5, rho=2)(entries(5, 0, dtype=dtype))
    with pytest.raises(
        ArgumentError, match=r"eigenvalue .* from -1.*Choose another rho, or signs=ScaledCayley.signs_for"
    ):
        ScaledCayley(5, rho=3).right_inverse(weight)


def test_right_inverse_rejects_an_eigenvalue_that_is_nearly_minus_one() -> None:
    angle = torch.tensor(torch.pi - 1e-9, dtype=torch.float64)
    rotation = torch.stack([angle.cos(), angle.sin(), -angle.sin(), angle.cos()]).reshape(2, 2)
    with pytest.raises(ArgumentError, match="from -1"):
        ScaledCayley(2, rho=0).right_inverse(rotation)
    assert ScaledCayley(2, signs=ScaledCayley.signs_for(rotation)).right_inverse(rotation).abs().max() < 1


# --- construction ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [-1, 5])
def test_rho_outside_its_range_is_an_error(rho: int) -> None:
    with pytest.raises(ArgumentError, match=rf"ScaledCayley.rho: got {rho}, wanted an integer in 0..4"):
        ScaledCayley(4, rho=rho)


def test_size_zero_is_an_error() -> None:
    with pytest.raises(ArgumentError, match=r"ScaledCayley\.size"):
        ScaledCayley(0)


@pytest.mark.parametrize("signs", [[1.0, 0.0], [1.0], [2.0, 1.0]])
def test_signs_must_be_plus_or_minus_one_in_the_right_number(signs: list[float]) -> None:
    with pytest.raises(ArgumentError, match=r"ScaledCayley.signs: .*wanted \+1 and -1 in shape \(2,\)"):
        ScaledCayley(2, signs=torch.tensor(signs))


def test_rho_and_signs_together_are_an_error() -> None:
    with pytest.raises(ArgumentError, match="rho or signs, not both"):
        ScaledCayley(2, rho=1, signs=torch.tensor([1.0, -1.0]))


def test_theta_of_the_wrong_length_is_an_error() -> None:
    with pytest.raises(ShapeError, match=r"got 5 entries, wanted 4 \* 3 / 2 = 6 strictly upper entries"):
        ScaledCayley(4)(torch.zeros(5))


def test_angles_of_the_wrong_number_are_an_error() -> None:
    with pytest.raises(ShapeError, match="got 3 angles, wanted size // 2 = 2"):
        rotation_entries(torch.zeros(3), size=5)


# --- the initial state -----------------------------------------------------------------------------------------------


@given(size=st.integers(1, 12), seed=SEEDS)
def test_initial_entries_are_plane_rotations_by_at_most_a_quarter_turn(size: int, seed: int) -> None:
    theta = initial_skew(size, generator=torch.Generator().manual_seed(seed))
    assert ((theta > -1) & (theta <= 0)).all()
    rotation = ScaledCayley(size, rho=0)(theta)
    for j in range(size // 2):
        block = rotation[2 * j : 2 * j + 2, 2 * j : 2 * j + 2]
        cosine, sine = block[0].tolist()
        assert cosine >= 0
        assert sine >= 0
        torch.testing.assert_close(block, torch.tensor([[cosine, sine], [-sine, cosine]], dtype=torch.float64))
    if size % 2:
        assert rotation[-1].tolist() == [0.0] * (size - 1) + [1.0]


def test_the_verb_starts_from_exactly_the_drawn_entries() -> None:
    cell = scaled_cayley(nn.RNNCell(2, 16), "weight_hh", generator=torch.Generator().manual_seed(5))
    expected = initial_skew(16, generator=torch.Generator().manual_seed(5)).float()
    assert torch.equal(theta_of(cell), expected)


def test_the_generator_alone_decides_the_initial_weight() -> None:
    first, again, other = (
        scaled_cayley(nn.RNNCell(2, 8), "weight_hh", generator=torch.Generator().manual_seed(seed)).weight_hh
        for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


# --- in a module -----------------------------------------------------------------------------------------------------


def test_the_verb_leaves_only_the_free_entries_as_parameter(generator: torch.Generator) -> None:
    cell = nn.RNNCell(3, 7, bias=False)
    known_to_optimiser = cell.weight_hh
    assert scaled_cayley(cell, "weight_hh", generator=generator) is cell
    assert theta_of(cell) is known_to_optimiser
    assert sum(parameter.numel() for parameter in cell.parameters()) == 7 * 3 + 7 * 6 // 2
    assert isinstance(cell.parametrizations.weight_hh[0], ScaledCayley)  # type: ignore[index, union-attr]


def test_a_torch_rnn_runs_with_the_orthogonal_weight_and_trains_it(generator: torch.Generator) -> None:
    rnn, plain = scaled_cayley(nn.RNN(3, 6), "weight_hh_l0", generator=generator), nn.RNN(3, 6)
    with torch.no_grad():
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
            plain.get_parameter(name).copy_(getattr(rnn, name))
    inputs = torch.randn(5, 2, 3, generator=generator)
    torch.testing.assert_close(rnn(inputs)[0], plain(inputs)[0])
    optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = rnn(inputs)[0].square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert isinstance(rnn.weight_hh_l0, Tensor)
    assert orthogonality_error(rnn.weight_hh_l0) < 1e-6


def test_assigning_an_orthogonal_weight_sets_theta(generator: torch.Generator) -> None:
    cell = scaled_cayley(nn.RNNCell(2, 6), "weight_hh", generator=generator)
    target = ScaledCayley(6)(0.3 * torch.randn(15, generator=generator))
    cell.weight_hh = target
    torch.testing.assert_close(cell.weight_hh, target, **tolerance(torch.float32))


def test_keep_starts_from_the_present_weight(generator: torch.Generator) -> None:
    linear = nn.Linear(9, 9, bias=False)
    haar_orthogonal_(linear.weight, generator=generator)
    before = linear.weight.detach().clone()
    scaled_cayley(linear, "weight", keep=True)
    torch.testing.assert_close(linear.weight.detach(), before, **tolerance(torch.float32))


def test_removing_the_parametrization_leaves_the_orthogonal_weight(generator: torch.Generator) -> None:
    cell = scaled_cayley(nn.RNNCell(2, 6), "weight_hh", generator=generator)
    before = cell.weight_hh.detach().clone()
    parametrize.remove_parametrizations(cell, "weight_hh")
    assert isinstance(cell.weight_hh, nn.Parameter)
    assert torch.equal(cell.weight_hh, before)
    scaled_cayley(cell, "weight_hh", keep=True)
    torch.testing.assert_close(cell.weight_hh.detach(), before, **tolerance(torch.float32))


def test_cached_computes_the_weight_once(generator: torch.Generator) -> None:
    cell = scaled_cayley(nn.RNNCell(2, 4), "weight_hh", generator=generator)
    calls = []
    cell.parametrizations.weight_hh[0].register_forward_hook(lambda *_: calls.append(1))  # type: ignore[index, union-attr]
    with parametrize.cached():
        state = torch.randn(1, 4, generator=generator)
        for _ in range(5):
            state = cell(torch.zeros(1, 2), state)
    assert len(calls) == 1
    state.sum().backward()
    assert theta_of(cell).grad is not None


def test_a_state_dict_carries_the_weight_with_its_signs_through_a_file(tmp_path: Path) -> None:
    source = scaled_cayley(nn.RNNCell(2, 6), "weight_hh", rho=1, generator=torch.Generator().manual_seed(1))
    target = scaled_cayley(nn.RNNCell(2, 6), "weight_hh", rho=4, generator=torch.Generator().manual_seed(2))
    torch.save(source.state_dict(), tmp_path / "cell.pt")
    target.load_state_dict(torch.load(tmp_path / "cell.pt", weights_only=True))
    assert torch.equal(target.weight_hh, source.weight_hh)
    constraint = target.parametrizations.weight_hh[0]  # type: ignore[index, union-attr]
    assert isinstance(constraint, ScaledCayley)
    assert constraint.rho == 1


def test_a_deep_copy_is_equal_and_independent(generator: torch.Generator) -> None:
    cell = scaled_cayley(nn.RNNCell(2, 5), "weight_hh", generator=generator)
    before = cell.weight_hh.detach().clone()
    clone = copy.deepcopy(cell)
    assert torch.equal(clone.weight_hh, before)
    with torch.no_grad():
        theta_of(clone).add_(1)
    assert torch.equal(cell.weight_hh, before)
    assert not torch.equal(clone.weight_hh, before)


def test_a_module_cast_to_float64_stays_orthogonal_to_its_precision(generator: torch.Generator) -> None:
    cell = scaled_cayley(nn.RNNCell(2, 16), "weight_hh", generator=generator).double()
    assert cell.weight_hh.dtype == torch.float64
    assert orthogonality_error(cell.weight_hh) < 1e-13


def test_registering_the_class_on_a_random_weight_names_the_remedy() -> None:
    linear = nn.Linear(4, 4)
    before = linear.weight.detach().clone()
    with pytest.raises(ArgumentError, match="wanted an orthogonal matrix"):
        parametrize.register_parametrization(linear, "weight", ScaledCayley(4))
    assert torch.equal(linear.weight, before)


def test_the_verb_explains_a_weight_that_is_not_square() -> None:
    with pytest.raises(ShapeError, match=r"weight_hh_l0: got shape \(20, 5\), wanted a square matrix.*gatewise=True"):
        scaled_cayley(nn.LSTM(3, 5), "weight_hh_l0")


def test_the_verb_lists_the_weights_that_exist() -> None:
    with pytest.raises(
        ArgumentError, match=r"RNNCell.weight_hh_l0: got NoneType, wanted one of \['weight_ih', 'weight_hh'\]"
    ):
        scaled_cayley(nn.RNNCell(3, 5), "weight_hh_l0")


def test_a_second_cayley_map_on_one_weight_is_an_error() -> None:
    cell = scaled_cayley(nn.RNNCell(3, 5), "weight_hh")
    with pytest.raises(ArgumentError, match="parametrized already"):
        scaled_cayley(cell, "weight_hh")


def test_keep_and_rho_together_are_an_error() -> None:
    with pytest.raises(ArgumentError, match=r"scaled_cayley.rho: got 2, wanted None with keep=True"):
        scaled_cayley(nn.Linear(4, 4), "weight", rho=2, keep=True)


# --- drift -----------------------------------------------------------------------------------------------------------


def test_ten_thousand_random_steps_leave_the_weight_orthogonal(generator: torch.Generator) -> None:
    """Over 10,000 random steps of a real optimiser ``||W W^T - I||_F <= 1e-5`` in float32 at size 64."""
    cell = scaled_cayley(nn.RNNCell(1, 64), "weight_hh", generator=generator)
    theta, start = theta_of(cell), cell.weight_hh.detach().clone()
    optimizer = torch.optim.RMSprop([theta], lr=1e-2)
    worst = 0.0
    for step in range(1, 10_001):
        theta.grad = torch.randn(theta.shape, generator=generator)
        optimizer.step()
        # W is a function of theta alone, so what happened between two looks cannot be hidden from the second.
        if step % 20 == 0:
            worst = max(worst, orthogonality_error(cell.weight_hh.detach()).item())
    assert worst <= 1e-5
    assert torch.linalg.matrix_norm(cell.weight_hh.detach() - start) > 1


@pytest.mark.parametrize("size", [1, 7, 64, 65, 130])
def test_the_inverse_without_pivots_is_the_inverse_and_has_its_gradient(size: int) -> None:
    """What CUDA devices compute, here on the CPU; sizes around those that are cut into blocks."""
    generator = torch.Generator().manual_seed(size)
    free = torch.randn(2, size, size, generator=generator, dtype=torch.float64, requires_grad=True)
    direction = torch.randn(2, size, size, generator=generator, dtype=torch.float64)
    whole = torch.eye(size, dtype=torch.float64) + free - free.mT
    found, expected = inverse_without_pivots(whole), torch.linalg.inv(whole)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)
    grads = [torch.autograd.grad((each * direction).sum(), free, retain_graph=True)[0] for each in (found, expected)]
    torch.testing.assert_close(*grads, rtol=1e-7, atol=1e-8)
