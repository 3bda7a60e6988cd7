"""A layer lives as torch's modules do: it is copied, saved, cast, compiled, checkpointed and used by threads."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.nn.utils import parametrizations, parametrize
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.checkpoint import checkpoint

import statewise
from contracts.passes import FORMS, only
from statewise import (
    GRU,
    LSTM,
    MGU,
    RAC,
    RNN,
    Centroids,
    InputDropout,
    LockedDropout,
    MultiplicativeRNN,
    Noise,
    OrthogonalRNN,
    OutputDropout,
    PeepholeLSTM,
    RecurrentDropout,
    RecurrentLayer,
    Transform,
    Zoneout,
)
from statewise.errors import EngineError
from statewise.kernels import load_triton
from statewise.layers import batch
from statewise.transforms.laws import LAWS
from statewise.weights import weight_drop
from support import needs_kernel, threads, tolerance

INPUT, HIDDEN, STEPS, BATCH = 3, 5, 4, 2
LAYERS: list[Any] = [RNN, MGU, GRU, MultiplicativeRNN, LSTM, PeepholeLSTM, RAC, OrthogonalRNN]
EVERY_LAYER = pytest.mark.parametrize("kind", LAYERS)
EVERY_FORM = pytest.mark.parametrize("form", FORMS)
SOME_OF_ALL: tuple[Transform, ...] = (
    RecurrentDropout(0.3),
    Noise("gaussian", 0.2, placement="outputs"),
    Zoneout(0.2, memory=0.1),
    Centroids(3, transition="noisy"),
    LockedDropout(0.3),
)
EVERY_START = pytest.mark.parametrize(
    ("kind", "options"),
    [
        *((kind, {}) for kind in LAYERS),
        *((RAC, {"initial_state": start}) for start in ("pinv", "learned")),
        *((OrthogonalRNN, {"initial_state": start}) for start in ("uniform", "learned")),
    ],
    ids=str,
)
# With masks of 0, 1 and 2, which every dtype holds.
MASKS: tuple[Transform, ...] = (
    InputDropout(0.5),
    OutputDropout(0.5),
    LockedDropout(0.5),
    Zoneout(0.3, memory=0.2),
    RecurrentDropout(0.5, input_p=0.5),
    RecurrentDropout(0.5, input_p=0.5, mask_on="projection"),
    RecurrentDropout(0.5, input_p=0.5, mask_on="projection", share_gates=False),
)
MASK_OF_EACH_GATE = RecurrentDropout(0.5, input_p=0.5, share_gates=False)  # for which the kernels have no code


@pytest.fixture
def x(generator: torch.Generator) -> Tensor:
    return torch.randn(STEPS, BATCH, INPUT, generator=generator)


def engine_of(form: str, kind: Any = LSTM) -> str:
    """What insists on a form; the kernel has no code for one of the cells."""
    return "reference" if form == "loop" else "auto" if kind is MultiplicativeRNN else "cpu"


def make(kind: Any, **options: Any) -> Any:
    """A layer that draws nothing but what its transforms draw."""
    if kind is OrthogonalRNN:
        options.setdefault("initial_state", "zeros")
    return kind(INPUT, HIDDEN, 2, bidirectional=True, **options)


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.grad.clone() for name, parameter in module.named_parameters() if parameter.grad is not None}


def outcome(layer: RecurrentLayer, x: Tensor, **options: Any) -> tuple[Tensor, dict[str, Tensor]]:
    """The output of a pass, and the gradients of all parameters."""
    layer.zero_grad()
    output, _ = layer(x, **options)
    output.square().sum().backward()
    found = gradients(layer)
    layer.zero_grad()
    return output.detach(), found


def assert_same(actual: tuple[Tensor, dict[str, Tensor]], expected: tuple[Tensor, dict[str, Tensor]]) -> None:
    """Outputs and gradients are the same numbers."""
    assert actual[1].keys() == expected[1].keys()
    torch.testing.assert_close(actual, expected, rtol=0, atol=0)


def assert_close(actual: tuple[Tensor, dict[str, Tensor]], expected: tuple[Tensor, dict[str, Tensor]]) -> None:
    """Outputs and gradients are the same up to rounding."""
    assert actual[1].keys() == expected[1].keys()
    torch.testing.assert_close(actual, expected, **tolerance(expected[0].dtype))


class TestCopies:
    @EVERY_LAYER
    def test_a_deep_copy_after_a_pass_gives_the_same_pass(self, kind: Any, x: Tensor) -> None:
        layer = make(kind, transforms=SOME_OF_ALL)
        draws = layer.draw(x)
        expected = outcome(layer, x, draws=draws)
        clone = copy.deepcopy(layer)
        assert clone.transforms == layer.transforms
        assert_same(outcome(clone, x, draws=draws), expected)

    @EVERY_LAYER
    def test_a_deep_copy_trains_on_its_own(self, kind: Any, x: Tensor) -> None:
        layer = make(kind)
        expected, clone = outcome(layer, x), copy.deepcopy(layer)
        clone(x)[0].sum().backward()
        torch.optim.SGD(clone.parameters(), lr=0.1).step()
        assert_same(outcome(layer, x), expected)
        assert not torch.equal(outcome(clone, x)[0], expected[0])

    def test_a_deep_copy_keeps_orthogonal_weights_orthogonal(self, x: Tensor) -> None:
        clone = copy.deepcopy(OrthogonalRNN(INPUT, HIDDEN))
        clone(x)[0].sum().backward()
        torch.optim.SGD(clone.parameters(), lr=0.1).step()
        product = clone.weight_hh_l0 @ clone.weight_hh_l0.T
        torch.testing.assert_close(product, torch.eye(HIDDEN), **tolerance(torch.float32))

    def test_a_deep_copy_with_dropped_weights_has_the_same_mask_and_draws_its_own(self, x: Tensor) -> None:
        layer = weight_drop(LSTM(INPUT, HIDDEN), "weight_hh_l0", p=0.5)
        layer(x)
        clone = copy.deepcopy(layer)
        assert torch.equal(clone.weight_hh_l0, layer.weight_hh_l0)
        before = layer.weight_hh_l0.detach().clone()
        clone(x, generator=torch.Generator().manual_seed(1))
        assert torch.equal(layer.weight_hh_l0, before)
        assert not torch.equal(clone.weight_hh_l0, before)

    def test_a_shallow_copy_shares_the_weights_but_not_the_settings(self, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=Zoneout(0.3))
        clone = copy.copy(layer)
        clone.engine = "reference"
        clone.retune(Zoneout, p=0.6)
        assert clone.weight_hh_l0 is layer.weight_hh_l0
        assert (layer.engine, layer.transforms) == ("auto", (Zoneout(0.3),))

    def test_a_shallow_copy_of_a_parametrized_layer_is_refused_clearly(self) -> None:
        with pytest.raises(RuntimeError, match=r"only supported through state_dict\(\)"):
            copy.copy(OrthogonalRNN(INPUT, HIDDEN))

    @pytest.mark.parametrize("transform", SOME_OF_ALL, ids=lambda transform: type(transform).__name__)
    def test_a_transform_is_a_value(self, transform: Transform) -> None:
        for clone in (copy.deepcopy(transform), pickle.loads(pickle.dumps(transform))):
            assert clone == transform
            assert hash(clone) == hash(transform)


class TestFiles:
    @pytest.mark.parametrize("kind", [kind for kind in LAYERS if kind is not OrthogonalRNN])
    def test_a_pickled_layer_comes_back_whole(self, kind: Any, x: Tensor) -> None:
        layer = make(kind, transforms=SOME_OF_ALL)
        draws = layer.draw(x)
        clone = pickle.loads(pickle.dumps(layer))
        assert_same(outcome(clone, x, draws=draws), outcome(layer, x, draws=draws))

    def test_the_variant_of_a_gru_survives_pickling(self, x: Tensor) -> None:
        layer = GRU(INPUT, HIDDEN, reset_before=True)
        assert_same(outcome(pickle.loads(pickle.dumps(layer)), x), outcome(layer, x))

    def test_pickling_a_parametrized_layer_is_refused_clearly(self) -> None:
        for layer in (OrthogonalRNN(INPUT, HIDDEN), weight_drop(LSTM(INPUT, HIDDEN), "weight_hh_l0")):
            with pytest.raises(RuntimeError, match=r"only supported through state_dict\(\)"):
                pickle.dumps(layer)

    def test_draws_can_be_pickled_and_saved(self, x: Tensor, tmp_path: Path) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=SOME_OF_ALL)
        draws = layer.draw(x)
        again = pickle.loads(pickle.dumps(draws))
        assert_same(outcome(layer, x, draws=again), outcome(layer, x, draws=draws))
        torch.save(draws.tensors, tmp_path / "draws.pt")
        loaded = statewise.Draws(torch.load(tmp_path / "draws.pt", weights_only=True))
        assert_same(outcome(layer, x, draws=loaded), outcome(layer, x, draws=draws))

    @EVERY_LAYER
    @pytest.mark.parametrize("options", [{}, {"initial_state": "learned"}], ids=str)
    def test_weights_go_through_torch_save_and_a_safe_load(
        self, kind: Any, options: dict[str, str], x: Tensor, tmp_path: Path
    ) -> None:
        if options and kind not in (RAC, OrthogonalRNN):
            options = {}
        layer, other = (make(kind, transforms=SOME_OF_ALL, **options) for _ in range(2))
        torch.save(layer.state_dict(), tmp_path / "layer.pt")
        assert not other.load_state_dict(torch.load(tmp_path / "layer.pt", weights_only=True)).missing_keys
        draws = layer.draw(x)
        assert_same(outcome(other, x, draws=draws), outcome(layer, x, draws=draws))

    @EVERY_LAYER
    def test_weights_go_through_safetensors(self, kind: Any, x: Tensor, tmp_path: Path) -> None:
        layer, other = (make(kind, transforms=SOME_OF_ALL) for _ in range(2))
        safetensors.torch.save_file(layer.state_dict(), tmp_path / "layer.safetensors")
        other.load_state_dict(safetensors.torch.load_file(tmp_path / "layer.safetensors"))
        draws = layer.draw(x)
        assert_same(outcome(other, x, draws=draws), outcome(layer, x, draws=draws))

    def test_a_whole_layer_cannot_slip_into_a_safe_load(self, tmp_path: Path) -> None:
        torch.save(LSTM(INPUT, HIDDEN), tmp_path / "layer.pt")
        with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
            torch.load(tmp_path / "layer.pt", weights_only=True)

    def test_weights_of_another_layer_are_refused_by_name(self) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=Centroids(3))
        with pytest.raises(RuntimeError, match=r"size mismatch for weight_hh_l0.*\[24, 6\].*\[20, 5\]"):
            layer.load_state_dict(LSTM(INPUT, 6, transforms=Centroids(3)).state_dict())
        with pytest.raises(RuntimeError, match=r'Missing key.*"centroids_l0"'):
            layer.load_state_dict(nn.LSTM(INPUT, HIDDEN).state_dict())
        with pytest.raises(RuntimeError, match=r'Unexpected key.*"weight_ih_l1"'):
            layer.load_state_dict(LSTM(INPUT, HIDDEN, 2, transforms=Centroids(3, layers=(0,))).state_dict())

    def test_the_weights_of_torch_load_into_a_layer_that_learns_more(self) -> None:
        layer, plain = LSTM(INPUT, HIDDEN, transforms=Centroids(3)), nn.LSTM(INPUT, HIDDEN)
        weight = plain.get_parameter("weight_hh_l0")
        assert layer.load_state_dict(plain.state_dict(), strict=False).missing_keys == ["centroids_l0"]
        assert torch.equal(layer.weight_hh_l0, weight)


class TestDtypes:
    @EVERY_LAYER
    def test_a_layer_cast_to_double_computes_in_double(self, kind: Any, x: Tensor) -> None:
        layer = make(kind, transforms=SOME_OF_ALL).double()
        draws = layer.draw(x.double())
        output, found = outcome(layer, x.double(), draws=draws)
        assert output.dtype == torch.float64
        assert {gradient.dtype for gradient in found.values()} == {torch.float64}
        layer.engine = "reference"
        assert_close(outcome(layer, x.double(), draws=draws), (output, found))

    @EVERY_LAYER
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
    @pytest.mark.parametrize("transforms", [(), SOME_OF_ALL], ids=["plain", "transforms"])
    def test_half_precision_runs_on_the_reference_engine(
        self, kind: Any, dtype: torch.dtype, transforms: tuple[Transform, ...], x: Tensor, generator: torch.Generator
    ) -> None:
        layer = make(kind, transforms=transforms, generator=generator).to(dtype)
        if kind is RAC:  # fresh weights, multiplied over the steps and layers, may leave the range of float16
            layer.load_state_dict({name: weight / 2 for name, weight in layer.state_dict().items()})
        assert layer.plan(x.to(dtype)).engine == "reference"
        output, found = outcome(layer, x.to(dtype), generator=generator)
        assert output.dtype == dtype
        assert output.isfinite().all()
        assert all(gradient.dtype == dtype and gradient.isfinite().all() for gradient in found.values())
        assert found.keys() == dict(layer.named_parameters()).keys()

    def test_half_precision_is_near_single_precision(self, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN, 2)
        expected = layer(x)[0]
        output = copy.deepcopy(layer).bfloat16()(x.bfloat16())[0]
        torch.testing.assert_close(output.float(), expected, **tolerance(torch.bfloat16))

    def test_draws_can_be_cast_with_the_layer(self, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=SOME_OF_ALL)
        draws = layer.draw(x)
        output = layer(x, draws=draws)[0]
        cast = copy.deepcopy(layer).double()(x.double(), draws=draws.to(torch.float64))[0]
        torch.testing.assert_close(cast.float(), output, **tolerance(torch.float32))


class Scaled(nn.Module):
    """A parametrization with a parameter of its own, of a misleading name."""

    def __init__(self) -> None:
        super().__init__()
        self.original = nn.Parameter(torch.tensor(2.0))

    def forward(self, weight: Tensor) -> Tensor:
        return weight * self.original


class TestReset:
    def test_a_normalised_weight_keeps_its_length_and_direction(self) -> None:
        layer = parametrizations.weight_norm(LSTM(INPUT, HIDDEN), "weight_hh_l0")
        before = {name: parameter.detach().clone() for name, parameter in layer.named_parameters()}
        layer.reset_parameters()
        kept = {name for name, parameter in layer.named_parameters() if torch.equal(parameter, before[name])}
        assert kept == {f"parametrizations.weight_hh_l0.original{part}" for part in (0, 1)}

    def test_the_parameter_of_a_parametrization_is_not_drawn(self) -> None:
        layer = LSTM(INPUT, HIDDEN)
        parametrize.register_parametrization(layer, "weight_hh_l0", Scaled())
        layer.reset_parameters()
        assert layer.get_parameter("parametrizations.weight_hh_l0.0.original").item() == 2.0

    def test_dropped_weights_of_a_circuit_are_drawn_from_its_own_law(self, generator: torch.Generator) -> None:
        layer = RAC(INPUT, 200, bias=True)
        weight_drop(layer, ("weight_hh_l0", "bias_hh_l0"))
        layer.reset_parameters(generator)
        raw = layer.get_parameter("parametrizations.weight_hh_l0.original")
        # The standard error of a standard deviation is a share of 1 / sqrt(2 n) of it.
        assert raw.std().item() * 200**0.5 == pytest.approx(1.0, abs=5 / (2 * raw.numel()) ** 0.5)
        assert not layer.get_parameter("parametrizations.bias_hh_l0.original").any()

    def test_dropped_input_weights_of_an_orthogonal_network_stay_small(self, generator: torch.Generator) -> None:
        layer = weight_drop(OrthogonalRNN(INPUT, HIDDEN), "weight_ih_l0")
        layer.reset_parameters(generator)
        raw = layer.get_parameter("parametrizations.weight_ih_l0.original")
        assert 0.005 < raw.abs().max().item() <= 0.01


class TestFrozenWeights:
    @EVERY_FORM
    @pytest.mark.parametrize("kind", [RNN, GRU, PeepholeLSTM])
    def test_frozen_weights_get_no_gradient_and_the_others_the_same(self, kind: Any, form: str, x: Tensor) -> None:
        layer = kind(INPUT, HIDDEN, transforms=Centroids(3), engine=engine_of(form, kind))
        with only(form):
            output, full = outcome(layer, x)
            names = [name for name, _ in layer.named_parameters()]
            for name, parameter in layer.named_parameters():
                parameter.requires_grad_(False)
                left, found = outcome(layer, x)
                parameter.requires_grad_(True)
                assert found.keys() == set(names) - {name}
                torch.testing.assert_close(found, {k: full[k] for k in found}, **tolerance(torch.float32))
                torch.testing.assert_close(left, output, **tolerance(torch.float32))

    @EVERY_FORM
    def test_the_input_of_a_frozen_layer_still_gets_its_gradient(self, form: str, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN, 2, engine=engine_of(form))
        x.requires_grad_()
        with only(form):
            (expected,) = torch.autograd.grad(layer(x)[0].sum(), x)
            (found,) = torch.autograd.grad(layer.requires_grad_(False)(x)[0].sum(), x)
        torch.testing.assert_close(found, expected, **tolerance(x.dtype))

    @EVERY_FORM
    def test_a_frozen_layer_builds_no_graph(self, form: str, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=Noise("gaussian", 0.3), engine=engine_of(form)).requires_grad_(False)
        with only(form):
            output, (h, c) = layer(x)
        assert not any(tensor.requires_grad for tensor in (output, h, c))


class TestGradModes:
    @EVERY_FORM
    @EVERY_LAYER
    @pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
    def test_without_gradients_a_training_pass_is_the_same(self, kind: Any, form: str, mode: Any, x: Tensor) -> None:
        layer = make(kind, transforms=SOME_OF_ALL, engine=engine_of(form, kind))
        with only(form):
            expected = layer(x, generator=torch.Generator().manual_seed(5))[0]
            with mode():
                output = layer(x, generator=torch.Generator().manual_seed(5))[0]
        assert not output.requires_grad
        torch.testing.assert_close(output, expected.detach(), rtol=0, atol=0)

    def test_a_large_draw_in_inference_mode_is_the_same_on_several_threads(self) -> None:
        layer = LSTM(4, 200, transforms=Noise("gaussian", 0.3))
        x = torch.randn(20, 32, 4)
        with threads(2):
            expected = layer(x, generator=torch.Generator().manual_seed(5))[0].detach()
            with torch.inference_mode():
                output = layer(x, generator=torch.Generator().manual_seed(5))[0]
        torch.testing.assert_close(output, expected, rtol=0, atol=0)

    @EVERY_LAYER
    def test_a_pass_in_inference_mode_leaves_the_layer_trainable(self, kind: Any, x: Tensor) -> None:
        layer = make(kind, transforms=SOME_OF_ALL)
        with torch.inference_mode():
            layer(x)
        assert outcome(layer, x)[1].keys() == dict(layer.named_parameters()).keys()

    def test_masks_drawn_in_inference_mode_can_be_trained_with(self, x: Tensor) -> None:
        layer = weight_drop(LSTM(INPUT, HIDDEN), "weight_hh_l0", p=0.5)
        with torch.inference_mode():
            layer(x)
        layer(x, draws=layer.draw(x))[0].sum().backward()


def assert_computes_in_half_precision(layer: Any, x: Tensor) -> None:
    """Under autocast a layer computes what its copy in half precision does, and its gradients are the weights' own."""
    if isinstance(layer, OrthogonalRNN) or getattr(layer, "initial_state", "zeros") not in ("zeros", "ones"):
        # A pseudoinverse would magnify the weights' rounding; an orthogonal matrix is made of rounded weights there.
        layer.load_state_dict({name: weight.bfloat16() for name, weight in layer.state_dict().items()})
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        draws = layer.draw(x)
        output, _ = layer(x, draws=draws)
    output.float().square().sum().backward()
    assert output.dtype == torch.bfloat16
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in layer.parameters())
    half, _ = copy.deepcopy(layer).bfloat16()(x.bfloat16(), draws=draws)
    torch.testing.assert_close(output, half)


