"""Pairs in a batch: where they find their rows, on the host and on a device, and what replicas make of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from statewise import GRU, LSTM, RNN, Pairing, PeepholeLSTM, RecurrentLayer
from statewise.engine import Layout
from statewise.layers.pairs import _rows_of, _rows_on_device
from statewise.native import load_native
from support import tolerance


def layout_of(lengths: list[int]) -> Layout:
    return Layout.of_sizes(tuple(sum(length > step for length in lengths) for step in range(max(lengths))))


@given(
    sequences=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    pairs=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 5)), min_size=1, max_size=6),
)
def test_rows_of_pairs_are_the_members_rows_and_minus_one_where_they_have_ended(
    sequences: list[int], pairs: list[tuple[int, int, int]]
) -> None:
    own, below = np.array(sorted(sequences, reverse=True)), layout_of(sequences)
    pairs = sorted(pairs, key=lambda pair: -pair[2])
    members = np.array([[pair[which] % len(own) for pair in pairs] for which in (0, 1)])
    lengths = [min(length, below.steps) for _, _, length in pairs]
    layout = layout_of(lengths)
    index, ends = _rows_of(members, own, below, layout)
    expected = [
        [
            below.offsets[step] + place if step < own[place] else -1
            for step, running in enumerate(layout.batch_sizes)
            for place in which[:running].tolist()
        ]
        for which in members
    ]
    assert index.tolist() == expected
    assert ends == tuple(-1 in rows for rows in expected)
    assert torch.equal(_rows_on_device(torch.from_numpy(members), own, below, layout), index)


@given(
    lengths=st.lists(st.integers(1, 3), min_size=2, max_size=5),
    sort=st.booleans(),
    seed=st.integers(0, 2**31),
    data=st.data(),
)
def test_pairs_in_any_order_are_each_what_they_are_alone(
    lengths: list[int], sort: bool, seed: int, data: st.DataObject
) -> None:
    generator = torch.Generator().manual_seed(seed)
    lengths = sorted(lengths, reverse=True) if sort else lengths
    first, second = (torch.tensor(data.draw(st.permutations(range(len(lengths))))) for _ in range(2))
    own, longest = torch.tensor(lengths), max(lengths)
    x = torch.randn(longest, len(lengths), 2, generator=generator, dtype=torch.float64)
    coefficients = torch.rand(longest, len(lengths), generator=generator, dtype=torch.float64)
    layer = RNN(2, 3, dtype=torch.float64, generator=generator)
    packed = pack_padded_sequence(x, own, enforce_sorted=sort)
    found, _ = pad_packed_sequence(layer(packed, pairing=Pairing(second, coefficients, first=first, layer=0))[0])
    for pair, members in enumerate(torch.stack((first, second), 1)):
        alone, steps = pack_padded_sequence(x[:, members], own[members], enforce_sorted=False), int(own[members].max())
        pairing = Pairing(torch.tensor([1, 0]), coefficients[:steps, [pair, pair]], layer=0)
        expected, _ = pad_packed_sequence(layer(alone, pairing=pairing)[0])
        torch.testing.assert_close(found[:steps, pair], expected[:, 0], **tolerance(torch.float64))


def test_replicas_mix_as_each_does_alone() -> None:
    """By vmap over stacked weights, packed, with members of unequal length."""
    layers = [GRU(3, 4, dtype=torch.float64) for _ in range(3)]
    lengths = torch.tensor([2, 5, 3])
    packed = pack_padded_sequence(torch.randn(5, 3, 3, dtype=torch.float64), lengths, enforce_sorted=False)
    pairing = Pairing(torch.tensor([1, 1, 0]), torch.rand(5, 3, dtype=torch.float64), layer=0)

    def loss(weights: dict[str, torch.Tensor]) -> torch.Tensor:
        output: torch.Tensor = functional_call(layers[0], weights, (packed,), {"pairing": pairing})[0].data
        return output.square().sum()

    together = vmap(grad(loss))(stack_module_state(layers)[0])
    for place, layer in enumerate(layers):
        layer(packed, pairing=pairing)[0].data.square().sum().backward()
        for name, parameter in layer.named_parameters():
            torch.testing.assert_close(together[name][place], parameter.grad, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("lengths", [(4, 4), (4, 2)])
def test_gradients_through_pairs_may_be_recorded_and_asked_for_many_at_a_time(lengths: tuple[int, ...]) -> None:
    """With ``create_graph=True``, and under ``torch.vmap``."""
    pairing = Pairing(torch.tensor([1, 0]), torch.tensor([0.9, 0.5]), layer=0)
    inputs = pack_padded_sequence(torch.randn(4, 2, 3), torch.tensor(lengths), enforce_sorted=False)
    found = []
    for engine in ("auto", "reference"):
        torch.manual_seed(0)
        layer = LSTM(3, 4, engine=engine)
        output = layer(inputs, pairing=pairing)[0].data
        leaves = list(layer.parameters())

        def back(gradient: torch.Tensor, output: Any = output, leaves: Any = leaves) -> Any:
            return torch.autograd.grad(output, leaves, gradient, retain_graph=True)

        many = torch.stack([torch.ones_like(output), torch.linspace(0, 1, output.numel()).view_as(output)])
        recorded = torch.autograd.grad(output.sum(), leaves, create_graph=True)
        found.append((recorded, back(many[0]), vmap(back)(many)))
    torch.testing.assert_close(*found)
    torch.testing.assert_close(found[0][0], found[0][1])
    torch.testing.assert_close([each[0] for each in found[0][2]], list(found[0][1]))


@pytest.mark.skipif(not load_native().available, reason="needs the kernel")
@pytest.mark.parametrize("kind", [LSTM, PeepholeLSTM, GRU, RNN])
def test_a_member_of_no_weight_is_left_out_by_the_kernel_as_it_counts_for_nothing(
    kind: Callable[..., RecurrentLayer],
) -> None:
    """Outputs, what is seen of the gates, and all gradients, where coefficients are 0, 1 and between."""
    native = kind(3, 17, bidirectional=True, dtype=torch.float64, engine="cpu")
    plain = copy.deepcopy(native)
    plain.engine = "reference"
    coefficients = torch.tensor([[0.0, 1.0, 0.3, 1.0], [1.0, 1.0, 0.7, 0.0], [0.4, 0.0, 0.0, 1.0]], dtype=torch.float64)
    pairing = Pairing(torch.tensor([1, 2, 3, 0]), coefficients, layer=0)
    inputs = torch.randn(3, 4, 3, dtype=torch.float64)
    for options in ({}, {"collect": ("states", "gates")}):
        found = []
        for layer in (native, plain):
            given_inputs = inputs.clone().requires_grad_()
            output, state, *seen = layer(given_inputs, pairing=pairing, **options)
            states = state if isinstance(state, tuple) else (state,)
            loss = output.square().sum() + sum(part.sin().sum() for part in states)
            found.append((output, states, seen, torch.autograd.grad(loss, [given_inputs, *layer.parameters()])))
        torch.testing.assert_close(found[0][0], found[1][0])
        torch.testing.assert_close(found[0][1], found[1][1])
        torch.testing.assert_close(found[0][3], found[1][3])
        for one, other in zip(*(part[2] for part in found), strict=True):
            torch.testing.assert_close(one.gates, other.gates)
