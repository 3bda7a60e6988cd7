"""The fused cross entropy against torch's, in losses and gradients; without a device, in Triton's interpreter."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from statewise.heads.cross_entropy import FusedCrossEntropy, cross_entropy
from statewise.kernels import load_triton
from support import tolerance

needs_triton = pytest.mark.skipif(not load_triton().available, reason=load_triton().reason)


def both(scores: Tensor, targets: Tensor, grads: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Losses and gradients of the kernel, and of torch in double precision."""
    device = load_triton().device
    leaf = scores.to(device).requires_grad_()
    found = FusedCrossEntropy.apply(leaf, targets.to(device))  # type: ignore[no-untyped-call]
    (grad,) = torch.autograd.grad(found, leaf, grads.to(device))
    exact = scores.double().requires_grad_()
    expected = F.cross_entropy(exact, targets, reduction="none")
    (right,) = torch.autograd.grad(expected, exact, grads.double())
    return (found.cpu(), grad.cpu()), (expected, right)


@needs_triton
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("rows", "words"), [(1, 2), (7, 33), (3, 2048), (2, 5000)])
def test_losses_and_gradients_equal_torchs(
    rows: int, words: int, dtype: torch.dtype, generator: torch.Generator
) -> None:
    scores = (torch.randn(rows, words, generator=generator) * 5).to(dtype)
    targets = torch.randint(words, (rows,), generator=generator)
    (found, grad), (expected, right) = both(scores, targets, torch.randn(rows, generator=generator))
    assert (found.dtype, grad.dtype) == (torch.float32, dtype)
    torch.testing.assert_close(found.double(), expected, rtol=2e-5, atol=1e-5)
    torch.testing.assert_close(grad.double(), right, **tolerance(dtype))


@needs_triton
def test_scores_far_apart_and_impossible_words_stay_finite() -> None:
    scores = torch.tensor([[3e4, -3e4, 0.0], [-3e4, -3e4, -3e4], [1.0, float("-inf"), 2.0]])
    (found, grad), (expected, right) = both(scores, torch.tensor([1, 0, 2]), torch.ones(3))
    torch.testing.assert_close(found.double(), expected)
    torch.testing.assert_close(grad.double(), right)


@needs_triton
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_padding_counts_nothing_as_with_torch(dtype: torch.dtype, generator: torch.Generator) -> None:
    scores = (torch.randn(6, 33, generator=generator) * 5).to(dtype)
    targets = torch.tensor([-100, 3, 32, -100, 0, -100])
    (found, grad), (expected, right) = both(scores, targets, torch.randn(6, generator=generator))
    torch.testing.assert_close(found.double(), expected, rtol=2e-5, atol=1e-5)
    torch.testing.assert_close(grad.double(), right, **tolerance(dtype))
    assert not found[targets == -100].any()
    assert not grad[targets == -100].any()


@needs_triton
@pytest.mark.parametrize("target", [-1, -99, -101, 9, 10, 2**40, -(2**63)])
def test_a_target_outside_the_words_gives_nan_and_its_neighbours_stay(target: int, generator: torch.Generator) -> None:
    scores, targets = torch.randn(3, 9, generator=generator), torch.tensor([4, 0, 8])
    (losses, grads), _ = both(scores, targets, torch.ones(3))
    device = load_triton().device
    leaf = scores.to(device).requires_grad_()
    found = FusedCrossEntropy.apply(leaf, torch.tensor([4, target, 8]).to(device))  # type: ignore[no-untyped-call]
    (grad,) = torch.autograd.grad(found, leaf, torch.ones(3, device=device))
    assert found[1].isnan()
    assert grad[1].isnan().all()
    assert torch.equal(found.detach().cpu()[[0, 2]], losses[[0, 2]])
    assert torch.equal(grad.cpu()[[0, 2]], grads[[0, 2]])


@needs_triton
def test_more_scores_than_a_whole_number_of_32_bits_counts_are_addressed() -> None:
    """Only the arithmetic of addresses: a row is numbered in 64 bits."""
    import inspect

    from statewise.kernels import entropy

    for kernel in (entropy._forward, entropy._backward):
        assert "tl.program_id(0).to(tl.int64)" in inspect.getsource(kernel.fn)


def test_on_a_cpu_torchs_own_serves_and_keeps_double_precision(generator: torch.Generator) -> None:
    scores = torch.randn(4, 3, 9, generator=generator, dtype=torch.float64)
    targets = torch.randint(9, (4, 3), generator=generator)
    expected = F.cross_entropy(scores.flatten(0, 1), targets.flatten(), reduction="none").view(4, 3)
    assert torch.equal(cross_entropy(scores, targets), expected)
    assert cross_entropy(scores.bfloat16(), targets).dtype == torch.float32


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_on_a_device_the_kernel_serves_and_can_be_captured(dtype: torch.dtype, generator: torch.Generator) -> None:
    scores = torch.randn(100, 33278, generator=generator).to("cuda", dtype).requires_grad_()
    targets = torch.randint(33278, (100,), generator=generator).cuda()
    losses = cross_entropy(scores, targets)
    assert "FusedCrossEntropy" in str(losses.grad_fn and losses.grad_fn.next_functions)
    losses.mean().backward()
    found, scores.grad = scores.grad, None
    expected = F.cross_entropy(scores.float(), targets, reduction="none")
    expected.mean().backward()
    torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found, scores.grad, rtol=2e-2, atol=1e-6)


COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from statewise.kernels import entropy

for dtype in ("*fp32", "*bf16", "*fp16"):
    for kernel in (entropy._forward, entropy._backward):
        known = {"scores": dtype, "out": dtype, "targets": "*i64", "words": "i32", "BLOCK": "constexpr"}
        signature = {name: known.get(name, "*fp32") for name in kernel.arg_names}
        source = ASTSource(kernel, signature, {"BLOCK": entropy.BLOCK})
        triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": entropy.WARPS})
        print("compiled", kernel.__name__)
"""


@needs_triton
@pytest.mark.skipif(torch.cuda.is_available(), reason="the device compiles it")
def test_the_kernel_compiles_for_a_device() -> None:
    import os

    environ = {**os.environ, "TRITON_INTERPRET": "0"}
    ran = subprocess.run([sys.executable, "-c", COMPILED], env=environ, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.count("compiled") == 6
