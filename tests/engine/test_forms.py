"""Which kernel runs what, how measured choices are kept, and what runs together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.func import functional_call, grad, jacrev, stack_module_state, vmap

from contracts.members import MEMBERS
from contracts.passes import Case, assert_same, only, run
from statewise import (
    GRU,
    LSTM,
    RNN,
    Centroids,
    Draws,
    InputDropout,
    Noise,
    OutputDropout,
    RecurrentDropout,
    RecurrentLayer,
    tune,
)
from statewise.engine import plan
from statewise.engine.device import Form, Machine, choose_form, facts_of, form_of, forms, remember, trying, tuning
from statewise.engine.device.backward import turned_in_pieces
from statewise.engine.operands import Facts
from statewise.errors import EngineError, ShapeError
from statewise.kernels import load_triton
from support import needs_kernel

H200 = Machine(132, 232_448)
SMALL = Machine(20, 101_376)
NOISE = Noise("gaussian", 0.1, placement="recurrent")


@pytest.fixture(autouse=True)
def _available() -> None:
    if not load_triton().interpreted:
        pytest.skip(load_triton().reason or "the kernels run on the device here, see the tests marked gpu")


def known(layer: RecurrentLayer, steps: int, batch: int) -> Facts:
    x = torch.zeros(steps, batch, layer.input_size, dtype=layer.weight_ih_l0.dtype)
    return facts_of(layer.first_recurrence(x)[0])


@pytest.mark.parametrize(
    ("hidden", "dtype", "layers", "expected"),
    [
        (64, torch.float32, 1, ("solo", 64, 8)),
        (128, torch.bfloat16, 1, ("solo", 128, 8)),
        (128, torch.float32, 1, ("team", 16, 16)),
        (256, torch.bfloat16, 1, ("team", 16, 16)),
        (190, torch.bfloat16, 3, ("team", 32, 16)),
        (650, torch.bfloat16, 1, ("team", 32, 16)),
        (650, torch.bfloat16, 2, ("team", 32, 32)),
        (64, torch.float64, 1, ("step", 64, 8)),
    ],
)
def test_the_table_chooses_what_was_fastest(
    hidden: int, dtype: torch.dtype, layers: int, expected: tuple[str, int, int]
) -> None:
    batch = 80 if hidden == 650 else 128
    facts = known(LSTM(4, hidden, dtype=dtype, transforms=NOISE), 2, batch)
    form = choose_form(facts, dtype=dtype, replicas=1, machine=H200, layers=layers)
    assert (form.name, form.units, form.sequences) == expected


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (LSTM(2, 1500), "do not fit into the programs' memory"),
        (LSTM(2, 8, dtype=torch.float64), "float64"),
        (LSTM(2, 8, transforms=RecurrentDropout(0.2, mask_on="projection")), "masks on the product"),
        (GRU(2, 600, reset_before=True), "two products a step"),
    ],
    ids=["large", "float64", "masks", "two products"],
)
def test_what_no_launch_of_all_steps_can_do_is_done_step_by_step_and_says_why(
    layer: RecurrentLayer, reason: str
) -> None:
    facts = known(layer, 2, 80)
    form = choose_form(facts, dtype=layer.weight_hh_l0.dtype, replicas=1, machine=H200)
    assert form.name == "step"
    assert reason in str(form)


def test_no_form_needs_more_than_the_device_has() -> None:
    """A team that did not fit would wait for itself for ever."""
    for machine in (H200, SMALL):
        for hidden in (16, 100, 200, 300, 500, 700):
            for replicas in (1, 7, 40):
                facts = known(LSTM(2, hidden), 2, 70)
                form = choose_form(facts, dtype=torch.float32, replicas=replicas, machine=machine)
                members, groups = -(-hidden // form.units), -(-70 // form.sequences)
                if form.name == "team":
                    assert members * groups * replicas <= machine.processors
                if form.name != "step":
                    assert 4 * form.units * hidden * 4 <= machine.shared_memory


def test_centroids_have_a_whole_row_in_the_form_step_by_step() -> None:
    facts = known(LSTM(2, 1500, transforms=Centroids(3)), 2, 4)
    assert choose_form(facts, dtype=torch.float32, replicas=1, machine=H200).units >= 1500


def test_what_the_compiler_makes_wrong_is_never_chosen() -> None:
    """Triton 3.6 miscompiles teams with 65 to 128 centroids by 4 warps, and of 16 units in TF32."""
    for k, units in ((64, 16), (65, 32), (100, 32), (200, 32)):
        facts = known(LSTM(2, 256, transforms=Centroids(k)), 2, 64)
        form = choose_form(facts, dtype=torch.float32, replicas=1, machine=H200)
        assert (form.name, form.units) == ("team", units)
        teams = [form for form in forms.candidates(facts, dtype=torch.float32, machine=H200) if form.name == "team"]
        assert min(form.units for form in teams) == units
        assert (4 in {form.warps for form in teams}) == (k == 64)
    for k, warps in ((64, 4), (65, 8)):
        form = choose_form(
            known(LSTM(2, 16, transforms=Centroids(k)), 2, 128), dtype=torch.float32, replicas=1, machine=H200
        )
        assert (form.name, form.units, form.warps) == ("solo", 16, warps)
    for k, warps in ((64, 4), (65, 8)):
        facts = known(LSTM(2, 256, dtype=torch.bfloat16, transforms=Centroids(k)), 2, 128)
        assert choose_form(facts, dtype=torch.bfloat16, replicas=1, machine=H200).warps == warps


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("STATEWISE_CACHE", str(tmp_path))
    tuning._table.cache_clear()
    yield tmp_path
    tuning._table.cache_clear()


def test_a_measured_form_is_kept_for_its_device_and_found_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = known(LSTM(2, 40), 3, 5)
    form = Form("team", 16, 16, 4, "measured")
    path = remember(form, facts, dtype=torch.float32, device_name="NVIDIA H200", layers=1)
    assert path == cache / "forms-nvidia-h200.json"
    assert list(cache.iterdir()) == [path]
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA H200")
    device = torch.device("cuda")

    def found(facts: Facts, dtype: torch.dtype = torch.float32, layers: int = 1) -> Form | None:
        return tuning.look_up(facts, dtype=dtype, device=device, layers=layers)

    assert found(facts) == form
    assert found(known(LSTM(2, 40), 9, 8)) == form  # any length, batches up to the same power of two
    assert found(known(LSTM(2, 40), 3, 9)) is None
    assert found(known(LSTM(2, 41), 3, 5)) is None
    assert found(facts, dtype=torch.bfloat16) is None
    assert found(facts, layers=2) is None


@pytest.mark.parametrize("content", ["", "{", '{"a": 3}', '{"a": {"name": "team"}}'])
def test_a_file_that_cannot_be_read_is_as_good_as_none(cache: Path, content: str) -> None:
    (cache / "forms-x.json").write_text(content)
    facts, form = known(LSTM(2, 40), 3, 5), Form("solo", 64, 8, 4, "measured")
    remember(form, facts, dtype=torch.float32, device_name="x", layers=1)
    assert list(tuning._table(cache / "forms-x.json").values()) == [form]


def test_a_form_that_is_tried_runs() -> None:
    layer = LSTM(2, 5, engine="triton")
    x, tried = torch.zeros(3, 2, 2), Form("team", 16, 2, 4, "tried")
    with trying(tried):
        assert layer.plan(x).kernel == tried
    assert layer.plan(x).form == "solo"
    call, together = layer.first_recurrence(x)
    assert form_of(call, together) == layer.plan(x).kernel


def test_there_is_nothing_to_tune_on_a_cpu() -> None:
    with pytest.raises(EngineError, match="CUDA"):
        tune(LSTM(2, 3), torch.zeros(4, 1, 2))


def test_the_plan_names_the_kernel_and_the_reason() -> None:
    told = str(LSTM(2, 5, engine="triton").plan(torch.zeros(3, 2, 2)))
    assert told == "triton (solo, 16 units x 8 sequences: the weights fit into one program)"


@needs_kernel
def test_a_cpu_takes_the_kernels_only_when_it_is_told_to() -> None:
    assert LSTM(2, 5).plan(torch.zeros(3, 2, 2)).engine == "cpu"


@pytest.mark.parametrize("form", ["solo", pytest.param("step", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [pytest.param(LSTM, marks=pytest.mark.slow), GRU])
def test_replicas_under_vmap_equal_each_network_alone(kind: type[LSTM] | type[GRU], form: str) -> None:
    layers = [kind(3, 5, num_layers=2, engine="triton", transforms=Centroids(3)) for _ in range(3)]
    weights, _ = stack_module_state(layers)
    inputs = torch.randn(3, 4, 2, 3)

    def loss(weights: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = functional_call(layers[0], weights, (x,))[0]
        return output.square().sum()

    with only(form):
        together = vmap(grad(loss, argnums=(0, 1)))(weights, inputs)
        for place, layer in enumerate(layers):
            alone = grad(loss, argnums=(0, 1))(dict(layer.named_parameters()), inputs[place])
            torch.testing.assert_close(together[1][place], alone[1], rtol=1e-4, atol=1e-5)
            for name, gradient in alone[0].items():
                torch.testing.assert_close(together[0][name][place], gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", ["solo", "step"])
def test_a_jacobian_equals_that_of_the_reference(form: str) -> None:
    """There only the way back has replicas, and shares what the way forward saved."""
    layer, x = GRU(2, 3, engine="triton", transforms=Centroids(3)), torch.randn(3, 2, 2)
    with only(form):
        found = jacrev(lambda x: layer(x)[0])(x)
    layer.engine = "reference"
    torch.testing.assert_close(found, jacrev(lambda x: layer(x)[0])(x), rtol=1e-4, atol=1e-5)


def test_results_may_be_changed_in_place_before_the_way_back() -> None:
    layer = LSTM(2, 3, num_layers=2, engine="triton", transforms=Centroids(3))
    x = torch.randn(4, 2, 2, requires_grad=True)
    expected = torch.autograd.grad(3 * layer(x)[0].sum(), x)[0]
    output, (h, c), seen = layer(x, collect=("states", "cells", "gates", "probabilities"))
    for changed in (seen.states[0], seen.cells[0], seen.gates[0]["forget"], seen.probabilities[0], h, c):
        changed.detach().zero_()
    output.mul_(3)
    torch.testing.assert_close(torch.autograd.grad(output.sum(), x)[0], expected)


def test_what_enters_a_stack_is_changed_once_where_the_wavefront_is_given_up() -> None:
    """A transform of the user's own has no kernel, so the layers run one by one after all."""
    layer = LSTM(2, 3, num_layers=2, transforms=[InputDropout(0.5, layers=(0,)), NOISE])
    x = torch.randn(4, 2, 2)
    draws = layer.draw(x)
    layer.engine = "reference"
    expected = layer(x, draws=draws)[0]
    layer.engine = "auto"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RecurrentLayer, "_stretches", lambda self, *_: [range(2)])
        torch.testing.assert_close(layer(x, draws=draws)[0], expected)


