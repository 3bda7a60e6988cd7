"""One bare step of a layer: what it computes, what it leaves out, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

import statewise
from statewise import Centroids, Noise, RecurrentLayer
from statewise.errors import ArgumentError, DeviceError, DtypeError, ShapeError
from statewise.layers import GRUCell, LSTMCell, MGUCell, PeepholeLSTMCell, RACCell, RNNCell, SingleStep
from statewise.transforms import InputDropout, OutputDropout, RecurrentDropout, Zoneout
from statewise.weights import weight_drop
from support import tolerance

DOUBLE = torch.float64
IN, HIDDEN, BATCH = 3, 5, 4
LAYERS: dict[str, Callable[..., RecurrentLayer]] = {
    "rnn": statewise.RNN,
    "relu": partial(statewise.RNN, nonlinearity="relu"),
    "modrelu": partial(statewise.RNN, nonlinearity="modrelu"),
    "mgu": statewise.MGU,
    "gru": statewise.GRU,
    "gru, reset before": partial(statewise.GRU, reset_before=True),
    "lstm": statewise.LSTM,
    "peephole": statewise.PeepholeLSTM,
    "rac": statewise.RAC,
    "rac with biases": partial(statewise.RAC, bias=True),
    "orthogonal": statewise.OrthogonalRNN,
}


def built(kind: str, layers: int = 1, **options: Any) -> RecurrentLayer:
    layer = LAYERS[kind](IN, HIDDEN, layers, dtype=DOUBLE, **options)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if "weight_ph" in name or "bias_mod" in name:  # they start at zero, which would hide them
                parameter.uniform_(-0.5, 0.5)
    return layer


def given(layer: RecurrentLayer) -> tuple[Tensor, Any]:
    """An input of one step and a state, that want gradients."""
    rows = torch.randn(BATCH, layer.input_size, dtype=DOUBLE, requires_grad=True)
    shape = (layer.num_layers, BATCH, layer.hidden_size)
    parts = tuple(torch.randn(shape, dtype=DOUBLE, requires_grad=True) for _ in range(1 + layer.cell.has_memory))
    return rows, parts if layer.cell.has_memory else parts[0]


def flat(state: Any) -> list[Tensor]:
    return list(state) if isinstance(state, tuple) else [state]


def gradients(outputs: list[Tensor], inputs: list[Tensor]) -> list[Tensor]:
    scalar = torch.stack([(each * torch.linspace(1, 2, each.numel()).view_as(each)).sum() for each in outputs]).sum()
    found = torch.autograd.grad(scalar, inputs, allow_unused=True)
    return [torch.zeros_like(at) if grad is None else grad for grad, at in zip(found, inputs, strict=True)]


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", LAYERS)
def test_it_is_one_step_of_the_layer_without_transforms_in_value_and_gradients(kind: str, layers: int) -> None:
    layer = built(kind, layers, engine="reference")
    rows, hx = given(layer)
    (output, state), (sequence, after) = layer.plain_step(rows, hx), layer(rows.unsqueeze(0), hx)
    at = [rows, *flat(hx), *layer.parameters()]
    found, wanted = [output, *flat(state)], [sequence[0], *flat(after)]
    torch.testing.assert_close(found, wanted, **tolerance(DOUBLE))
    torch.testing.assert_close(gradients(found, at), gradients(wanted, at), **tolerance(DOUBLE))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", ["gru", "peephole"])
def test_transforms_of_all_places_are_left_out(kind: str, training: bool) -> None:
    everything = [InputDropout(0.5), RecurrentDropout(0.5), Noise("gaussian", 0.5), Centroids(3), Zoneout(0.5)]
    layer = built(kind, 2, transforms=[*everything, OutputDropout(0.5)], dropout=0.5).train(training)
    bare = built(kind, 2)
    own = bare.state_dict()
    bare.load_state_dict({name: value for name, value in layer.state_dict().items() if name in own})
    rows, hx = given(layer)
    output, state = layer.plain_step(rows, hx)
    wanted, after = bare(rows.unsqueeze(0), hx)
    torch.testing.assert_close([output, *flat(state)], [wanted[0], *flat(after)], **tolerance(DOUBLE))
    assert not torch.allclose(layer(rows.unsqueeze(0), hx)[0][0], output), "the transforms would have done something"
    centroids = [parameter for name, parameter in layer.named_parameters() if name.startswith("centroids")]
    assert not any(grad is not None for grad in torch.autograd.grad(output.sum(), centroids, allow_unused=True))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *((kind, {}) for kind in LAYERS if kind != "orthogonal"),
        ("rac", {"initial_state": "learned"}),
        ("rac", {"initial_state": "pinv"}),
        ("orthogonal", {"initial_state": "learned"}),
        ("orthogonal", {"initial_state": "uniform"}),
    ],
)
def test_without_a_state_it_starts_where_the_layer_does(kind: str, options: dict[str, Any]) -> None:
    layer = built(kind, 2, **options)
    rows, _ = given(layer)
    output, _ = layer.plain_step(rows, generator=torch.Generator().manual_seed(3))
    wanted, _ = layer(rows.unsqueeze(0), generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(output, wanted[0], **tolerance(DOUBLE))


@pytest.mark.parametrize(
    ("kind", "module"),
    [
        ("rnn", RNNCell),
        ("mgu", MGUCell),
        ("gru", GRUCell),
        ("lstm", LSTMCell),
        ("peephole", PeepholeLSTMCell),
        ("rac", RACCell),
    ],
)
def test_it_is_bit_for_bit_what_the_cell_as_a_module_gives(kind: str, module: Callable[..., SingleStep]) -> None:
    layer = built(kind)
    single = module(IN, HIDDEN, dtype=DOUBLE)
    single.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    rows, hx = given(layer)
    after = single(rows, tuple(part[0] for part in hx) if isinstance(hx, tuple) else hx[0])
    for ours, theirs in zip(flat(layer.plain_step(rows, hx)[1]), flat(after), strict=True):
        assert torch.equal(ours[0], theirs)


def test_dropped_weights_are_those_of_the_last_pass() -> None:
    layer = built("gru")
    weight_drop(layer, ["weight_hh_l0"], p=0.5)
    rows, hx = given(layer)
    wanted = layer(rows.unsqueeze(0), hx)[0][0]
    torch.testing.assert_close(layer.plain_step(rows, hx)[0], wanted, **tolerance(DOUBLE))


def test_a_batch_first_layer_takes_the_same_rows() -> None:
    layer, other = built("lstm", 2, batch_first=True), built("lstm", 2)
    other.load_state_dict(layer.state_dict())
    rows, hx = given(layer)
    assert torch.equal(layer.plain_step(rows, hx)[0], other.plain_step(rows, hx)[0])


def test_under_autocast_it_computes_in_the_dtype_of_the_layer() -> None:
    layer = statewise.LSTM(IN, HIDDEN)
    rows = torch.randn(BATCH, IN)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, state = layer.plain_step(rows.bfloat16(), (torch.zeros(1, BATCH, HIDDEN).bfloat16(),) * 2)
        wanted, _ = layer(rows.bfloat16().unsqueeze(0))
    assert output.dtype == wanted.dtype == torch.float32
    assert state[1].dtype == torch.float32
    torch.testing.assert_close(output, wanted[0], **tolerance(torch.float32))


def test_replicas_take_a_step_under_vmap() -> None:
    layers = [built("peephole", 2) for _ in range(3)]
    weights, _ = torch.func.stack_module_state(layers)
    rows, hx = given(layers[0])

    def step(own: dict[str, Tensor]) -> Tensor:
        class Step(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = layers[0]

            def forward(self) -> Tensor:
                return self.layer.plain_step(rows, hx)[0]

        return torch.func.functional_call(Step(), {f"layer.{name}": value for name, value in own.items()}, ())  # type: ignore[no-any-return]

    together = torch.func.vmap(step)(weights)
    apart = torch.stack([layer.plain_step(rows, hx)[0] for layer in layers])
    torch.testing.assert_close(together, apart, **tolerance(DOUBLE))


def test_what_makes_no_step_is_refused() -> None:
    layer = built("lstm")
    rows, hx = given(layer)
    with pytest.raises(ArgumentError, match="bidirectional"):
        built("gru", bidirectional=True).plain_step(rows)
    for wrong in (rows[0], rows.unsqueeze(0)):
        with pytest.raises(ShapeError, match="plain_step input"):
            layer.plain_step(wrong, hx)
    with pytest.raises(ShapeError, match="input_size=3"):
        layer.plain_step(rows[:, :2], hx)
    with pytest.raises(ShapeError, match="a pair"):
        layer.plain_step(rows, hx[0])
    with pytest.raises(ShapeError, match=r"\(1, 4, 5\)"):
        layer.plain_step(rows, (hx[0][:, :2], hx[1]))
    with pytest.raises(DtypeError, match="float32"):
        layer.plain_step(rows.float(), hx)
    with pytest.raises(DeviceError):
        layer.plain_step(rows.to("meta"), hx)
