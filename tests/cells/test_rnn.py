"""The Elman cell with each of its activations keeps the contract of cells."""

from __future__ import annotations

import pytest
import torch

from contracts.cells import CellContract, TorchCellContract
from statewise.cells import NONLINEARITIES, RNNCell, modrelu
from statewise.errors import ArgumentError


class TestTanh(TorchCellContract):
    cell, name = RNNCell("tanh"), "tanh"


class TestRelu(TorchCellContract):
    cell, name = RNNCell("relu"), "relu"


class TestSigmoid(CellContract):
    cell, name = RNNCell("sigmoid"), "sigmoid"


class TestIdentity(CellContract):
    cell, name = RNNCell("identity"), "identity"


class TestModReLU(CellContract):
    cell, name = RNNCell("modrelu"), "modrelu"

    def test_modrelu_changes_the_size_but_never_the_sign(self, generator: torch.Generator) -> None:
        z, bias = torch.randn(50, 7, generator=generator), torch.randn(7, generator=generator)
        moved = modrelu(z, bias)
        assert (moved * z >= 0).all()
        assert torch.equal(moved.abs(), (z.abs() + bias).clamp(min=0))
        assert torch.equal(modrelu(z, torch.zeros(7)), z)


def test_all_activations_are_tested_here() -> None:
    tested = {kind.cell.nonlinearity for kind in (TestTanh, TestRelu, TestSigmoid, TestIdentity, TestModReLU)}
    assert tested == set(NONLINEARITIES)


def test_an_unknown_activation_is_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match=r"RNN.nonlinearity: got softsign, wanted one of tanh, relu"):
        RNNCell("softsign")