def test_a_form_that_was_measured_without_masks_does_not_run_with_them(cache: Path) -> None:
    dropout = RecurrentDropout(0.2, mask_on="projection")
    layers = [LSTM(2, 40, transforms=dropout), LSTM(2, 40, transforms=dropout).eval()]
    layers += [LSTM(2, 40, transforms=Centroids(k)) for k in (3, 4)]
    keys = {tuning.key_of(known(layer, 3, 5), dtype=torch.float32, layers=1) for layer in layers}
    assert len(keys) == 4


def test_a_measured_form_that_this_batch_has_no_room_for_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Form("team", 32, 16, 8, "measured")
    monkeypatch.setattr(forms, "look_up", lambda *_, **__: measured)
    for batch, taken in ((80, True), (128, False)):
        layer = LSTM(2, 650, dtype=torch.bfloat16, engine="triton")
        call, _ = layer.first_recurrence(torch.zeros(2, batch, 2, dtype=torch.bfloat16))
        assert (form_of(call, 1) == measured) == taken


def test_two_kinds_of_centroids_have_no_team() -> None:
    """Their similarities would meet in one place at one time."""
    layer = LSTM(2, 200, dtype=torch.bfloat16, transforms=[Centroids(3), Centroids(4)])
    facts = known(layer, 2, 5)
    assert choose_form(facts, dtype=torch.bfloat16, replicas=1, machine=H200).name == "step"
    assert {form.name for form in forms.candidates(facts, dtype=torch.bfloat16, machine=H200)} == {"step"}


