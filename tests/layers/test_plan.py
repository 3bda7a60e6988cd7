"""``layer.plan`` says which engine runs, why not a faster one, and changes nothing by saying so."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence

import statewise
from contracts.passes import FORMS, only
from statewise import (
    GRU,
    LSTM,
    MGU,
    RAC,
    RNN,
    Centroids,
    LockedDropout,
    MultiplicativeRNN,
    Noise,
    OrthogonalRNN,
    Pairing,
    PeepholeLSTM,
    Plan,
    RecurrentDropout,
    ThroughTimeMix,
    Transform,
    Zoneout,
)
from statewise.engine import Recurrence, cpu, reference
from statewise.errors import EngineError
from support import needs_kernel

INPUT, HIDDEN, STEPS, BATCH = 3, 5, 4, 2
EVERY_LAYER = pytest.mark.parametrize("kind", [RNN, MGU, GRU, LSTM, PeepholeLSTM, RAC, OrthogonalRNN])


@pytest.fixture
def x(generator: torch.Generator) -> Tensor:
    return torch.randn(STEPS, BATCH, INPUT, generator=generator)


def pairing() -> Pairing:
    return Pairing(torch.tensor([1, 0]), torch.full((BATCH,), 0.5))


class TestWhichEngineRuns:
    @needs_kernel
    @EVERY_LAYER
    def test_without_obstacles_it_is_the_compiled_one(self, kind: Any, x: Tensor) -> None:
        assert kind(INPUT, HIDDEN, 2, bidirectional=True).plan(x) == Plan("cpu", "native")

    @needs_kernel
    @pytest.mark.parametrize(
        "transform",
        [
            Noise("gaussian", 0.3),
            Noise("gaussian", 0.3, mode="additive"),
            Zoneout(0.1),
            Centroids(3),
            LockedDropout(0.1),
            RecurrentDropout(0.1),
            RecurrentDropout(0.1, locked=True),
        ],
        ids=repr,
    )
    def test_common_transforms_are_no_obstacle(self, transform: Transform, x: Tensor) -> None:
        assert LSTM(INPUT, HIDDEN, transforms=transform).plan(x).form == "native"

    @needs_kernel
    def test_packed_and_unbatched_sequences_are_no_obstacle(self, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN)
        assert layer.plan(x[:, 0]).form == "native"
        assert layer.plan(pack_padded_sequence(x, torch.tensor([1, 4]), enforce_sorted=False)).form == "native"

    @EVERY_LAYER
    def test_the_reference_engine_is_honoured(self, kind: Any, x: Tensor) -> None:
        layer = kind(INPUT, HIDDEN, engine="reference")
        assert layer.plan(x) == Plan("reference", "loop", ("the layer was built with engine='reference'",))
        assert layer(x)[0].grad_fn is not None

    @needs_kernel
    def test_the_engine_can_be_changed_later(self, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN)
        layer.engine = "reference"
        assert layer.plan(x).form == "loop"
        layer.engine = "cpu"
        assert layer.plan(x).engine == "cpu"


class TestWhyNotAFasterOne:
    @needs_kernel
    def test_a_cell_that_the_kernel_does_not_know(self, x: Tensor) -> None:
        plan = MultiplicativeRNN(INPUT, HIDDEN).plan(x)
        assert plan == Plan("reference", "loop", ("cpu: it has no code for the cell MultiplicativeRNN",))

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
    def test_half_precision(self, dtype: torch.dtype, x: Tensor) -> None:
        plan = LSTM(INPUT, HIDDEN, dtype=dtype).plan(x.to(dtype))
        assert (plan.engine, plan.form) == ("reference", "loop")
        assert plan.why_not == (f"cpu: it computes in float32 and float64, not in {dtype}",)

    def test_another_device(self, x: Tensor) -> None:
        plan = LSTM(INPUT, HIDDEN, device="meta").plan(x.to("meta"))
        assert plan == Plan("reference", "loop", ("cpu: the layer is on meta",))

    @pytest.mark.parametrize("transform", [Noise("gaussian", 0.3), Zoneout(0.1), RecurrentDropout(0.1)], ids=repr)
    def test_another_device_with_something_to_draw(self, transform: Transform, x: Tensor) -> None:
        plan = LSTM(INPUT, HIDDEN, device="meta", transforms=transform).plan(x.to("meta"))
        assert plan == Plan("reference", "loop", ("cpu: the layer is on meta",))

    def test_collected_tensors_with_gradients(self, x: Tensor) -> None:
        plan = LSTM(INPUT, HIDDEN).plan(x, collect_grad=True)
        assert plan.engine == "reference"
        assert plan.why_not == ("cpu: collected tensors with gradients need autograd in every step",)

    @needs_kernel
    def test_through_time_mixing(self, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=ThroughTimeMix())
        assert layer.plan(x).form == "native"
        assert layer.plan(x, pairing=pairing()).form == "native"

    @needs_kernel
    @pytest.mark.parametrize("layer", [MGU(INPUT, HIDDEN), GRU(INPUT, HIDDEN, reset_before=True)], ids=["MGU", "GRU"])
    def test_through_time_mixing_in_a_cell_with_two_products(self, layer: Any, x: Tensor) -> None:
        plan = layer.plan(x, pairing=replace(pairing(), layer=0))
        why = f"cpu: it does not mix through time in the cell {layer.cell.name}, which needs two products"
        assert plan == Plan("reference", "loop", (why,))

    @needs_kernel
    @pytest.mark.parametrize(
        "transform",
        [RecurrentDropout(0.1, share_gates=False), RecurrentDropout(0.1, mask_on="projection")],
        ids=["one mask a gate", "on the projection"],
    )
    def test_masks_of_the_general_form(self, transform: Transform, x: Tensor) -> None:
        plan = LSTM(INPUT, HIDDEN, transforms=transform).plan(x)
        assert (plan.engine, plan.form) == ("reference", "loop")
        assert "recurrent dropout masks" in str(plan)

    @needs_kernel
    def test_masks_are_an_obstacle_in_training_only(self, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=RecurrentDropout(0.1, share_gates=False))
        assert layer.eval().plan(x).form == "native"

    @needs_kernel
    def test_a_stack_is_as_fast_as_its_slowest_layer(self, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN, 3, transforms=RecurrentDropout(0.1, share_gates=False, layers=(1,)))
        assert layer.plan(x).form == "loop"

    def test_a_kernel_that_cannot_be_had(self, x: Tensor) -> None:
        with only("loop"):
            plan = LSTM(INPUT, HIDDEN).plan(x)
        assert plan == Plan("reference", "loop", ("cpu: left out by a test",))

    def test_a_kernel_that_is_switched_off(self) -> None:
        """In a process of its own, since a kernel is loaded once and for all."""
        program = "import statewise, torch; print(statewise.GRU(3, 5).plan(torch.zeros(4, 2, 3)))"
        ran = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"STATEWISE_NATIVE": "0"},
            cwd=Path(statewise.__file__).parents[1],
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout.startswith("reference (loop); not faster because: cpu: ")
        assert "STATEWISE_NATIVE" in ran.stdout

    def test_an_engine_that_was_insisted_on_is_refused_in_the_plan_too(self, x: Tensor) -> None:
        with pytest.raises(EngineError, match=r"not in torch\.bfloat16"):
            LSTM(INPUT, HIDDEN, engine="cpu", dtype=torch.bfloat16).plan(x.bfloat16())
        with only("loop"), pytest.raises(EngineError, match="left out by a test"):
            LSTM(INPUT, HIDDEN, engine="cpu").plan(x)


class TestAskingChangesNothing:
    @EVERY_LAYER
    def test_no_random_number_is_drawn(self, kind: Any, x: Tensor) -> None:
        transforms = (RecurrentDropout(0.2), Zoneout(0.1), Centroids(3, transition="sample"), LockedDropout(0.1))
        layer = kind(INPUT, HIDDEN, 2, transforms=transforms)
        before = torch.get_rng_state()
        layer.plan(x)
        assert torch.equal(torch.get_rng_state(), before)

    def test_the_next_pass_is_the_same(self, x: Tensor) -> None:
        layer = statewise.weights.weight_drop(LSTM(INPUT, HIDDEN, transforms=Noise("gaussian", 0.3)), "weight_hh_l0")
        with torch.random.fork_rng():
            torch.manual_seed(3)
            expected = layer(x)[0]
            torch.manual_seed(3)
            layer.plan(x)
            found = layer(x)[0]
        torch.testing.assert_close(found, expected, rtol=0, atol=0)

    def test_no_graph_is_built_and_no_gradient_appears(self, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN)
        layer.plan(x.requires_grad_())
        assert x.grad is None
        assert all(parameter.grad is None for parameter in layer.parameters())

    def test_bad_input_is_refused_as_in_a_call(self) -> None:
        with pytest.raises(statewise.errors.ShapeError, match="input_size=3"):
            LSTM(INPUT, HIDDEN).plan(torch.zeros(STEPS, BATCH, 7))


@pytest.mark.parametrize("form", FORMS)
def test_what_the_plan_says_is_what_runs(form: str, x: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    for name, module in (("loop", reference), ("native", cpu)):

        def unroll(call: Recurrence, name: str = name, unroll: Any = module.unroll) -> Any:
            ran.append(name)
            return unroll(call)

        monkeypatch.setattr(module, "unroll", unroll)
    layer = LSTM(INPUT, HIDDEN, 2, engine="reference" if form == "loop" else "cpu")
    with only(form):
        assert layer.plan(x).form == form
        assert not ran
        layer(x)
    assert ran == [form, form]


class TestPlanItself:
    def test_it_reads_as_a_sentence(self) -> None:
        assert str(Plan("cpu", "native")) == "cpu (native)"
        text = str(Plan("reference", "loop", ("cpu: one reason", "triton: another")))
        assert text == "reference (loop); not faster because: cpu: one reason; triton: another"

    def test_it_is_a_value(self) -> None:
        assert Plan("cpu", "native") == Plan("cpu", "native", ())
        assert len({Plan("cpu", "native"), Plan("cpu", "native"), Plan("reference", "loop")}) == 2
