"""Fewer centroids, the same machine; and words to train on when the machine is wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from networks import network, random_machine, tomita
from statewise.automata import compile_machine, equivalent, extract, merge_centroids, repair_set
from statewise.errors import NotMemorylessError


@pytest.mark.parametrize("number", range(1, 8))
def test_a_compiled_machine_shrinks_and_stays_itself(number: int) -> None:
    machine = tomita(number)
    model = compile_machine(machine)
    small = merge_centroids(model)
    assert small.same_machine
    assert equivalent(extract(small.model).machine, machine)
    assert len(small.merged) < model.config.centroids[0]
    assert small.soft_agreement == 1.0


@given(seed=st.integers(0, 2**32 - 1), cell=st.sampled_from(("gru", "rnn", "mgu")))
def test_random_networks_keep_their_machines_and_lose_what_is_not_used(seed: int, cell: str) -> None:
    model = network(seed, cell=cell)
    before = extract(model)
    small = merge_centroids(model, words=20)
    assert small.same_machine
    assert len(before.machine) <= small.model.config.centroids[0] <= len(before.used[0])
    assert sorted(state for group in small.merged for state in group) == [*before.used[0]]
    assert small.model.layer.get_parameter("centroids_l0").shape[0] == len(small.merged)


def test_the_model_itself_is_left_alone_and_dtype_and_mode_are_kept() -> None:
    model = compile_machine(tomita(5), dtype=torch.float64).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    small = merge_centroids(model).model
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert small.training
    assert small.head.weight.dtype == torch.float64
    with torch.no_grad():
        small.head.weight.zero_()
    assert torch.equal(model.head.weight, before["head.weight"])


def test_stacks_are_refused() -> None:
    with pytest.raises(NotMemorylessError, match="one layer"):
        merge_centroids(network(0, layers=2))


def test_a_right_network_needs_no_repair() -> None:
    assert repair_set(compile_machine(tomita(4)), tomita(4)) == ([], [])


@given(seed=st.integers(0, 2**32 - 1))
def test_the_repair_set_holds_words_that_the_network_gets_wrong_with_their_prefixes_and_true_classes(seed: int) -> None:
    target = random_machine(seed, symbols=1)
    other = random_machine(seed + 1, symbols=1)
    model = compile_machine(other)
    words, labels = repair_set(model, target, limit=3)
    assert (words == []) == equivalent(extract(model).machine, target)
    assert labels == target.classify(words).tolist()
    assert all(word[:-1] in words for word in words if word)
    assert [len(word) for word in words] == sorted(len(word) for word in words)
    if words:
        assert (np.array(labels) != model.with_transition("argmax").classify(words)).any()


def test_a_smaller_network_that_draws_its_states_is_not_certified_and_one_that_moves_by_argmax_is() -> None:
    model = compile_machine(tomita(5))
    assert merge_centroids(model).certified
    assert not merge_centroids(model.with_transition("sample")).certified
    hot = compile_machine(tomita(5), temperature=50.0)
    assert not merge_centroids(hot).certified
    assert merge_centroids(hot.with_transition("argmax")).certified


def test_without_a_start_token_the_empty_word_needs_no_repair_and_is_not_asked_for() -> None:
    model = network(1, cell="rnn", start_token=False)
    table = extract(model).table
    turned = table.outputs.copy()
    turned[table.start] = 1 - turned[table.start]
    assert repair_set(model, replace(table, outputs=turned)) == ([], [])
    words, labels = repair_set(model, replace(table, outputs=1 - table.outputs))
    assert words
    assert "" not in words
    assert (model.with_transition("argmax").classify(words) != np.array(labels)).all()


def test_the_first_word_to_repair_is_the_shortest_witness() -> None:
    words, labels = repair_set(compile_machine(tomita(6)), tomita(5), limit=1)
    assert words == ["", "0", "00"]
    assert labels == [1, 0, 1]
