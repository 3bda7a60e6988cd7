"""A readout and its cross-entropy in one kernel, against torch's two functions in double precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import grad, grad_and_value, vmap

from statewise.errors import SecondDerivativeError
from statewise.heads import readout_loss as module
from statewise.heads.readout_loss import readout_loss
from statewise.native import NativeStatus
from support import needs_kernel, tolerance

SIZES = [(1, 1, 1), (1, 48, 34), (7, 5, 2), (7, 65, 130), (1000, 48, 34), (1000, 1, 130), (1000, 65, 2), (33, 5, 34)]
ALL = (0, 1, 2)


class Operands(NamedTuple):
    """Of many replicas."""

    states: Tensor
    weight: Tensor
    bias: Tensor
    targets: Tensor


def drawn(
    replicas: int, rows: int, width: int, classes: int, generator: torch.Generator, dtype: torch.dtype = torch.float32
) -> Operands:
    def normal(*size: int) -> Tensor:
        return torch.randn(replicas, *size, generator=generator, dtype=dtype)

    targets = torch.randint(classes, (replicas, rows), generator=generator)
    return Operands(normal(rows, width), normal(classes, width) / width**0.5, normal(classes), targets)


def plainly(states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(F.linear(states.double(), weight.double(), bias.double()).flatten(0, -2), targets.flatten())


def side_by_side(loss: Callable[..., Tensor], operands: Operands) -> tuple[Tensor, ...]:
    """The losses of all replicas, and the gradients of states, weights and biases."""
    grads, losses = vmap(grad_and_value(loss, argnums=ALL))(*operands)
    return losses, *grads


def same(found: tuple[Tensor, ...], expected: tuple[Tensor, ...], dtype: torch.dtype) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other.to(dtype), **tolerance(dtype))


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def without_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = NativeStatus(available=False, reason="left out by a test")
    monkeypatch.setattr(module, "load_native", lambda: absent)


def refuse(*_: object) -> None:
    raise AssertionError("torch's own functions were called")


@needs_kernel
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "width", "classes"), SIZES)
def test_losses_and_all_gradients_equal_torchs(
    rows: int, width: int, classes: int, dtype: torch.dtype, generator: torch.Generator
) -> None:
    operands = drawn(3, rows, width, classes, generator, dtype)
    found = side_by_side(readout_loss, operands)
    assert {each.dtype for each in found} == {dtype}
    same(found, side_by_side(plainly, operands), dtype)


@needs_kernel
@pytest.mark.parametrize("replicas", [1, 2, 4, 5])
def test_threads_and_company_change_no_digit(
    replicas: int, generator: torch.Generator, threads: Callable[[int], None]
) -> None:
    operands = drawn(replicas, 2001, 9, 34, generator)
    threads(1)
    alone = side_by_side(readout_loss, operands)
    last = side_by_side(readout_loss, Operands(*(each[-1:] for each in operands)))
    threads(2)
    for one, other, single in zip(alone, side_by_side(readout_loss, operands), last, strict=True):
        assert torch.equal(one, other)
        assert torch.equal(one[-1:], single)
    same(alone, side_by_side(plainly, operands), torch.float32)


@needs_kernel
@pytest.mark.parametrize("shared", range(4))
def test_replicas_may_share_what_they_read(shared: int, generator: torch.Generator) -> None:
    given = [each[0] if i == shared else each for i, each in enumerate(drawn(4, 50, 6, 5, generator))]
    dims = tuple(None if i == shared else 0 for i in range(4))
    found, losses = vmap(grad_and_value(readout_loss, argnums=ALL), in_dims=dims)(*given)
    expected, right = vmap(grad_and_value(plainly, argnums=ALL), in_dims=dims)(*given)
    same((losses, *found), (right, *expected), torch.float32)


@needs_kernel
def test_replicas_may_be_anywhere_and_of_any_depth(generator: torch.Generator) -> None:
    states, weight, bias, targets = drawn(6, 40, 7, 3, generator)
    expected = side_by_side(plainly, Operands(states, weight, bias, targets))
    moved = (states.permute(1, 2, 0), weight.permute(1, 0, 2), bias.mT, targets)
    grads, losses = vmap(grad_and_value(readout_loss, argnums=ALL), in_dims=(2, 1, 1, 0))(*moved)
    same((losses, *grads), expected, torch.float32)
    deep = [each.unflatten(0, (2, 3)) for each in (states, weight, bias, targets)]
    grads, losses = vmap(vmap(grad_and_value(readout_loss, argnums=ALL)))(*deep)
    same(tuple(each.flatten(0, 1) for each in (losses, *grads)), expected, torch.float32)


@needs_kernel
def test_a_gradient_of_all_replicas_together_sees_through_vmap(generator: torch.Generator) -> None:
    states, weight, bias, targets = drawn(3, 20, 4, 5, generator)
    shares = torch.rand(3, generator=generator)

    def mixed(loss: Callable[..., Tensor]) -> Callable[[Tensor], Tensor]:
        return lambda each: (vmap(loss, in_dims=(0, None, 0, 0))(states, each, bias, targets) * shares).sum()

    same((grad(mixed(readout_loss))(weight[0]),), (grad(mixed(plainly))(weight[0]),), torch.float32)


@needs_kernel
@pytest.mark.parametrize("factor", [1.0, -2.5])
def test_autograd_differentiates_once_as_often_as_asked(
    factor: float, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    states, weight, bias, targets = (each[0] for each in drawn(1, 60, 6, 5, generator))
    leaves = [each.requires_grad_() for each in (states, weight, bias)]
    expected = torch.autograd.grad(plainly(states, weight, bias, targets) * factor, leaves)
    monkeypatch.setattr(F, "linear", refuse)
    loss = readout_loss(states.view(5, 12, 6), weight, bias, targets.view(5, 12)) * factor
    for _ in range(2):
        same(torch.autograd.grad(loss, leaves, retain_graph=True), expected, torch.float32)
    (of_bias,) = torch.autograd.grad(loss, bias, retain_graph=True)
    same((of_bias,), expected[2:], torch.float32)
    for _ in range(3):
        loss.backward(retain_graph=True)
    found = tuple(leaf.grad for leaf in leaves if leaf.grad is not None)
    same(found, tuple(3 * each for each in expected), torch.float32)


@needs_kernel
def test_second_derivatives_are_refused_by_autograd_and_left_to_torch_by_transforms(
    generator: torch.Generator,
) -> None:
    states, weight, bias, targets = (each[0] for each in drawn(1, 9, 4, 3, generator))
    weight.requires_grad_()
    (first,) = torch.autograd.grad(readout_loss(states, weight, bias, targets), weight, create_graph=True)
    with pytest.raises(SecondDerivativeError, match="readout_loss"):
        first.sum().backward()
    penalty = readout_loss(states, weight, bias, targets) + first.square().sum()
    with pytest.raises(SecondDerivativeError, match="readout_loss"):
        penalty.backward()
    twice = torch.func.hessian(readout_loss, argnums=2)(states, weight.detach(), bias, targets)
    same((twice,), (torch.func.hessian(plainly, argnums=2)(states, weight.detach(), bias, targets),), torch.float32)


@needs_kernel
def test_without_gradients_the_loss_is_the_same(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    states, weight, bias, targets = (each[0] for each in drawn(1, 300, 6, 5, generator))
    with_gradients = readout_loss(states, weight.clone().requires_grad_(), bias, targets)
    monkeypatch.setattr(F, "linear", refuse)
    found = readout_loss(states, weight, bias, targets)
    assert not found.requires_grad
    assert torch.equal(found, with_gradients.detach())


@needs_kernel
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores_far_apart_stay_finite(dtype: torch.dtype, generator: torch.Generator) -> None:
    operands = drawn(2, 37, 5, 7, generator, dtype)
    operands = operands._replace(states=operands.states * 1e4, bias=operands.bias * 1e4)
    found = side_by_side(readout_loss, operands)
    assert all(each.isfinite().all() for each in found)
    losses, right = found[0], side_by_side(plainly, operands)[0]
    torch.testing.assert_close(losses, right.to(dtype), rtol=1e-5, atol=0.0)


@needs_kernel
def test_classes_that_cannot_be_have_no_gradient(generator: torch.Generator) -> None:
    operands = drawn(2, 37, 5, 7, generator)
    operands.bias[:, 3] = float("-inf")
    operands.targets[operands.targets == 3] = 4
    found = side_by_side(readout_loss, operands)
    same(found, side_by_side(plainly, operands), torch.float32)
    assert (found[3][:, 3] == 0).all()


@needs_kernel
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_numbers_that_are_none_reach_the_loss_of_their_replica_alone(bad: float, generator: torch.Generator) -> None:
    operands = drawn(3, 37, 5, 7, generator)
    operands.states[1, 20, 2] = bad
    losses, *grads = side_by_side(readout_loss, operands)
    assert losses.isfinite().tolist() == [True, False, True]
    assert all(each[::2].isfinite().all() and not each[1].isfinite().all() for each in grads)


@needs_kernel
@pytest.mark.parametrize("outside", [-1, 7, 2**40, -(2**40)])
def test_targets_outside_the_classes_give_nan(outside: int, generator: torch.Generator) -> None:
    operands = drawn(3, 37, 5, 7, generator)
    expected = side_by_side(readout_loss, operands)
    operands.targets[1, 36] = outside
    found = side_by_side(readout_loss, operands)
    assert found[0].isnan().tolist() == [False, True, False]
    assert found[2][1].isnan().all()
    assert all(torch.equal(one[::2], other[::2]) for one, other in zip(found, expected, strict=True))


@needs_kernel
def test_padding_does_not_count_as_with_torch(generator: torch.Generator) -> None:
    operands = drawn(3, 37, 5, 7, generator)
    operands.targets[0, ::3] = -100
    operands.targets[1, 1:] = -100
    found = side_by_side(readout_loss, operands)
    for i, loss in enumerate(found[0]):
        torch.testing.assert_close(loss.double(), plainly(*(each[i] for each in operands)), rtol=1e-5, atol=1e-6)
    assert (found[1][1, 1:] == 0).all()
    same(found, side_by_side(plainly, operands), torch.float32)


@pytest.mark.usefixtures("without_kernel")
def test_torch_serves_where_there_is_no_kernel(generator: torch.Generator) -> None:
    operands = drawn(3, 20, 5, 7, generator)
    same(side_by_side(readout_loss, operands), side_by_side(plainly, operands), torch.float32)


@needs_kernel
def test_what_the_kernel_does_not_take_is_left_to_torch(generator: torch.Generator) -> None:
    states, weight, bias, targets = (each[0] for each in drawn(1, 8, 4, 3, generator))
    half = readout_loss(states.bfloat16(), weight.bfloat16(), bias.bfloat16(), targets)
    assert half.dtype == torch.bfloat16
    assert readout_loss(states[:0], weight, bias, targets[:0]).isnan()
    many = (states[:2], torch.zeros(50_000, 4), torch.zeros(50_000), targets[:2])
    torch.testing.assert_close(readout_loss(*many), torch.tensor(50_000.0).log())
    with pytest.raises(RuntimeError):
        readout_loss(states, weight.double(), bias, targets)