class TestAutocast:
    @pytest.fixture
    def as_on_a_device(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Layers follow autocast, as on a CUDA device."""

        def follows(weight: Tensor) -> torch.dtype:
            return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else weight.dtype

        monkeypatch.setattr(batch, "computing_dtype", follows)

    @EVERY_FORM
    @EVERY_LAYER
    def test_a_layer_computes_in_its_own_dtype(self, kind: Any, form: str, x: Tensor) -> None:
        layer = make(kind, transforms=SOME_OF_ALL, engine=engine_of(form, kind))
        draws = layer.draw(x)
        with only(form):
            expected = outcome(layer, x, draws=draws)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                output, _ = layer(x, draws=draws)
            output.square().sum().backward()
        assert output.dtype == torch.float32
        assert_same((output.detach(), gradients(layer)), expected)

    def test_a_backward_pass_of_the_kernel_under_autocast_computes_in_its_own_dtype_too(self, x: Tensor) -> None:
        layer = make(LSTM, transforms=SOME_OF_ALL, engine="cpu")
        draws = layer.draw(x)
        with only("native"):
            expected = outcome(layer, x, draws=draws)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                assert_same(outcome(layer, x, draws=draws), expected)

    def test_what_autocast_gives_a_layer_is_taken_padded_packed_and_as_a_state(self, x: Tensor) -> None:
        below, start, layer = nn.Linear(INPUT, INPUT), nn.Linear(INPUT, HIDDEN), LSTM(INPUT, HIDDEN)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            features, state = below(x), start(x[:1])
            assert features.dtype == state.dtype == torch.bfloat16
            output, _ = layer(features, (state, state))
            packed, _ = layer(pack_padded_sequence(features, torch.tensor([4, 4])), (state, state))
            (output.sum() + packed.data.sum()).backward()
        torch.testing.assert_close(pad_packed_sequence(packed)[0], output)
        assert output.isfinite().all()
        assert all(parameter.grad is not None for parameter in (*below.parameters(), *start.parameters()))

    @pytest.mark.gpu
    @EVERY_START
    def test_on_a_device_it_computes_in_the_dtype_of_autocast_as_torchs_layers_do(
        self, kind: Any, options: dict[str, str], x: Tensor
    ) -> None:
        assert_computes_in_half_precision(make(kind, transforms=Noise("gaussian", 0.5), **options).cuda(), x.cuda())

    @EVERY_START
    @pytest.mark.usefixtures("as_on_a_device")
    def test_where_autocast_decides_every_initial_state_follows_it(
        self, kind: Any, options: dict[str, str], x: Tensor
    ) -> None:
        assert_computes_in_half_precision(make(kind, transforms=Noise("gaussian", 0.5), **options), x)

    @pytest.mark.parametrize(
        ("transform", "engine"),
        [
            *((mask, "reference") for mask in (*MASKS, MASK_OF_EACH_GATE)),
            *((mask, "triton") for mask in MASKS[-3:]),
            *(pytest.param(mask, "triton", marks=pytest.mark.slow) for mask in MASKS[:-3]),
        ],
        ids=str,
    )
    @pytest.mark.usefixtures("as_on_a_device")
    def test_what_was_drawn_before_autocast_is_of_use_under_it(
        self, transform: Transform, engine: str, x: Tensor
    ) -> None:
        if engine == "triton" and load_triton().device != "cpu":
            pytest.skip("needs Triton's interpreter")
        layer = LSTM(INPUT, HIDDEN, 2, transforms=transform, engine=engine)
        draws = layer.draw(x)
        with torch.autocast("cpu", dtype=torch.float16):  # of bfloat16 the interpreter makes no products
            expected = outcome(layer, x, draws=draws.to(torch.float16))
            found = outcome(layer, x, draws=draws)
        assert found[0].dtype == torch.float16
        assert_same(found, expected)

    @pytest.mark.usefixtures("as_on_a_device")
    def test_an_initial_state_that_was_drawn_before_autocast_is_of_use_under_it(self, x: Tensor) -> None:
        layer = make(OrthogonalRNN, initial_state="uniform")
        draws = layer.draw(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert_same(outcome(layer, x, draws=draws), outcome(layer, x, draws=draws.to(torch.bfloat16)))

    @pytest.mark.usefixtures("as_on_a_device")
    def test_an_input_that_has_the_dtype_of_autocast_is_not_copied(self, x: Tensor) -> None:
        layer, x = LSTM(INPUT, HIDDEN), x.bfloat16()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert layer._read(x).rows.data_ptr() == x.data_ptr()

    def test_whole_numbers_are_refused_under_autocast_too(self, x: Tensor) -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(statewise.errors.DtypeError):
            LSTM(INPUT, HIDDEN)(x.long())

    @pytest.mark.parametrize("kind", [statewise.LSTMCell, statewise.GRUCell])
    def test_a_single_step_takes_what_autocast_gives_it(self, kind: Any, x: Tensor) -> None:
        cell, below = kind(INPUT, HIDDEN), nn.Linear(INPUT, INPUT)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            state = cell(below(x[1]), cell(below(x[0])))
        h = state[0] if isinstance(state, tuple) else state
        assert h.isfinite().all()


class Tagger(nn.Module):
    """A model around a layer, as a user might compile it."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.below, self.above = nn.Linear(INPUT, INPUT), nn.Linear(2 * HIDDEN, 2)
        self.rnn = LSTM(INPUT, HIDDEN, 2, bidirectional=True, **options)

    def forward(self, x: Tensor, draws: Any = None) -> Tensor:
        logits: Tensor = self.above(torch.relu(self.rnn(torch.tanh(self.below(x)), draws=draws)[0]))
        return logits


# torch.compile looks at the gradient of what a layer gives to the rest of the model, and torch warns of that.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.usefixtures("as_users_have_it")  # torch.compile cannot look through the run-time check of annotations
class TestCompiledModels:
    @pytest.mark.parametrize("backend", ["eager", pytest.param("inductor", marks=pytest.mark.slow)])
    @pytest.mark.parametrize("transforms", [(), SOME_OF_ALL], ids=["plain", "transforms"])
    def test_a_compiled_model_equals_the_model(
        self, backend: str, transforms: tuple[Transform, ...], x: Tensor
    ) -> None:
        torch.compiler.reset()
        model = Tagger(transforms=transforms)
        compiled, draws = torch.compile(model, backend=backend), model.rnn.draw(x)
        found = []
        for callable_model in (model, compiled):
            model.zero_grad()
            output = callable_model(x, draws)
            output.square().sum().backward()
            found.append((output.detach(), gradients(model)))
        assert_close(found[1], found[0])

    def test_a_compiled_model_draws_fresh_noise_each_time(self, x: Tensor) -> None:
        torch.compiler.reset()
        compiled = torch.compile(Tagger(transforms=Noise("gaussian", 0.5)), backend="eager")
        assert not torch.equal(compiled(x), compiled(x))

    def test_a_compiled_model_can_change_from_training_to_eval(self, x: Tensor) -> None:
        torch.compiler.reset()
        model = Tagger(transforms=Noise("gaussian", 0.5))
        compiled = torch.compile(model, backend="eager")
        compiled(x)
        model.eval()
        torch.testing.assert_close(compiled(x), model(x))


class TestFunctionalTransforms:
    @EVERY_LAYER
    def test_a_functional_call_uses_the_given_weights(self, kind: Any, x: Tensor) -> None:
        layer, other = make(kind), make(kind)
        state = {**dict(other.named_parameters()), **dict(other.named_buffers())}
        torch.testing.assert_close(functional_call(layer, state, (x,))[0], other(x)[0], rtol=0, atol=0)

    @pytest.mark.parametrize("engine", ["auto", "reference"])
    @EVERY_LAYER
    def test_a_functional_gradient_equals_backward(self, kind: Any, engine: str, x: Tensor) -> None:
        layer = make(kind, transforms=SOME_OF_ALL)
        draws = layer.draw(x)
        _, expected = outcome(layer, x, draws=draws)
        layer.engine = engine

        def loss(parameters: dict[str, Tensor]) -> Tensor:
            output: Tensor = functional_call(layer, parameters, (x,), {"draws": draws})[0]
            return output.square().sum()

        found = grad(loss)({name: parameter.detach() for name, parameter in layer.named_parameters()})
        torch.testing.assert_close(found, expected, **tolerance(x.dtype))

    @needs_kernel
    def test_inside_two_gradients_the_reference_engine_runs_and_the_plan_says_so(self, x: Tensor) -> None:
        layer, plans = LSTM(INPUT, HIDDEN), []

        def loss(inputs: Tensor) -> Tensor:
            plans.append(layer.plan(x))
            return inputs.square().sum()

        grad(lambda inputs: grad(loss)(inputs).sum())(x)
        assert plans[0].engine == "reference"
        assert "torch.func" in str(plans[0])

    @needs_kernel
    def test_the_cpu_engine_refuses_to_be_differentiated_twice(self, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN, engine="cpu")
        with pytest.raises(EngineError, match=r"torch\.func.*engine='auto'"):
            grad(lambda inputs: grad(lambda inputs: layer(inputs)[0].sum())(inputs).sum())(x)

    @EVERY_LAYER
    def test_a_stack_of_networks_runs_as_one(self, kind: Any, x: Tensor) -> None:
        replicas = [make(kind) for _ in range(3)]
        states = [replica.state_dict() for replica in replicas]
        stacked = {name: torch.stack([state[name] for state in states]) for name in states[0]}

        def output(state: dict[str, Tensor]) -> Tensor:
            found: Tensor = functional_call(replicas[0], state, (x,))[0]
            return found

        together = vmap(output)(stacked)
        for replica, found in zip(replicas, together, strict=True):
            torch.testing.assert_close(found, replica(x)[0], **tolerance(x.dtype))

    def test_gradients_of_a_stack_of_networks_are_theirs(self, x: Tensor) -> None:
        replicas = [LSTM(INPUT, HIDDEN, 2, transforms=SOME_OF_ALL) for _ in range(3)]
        parameters, _ = stack_module_state(replicas)
        draws = replicas[0].draw(x)

        def loss(state: dict[str, Tensor]) -> Tensor:
            output: Tensor = functional_call(replicas[0], state, (x,), {"draws": draws})[0]
            return output.square().sum()

        together = vmap(grad(loss))({name: parameter.detach() for name, parameter in parameters.items()})
        for index, replica in enumerate(replicas):
            _, expected = outcome(replica, x, draws=draws)
            found = {name: stacked[index] for name, stacked in together.items()}
            torch.testing.assert_close(found, expected, **tolerance(x.dtype))

    def test_a_stack_of_inputs_goes_through_one_network(self, generator: torch.Generator) -> None:
        layer, many = GRU(INPUT, HIDDEN), torch.randn(3, STEPS, BATCH, INPUT, generator=generator)
        together = vmap(lambda inputs: layer(inputs)[0])(many)
        torch.testing.assert_close(together, torch.stack([layer(x)[0] for x in many]), **tolerance(many.dtype))

    @pytest.mark.parametrize("law", ["gaussian", "beta"])
    def test_drawing_inside_vmap_is_refused_by_torch_unless_it_is_allowed(self, law: str, x: Tensor) -> None:
        layer = GRU(INPUT, HIDDEN, transforms=Noise(law, 0.1, placement="outputs"))
        with pytest.raises(RuntimeError, match="vmap: called random operation while in randomness error mode"):
            vmap(lambda inputs: layer(inputs)[0], randomness="error")(torch.stack((x, x)))

    @pytest.mark.parametrize("transform", [*(Noise(law, 0.3) for law in LAWS), Centroids(3, transition="noisy")])
    def test_drawing_differently_inside_vmap_gives_each_its_own_noise(self, transform: Transform, x: Tensor) -> None:
        layer = GRU(INPUT, HIDDEN, transforms=transform)
        one, other = vmap(lambda inputs: layer(inputs)[0], randomness="different")(torch.stack((x, x)))
        assert not torch.allclose(one, other)

    def test_drawing_the_same_inside_vmap_gives_all_the_same_noise(self, x: Tensor) -> None:
        layer = GRU(INPUT, HIDDEN, transforms=Noise("gaussian", 0.3))
        one, other = vmap(lambda inputs: layer(inputs)[0], randomness="same")(torch.stack((x, x)))
        assert torch.equal(one, other)
        assert not torch.allclose(one, layer.eval()(x)[0])


class TestThreads:
    @EVERY_FORM
    def test_two_threads_on_one_layer_do_not_disturb_each_other(self, form: str, generator: torch.Generator) -> None:
        layer = LSTM(INPUT, HIDDEN, 2, transforms=SOME_OF_ALL, engine=engine_of(form))
        many = [torch.randn(STEPS, BATCH, INPUT, generator=generator) for _ in range(16)]

        def run(index: int) -> list[Tensor]:
            x = many[index].clone().requires_grad_()
            output = layer(x, generator=torch.Generator().manual_seed(index))[0]
            return [output.detach(), *torch.autograd.grad(output.square().sum(), [x, *layer.parameters()])]

        with only(form):
            serial = [run(index) for index in range(16)]
            with ThreadPoolExecutor(2) as pool:
                parallel = list(pool.map(run, range(16)))
        torch.testing.assert_close(parallel, serial, rtol=0, atol=0)

    @EVERY_FORM
    @pytest.mark.parametrize("kind", [GRU, LSTM, OrthogonalRNN])
    def test_the_number_of_threads_changes_nothing_but_rounding(
        self, kind: Any, form: str, generator: torch.Generator
    ) -> None:
        layer = kind(40, 64, transforms=SOME_OF_ALL, engine=engine_of(form, kind))
        x, hx = torch.randn(6, 33, 40, generator=generator), torch.randn(1, 33, 64, generator=generator)
        start = (hx, hx) if layer.cell.has_memory else hx
        draws, found = layer.draw(x), []
        for count in (1, 2):
            with only(form), threads(count):
                found.append(outcome(layer, x, hx=start, draws=draws))
        scale = max(float(gradient.abs().max()) for gradient in found[0][1].values())
        torch.testing.assert_close(found[1][0], found[0][0], **tolerance(x.dtype))
        torch.testing.assert_close(found[1][1], found[0][1], rtol=2e-5, atol=1e-5 * max(1.0, scale))

    def test_what_is_drawn_does_not_depend_on_the_number_of_threads(self) -> None:
        layer, x = LSTM(4, 200, transforms=SOME_OF_ALL), torch.randn(20, 32, 4)
        found = []
        for count in (1, 2):
            with threads(count):
                found.append(layer.draw(x, generator=torch.Generator().manual_seed(3)).tensors)
        torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)


