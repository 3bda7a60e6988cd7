from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from statewise import GRU, LSTM, RAC, RNN, OrthogonalRNN
from statewise.errors import ArgumentError, DtypeError, ShapeError
from statewise.memory.grid_tensor import grid_tensor, matricize, scorer, words_of

DOUBLE = torch.float64
LAYERS = [RNN, GRU, LSTM, RAC, OrthogonalRNN, nn.LSTM]


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_every_entry_is_the_score_of_its_word(kind: Any, batch_first: bool, generator: torch.Generator) -> None:
    options = {"initial_state": "zeros"} if kind is OrthogonalRNN else {}
    layer = kind(2, 3, num_layers=2, batch_first=batch_first, dtype=DOUBLE, **options)
    templates = torch.randn(3, 2, dtype=DOUBLE, generator=generator)
    readout = nn.Linear(3, 4, dtype=DOUBLE)
    tensor = grid_tensor(layer, templates, 3, readout=readout, output=1, chunk=5)
    assert tensor.shape == (3, 3, 3)
    for word in words_of(3, 3)[::5]:
        x = templates[list(word)].unsqueeze(0 if batch_first else 1)
        output = layer(x)[0]
        last = output[0, -1] if batch_first else output[-1, 0]
        assert tensor[word].item() == pytest.approx(readout(last)[1].item(), rel=1e-10)


def test_any_function_has_a_grid(generator: torch.Generator) -> None:
    def second_step(x: Tensor) -> Tensor:
        return x[1, :, 0]

    assert grid_tensor(second_step, torch.tensor([[5.0], [7.0]]), 2).tolist() == [[5.0, 7.0], [5.0, 7.0]]


def test_a_network_that_plays_dice_is_refused() -> None:
    with pytest.raises(ArgumentError, match="initial_state='zeros'"):
        grid_tensor(OrthogonalRNN(2, 3), torch.eye(2), 2, readout=torch.ones(3))


def test_matrices_of_any_partition_are_permutations_of_the_tensor() -> None:
    tensor = torch.arange(16.0).reshape(2, 2, 2, 2)
    assert torch.equal(matricize(tensor, 2), tensor.reshape(4, 4))
    chosen = matricize(tensor, [3, 0])
    for word in words_of(2, 4):
        row, column = 2 * word[0] + word[3], 2 * word[1] + word[2]
        assert chosen[row, column] == tensor[word]
    assert matricize(tensor, 0).shape == matricize(tensor, []).shape == (1, 16)
    assert matricize(tensor, 4).shape == (16, 1)
    for wrong in ([0, 0], [4], 5):
        with pytest.raises(ArgumentError, match="different steps"):
            matricize(tensor, wrong)


def test_what_is_not_a_score_is_refused() -> None:
    x = torch.ones(2, 3, 1)
    with pytest.raises(DtypeError, match="a tensor"):
        scorer(lambda x: "no")(x)
    for wrong in (lambda x: x, lambda x: x[0, :1], lambda x: x[0]):
        with pytest.raises(ShapeError, match="a score for each"):
            scorer(wrong, output=1)(x)


def test_grids_that_are_too_large_or_empty_are_refused() -> None:
    with pytest.raises(ArgumentError, match="empirical_profile"):
        grid_tensor(lambda x: x[0, :, 0], torch.eye(2), 27)
    with pytest.raises(ArgumentError, match=r"grid_tensor\.steps: got 0"):
        grid_tensor(lambda x: x[0, :, 0], torch.eye(2), 0)


def test_a_readout_and_a_number_of_rows_that_do_not_fit_are_named() -> None:
    with pytest.raises(ShapeError, match=r"the readout: got \(4,\), wanted a number for each of 3 channels"):
        grid_tensor(nn.GRU(2, 3), torch.eye(2), 2, readout=torch.ones(4))
    with pytest.raises(ArgumentError, match=r"matricize\.rows: got -1"):
        matricize(torch.ones(2, 2), -1)
    with pytest.raises(ArgumentError, match=r"2\^1000000000 words"):
        grid_tensor(nn.GRU(2, 3), torch.eye(2), 10**9)
