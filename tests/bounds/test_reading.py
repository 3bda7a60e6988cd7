"""Models are read as they compute, or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import statewise
from networks import LastState
from statewise.bounds.bounded_inputs import BoundedInputs
from statewise.bounds.matrices import NetworkMatrices
from statewise.bounds.reading import read_model
from statewise.bounds.recompute import recompute
from statewise.errors import AssumptionError, DtypeError, NonFiniteError
from statewise.models import ClassifierConfig, Lexicon, TaggerConfig

LAYERS: dict[str, Any] = {
    "torch RNN": lambda **kw: nn.RNN(3, 4, batch_first=True, **kw),
    "torch ReLU": lambda **kw: nn.RNN(3, 4, batch_first=True, nonlinearity="relu", **kw),
    "torch GRU": lambda **kw: nn.GRU(3, 4, batch_first=True, **kw),
    "torch LSTM": lambda **kw: nn.LSTM(3, 4, batch_first=True, **kw),
    "RNN": lambda **kw: statewise.RNN(3, 4, batch_first=True, **kw),
    "GRU": lambda **kw: statewise.GRU(3, 4, batch_first=True, **kw),
    "LSTM": lambda **kw: statewise.LSTM(3, 4, batch_first=True, **kw),
    "MGU": lambda **kw: statewise.MGU(3, 4, batch_first=True, **kw),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("stack", [{}, {"num_layers": 2}, {"num_layers": 2, "bidirectional": True}], ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_outputs_recomputed_from_the_matrices_agree(
    name: str, stack: dict[str, Any], bias: bool, dtype: torch.dtype
) -> None:
    """Known answer 24."""
    model = LastState(LAYERS[name](bias=bias, **stack), 3, bias=bias).to(dtype).eval()
    inputs = torch.randn(3, 7, 3, dtype=dtype)
    found = read_model(model).matrices
    assert found is not None
    with torch.no_grad():
        wanted = model(inputs).double().numpy()
    got = recompute(found, inputs.double().numpy())
    np.testing.assert_allclose(got, wanted, atol=1e-12 if dtype == torch.float64 else 1e-6, rtol=0)


def test_a_model_of_tokens_has_its_embedding_read() -> None:
    model = LastState(nn.GRU(3, 4, batch_first=True), tokens=6).double().eval()
    words = torch.randint(6, (4, 5))
    found = read_model(model).matrices
    assert found is not None
    assert found.embedding is not None
    got = recompute(found, words.numpy())
    np.testing.assert_allclose(got, model(words).detach().numpy(), atol=1e-12)


@pytest.mark.parametrize(("cell", "readout"), [("gru", "u_end"), ("lstm", "hc"), ("lstm", "c"), ("rnn", "h")])
@pytest.mark.parametrize("start", [True, False])
def test_our_classifier_is_read_with_its_marks(cell: str, readout: str, start: bool) -> None:
    model = ClassifierConfig(cell=cell, hidden=5, readout=readout, start_token=start).build(tokens=3, classes=4)
    reading = read_model(model.double().eval())
    assert reading.matrices is not None
    assert reading.marks == start + (readout == "u_end")
    words = torch.randint(3, (4, 6))
    got = recompute(reading.matrices, np.stack([reading.as_read(row.numpy()) for row in words]))
    np.testing.assert_allclose(got, model(words).detach().numpy(), atol=1e-12)


def test_constrained_weights_are_read_as_they_act() -> None:
    layer = statewise.RNN(3, 4, batch_first=True)
    statewise.weights.spectral_cap(layer, "weight_hh_l0", bound=0.1)
    found = read_model(LastState(layer).eval()).matrices
    assert found is not None
    np.testing.assert_allclose(found.layers[0][0].states["state"], layer.weight_hh_l0.detach(), rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: LastState(statewise.PeepholeLSTM(3, 4)), "PeepholeLSTM"),
        (lambda: LastState(statewise.RNN(3, 4, nonlinearity="sigmoid")), "sigmoid"),
        (lambda: LastState(statewise.OrthogonalRNN(3, 4)), "modrelu"),
        (lambda: LastState(statewise.RNN(3, 4, transforms=statewise.Zoneout(0.1))), "Zoneout"),
        (lambda: LastState(statewise.GRU(3, 4, transforms=statewise.Centroids(3, temperature=1.0))), "Centroids"),
        (lambda: LastState(statewise.GRU(3, 4, reset_before=True)), "not covered"),
        (lambda: LastState(nn.LSTM(3, 4, proj_size=2)), "proj_size"),
        (lambda: nn.Sequential(nn.LayerNorm(3), nn.RNN(3, 4), nn.Linear(4, 2)), "LayerNorm"),
        (lambda: nn.Sequential(nn.RNN(3, 4), nn.GRU(4, 4), nn.Linear(4, 2)), "2 recurrent layers"),
        (lambda: nn.Sequential(nn.RNN(3, 4), nn.Linear(9, 2)), "reads 9 numbers"),
    ],
)
def test_what_norms_do_not_cover_is_named(make: Any, told: str) -> None:
    reading = read_model(make().eval())
    assert reading.matrices is None
    assert told in reading.why_not


def test_what_is_no_deterministic_classifier_is_refused() -> None:
    with pytest.raises(AssumptionError, match="dropout that is on"):
        read_model(_with_dropout_on())
    with pytest.raises(AssumptionError, match="training mode"):
        read_model(LastState(nn.RNN(3, 4)))
    with pytest.raises(AssumptionError, match="CRF head"):
        read_model(nn.Sequential(nn.LSTM(3, 4), nn.Linear(4, 5), statewise.heads.CRF(5)).eval())
    with pytest.raises(AssumptionError, match="one output"):
        read_model(LastState(nn.RNN(3, 4), classes=1).eval())
    with pytest.raises(AssumptionError, match="sample"):
        read_model(ClassifierConfig(centroids=(3,), transition="sample").build(tokens=2, classes=2).eval())


def test_a_tagger_is_refused() -> None:
    tagger = TaggerConfig(hidden=4).build(Lexicon.of([["a"]], tags=["O", "B-X"]))
    with pytest.raises(AssumptionError, match=r"Tagger|CRF"):
        read_model(tagger.eval())


def test_weights_that_are_not_finite_are_refused_by_name() -> None:
    model = LastState(nn.RNN(3, 4)).eval()
    with torch.no_grad():
        model.layer.weight_hh_l0[1, 2] = float("nan")
    with pytest.raises(NonFiniteError, match=r"weight_hh_l0.*1 of 16"):
        read_model(model)


@pytest.mark.usefixtures("as_users_have_it")
def test_only_modules_are_read() -> None:
    with pytest.raises(DtypeError, match=r"torch\.nn\.Module"):
        read_model("model")  # type: ignore[arg-type]


def test_bounded_inputs_are_within_their_bound_and_read_through() -> None:
    inner = LastState(nn.RNN(3, 4, batch_first=True)).eval()
    model = BoundedInputs(inner, bound=0.5).eval()
    reading = read_model(model)
    assert reading.input_bound == 0.5
    assert isinstance(reading.matrices, NetworkMatrices)
    inputs = 10 * torch.randn(2, 5, 3)
    torch.testing.assert_close(model(inputs), inner(0.5 * inputs / inputs.norm(dim=2, keepdim=True)))
    small = 0.01 * inputs / inputs.norm(dim=2, keepdim=True)
    assert torch.equal(model(small), inner(small))
    with pytest.raises(statewise.errors.ArgumentError, match="bound"):
        BoundedInputs(inner, bound=0.0)


def _with_dropout_on() -> nn.Module:
    model = LastState(nn.RNN(3, 4)).eval()
    model.dropout.train()
    return model