class TestBackward:
    def layer(self, form: str, kind: Any = LSTM) -> Any:
        return make(kind, transforms=SOME_OF_ALL, engine=engine_of(form, kind))

    @EVERY_FORM
    @EVERY_LAYER
    def test_a_second_pass_back_through_a_kept_graph_gives_the_same(self, kind: Any, form: str, x: Tensor) -> None:
        layer = self.layer(form, kind)
        with only(form):
            loss = layer(x)[0].square().sum()
            loss.backward(retain_graph=True)
            first = gradients(layer)
            layer.zero_grad()
            loss.backward()
        torch.testing.assert_close(gradients(layer), first, rtol=0, atol=0)

    @EVERY_FORM
    def test_a_graph_that_was_not_kept_is_gone(self, form: str, x: Tensor) -> None:
        with only(form):
            loss = self.layer(form)(x)[0].sum()
            loss.backward()
            with pytest.raises(RuntimeError, match="backward through the graph a second time"):
                loss.backward()

    @EVERY_FORM
    def test_two_passes_add_their_gradients_up(self, form: str, x: Tensor) -> None:
        layer = self.layer(form)
        draws = layer.draw(x)
        with only(form):
            _, once = outcome(layer, x, draws=draws)
            for _ in range(2):
                layer(x, draws=draws)[0].square().sum().backward()
        torch.testing.assert_close(gradients(layer), {name: 2 * value for name, value in once.items()}, rtol=0, atol=0)

    @EVERY_FORM
    @pytest.mark.parametrize("name", ["weight_hh_l0", "weight_ih_l1", "centroids_l0"])
    def test_a_weight_changed_before_backward_is_noticed(self, form: str, name: str, x: Tensor) -> None:
        layer = self.layer(form)
        with only(form):
            loss = layer(x)[0].sum()
            with torch.no_grad():
                layer.get_parameter(name).add_(1.0)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                loss.backward()

    @EVERY_FORM
    def test_an_input_changed_before_backward_is_noticed(self, form: str, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN, engine=engine_of(form))
        with only(form):
            loss = layer(x)[0].sum()
            x.add_(1.0)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                loss.backward()

    @EVERY_FORM
    def test_an_output_changed_before_backward_is_noticed_or_harmless(self, form: str, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN, engine=engine_of(form))
        with only(form):
            _, expected = outcome(layer, x)
            output, _ = layer(x)
            output.mul_(3.0)
            loss = (output / 3.0).square().sum()
            if form != "loop":  # the cpu engine keeps its output instead of a copy, as torch's own kernels do
                with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                    loss.backward()
            else:
                loss.backward()
                torch.testing.assert_close(gradients(layer), expected, **tolerance(x.dtype))

    @EVERY_FORM
    def test_saved_tensors_pass_through_the_hooks_of_torch(self, form: str, x: Tensor) -> None:
        """Offloading saved tensors, as ``save_on_cpu`` does, must not change the result."""
        layer, packed = self.layer(form), []

        def pack(tensor: Tensor) -> Tensor:
            packed.append(tensor.shape)
            return tensor.clone()

        draws = layer.draw(x)
        with only(form):
            expected = outcome(layer, x, draws=draws)
            with saved_tensors_hooks(pack, lambda tensor: tensor):
                found = outcome(layer, x, draws=draws)
        assert packed
        assert_same(found, expected)

    @EVERY_FORM
    def test_hooks_on_modules_parameters_and_outputs_are_called(self, form: str, x: Tensor) -> None:
        layer, called = self.layer(form), []
        layer.register_forward_pre_hook(lambda module, arguments: called.append("before"))
        layer.register_forward_hook(lambda module, arguments, result: called.append("after"))
        layer.register_full_backward_hook(lambda module, inner, outer: called.append("backward"))
        layer.weight_hh_l1.register_hook(lambda gradient: called.append("gradient"))
        layer.weight_hh_l1.register_post_accumulate_grad_hook(lambda parameter: called.append("accumulated"))
        with only(form):
            output, _ = layer(x.requires_grad_())
            output.register_hook(lambda gradient: called.append("output"))
            output.sum().backward()
        assert called[:3] == ["before", "after", "output"]
        assert set(called[3:]) == {"backward", "gradient", "accumulated"}

    @EVERY_FORM
    def test_only_the_final_memory_may_be_used(self, form: str, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN, 2, engine=engine_of(form))
        with only(form):
            layer(x)[1][1][1].sum().backward()
        assert all(parameter.grad is not None for parameter in layer.parameters())


