"""Compiled networks: refusals, sizes, and what training may start from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from networks import random_machine, tomita
from statewise.automata import MooreMachine, all_words, compile_machine, random_words, verify
from statewise.errors import ArgumentError


def test_weights_get_the_asked_for_dtype_and_the_network_its_symbols() -> None:
    model = compile_machine(tomita(2), dtype=torch.float64, temperature=0.5)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float64}
    assert (model.symbols, model.config.temperature) == (("0", "1"), 0.5)


def test_long_words_are_read_softly_without_an_error() -> None:
    for seed in range(5):
        machine = random_machine(seed, classes=3)
        words = random_words(machine.alphabet, 30, min_length=200, max_length=400, seed=seed)
        assert np.array_equal(compile_machine(machine).classify(words), machine.classify(words))


def test_gradients_reach_the_weights_so_that_it_can_be_trained_on() -> None:
    model = compile_machine(tomita(4))
    torch.nn.functional.cross_entropy(model(torch.tensor([[0, 0, 0]])), torch.tensor([1])).backward()
    assert model.head.weight.grad is not None
    assert float(model.head.weight.grad.abs().sum()) > 0


def test_symbols_of_several_characters_compile() -> None:
    machine = MooreMachine(alphabet=("go", "stop"), transitions=np.array([[0, 1], [1, 1]]), outputs=np.array([0, 1]))
    assert compile_machine(machine).classify([("go", "stop"), ()]).tolist() == [1, 0]


def test_one_class_is_refused_and_the_remedy_gives_a_network_that_is_proven() -> None:
    machine = MooreMachine(alphabet=("0",), transitions=np.array([[0]]), outputs=np.array([0]), classes=("only",))
    with pytest.raises(ArgumentError, match=r"one class, 'only'.*replace\(machine, classes="):
        compile_machine(machine)
    two = replace(machine, classes=("only", "other"))
    assert verify(compile_machine(two), two, max_length=3, random_words=5).proven


def test_an_empty_alphabet_and_other_read_outs_are_refused() -> None:
    nothing = MooreMachine(alphabet=(), transitions=np.zeros((1, 0), dtype=np.int64), outputs=np.array([1]))
    with pytest.raises(ArgumentError, match="empty alphabet"):
        compile_machine(nothing)
    with pytest.raises(ArgumentError, match="u_end"):
        compile_machine(tomita(1), readout="hc")


def test_all_words_of_a_three_letter_machine_agree() -> None:
    machine = random_machine(12, states=6)
    words = list(all_words(machine.alphabet, 6))
    assert np.array_equal(compile_machine(machine).classify(words), machine.classify(words))
