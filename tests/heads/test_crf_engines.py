"""The three engines of the conditional random field by one contract; without a device Triton's is interpreted."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from contracts.crf import ChainContract, Problem, gradients
from statewise.errors import ArgumentError, EngineError, SecondDerivativeError
from statewise.heads import CRF
from statewise.kernels import load_triton
from support import forbidden_to_wait, needs_kernel, threads

SINGLE, DOUBLE, HALF, BRAIN = torch.float32, torch.float64, torch.float16, torch.bfloat16

interpreted = pytest.mark.skipif(
    not load_triton().interpreted, reason=load_triton().reason or "the kernels run on the device here"
)


class TestReference(ChainContract):
    engine = "reference"
    dtypes = (DOUBLE, SINGLE, BRAIN)

    def test_it_can_be_differentiated_twice(self, generator: torch.Generator) -> None:
        problem = Problem.random(generator, steps=3, batch=2, constrained=True).like("reference", DOUBLE)
        emissions = problem.emissions.nan_to_num().requires_grad_()

        def loss(emissions: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = problem.crf.nll(emissions, problem.tags, problem.lengths)
            return found

        assert torch.autograd.gradgradcheck(loss, emissions)


@needs_kernel
class TestNative(ChainContract):
    engine = "cpu"
    dtypes = (DOUBLE, SINGLE, BRAIN, HALF)
    sizes = (*ChainContract.sizes, (40, 21, 17), (3, 2, 70))

    def test_a_second_derivative_is_refused_by_name(self, generator: torch.Generator) -> None:
        problem = Problem.random(generator).like("cpu", DOUBLE)
        emissions = problem.emissions.requires_grad_()
        for value in (
            problem.crf.log_partition(emissions, problem.lengths),
            problem.crf.score(emissions, problem.tags, problem.lengths) * problem.crf.transitions.sum(),
        ):
            (grad,) = torch.autograd.grad(value.sum(), emissions, create_graph=True)
            with pytest.raises(SecondDerivativeError, match="reference"):
                torch.autograd.grad((torch.nan_to_num(grad) ** 2).sum(), problem.crf.transitions)

    def test_threads_change_no_digit(self, generator: torch.Generator) -> None:
        problem = Problem.random(generator, steps=9, batch=37, tags=5).like("cpu", SINGLE)
        emissions = problem.emissions.requires_grad_()
        runs = []
        for count in (1, 2):
            with threads(count):
                found = problem.crf.nll(emissions, problem.tags, problem.lengths)
                runs.append([found, *gradients(found.sum(), problem.crf, emissions)])
        assert all(torch.equal(one, other) for one, other in zip(*runs, strict=True))

    def test_weights_that_learn_get_their_gradient(self, generator: torch.Generator) -> None:
        mine, truth = (Problem.random(generator.manual_seed(5)).like(name, DOUBLE) for name in ("cpu", "reference"))
        weights = torch.rand(4, 5, dtype=DOUBLE, generator=generator).requires_grad_()
        one, other = (
            torch.autograd.grad(each.crf.nll(each.emissions, each.tags, each.lengths, weights=weights).sum(), weights)
            for each in (mine, truth)
        )
        torch.testing.assert_close(one, other)
        assert bool(one[0].any())


@interpreted
@pytest.mark.filterwarnings("ignore:All-NaN slice:RuntimeWarning")  # the interpreter is numpy, which warns of NaN
class TestTriton(ChainContract):
    engine = "triton"
    dtypes = (SINGLE, BRAIN)
    sizes = ((4, 2, 9), (2, 1, 33), (1, 2, 1))

    @pytest.mark.parametrize("tag", [-100, 3, 2**40])
    def test_a_tag_outside_gives_nan_to_its_sequence_alone(self, tag: int) -> None:
        """Where the host must not wait, a kernel cannot refuse."""
        from statewise.kernels.crf import crf_path_score, crf_path_score_backward

        zero, tags, lengths = torch.zeros(3), torch.zeros(2, 2).long(), torch.tensor([2, 2])
        tags[1, 0] = tag
        emissions = torch.zeros(2, 2, 3)
        found = crf_path_score(emissions, torch.zeros(3, 3), zero, zero, tags, lengths, None, None)
        assert found.isnan().tolist() == [True, False]
        grads = crf_path_score_backward(torch.ones(2), emissions, tags, lengths, None, None)
        assert grads[1].sum() == 1


@needs_kernel
def test_on_the_cpu_the_kernel_serves_by_itself() -> None:
    assert CRF(3).plan(torch.zeros(2, 1, 3)) == "cpu"
    loss = CRF(3).nll(torch.zeros(2, 1, 3), torch.zeros(2, 1).long())
    assert "WalkedPrefixes" in str(loss.grad_fn and loss.grad_fn.next_functions)


@needs_kernel
def test_under_a_transform_of_torch_the_reference_serves(generator: torch.Generator) -> None:
    crf, emissions = CRF(3), torch.randn(2, 4, 1, 3, generator=generator)
    found = torch.func.vmap(crf.log_partition)(emissions)
    torch.testing.assert_close(found, torch.stack([crf.log_partition(each) for each in emissions]))


@interpreted
def test_an_engine_that_cannot_run_says_why() -> None:
    with pytest.raises(EngineError, match=r"CRF\.engine: got triton: .*double"):
        CRF(3, engine="triton").double().log_partition(torch.zeros(2, 1, 3, dtype=DOUBLE))
    with pytest.raises(EngineError, match="at most 128 tags"):
        CRF(200, engine="triton").log_partition(torch.zeros(2, 1, 200))
    with pytest.raises(ArgumentError, match=r"CRF\.engine: got fast, wanted one of auto, reference, cpu, triton"):
        CRF(3, engine="fast")


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [SINGLE, BRAIN])
@pytest.mark.parametrize("tags", [2, 9, 20, 40, 128])
def test_on_a_device_losses_and_gradients_equal_the_references(
    tags: int, dtype: torch.dtype, generator: torch.Generator
) -> None:
    problem = Problem.random(generator, steps=50, batch=32, tags=tags, constrained=True)
    mine, truth = problem.like("auto", dtype), problem.rounded(dtype)
    crf, emissions = mine.crf.cuda(), mine.emissions.cuda().requires_grad_()
    path = mine.tags.cuda()
    assert crf.plan(emissions).startswith("triton")
    crf.nll(emissions, path, mine.lengths)  # compiles
    with forbidden_to_wait():
        found = crf.nll(emissions, path, mine.lengths)
        grads = gradients(found.sum(), crf, emissions)
    exact = truth.emissions.requires_grad_()
    expected = truth.crf.nll(exact, truth.tags, truth.lengths)
    right = gradients(expected.sum(), truth.crf, exact)
    torch.testing.assert_close(found.cpu().double(), expected, rtol=1e-4, atol=1e-3)
    for one, other in zip(grads, right, strict=True):
        torch.testing.assert_close(one.cpu().double(), other, rtol=0.03 if dtype == BRAIN else 1e-3, atol=1e-3)


COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from statewise.kernels import crf

for dtype, tags in (("*fp32", 9), ("*bf16", 100)):
    block, warps = crf._tiles(tags)
    for kernel in (crf._forward, crf._backward, crf._path, crf._path_backward):
        known = {"emissions": dtype, "for_emissions": dtype, "lengths": "*i64", "batch": "i32", "count": "i32"}
        known["tags"] = "i32" if "EVERY" in kernel.arg_names else "*i64"
        known |= {name: "constexpr" for name in kernel.arg_names if name.isupper()}
        signature = {name: known.get(name, "*fp32") for name in kernel.arg_names}
        for chosen in (True, False):
            constants = {name: chosen for name in signature if name.isupper()} | {"BLOCK": block}
            source = ASTSource(kernel, signature, constants)
            triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps})
            print("compiled", kernel.__name__)
"""


@interpreted
@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="the device compiles it")
def test_the_kernel_compiles_for_a_device() -> None:
    environ = {**os.environ, "TRITON_INTERPRET": "0"}
    ran = subprocess.run([sys.executable, "-c", COMPILED], env=environ, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.count("compiled") == 16