def tensors_alive() -> int:
    return sum(issubclass(type(thing), Tensor) for thing in gc.get_objects())


@pytest.fixture
def no_garbage_collector() -> Iterator[None]:
    """Nothing is collected, and what was there before is not counted, which would take longer than any test."""
    gc.disable()
    gc.freeze()
    yield
    gc.unfreeze()
    gc.enable()


class TestMemory:
    @EVERY_FORM
    @pytest.mark.parametrize("kind", [GRU, LSTM, OrthogonalRNN])
    @pytest.mark.parametrize("backward", [False, True])
    @pytest.mark.parametrize("collect", [(), ("states", "cells", "gates", "probabilities")], ids=["", "collect"])
    @pytest.mark.usefixtures("no_garbage_collector")
    def test_a_pass_leaves_nothing_for_the_garbage_collector(
        self, kind: Any, form: str, backward: bool, collect: tuple[str, ...], x: Tensor
    ) -> None:
        layer = make(kind, transforms=SOME_OF_ALL, engine=engine_of(form, kind))

        def step() -> tuple[weakref.ref[Tensor], ...]:
            output, state, *_ = layer(x, collect=collect)
            if backward:
                output.sum().backward()
                layer.zero_grad()
            return weakref.ref(output), weakref.ref(state[0] if isinstance(state, tuple) else state)

        with only(form):
            step()
            before = tensors_alive()
            left = [reference() for _ in range(3) for reference in step()]
        assert left == [None] * 6
        assert tensors_alive() <= before

    @EVERY_FORM
    @pytest.mark.usefixtures("no_garbage_collector")
    def test_fifty_training_steps_leave_no_tensor_behind(self, form: str, x: Tensor) -> None:
        layer = LSTM(INPUT, HIDDEN, transforms=SOME_OF_ALL, engine=engine_of(form))
        optimiser = torch.optim.Adam(layer.parameters())

        def step() -> None:
            optimiser.zero_grad()
            layer(x)[0].square().sum().backward()
            optimiser.step()

        with only(form):
            for _ in range(3):
                step()
            before = tensors_alive()
            for _ in range(50):
                step()
        assert tensors_alive() <= before


