"""The cpu engine keeps the contract of engines, and a plan says whether it or the reference runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.func import grad, jvp, vmap

from contracts.chains import CHAINS
from contracts.engines import FOR_EVERY_CELL, EngineContract
from contracts.members import MEMBERS
from contracts.passes import EVERY_DTYPE, Case, FreshInputs, assert_close, assert_same, only, run
from statewise import LSTM, Draws, Plan, RecurrentDropout
from statewise.errors import EngineError
from support import threads


class TestNative(EngineContract):
    form = "native"

    @EVERY_DTYPE
    @FOR_EVERY_CELL
    def test_sizes_beyond_one_block_of_the_kernel_equal_the_reference(
        self, name: str, dtype: torch.dtype, seed: int
    ) -> None:
        """With sizes that are no multiple of anything, packed and padded."""
        case = Case(steps=4, batch=19, inputs=37, hidden=67, bidirectional=True, dtype=dtype, seed=seed)
        for lengths in (None, tuple(1 + row % 4 for row in range(19))):
            self.compare(MEMBERS[name], CHAINS["noise, centroids, zoneout"], replace(case, lengths=lengths))

    @FOR_EVERY_CELL
    def test_several_threads_give_the_values_and_gradients_of_one(self, name: str, seed: int) -> None:
        case, chain = Case(steps=3, batch=35, inputs=37, hidden=67, seed=seed), CHAINS["noise, centroids, zoneout"]
        layer = MEMBERS[name].build(case, transforms=chain.transforms)
        alone = run(layer, case, form=self.form)
        with threads(2):
            together = run(layer, case, form=self.form)
        assert_same(together, alone)

    @FOR_EVERY_CELL
    def test_a_mask_of_each_gate_that_is_the_same_for_all_is_one_that_they_share(self, name: str, seed: int) -> None:
        """The reference alone has code for a mask of each gate: where both can run, the kernel is its truth."""
        case = Case(lengths=(2, 4, 3), seed=seed)
        shared, apart = (
            MEMBERS[name].build(case, transforms=RecurrentDropout(0.3, input_p=0.2, share_gates=share))
            for share in (True, False)
        )
        apart.load_state_dict(shared.state_dict())
        drawn = shared.draw(case.arrange(case.leaves(has_memory=False)[0]), generator=case.generator("draws")).tensors
        blocks = len(shared.cell.blocks)
        tiled = {key: tuple(mask.repeat(1, 1, blocks) for mask in masks) for key, masks in drawn.items()}
        expected = run(shared, case, form=self.form, draws=Draws(drawn))
        assert_same(run(apart, case, form="loop", draws=Draws(tiled)), expected)


def test_the_reference_runs_what_was_built_with_it() -> None:
    plan = LSTM(2, 3, engine="reference").plan(torch.zeros(4, 1, 2))
    assert (plan.engine, plan.form) == ("reference", "loop")


def test_a_plan_says_why_the_kernel_does_not_run() -> None:
    with only("loop"):
        plan = LSTM(2, 3).plan(torch.zeros(4, 1, 2))
    assert str(plan) == "reference (loop); not faster because: cpu: left out by a test"


@pytest.mark.parametrize("chain", [name for name, chain in CHAINS.items() if chain.native])
def test_the_plan_is_native_for_every_chain_that_the_kernel_knows(chain: str) -> None:
    case = Case(layers=2)
    layer = MEMBERS["LSTM"].build(case, transforms=CHAINS[chain].transforms).train(CHAINS[chain].training)
    with only("native"):
        plan = layer.plan(case.leaves(has_memory=True)[0])
    assert (plan.engine, plan.form, plan.why_not) == ("cpu", "native", ())


@FOR_EVERY_CELL
def test_the_plan_is_native_for_every_cell_that_the_kernel_knows_and_says_why_for_the_others(name: str) -> None:
    layer = MEMBERS[name].build(Case())
    with only("native"):
        plan = layer.plan(torch.zeros(4, 1, 2, dtype=torch.float64))
    lacking = Plan("reference", "loop", (f"cpu: it has no code for the cell {layer.cell.name}",))
    assert plan == (Plan("cpu", "native") if MEMBERS[name].compiled else lacking)


def test_a_dtype_that_the_cpu_engine_does_not_know_goes_to_the_reference_or_is_refused() -> None:
    layer, x = LSTM(2, 3, dtype=torch.bfloat16), torch.zeros(4, 1, 2, dtype=torch.bfloat16)
    plan = layer.plan(x)
    assert plan.form == "loop"
    assert "bfloat16" in plan.why_not[0]
    layer.engine = "cpu"
    with pytest.raises(EngineError, match="bfloat16"):
        layer(x)


class TestWithoutTheKernel(FreshInputs):
    """Where the reference serves, a layer can be differentiated in every way that torch knows."""

    CHAINS = (
        "plain",
        "noise, centroids, zoneout",
        "general masks and states",
        "st_argmax dot",
        "gumbel_hard euclidean",
    )

    @pytest.mark.parametrize("chain", CHAINS)
    @pytest.mark.parametrize("name", ["LSTM", "GRU"])
    def test_forward_mode_and_a_second_derivative_agree_with_the_first(self, name: str, chain: str, seed: int) -> None:
        case = Case(seed=seed)
        layer = MEMBERS[name].build(case, transforms=CHAINS[chain].transforms)
        x, _ = case.leaves(has_memory=False)
        draws = layer.draw(x, generator=case.generator("draws"))
        along, weights = case.tensor("along", *x.shape), case.tensor("weights", case.steps, case.batch, case.hidden)

        def gradient(inputs: torch.Tensor) -> torch.Tensor:
            return torch.autograd.grad((layer(inputs, draws=draws)[0] * weights).sum(), inputs, create_graph=True)[0]

        with only("loop"):
            slope = jvp(lambda inputs: layer(inputs, draws=draws)[0], (x.detach(),), (along,))[1]
            assert_close((slope * weights).sum(), (gradient(x) * along).sum(), "slope")
            (curved,) = torch.autograd.grad((gradient(x) * along).sum(), x)
            # The same product of the Hessian with a vector, by torch.func: forward over reverse.
            loss = lambda inputs: (layer(inputs, draws=draws)[0] * weights).sum()  # noqa: E731
            assert_close(jvp(grad(loss), (x.detach(),), (along,))[1], curved, "curvature")

    @pytest.mark.parametrize("chain", CHAINS)
    def test_replicas_are_the_layers_one_by_one(self, chain: str, seed: int) -> None:
        case = Case(seed=seed)
        layer = MEMBERS["GRU"].build(case, transforms=CHAINS[chain].transforms)
        inputs = case.tensor("replicas", 3, case.steps, case.batch, case.inputs)
        draws = layer.draw(inputs[0], generator=case.generator("draws"))
        with only("loop"):
            together = vmap(lambda x: layer(x, draws=draws)[0])(inputs)
            alone = torch.stack([layer(x, draws=draws)[0] for x in inputs])
        assert_close(together, alone, "outputs")
