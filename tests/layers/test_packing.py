"""Sequences are packed and padded as torch does it."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from statewise import GRU
from statewise.errors import LengthError, ShapeError
from statewise.layers.packing import Packing, pad

LENGTHS = st.lists(st.integers(1, 6), min_size=1, max_size=5)


def draw(lengths: list[int], more: int = 0) -> torch.Tensor:
    return torch.randn(max(lengths) + more, len(lengths), 3, dtype=torch.float64, requires_grad=True)


def theirs(padded: torch.Tensor, lengths: list[int]) -> PackedSequence:
    return pack_padded_sequence(padded, torch.tensor(lengths), enforce_sorted=False)


@given(lengths=LENGTHS, more=st.integers(0, 2))
def test_packed_and_padded_again_as_torch_does(lengths: list[int], more: int) -> None:
    padded = draw(lengths, more)
    packing = Packing.of(torch.tensor(lengths), device="cpu")
    ours, wanted = packing.pack(padded), theirs(padded, lengths)
    assert torch.equal(ours.batch_sizes, wanted.batch_sizes)
    # Equally long sequences may lie in another order.
    steps = len(padded)
    for found in (pad(ours, steps=steps), pad(wanted, steps=steps), packing.pad(ours.data, steps=steps)):
        assert torch.equal(found, pad_packed_sequence(wanted, total_length=steps)[0])
    assert torch.equal(pad_packed_sequence(ours)[0], pad(wanted))


@given(lengths=LENGTHS)
def test_gradients_are_those_of_torch(lengths: list[int]) -> None:
    padded, direction = draw(lengths), torch.randn(max(lengths), len(lengths), 3, dtype=torch.float64)
    packing = Packing.of(torch.tensor(lengths), device="cpu")
    (wanted,) = torch.autograd.grad(pad_packed_sequence(theirs(padded, lengths))[0].square(), padded, direction)
    for found in (pad(packing.pack(padded)), packing.pad(packing.rows(padded))):
        assert torch.equal(torch.autograd.grad(found.square(), padded, direction)[0], wanted)


def test_gradients_of_gradients() -> None:
    packing = Packing.of(torch.tensor([2, 3, 1]), device="cpu")
    padded = draw([2, 3, 1])
    assert torch.autograd.gradgradcheck(lambda x: packing.pad(packing.rows(x)) ** 2, padded)
    assert torch.autograd.gradgradcheck(lambda x: pad(packing.pack(x)) ** 2, padded)


def test_a_layer_may_be_given_the_sorted_sequences() -> None:
    layer, padded, lengths = GRU(3, 4, dtype=torch.float64), draw([2, 4, 1]), torch.tensor([2, 4, 1])
    packing = Packing.of(lengths, device="cpu")
    output, last = layer(packing.pack(padded))
    sorted_output, sorted_last = layer(packing.pack_sorted(padded))
    torch.testing.assert_close(packing.pad(sorted_output.data), pad(output))
    torch.testing.assert_close(sorted_last[:, packing.ranks], last)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bfloat16, torch.bool])
def test_what_is_packed_may_have_any_dtype_and_width(dtype: torch.dtype) -> None:
    padded = torch.arange(12).view(3, 4).to(dtype)
    lengths = torch.tensor([1, 3, 2, 3])
    packing = Packing.of(lengths, device="cpu")
    assert torch.equal(packing.pad(packing.rows(padded)), pad_packed_sequence(theirs(padded, lengths.tolist()))[0])


def test_lengths_that_do_not_fit_are_refused() -> None:
    with pytest.raises(LengthError, match="got an empty sequence, wanted sequences of at least one step"):
        Packing.of(torch.tensor([0, 2]), device="cpu")
    with pytest.raises(LengthError, match="an empty batch"):
        Packing.of(torch.zeros(0, dtype=torch.long), device="cpu")
    packing = Packing.of(torch.tensor([2, 1]), device="cpu")
    for shape in ((2, 3, 1), (2, 1, 1), (1, 2, 1)):
        with pytest.raises(ShapeError, match="at least 2 steps of 2 sequences, as many as there are lengths"):
            packing.rows(torch.zeros(shape))


@pytest.mark.gpu
def test_on_a_device() -> None:
    padded, lengths = draw([2, 4, 1]).detach().cuda(), torch.tensor([2, 4, 1])
    packing = Packing.of(lengths, device="cuda")
    assert torch.equal(pad(packing.pack(padded)), pad_packed_sequence(theirs(padded, lengths.tolist()))[0])
    assert torch.equal(packing.pad(packing.rows(padded)), pad(packing.pack(padded)))
