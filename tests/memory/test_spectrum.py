from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from statewise import LSTM, RAC
from statewise.errors import NonFiniteError, ShapeError
from statewise.memory.circuit import drawn_circuit
from statewise.memory.spectrum import RoundedRankWarning, separation_spectrum, spectrum_of, table_spectrum

DOUBLE = torch.float64


@given(rank=st.integers(1, 6), scale=st.floats(1e-100, 1e100))
def test_equal_values_have_the_largest_distance_of_their_rank(rank: int, scale: float) -> None:
    found = spectrum_of(np.full(rank, scale), rounding=0.0)
    assert found.distance == pytest.approx(math.sqrt(1 - 1 / rank), abs=1e-12)
    assert found.effective_rank == pytest.approx(rank)
    assert found.entropy == pytest.approx(math.log(rank), abs=1e-12)
    assert found.log_scale == pytest.approx(math.log(scale), abs=1e-9)


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 6), columns=st.integers(1, 6))
def test_the_distance_is_that_to_the_best_product_of_two_functions(seed: int, rows: int, columns: int) -> None:
    table = torch.randn(rows, columns, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))
    found = table_spectrum(table)
    left, values, right = torch.linalg.svd(table)
    nearest = values[0] * torch.outer(left[:, 0], right[0])
    assert found.distance == pytest.approx(((table - nearest).norm() / table.norm()).item(), abs=1e-7)
    assert found.distance <= math.sqrt(1 - 1 / found.rank()) + 1e-12
    assert np.exp(found.log_values) == pytest.approx(values.numpy(), rel=1e-9)


def test_a_table_of_zeros_has_nothing() -> None:
    found = table_spectrum(torch.zeros(3, 3))
    assert (found.rank(), found.distance, found.entropy, found.effective_rank) == (0, 0.0, 0.0, 0.0)
    assert found.log_scale == -math.inf


def test_a_deep_circuit_warns_and_says_where_to_go(generator: torch.Generator) -> None:
    layer, readout = RAC(2, 2, num_layers=2, dtype=DOUBLE, generator=generator), torch.ones(2, dtype=DOUBLE)
    with pytest.warns(RoundedRankWarning, match="network_rank"):
        separation_spectrum(layer, torch.eye(2, dtype=DOUBLE), 4, readout=readout)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shallow = RAC(2, 2, dtype=DOUBLE, generator=generator)
        assert separation_spectrum(shallow, torch.eye(2, dtype=DOUBLE), 6, readout=readout).rank() == 2


@pytest.mark.parametrize("batch_first", [False, True])
def test_a_circuit_whose_plain_scores_vanish_still_has_a_spectrum(batch_first: bool) -> None:
    """Two layers whose scores are near 1e-500, where float64 has only zeros."""
    layer = drawn_circuit(inputs=2, width=2, depth=2).layer()
    layer.batch_first = batch_first
    with torch.no_grad():
        layer.weight_ih_l0.mul_(1e-11)
    readout = torch.ones(2, 2, dtype=DOUBLE)
    with pytest.warns(RoundedRankWarning):
        found = separation_spectrum(layer, torch.eye(2, dtype=DOUBLE), 8, readout=readout, output=1)
    x = torch.eye(2, dtype=DOUBLE)[:1].expand(8, 1, 2)
    assert layer(x.transpose(0, 1) if batch_first else x)[0].flatten()[-1] == 0
    assert found.log_scale < -700
    assert found.values[0] == 1
    with torch.no_grad():
        layer.weight_ih_l0.mul_(1e11)
    with pytest.warns(RoundedRankWarning):
        again = separation_spectrum(layer, torch.eye(2, dtype=DOUBLE), 8, readout=readout)
    assert found.values == pytest.approx(again.values, rel=1e-6, abs=1e-10)
    # A factor of the first matrix comes out with the degree in all inputs, here 8 * 9 / 2.
    assert again.log_scale - found.log_scale == pytest.approx(36 * 11 * math.log(10), rel=1e-9)


