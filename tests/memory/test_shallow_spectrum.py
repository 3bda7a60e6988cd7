from __future__ import annotations

import numpy as np
import pytest
import torch

from statewise.errors import ArgumentError, NonFiniteError, ShapeError
from statewise.memory.circuit import Circuit, drawn_circuit
from statewise.memory.separation import network_rank
from statewise.memory.shallow_spectrum import shallow_spectra, shallow_spectrum
from statewise.memory.spectrum import separation_spectrum

DOUBLE = torch.float64


@pytest.mark.parametrize("method", ["qr", "gram"])
@pytest.mark.parametrize("split", [0, 1, 3, 5])
def test_both_forms_are_the_dense_spectrum(method: str, split: int) -> None:
    circuit = drawn_circuit(inputs=3, width=4, depth=1, seed=4)
    templates = np.random.default_rng(1).normal(size=(4, 3))
    found = shallow_spectrum(circuit, steps=5, split=split, templates=templates, method=method)
    readout, rows = torch.from_numpy(circuit.readout), torch.from_numpy(templates)
    dense = separation_spectrum(circuit.layer(), rows, 5, split=split, readout=readout)
    held = dense.values > 1e-10
    assert found.rank(1e-6) == held.sum()
    assert found.values[: held.sum()] == pytest.approx(dense.values[held], rel=1e-7 if method == "gram" else 1e-10)
    assert found.log_scale == pytest.approx(dense.log_scale, abs=1e-8)


@pytest.mark.parametrize("method", ["qr", "gram"])
def test_ranks_are_the_exact_ones_by_both_forms(method: str) -> None:
    """The squares of the Gram form have half of the digits, and so has what counts as rounding."""
    for seed in range(20):
        circuit = drawn_circuit(inputs=2, width=8, depth=1, seed=seed)
        assert shallow_spectrum(circuit, steps=4, method=method).rank() == network_rank(circuit, steps=4).rank == 4
    flat = Circuit(inputs=circuit.inputs, recurrent=(np.outer(np.arange(1.0, 9), np.ones(8)),), readout=np.ones(8))
    assert shallow_spectrum(flat, steps=6, method=method).rank() == 1


def test_two_thousand_steps_neither_overflow_nor_vanish() -> None:
    for factor in (1e-3, 1e3):
        circuit = drawn_circuit(inputs=2, width=3, depth=1)
        louder = Circuit(inputs=(factor * circuit.inputs[0],), recurrent=circuit.recurrent, readout=circuit.readout)
        quiet, loud = (shallow_spectrum(each, steps=2_000) for each in (circuit, louder))
        assert loud.values == pytest.approx(quiet.values, rel=1e-6)
        assert loud.log_scale - quiet.log_scale == pytest.approx(2_000 * np.log(factor), rel=1e-9)


def test_all_splits_in_one_pass_are_those_one_by_one() -> None:
    circuit = drawn_circuit(inputs=2, width=3, depth=1, seed=2)
    for split, found in enumerate(shallow_spectra(circuit, steps=6), start=1):
        alone = shallow_spectrum(circuit, steps=6, split=split)
        assert found.values == pytest.approx(alone.values, rel=1e-12)
        assert found.log_scale == pytest.approx(alone.log_scale)


def test_a_circuit_that_is_zero_has_no_spectrum() -> None:
    zero = Circuit(inputs=([[1.0, 2.0], [3.0, 4.0]],), recurrent=([[0.0, 0.0], [0.0, 0.0]],), readout=[1.0, 1.0])
    for method in ("qr", "gram"):
        assert shallow_spectrum(zero, steps=4, method=method).rank() == 0


def test_deep_circuits_and_unknown_methods_are_refused() -> None:
    with pytest.raises(ArgumentError, match="one layer"):
        shallow_spectrum(drawn_circuit(inputs=2, width=2, depth=2), steps=4)
    with pytest.raises(ArgumentError, match="qr, gram"):
        shallow_spectrum(drawn_circuit(inputs=2, width=2, depth=1), steps=4, method="svd")


def test_templates_that_do_not_fit_are_refused() -> None:
    circuit = drawn_circuit(inputs=2, width=2, depth=1)
    for wrong in ([], [[1.0, 2.0, 3.0]]):
        with pytest.raises(ShapeError, match="2 features"):
            shallow_spectrum(circuit, steps=4, templates=wrong)
    with pytest.raises(NonFiniteError, match="finite"):
        shallow_spectrum(circuit, steps=4, templates=[[1.0, np.nan]])
