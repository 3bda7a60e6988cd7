"""What an arithmetic circuit starts from: never from zero, and from a product of 1 wherever that can be had."""

from __future__ import annotations

import warnings

import pytest
import torch

from statewise import RAC, SingularStartWarning
from statewise.errors import ArgumentError


def test_a_state_of_zeros_is_refused_with_what_to_do(generator: torch.Generator) -> None:
    """Products with zero would make every output zero, whatever is read."""
    layer, x = RAC(2, 3, num_layers=2, generator=generator), torch.ones(4, 1, 2)
    with pytest.raises(ArgumentError, match=r"hx: got a state of zeros, .* Leave hx out"):
        layer(x, torch.zeros(2, 1, 3))
    state = torch.zeros(2, 1, 3)
    state[0] = 1
    layer(x, state)


def test_with_biases_a_state_of_zeros_is_a_start_like_any_other(generator: torch.Generator) -> None:
    layer = RAC(2, 3, bias=True, generator=generator)
    with torch.no_grad():
        layer.get_parameter("bias_hh_l0").fill_(1.0)
    assert layer(torch.ones(4, 1, 2), torch.zeros(1, 1, 3))[0].any()


def test_under_vmap_nothing_is_looked_at(generator: torch.Generator) -> None:
    layer = RAC(2, 3, generator=generator)
    many = torch.func.vmap(lambda state: layer(torch.ones(4, 1, 2), state)[0])(torch.zeros(5, 1, 1, 3))
    assert not many.any()


def test_a_singular_matrix_whose_start_is_solved_for_is_warned_of(generator: torch.Generator) -> None:
    layer = RAC(2, 3, initial_state="pinv", generator=generator)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer(torch.ones(4, 1, 2))
    with torch.no_grad():
        layer.weight_hh_l0.copy_(torch.diag(torch.tensor([1.0, 1.0, 0.0])))
    with pytest.warns(SingularStartWarning, match="miss 1 by 1. initial_state='ones'"):
        layer(torch.ones(4, 1, 2))