def test_a_partition_need_not_be_a_split(generator: torch.Generator) -> None:
    """The first and third step against the others: of ``(x1 + x3) (x2 + x4)`` they are separate, the halves are not."""
    templates = torch.tensor([[1.0], [3.0]])

    def network(x: torch.Tensor) -> torch.Tensor:
        return (x[0, :, 0] + x[2, :, 0]) * (x[1, :, 0] + x[3, :, 0])

    assert separation_spectrum(network, templates, 4, split=[0, 2]).rank() == 1
    assert separation_spectrum(network, templates, 4).rank() > 1


def test_any_layer_has_a_spectrum(generator: torch.Generator) -> None:
    layer = LSTM(2, 3, dtype=DOUBLE, generator=generator)
    found = separation_spectrum(layer, torch.eye(2, dtype=DOUBLE), 5, split=2, readout=torch.ones(3, dtype=DOUBLE))
    assert len(found.values) == 4
    assert 1 <= found.effective_rank <= 4
    assert "effective rank" in found.describe()


def test_scores_that_are_not_finite_are_refused() -> None:
    with pytest.raises(NonFiniteError, match="network_rank"):
        table_spectrum(torch.tensor([[math.inf]]))


def test_the_rank_of_scores_in_single_precision_is_not_their_rounding(generator: torch.Generator) -> None:
    """What is below the rounding of float32 is no singular value, though the values are computed in float64."""
    layer, readout = RAC(3, 2, generator=generator), torch.randn(2, generator=generator)
    single = separation_spectrum(layer, torch.eye(3), 6, readout=readout)
    double = separation_spectrum(layer.double(), torch.eye(3, dtype=DOUBLE), 6, readout=readout.double())
    assert single.rank() == double.rank() == 2
    assert (single.values > double.rounding).sum() > 2  # which is what there would be to be misled by
    templates = torch.rand(8, 1, generator=generator) + 0.5
    assert separation_spectrum(lambda x: x[0, :, 0] * x[1, :, 0], templates, 2).rank() == 1


@pytest.mark.parametrize("given", ["vector", "matrix", "linear", "nothing"])
def test_every_readout_of_a_deep_circuit_is_scaled(given: str) -> None:
    """Scores near 1e-500 again, however they are read out."""
    layer = drawn_circuit(inputs=2, width=2, depth=2).layer()
    with torch.no_grad():
        layer.weight_ih_l0.mul_(1e-11)
    linear = torch.nn.Linear(2, 1, bias=False, dtype=DOUBLE)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[1.0, 0.0]]))
    matrix = linear.weight.detach()
    readouts = {"vector": matrix[0], "matrix": matrix, "linear": linear, "nothing": None}
    with pytest.warns(RoundedRankWarning):
        found = separation_spectrum(layer, torch.eye(2, dtype=DOUBLE), 8, readout=readouts[given])
    with pytest.warns(RoundedRankWarning):
        vector = separation_spectrum(layer, torch.eye(2, dtype=DOUBLE), 8, readout=matrix[0])
    assert found.log_scale == pytest.approx(vector.log_scale, rel=1e-12)
    assert found.log_scale < -700
    assert found.values == pytest.approx(vector.values, rel=1e-6, abs=1e-12)


def test_a_readout_with_a_bias_is_no_circuit_and_is_computed_as_it_is(generator: torch.Generator) -> None:
    layer, linear = RAC(2, 2, dtype=DOUBLE, generator=generator), torch.nn.Linear(2, 1, dtype=DOUBLE)
    found = separation_spectrum(layer, torch.eye(2, dtype=DOUBLE), 6, readout=linear)
    assert found.rank() == 3  # a constant is one more function of the Start


def test_an_output_that_is_not_there_is_refused(generator: torch.Generator) -> None:
    layer = RAC(2, 2, generator=generator)
    with pytest.raises(ShapeError, match="more than 3"):
        separation_spectrum(layer, torch.eye(2), 4, readout=torch.ones(2, 2), output=3)