def test_more_centroids_than_a_program_can_hold_are_left_to_the_reference() -> None:
    layer = LSTM(2, 1500, engine="triton", transforms=Centroids(1000))
    with pytest.raises(EngineError, match="more than a program can hold"):
        layer.plan(torch.zeros(2, 1, 2))


@pytest.mark.parametrize("width", [3, 7])
def test_draws_of_another_width_are_refused_before_a_kernel_reads_them(width: int) -> None:
    layer, x = LSTM(2, 5, engine="triton", transforms=NOISE), torch.zeros(3, 2, 2)
    with pytest.raises(ShapeError, match="Draw anew"):
        layer(x, draws=Draws({(0, 0, 0): (torch.ones(3, 2, width),)}))


def test_vmap_inside_vmap_is_refused() -> None:
    layer = LSTM(2, 3, engine="triton")
    with pytest.raises(EngineError, match="vmap inside vmap"):
        vmap(vmap(lambda x: layer(x)[0]))(torch.zeros(2, 2, 4, 1, 2))


def _chained(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each call of the engine was a chain, as they come."""
    from statewise.layers import base

    seen: list[bool] = []

    def watched(calls: Any, plans: Any, *, chained: bool) -> Any:
        seen.append(chained)
        return plan.unroll_all(calls, plans, chained=chained)

    monkeypatch.setattr(base, "unroll_all", watched)
    return seen


@pytest.mark.parametrize("form", ["step", *(pytest.param(form, marks=pytest.mark.slow) for form in ("solo", "team"))])
def test_a_stack_as_a_wavefront_in_chunks_equals_its_layers_one_by_one(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven steps are four chunks, the last of them shorter."""
    seen = _chained(monkeypatch)
    case = Case(steps=7, batch=3, layers=3, lengths=(7, 2, 5), seed=8)
    layer = MEMBERS["LSTM"].build(case, transforms=(NOISE,))
    draws = layer.draw(case.arrange(case.leaves(has_memory=True)[0]), generator=case.generator("draws"))
    layer.engine = "triton"
    with only(form):
        together = run(layer, case, draws=draws)
        assert seen == [True]
        monkeypatch.setattr(RecurrentLayer, "_stretches", lambda self, *_: [range(i, i + 1) for i in range(3)])
        layer.engine = "triton"
        assert_same(together, run(layer, case, draws=draws))
    assert seen == [True, False, False, False]


def test_what_acts_between_layers_forbids_the_wavefront(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = _chained(monkeypatch)
    LSTM(2, 3, num_layers=2, engine="triton", transforms=OutputDropout(0.5))(torch.zeros(2, 1, 2))
    LSTM(2, 3, num_layers=2, engine="triton", transforms=OutputDropout(0.5, layers=(1,)))(torch.zeros(2, 1, 2))
    assert seen == [False, False, True]


def test_full_precision_has_no_team_for_a_cell_of_one_plane(restored_precision: None) -> None:
    """Triton 3.6 aborts the process when it compiles that."""
    facts = known(RNN(1, 256, nonlinearity="modrelu", bias=False), 20, 128)
    torch.set_float32_matmul_precision("highest")
    assert choose_form(facts, dtype=torch.float32, replicas=1, machine=H200).name == "step"
    torch.set_float32_matmul_precision("high")
    assert choose_form(facts, dtype=torch.float32, replicas=1, machine=H200).name == "team"
    torch.set_float32_matmul_precision("highest")
    wide = known(LSTM(1, 256), 20, 128)
    assert choose_form(wide, dtype=torch.float32, replicas=1, machine=H200).name == "team"


@pytest.mark.parametrize("pieces", [1, 2, 8])
def test_a_sum_over_rows_in_pieces_is_the_sum(pieces: int) -> None:
    grad, values = torch.randn(3, 64, 5), torch.randn(3, 72, 4)[:, 8:]  # the values of a walk are a part of a tensor
    found = turned_in_pieces(grad, values, pieces)
    torch.testing.assert_close(found, torch.einsum("nra,nrb->nab", grad, values), rtol=1e-5, atol=1e-5)


@pytest.fixture
def restored_precision() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)