class TestCheckpointing:
    @EVERY_FORM
    @EVERY_LAYER
    def test_a_checkpointed_pass_with_given_draws_is_the_same(self, kind: Any, form: str, x: Tensor) -> None:
        layer = make(kind, transforms=SOME_OF_ALL, engine=engine_of(form, kind))
        draws = layer.draw(x)
        with only(form):
            expected = outcome(layer, x, draws=draws)
            output, _ = checkpoint(lambda inputs: layer(inputs, draws=draws), x, use_reentrant=False)
            output.square().sum().backward()
        assert_same((output.detach(), gradients(layer)), expected)

    @EVERY_FORM
    def test_a_checkpointed_pass_repeats_the_noise_of_a_fresh_generator(self, form: str, x: Tensor) -> None:
        layer = make(LSTM, transforms=SOME_OF_ALL, engine=engine_of(form))

        def seeded(inputs: Tensor) -> Any:
            return layer(inputs, generator=torch.Generator().manual_seed(11))

        with only(form):
            expected = outcome(layer, x, generator=torch.Generator().manual_seed(11))
            output, _ = checkpoint(seeded, x, use_reentrant=False)
            output.square().sum().backward()
        assert_same((output.detach(), gradients(layer)), expected)

    @EVERY_FORM
    def test_a_checkpointed_pass_repeats_the_noise_of_the_global_generator(self, form: str, x: Tensor) -> None:
        layer = weight_drop(make(LSTM, transforms=SOME_OF_ALL, engine=engine_of(form)), "weight_hh_l0", p=0.3)
        with only(form), torch.random.fork_rng():
            torch.manual_seed(7)
            expected = outcome(layer, x)
            torch.manual_seed(7)
            output, _ = checkpoint(layer, x, use_reentrant=False)
            torch.rand(3)
            output.square().sum().backward()
        assert_same((output.detach(), gradients(layer)), expected)
