"""The kernels of the accelerator's engine keep the contract of engines; here on the CPU, in Triton's interpreter."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import torch

from contracts.chains import CHAINS, Chain
from contracts.engines import FOR_EVERY_CELL, TWO_PRODUCTS, EngineContract
from contracts.members import MEMBERS
from contracts.passes import Case, Pass, assert_same, run
from statewise import Centroids, Draws, Pairing, RecurrentDropout, RecurrentLayer, ThroughTimeMix
from statewise.errors import EngineError


class KernelContract(EngineContract):
    """Inherit it, and name the kernel; the interpreter is slow, so a quick run tries what ``quick`` names alone."""

    quick: ClassVar[tuple[str, ...]]

    def run(self, layer: RecurrentLayer, chain: Chain, case: Case, **options: Any) -> Pass:
        if not _has_kernel(layer, chain):
            layer.engine = "triton"
            with pytest.raises(EngineError, match="cannot run"):
                run(layer, case, **options)
            return run(layer, case, form="loop", **options)
        form = self.form if self.runs(layer, chain) else "step"
        return run(layer, case, form=form, **options)

    def runs(self, layer: RecurrentLayer, chain: Chain) -> bool:
        """Whether this kernel is the one that runs; else the one that runs everything."""
        return True

    @FOR_EVERY_CELL
    def test_every_cell_equals_the_reference(self, name: str, seed: int) -> None:
        """From a given state, packed in both directions; and padded, as a stack."""
        chain = CHAINS["zoneout, zoneout"]
        self.compare(MEMBERS[name], chain, Case(steps=3, bidirectional=True, lengths=(2, 3, 1), seed=seed))
        self.compare(MEMBERS[name], chain, Case(steps=2, layers=2, dtype=torch.float32, seed=seed))


class TestStep(KernelContract):
    form = "step"
    # Every cell by itself; noise, centroids and masks once each, with the gradients of what is learnt.
    quick = ("test_every_cell_equals", "[MGU-noise, centroids]", "[RAC-masks and states]")


class TestSolo(KernelContract):
    form = "solo"
    # The formulas of the cells are those of the step.
    quick = (
        "test_every_cell_equals_the_reference[GRU]",
        "test_every_cell_equals_the_reference[LSTM]",
        "[RAC-noise gaussian multiplicative]",
    )

    def runs(self, layer: RecurrentLayer, chain: Chain) -> bool:
        return not _masks_product(chain)


class TestTeam(KernelContract):
    """Programs cannot wait for each other in the interpreter: there each step is a launch."""

    form = "team"
    quick = (
        "test_every_cell_equals_the_reference[LSTM]",
        "test_every_cell_equals_the_reference[modrelu]",
        "[PeepholeLSTM-noise logistic additive]",
        "test_the_two_terms_of_a_pair_have_gradients_of_their_own[GRU-True-False]",
    )

    @pytest.fixture(autouse=True)
    def _no_centroids(self, request: pytest.FixtureRequest) -> None:
        """They need a meeting within a step, which only a device can do."""
        chain = request.node.callspec.params.get("chain", "") if hasattr(request.node, "callspec") else ""
        others = ("frozen", "kept", "alone", "memory", "lies_on", "long_chain", "silence", "nobody")
        if not torch.cuda.is_available() and any(word in request.node.name for word in others):
            pytest.skip("the chain of this test has centroids")
        if chain and not torch.cuda.is_available() and _has(CHAINS[chain], Centroids):
            pytest.skip("the chain of this test has centroids")

    def runs(self, layer: RecurrentLayer, chain: Chain) -> bool:
        return not _masks_product(chain) and layer.cell.name not in TWO_PRODUCTS


def test_a_stack_that_mixes_above_its_first_layer_equals_the_reference() -> None:
    """Two wavefronts, one of the sequences and one of the pairs, which are others in number and length."""
    case = Case(steps=2, layers=3, lengths=(1, 2, 1), given_state=False)
    pairing = Pairing(torch.tensor([1, 0]), torch.tensor([0.3, 0.8]), first=torch.tensor([2, 2]), layer=1)
    stack = MEMBERS["GRU"].build(case)
    batches = stack._batches(case.arrange(case.leaves(has_memory=False)[0]), pairing)
    stack.engine = "triton"
    assert stack._stretches(batches, Draws()) == [range(1), range(1, 3)]
    assert_same(run(stack, case, form="solo", pairing=pairing), run(stack, case, form="loop", pairing=pairing))


def _has(chain: Chain, kind: type) -> bool:
    return any(isinstance(transform, kind) for transform in chain.transforms)


def _masks_product(chain: Chain) -> bool:
    return chain.training and any(
        isinstance(transform, RecurrentDropout) and transform.mask_on == "projection" and transform.p > 0
        for transform in chain.transforms
    )


def _has_kernel(layer: RecurrentLayer, chain: Chain) -> bool:
    """Whether the engine has a kernel for a chain at all; else it says why not."""
    if layer.cell.name in TWO_PRODUCTS and _has(chain, ThroughTimeMix):
        return False
    each = [t for t in chain.transforms if isinstance(t, RecurrentDropout) and t.mask_on == "input" and t.p > 0]
    return not (chain.training and any(not transform.share_gates for transform in each))
