"""The multiplicative RNN keeps the contract of cells, starts where it says, and no kernel takes it for another cell."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import statewise
from contracts.cells import CellContract
from statewise.cells import MultiplicativeRNNCell
from statewise.engine import cpu, device
from statewise.errors import EngineError
from statewise.native import load_native
from statewise.weights import weight_drop
from support import needs_kernel

INPUT, HIDDEN = 3, 5
NO_CODE = "it has no code for the cell MultiplicativeRNN"


class TestMultiplicativeRNN(CellContract):
    cell, name = MultiplicativeRNNCell(), "MultiplicativeRNN"


def test_a_step_worked_out_by_hand() -> None:
    """``f = (2 x) (3 h)``, ``u = tanh(0.5 x + f / 6)`` at ``x = 2, h = 0.25``: ``f = 3``, ``u = tanh(1.5)``."""
    step = statewise.MultiplicativeRNNCell(1, 1, bias=False, dtype=torch.float64)
    step.load_state_dict({"weight_ih": torch.tensor([[2.0], [0.5]]), "weight_hh": torch.tensor([[3.0], [1 / 6]])})
    h = torch.tensor([[0.25]], dtype=torch.float64)
    assert step(torch.full((1, 1), 2.0, dtype=torch.float64), h).item() == pytest.approx(0.9051482536448664, abs=1e-7)


def test_each_input_acts_on_the_state_as_a_matrix_of_its_own() -> None:
    """A token that swaps two bits and one that keeps them: no cell that adds its input can do it with one layer."""
    layer = statewise.MultiplicativeRNN(2, 2, bias=False, dtype=torch.float64)
    straight, crossed = torch.tensor([1.0, 1.0]), torch.tensor([1.0, -1.0])
    turn = torch.tensor([[1.0, 1.0], [1.0, -1.0]]) / 2**0.5  # in which a swap is diagonal
    layer.load_state_dict(
        {
            "weight_ih_l0": torch.cat((torch.stack((straight, crossed), dim=1) * 3, torch.zeros(2, 2))),
            "weight_hh_l0": torch.cat((turn, turn)),
        }
    )
    keep, swap = torch.eye(2, dtype=torch.float64)
    start = torch.tensor([[[0.9, -0.9]]], dtype=torch.float64)
    for word in ([keep], [swap], [swap, swap], [swap, keep, swap, swap]):
        flips = sum(bool(token[1]) for token in word)
        output, _ = layer(torch.stack(word).unsqueeze(1), start)
        assert torch.equal(output[-1, 0].sign(), start[0, 0].sign() * (-1) ** flips)


@pytest.mark.parametrize("dropped", [False, True], ids=["plain", "dropped"])
def test_the_factor_of_a_layer_starts_at_one(dropped: bool, generator: torch.Generator) -> None:
    """The other biases are drawn as in torch.nn; also after a reset, and where entries of a bias are dropped."""
    layer: Any = statewise.MultiplicativeRNN(INPUT, HIDDEN, 2, bidirectional=True, generator=generator)
    raw = "{}"
    if dropped:
        weight_drop(layer, [f"bias_{side}_l0" for side in ("ih", "hh")])
        raw = "parametrizations.{}.original"
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(7)
    layer.reset_parameters(generator)
    input_bias, state_bias = (layer.get_parameter(raw.format(f"bias_{side}_l0")) for side in ("ih", "hh"))
    upper = (layer.bias_ih_l1_reverse, layer.bias_hh_l1_reverse)
    for for_input, for_state in ((input_bias, state_bias), upper):
        assert for_input[:HIDDEN].eq(1).all()
        assert for_state[:HIDDEN].eq(0).all()
        rest = torch.cat((for_input[HIDDEN:], for_state[HIDDEN:]))
        assert rest.unique().numel() == 2 * HIDDEN
        assert rest.abs().max() <= HIDDEN**-0.5


def test_the_factor_of_a_single_step_starts_at_one(generator: torch.Generator) -> None:
    step = statewise.MultiplicativeRNNCell(INPUT, HIDDEN, generator=generator)
    assert step.bias_ih[:HIDDEN].eq(1).all()
    assert step.bias_hh[:HIDDEN].eq(0).all()
    assert torch.cat((step.bias_ih[HIDDEN:], step.bias_hh[HIDDEN:])).unique().numel() == 2 * HIDDEN


def test_a_layer_and_a_single_step_start_alike() -> None:
    layer = statewise.MultiplicativeRNN(INPUT, HIDDEN, generator=torch.Generator().manual_seed(3))
    step = statewise.MultiplicativeRNNCell(INPUT, HIDDEN, generator=torch.Generator().manual_seed(3))
    for name, value in step.state_dict().items():
        assert torch.equal(value, layer.state_dict()[f"{name}_l0"])


@needs_kernel
def test_no_kernel_takes_it_for_another_cell() -> None:
    layer, x = statewise.MultiplicativeRNN(INPUT, HIDDEN), torch.zeros(4, 2, INPUT)
    call = layer.first_recurrence(x)[0]
    assert cpu.why_not(call, load_native()) == device.why_not(call) == NO_CODE
    assert layer.plan(x) == statewise.Plan("reference", "loop", (f"cpu: {NO_CODE}",))
    layer.engine = "triton"
    with pytest.raises(EngineError, match="cannot run"):
        layer(x)


def test_what_it_multiplies_can_be_seen() -> None:
    layer = statewise.MultiplicativeRNN(INPUT, HIDDEN)
    output, _, seen = layer(torch.randn(4, 2, INPUT), collect=("gates",))
    assert list(seen.gates[0]) == ["factor", "candidate"]
    assert torch.equal(seen.gates[0]["candidate"], output)
