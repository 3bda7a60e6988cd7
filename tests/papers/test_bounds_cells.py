"""The cells as the generalization bounds name their matrices (Chen et al. 2019, section 2), recomputed in numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import nn

from statewise import GRU, LSTM, MGU, RNN
from support import CPU_ENGINES

Array = NDArray[Any]
DTYPES = {torch.float64: 1e-12, torch.float32: 1e-6}
SEEDS = st.integers(0, 2**32 - 1)
STEPS, BATCH, WIDTH, HIDDEN = 7, 5, 3, 4


def sigmoid(a: Array) -> Array:
    value: Array = 1 / (1 + np.exp(-a))
    return value


def folded(layer: nn.Module, gates: int) -> tuple[list[Array], list[Array]]:
    """The matrices W = [W, b + b'] and U of every gate, in torch's order of rows, in double precision."""
    W, U, b, b2 = (
        layer.get_parameter(name).detach().double().numpy()
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    )
    return np.split(np.column_stack((W, b + b2)), gates), np.split(U, gates)


def with_one(x: Array) -> Array:
    """``x -> [x; 1]``, so that a bias is a column of W."""
    return np.concatenate((x, np.ones((*x.shape[:-1], 1))), axis=-1)


def vanilla(layer: nn.Module, x: Array, activation: Callable[[Array], Array]) -> Array:
    """``h_s = act(U h_{s-1} + W x_s)``."""
    (W,), (U,) = folded(layer, 1)
    h, states = np.zeros((x.shape[1], U.shape[0])), []
    for row in with_one(x):
        h = activation(h @ U.T + row @ W.T)
        states.append(h)
    return np.stack(states)


def lstm(layer: nn.Module, x: Array) -> Array:
    """The paper's r, g, c~ and o are torch's i, f, g and o."""
    (Wr, Wg, Wc, Wo), (Ur, Ug, Uc, Uo) = folded(layer, 4)
    h = c = np.zeros((x.shape[1], Uo.shape[0]))
    states = []
    for row in with_one(x):
        g, r, o = (sigmoid(row @ W.T + h @ U.T) for W, U in ((Wg, Ug), (Wr, Ur), (Wo, Uo)))
        c = g * c + r * np.tanh(row @ Wc.T + h @ Uc.T)
        h = o * np.tanh(c)
        states.append(h)
    return np.stack(states)


def gru(layer: nn.Module, x: Array) -> Array:
    """The candidate's recurrent bias stays inside the reset gate, so it cannot be folded."""
    (Wr, Wz, _), (Ur, Uz, Un) = folded(layer, 3)
    Wn, bn, bn2 = (
        layer.get_parameter(name).detach().double().numpy()[-len(Un) :]
        for name in ("weight_ih_l0", "bias_ih_l0", "bias_hh_l0")
    )
    h, states = np.zeros((x.shape[1], len(Un))), []
    for row in with_one(x):
        r, z = (sigmoid(row @ W.T + h @ U.T) for W, U in ((Wr, Ur), (Wz, Uz)))
        n = np.tanh(row[:, :-1] @ Wn.T + bn + r * (h @ Un.T + bn2))
        h = (1 - z) * n + z * h
        states.append(h)
    return np.stack(states)


def mgu(layer: nn.Module, x: Array) -> Array:
    """``r = sigmoid(W_r x + U_r h)``, ``h~ = tanh(W_h x + U_h (r * h))``, ``h = (1 - r) * h + r * h~``."""
    (Wr, Wh), (Ur, Uh) = folded(layer, 2)
    h, states = np.zeros((x.shape[1], len(Uh))), []
    for row in with_one(x):
        r = sigmoid(row @ Wr.T + h @ Ur.T)
        h = (1 - r) * h + r * np.tanh(row @ Wh.T + (r * h) @ Uh.T)
        states.append(h)
    return np.stack(states)


LAYERS: list[tuple[Callable[..., nn.Module], dict[str, Any], Callable[[nn.Module, Array], Array]]] = [
    (nn.RNN, {}, lambda layer, x: vanilla(layer, x, np.tanh)),
    (nn.RNN, {"nonlinearity": "relu"}, lambda layer, x: vanilla(layer, x, lambda a: np.maximum(a, 0))),
    (nn.LSTM, {}, lstm),
    (nn.GRU, {}, gru),
    *((RNN, {"engine": engine}, lambda layer, x: vanilla(layer, x, np.tanh)) for engine in CPU_ENGINES),
    (RNN, {"nonlinearity": "identity"}, lambda layer, x: vanilla(layer, x, lambda a: a)),
    (RNN, {"nonlinearity": "sigmoid"}, lambda layer, x: vanilla(layer, x, sigmoid)),
    *((LSTM, {"engine": engine}, lstm) for engine in CPU_ENGINES),
    *((GRU, {"engine": engine}, gru) for engine in CPU_ENGINES),
    *((MGU, {"engine": engine}, mgu) for engine in CPU_ENGINES),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("kind", "options", "formula"), LAYERS)
def test_outputs_are_the_papers_formulas_of_the_extracted_matrices(
    kind: Callable[..., nn.Module],
    options: dict[str, Any],
    formula: Callable[[nn.Module, Array], Array],
    dtype: torch.dtype,
    generator: torch.Generator,
) -> None:
    """To 1e-12 in double precision and 1e-6 in single."""
    layer = kind(WIDTH, HIDDEN, dtype=dtype, **options)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.uniform_(-0.5, 0.5, generator=generator)
    x = torch.randn(STEPS, BATCH, WIDTH, generator=generator, dtype=dtype)
    with torch.no_grad():
        output, _ = layer(x)
    np.testing.assert_allclose(output.double().numpy(), formula(layer, x.double().numpy()), rtol=0, atol=DTYPES[dtype])


@pytest.mark.parametrize("engine", CPU_ENGINES)
@given(scale=st.floats(0.1, 100), seed=SEEDS)
def test_a_minimal_gated_unit_steps_between_its_old_state_and_its_candidate(
    engine: str, scale: float, seed: int
) -> None:
    """``h_s`` is a convex combination, so that ``|h_s| <= 1`` entrywise whatever the weights and inputs."""
    generator = torch.Generator().manual_seed(seed)
    layer = MGU(WIDTH, HIDDEN, dtype=torch.float64, engine=engine, generator=generator)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.mul_(scale)
        x = 3 * torch.randn(20, 2, WIDTH, generator=generator, dtype=torch.float64)
        output, _, seen = layer(x, collect=("gates",))
    old, gates = torch.cat((torch.zeros_like(output[:1]), output[:-1])), seen.gates[0]
    assert output.abs().max() <= 1
    assert (output <= torch.maximum(old, gates["candidate"]) + 1e-15).all()
    assert (output >= torch.minimum(old, gates["candidate"]) - 1e-15).all()
    blend = (1 - gates["gate"]) * old + gates["gate"] * gates["candidate"]
    torch.testing.assert_close(output, blend, rtol=0, atol=1e-14)


def test_numbers_of_entries_that_the_bounds_count() -> None:
    """``P - dh dy``: 2 dx dh + 2 dh^2 for the MGU, 4 and 4 for the LSTM, 1 and 1 for the vanilla RNN."""
    for kind, gates in ((RNN, 1), (MGU, 2), (LSTM, 4)):
        layer = kind(WIDTH, HIDDEN, bias=False)
        assert sum(p.numel() for p in layer.parameters()) == gates * (WIDTH * HIDDEN + HIDDEN**2)


@pytest.mark.parametrize("engine", CPU_ENGINES)
def test_the_output_gate_moves_the_output_as_in_the_counterexample(engine: str) -> None:
    """Scalars, one step, x = 1: with W_o = +1 and -1 the outputs are 0.26566631 and 0.09773317."""
    outputs = []
    for sign in (1.0, -1.0):
        layer = LSTM(1, 1, bias=False, dtype=torch.float64, engine=engine)
        weights = {"weight_ih_l0": [0.0, 0.0, 1.0, sign], "weight_hh_l0": [0.0] * 4}
        layer.load_state_dict({name: torch.tensor(rows).unsqueeze(1) for name, rows in weights.items()})
        outputs.append(layer(torch.ones(1, 1, 1, dtype=torch.float64))[0].item())
    assert outputs == pytest.approx([0.26566631, 0.09773317], abs=5e-9)


@pytest.mark.parametrize("engine", CPU_ENGINES)
def test_the_memory_of_an_lstm_with_saturated_gates_grows_by_one_each_step(engine: str) -> None:
    """``c_50 = 50.000``: the memory has no bound of 1, as the printed proof supposes."""
    layer = LSTM(1, 1, bias=False, dtype=torch.float64, engine=engine)
    with torch.no_grad():
        layer.get_parameter("weight_ih_l0").fill_(40)
        layer.get_parameter("weight_hh_l0").zero_()
        _, (_, memory) = layer(torch.ones(50, 1, 1, dtype=torch.float64))
    assert memory.item() == pytest.approx(50, abs=5e-4)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0, 1.2])
def test_the_bound_on_the_hidden_norm_is_attained_by_a_linear_layer(beta: float) -> None:
    """``|h_t| = B_W B_x S_t(beta)`` with U = beta I, W = B_W I and constant inputs of norm B_x."""
    layer = RNN(HIDDEN, HIDDEN, nonlinearity="identity", bias=False, dtype=torch.float64)
    eye, x = torch.eye(HIDDEN, dtype=torch.float64), torch.full((12, 1, HIDDEN), 0.7, dtype=torch.float64)
    layer.load_state_dict({"weight_ih_l0": 1.5 * eye, "weight_hh_l0": beta * eye})
    with torch.no_grad():
        norms = layer(x)[0].norm(dim=2).flatten().tolist()
    geometric = np.cumsum([beta**n for n in range(12)])
    assert norms == pytest.approx((1.5 * 0.7 * HIDDEN**0.5 * geometric).tolist(), rel=1e-12)
