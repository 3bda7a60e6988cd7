"""The objective with K noises for each sequence."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence, pad_packed_sequence

from statewise import GRU, LSTM, Noise
from statewise.errors import ArgumentError, DtypeError, ShapeError
from statewise.objectives import k_sample_loss, tile, tile_state

LOSS = nn.MSELoss()


def make(placement: str = "recurrent") -> tuple[LSTM, Tensor, Tensor]:
    layer = LSTM(3, 4, num_layers=2, transforms=Noise("gaussian", 0.5, placement=placement))
    return layer, torch.randn(5, 2, 3), torch.randn(5, 2, 4)


def source(seed: int = 7) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("placement", ["recurrent", "outputs", "last"])
def test_one_sample_is_a_plain_pass_number_by_number(placement: str) -> None:
    layer, x, y = make(placement)
    output, state = layer(x, generator=source())
    found = k_sample_loss(layer, LOSS, x, y, generator=source())
    assert torch.equal(found.loss, LOSS(output, y))
    assert all(torch.equal(one, other) for one, other in zip(found.state, state, strict=True))


def test_k_samples_are_a_pass_over_the_batch_k_times() -> None:
    layer, x, y = make()
    found = k_sample_loss(layer, LOSS, x, y, samples=3, generator=source())
    output, state = layer(torch.cat([x] * 3, 1), generator=source())
    torch.testing.assert_close(found.loss, LOSS(output, torch.cat([y] * 3, 1)))
    assert torch.equal(found.state[0], state[0])
    copies = output.unflatten(1, (3, 2))
    assert not torch.equal(copies[:, 0], copies[:, 1])


def test_the_loss_and_gradient_are_the_means_over_the_samples() -> None:
    layer, x, y = make()
    k_sample_loss(layer, LOSS, x, y, samples=3, generator=source()).loss.backward()
    found = [parameter.grad.clone() for parameter in layer.parameters() if parameter.grad is not None]
    layer.zero_grad()
    draws = layer.draw(torch.cat([x] * 3, 1), generator=source())
    for k in range(3):
        rows = slice(2 * k, 2 * k + 2)
        mine = type(draws)({key: tuple(one[:, rows] for one in tensors) for key, tensors in draws.tensors.items()})
        (LOSS(layer(x, draws=mine)[0], y) / 3).backward()
    for one, other in zip(found, layer.parameters(), strict=True):
        torch.testing.assert_close(one, other.grad)


def test_k_states_are_carried_from_one_segment_to_the_next() -> None:
    """Fed-back noise gives each copy a state of its own, and the next segment goes on from that one."""
    layer, x, y = make()
    first = k_sample_loss(layer, LOSS, x, y, samples=3, generator=source())
    h = first.state[0].unflatten(1, (3, 2))
    assert not torch.equal(h[:, 0], h[:, 1])
    carried = tuple(part.detach() for part in first.state)
    again = k_sample_loss(layer, LOSS, x, y, carried, samples=3, generator=source(8))
    output, _ = layer(torch.cat([x] * 3, 1), carried, generator=source(8))
    torch.testing.assert_close(again.loss, LOSS(output, torch.cat([y] * 3, 1)))


def test_a_state_of_the_batch_is_given_to_every_copy() -> None:
    layer, x, y = make("last")
    state = (torch.randn(2, 2, 4), torch.randn(2, 2, 4))
    found = k_sample_loss(layer, LOSS, x, y, state, samples=3, generator=source())
    clean = layer.eval()(x, state)[1]
    for one, other in zip(found.state, clean, strict=True):
        torch.testing.assert_close(one, torch.cat([other] * 3, 1))


def test_other_numbers_of_states_are_refused() -> None:
    layer, x, y = make()
    state = (torch.zeros(2, 4, 4), torch.zeros(2, 4, 4))
    with pytest.raises(ShapeError, match=r"\(layers, 2, hidden\), or \(layers, 6, hidden\)"):
        k_sample_loss(layer, LOSS, x, y, state, samples=3)


def test_any_model_and_any_batch_dimension() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(10, 3)
            self.layer = GRU(3, 4, batch_first=True, transforms=Noise("gaussian", 0.5))
            self.head = nn.Linear(4, 10)

        def forward(self, words: Tensor, state: Any = None) -> tuple[Tensor, Any]:
            output, state = self.layer(self.words(words), state)
            return self.head(output).flatten(0, 1), state

    def loss(scores: Tensor, words: Tensor) -> Tensor:
        return nn.functional.cross_entropy(scores, words.flatten())

    words = torch.randint(10, (2, 6))
    found = k_sample_loss(Model(), loss, words[:, :-1], words[:, 1:], samples=5, batch_dim=0)
    assert found.loss.ndim == 0
    assert found.state.shape == (1, 10, 4)


@pytest.mark.parametrize("enforce_sorted", [True, False])
def test_packed_sequences_are_repeated_too(enforce_sorted: bool) -> None:
    lengths = (4, 3, 1) if enforce_sorted else (1, 4, 3)
    sequences = [torch.randn(length, 3) for length in lengths]
    packed = pack_sequence(sequences, enforce_sorted=enforce_sorted)
    tiled = tile(packed, 2)
    assert isinstance(tiled, PackedSequence)
    padded, found = pad_packed_sequence(tiled)
    assert found.tolist() == [*lengths, *lengths]
    for row, sequence in enumerate(sequences * 2):
        assert torch.equal(padded[: len(sequence), row], sequence)
    layer = LSTM(3, 4, transforms=Noise("gaussian", 0.5))
    ran = k_sample_loss(layer, lambda out, target: (out.data - target.data).square().mean(), packed, packed._replace(
        data=torch.zeros(len(packed.data), 4)), samples=2)  # fmt: skip
    assert ran.state[0].shape == (1, 6, 4)


def test_a_batch_is_laid_out_copy_after_copy() -> None:
    assert tile(torch.tensor([[1, 2], [3, 4]]), 2, 0).tolist() == [[1, 2], [3, 4], [1, 2], [3, 4]]
    x = torch.zeros(3, 2)
    assert tile(x, 1) is x
    assert tile_state(None, 3, batch=2) is None
    nested = tile_state([torch.zeros(1, 2, 4), (torch.zeros(2, 2, 5),)], 3, batch=2)
    assert nested[1][0].shape == (2, 6, 5)


@pytest.mark.parametrize("samples", [0, -1, True, 1.5])
@pytest.mark.usefixtures("as_users_have_it")
def test_a_number_of_samples_must_be_a_whole_number(samples: Any) -> None:
    layer, x, y = make()
    with pytest.raises(ArgumentError, match="a whole number of at least 1"):
        k_sample_loss(layer, LOSS, x, y, samples=samples)


def test_what_cannot_be_repeated_is_refused() -> None:
    layer, x, y = make()
    with pytest.raises(DtypeError, match="tensors, alone or in tuples"):
        k_sample_loss(layer, LOSS, x, "targets", samples=2)
    with pytest.raises(ShapeError, match="batch of one"):
        k_sample_loss(layer, LOSS, x[:, 0, 0], y, samples=2)
