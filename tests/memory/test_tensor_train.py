from __future__ import annotations

import numpy as np
import pytest
import torch

from statewise.errors import ArgumentError, ShapeError
from statewise.memory.circuit import Circuit, drawn_circuit
from statewise.memory.grid_tensor import grid_tensor, words_of
from statewise.memory.tensor_train import TensorTrain, building_block, tensor_train

DOUBLE = torch.float64


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("given", [False, True])
def test_the_train_is_the_grid_tensor_and_the_forward_pass(steps: int, given: bool) -> None:
    drawn = drawn_circuit(inputs=2, width=3, depth=1, seed=1)
    start = np.array([[0.5, -1.0, 2.0]]) if given else "ones"
    circuit = Circuit(inputs=drawn.inputs, recurrent=drawn.recurrent, readout=drawn.readout, start=start)
    train, readout = tensor_train(circuit, steps=steps), torch.from_numpy(circuit.readout)
    grid = grid_tensor(circuit.layer(), torch.eye(2, dtype=DOUBLE), steps, readout=readout).numpy()
    assert train.full() == pytest.approx(grid, rel=1e-10)
    assert [train.entry(word) for word in words_of(2, steps)] == pytest.approx(grid.ravel(), rel=1e-10)
    x = torch.randn(steps, 4, 2, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = circuit.layer()(x)[0][-1] @ readout
    assert train.evaluate(x.numpy()) == pytest.approx(expected.numpy(), rel=1e-9)


def test_storage_grows_with_the_steps_and_not_with_the_words() -> None:
    train = tensor_train(drawn_circuit(inputs=3, width=4, depth=1), steps=100)
    assert train.storage == 98 * 4 * 3 * 4 + 2 * 3 * 4
    assert train.distinct_storage == 4 * 3 * 4 + 2 * 3 * 4
    assert train.ranks == (4,) * 99


def test_the_block_of_the_matrix_product_state_makes_one_step() -> None:
    circuit = drawn_circuit(inputs=3, width=4, depth=1)
    state, features = np.random.default_rng(0).normal(size=4), np.random.default_rng(1).normal(size=3)
    step = np.einsum("kdr,k,d->r", building_block(circuit), state, features)
    assert step == pytest.approx((circuit.recurrent[0] @ state) * (circuit.inputs[0] @ features))


def test_what_is_no_chain_is_refused() -> None:
    with pytest.raises(ArgumentError, match="one layer"):
        tensor_train(drawn_circuit(inputs=2, width=2, depth=2), steps=3)
    with pytest.raises(ArgumentError, match="at least 1"):
        tensor_train(drawn_circuit(inputs=2, width=2, depth=1), steps=0)
    for cores in ((), (np.ones((1, 2, 3)), np.ones((2, 2, 1))), (np.ones((1, 2)),)):
        with pytest.raises(ShapeError, match="chain"):
            TensorTrain(cores=cores)
    train = tensor_train(drawn_circuit(inputs=2, width=2, depth=1), steps=3)
    with pytest.raises(ShapeError, match="3"):
        train.entry([0, 1])
    with pytest.raises(ShapeError, match="3"):
        train.evaluate(np.ones((2, 1, 2)))


def test_what_is_not_in_the_tensor_is_refused() -> None:
    train = tensor_train(drawn_circuit(inputs=2, width=3, depth=1), steps=40)
    with pytest.raises(ArgumentError, match="got 5, wanted indices from 0 to 1"):
        train.entry([5] * 40)
    with pytest.raises(ArgumentError, match=r"2\^40 entries, wanted at most"):
        train.full()
