"""Verification: tests find differences, proofs are true, and nothing is claimed where none is possible."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from networks import network, random_machine, tomita
from statewise.automata import MooreMachine, certified_temperature, compile_machine, extract, verify, witness
from statewise.errors import ArgumentError
from statewise.models import ClassifierConfig


def test_a_compiled_machine_is_proven_softly_for_every_length() -> None:
    machine = tomita(5)
    found = verify(compile_machine(machine), machine, max_length=7, random_words=50)
    assert found.soft.perfect
    assert found.hard is not None
    assert found.hard.perfect
    assert found.proven
    assert found.proof is not None
    assert "of every length" in found.proof.sentence
    assert found.counter_examples == ()
    assert "255 of 255" in str(found)


def test_a_wrong_machine_gives_the_shortest_counter_examples_and_their_witness() -> None:
    reading_a, rows = tomita(3), tomita(3).transitions.copy()
    rows[3] = [2, 1]  # reading B of the third language: only the next run of zeros counts
    reading_b = MooreMachine(alphabet=("0", "1"), transitions=rows, outputs=reading_a.outputs)
    found = verify(compile_machine(reading_b), reading_a, max_length=8, random_words=50)
    assert found.proof is not None
    assert (found.proof.equal, found.proof.witness) == (False, "100110")
    assert found.counter_examples[0].word == "100110"
    assert not found.proven
    assert "first on the word '100110'" in str(found)


@given(seed=st.integers(0, 2**32 - 1))
def test_the_witness_of_a_proof_is_a_word_on_which_the_network_at_argmax_differs(seed: int) -> None:
    model, machine = network(seed, cell="rnn"), random_machine(seed, symbols=2)
    machine = MooreMachine(
        alphabet=("0", "1"),
        transitions=np.repeat(machine.transitions[:, :1], 2, axis=1),
        outputs=machine.outputs,
        start=machine.start,
    )
    proof = verify(model, machine, max_length=2, random_words=5).proof
    assert proof is not None
    if proof.witness is not None:
        (answer,) = model.with_transition("argmax").classify([proof.witness])
        assert answer != machine.run(proof.witness)


def test_a_hot_network_is_equal_at_argmax_only() -> None:
    machine = tomita(5)
    found = verify(compile_machine(machine, temperature=20.0), machine, max_length=6, random_words=20)
    assert found.proof is not None
    assert found.proof.equal
    assert not found.proven
    assert found.soft.counter_examples
    assert found.hard is not None
    assert found.hard.perfect


def test_networks_with_memory_or_without_centroids_are_tested_and_not_proven() -> None:
    for settings, has_centroids in (({"cell": "lstm", "centroids": (3,)}, True), ({}, False)):
        model = ClassifierConfig(hidden=4, **settings).build(tokens=2, classes=2, symbols="01")  # type: ignore[arg-type]
        found = verify(model, tomita(1), max_length=3, random_words=5)
        assert found.proof is None
        assert found.no_proof == model.why_not_memoryless
        assert (found.hard is not None) == has_centroids
        assert "none, since" in str(found)


def test_stacks_are_proven_at_argmax() -> None:
    model = network(0, layers=2, cell="rnn")
    found = verify(model, extract(model).machine, max_length=3, random_words=5)
    assert found.proof is not None
    assert found.proof.equal
    assert found.proof.certificate is None
    assert "no bound on the soft network: it has 2 layers" in found.proof.sentence


def test_without_a_start_token_the_empty_word_is_the_machines_own() -> None:
    model = network(1, cell="rnn", start_token=False)
    table = extract(model).table
    outputs = table.outputs.copy()
    outputs[table.start] = 1 - outputs[table.start]
    other = MooreMachine(alphabet=table.alphabet, transitions=table.transitions, outputs=outputs, start=table.start)
    assert witness(table, other) == ""
    found = [verify(model, each, max_length=4, random_words=5) for each in (table, other)]
    assert [each.hard is not None and each.hard.perfect for each in found] == [True, True]
    assert [each.proof is not None and each.proof.equal for each in found] == [True, True]


def test_symbols_may_come_in_another_order_but_must_be_the_same() -> None:
    machine = tomita(4)
    turned = MooreMachine(alphabet=("1", "0"), transitions=machine.transitions[:, ::-1], outputs=machine.outputs)
    model = compile_machine(machine)
    assert verify(model, turned, max_length=6, random_words=20).proven
    with pytest.raises(ArgumentError, match="alphabet"):
        verify(model, random_machine(0))
    with pytest.raises(ArgumentError, match="3 classes"):
        verify(model, MooreMachine(
            alphabet=("0", "1"), transitions=machine.transitions, outputs=machine.outputs, classes=("a", "b", "c")
        ))  # fmt: skip


def test_a_network_that_draws_its_states_is_not_proven_by_the_certificate_of_the_mixture() -> None:
    machine = tomita(1)
    temperature = 0.99 * certified_temperature(extract(compile_machine(machine)))
    model = compile_machine(machine, temperature=temperature).with_transition("sample")
    draw = torch.Generator().manual_seed(0)
    found = verify(model, machine, max_length=3, random_words=100, random_lengths=(200, 300), generator=draw)
    assert found.soft.random < 1
    assert found.proof is not None
    assert found.proof.certificate is not None
    assert found.proof.certificate.holds
    assert not found.proof.soft
    assert not found.proven
    assert "draws its states" in found.proof.sentence


@pytest.mark.parametrize("transition", ["argmax", "st_argmax", "gumbel_hard"])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_network_that_moves_by_argmax_is_proven_by_its_table_at_any_temperature(transition: str, layers: int) -> None:
    model = network(0, cell="rnn", layers=layers, temperature=50.0).with_transition(transition)
    found = verify(model, extract(model).machine, max_length=5, random_words=20)
    assert found.soft.perfect
    assert found.proven
    assert found.proof is not None
    assert "moves by argmax" in found.proof.sentence
    soft = verify(model.with_transition("mixture"), extract(model).machine, max_length=3, random_words=5)
    assert not soft.proven


def test_steps_that_rounding_could_overturn_are_named_and_prove_nothing() -> None:
    """In float32 the second centroid is as near as the first: the table, in float64, says which is nearer."""
    machine = tomita(4)
    model = compile_machine(machine)
    with torch.no_grad():
        centroids = model.layer.get_parameter("centroids_l0")
        centroids[1] = centroids[0] * (1 - 1e-7)
    found = extract(model)
    assert found.ambiguous
    for transition in ("argmax", "mixture"):
        proof = verify(
            model.with_transition(transition, temperature=1e-9), found.machine, max_length=3, random_words=5
        ).proof
        assert proof is not None
        assert proof.equal
        assert not proof.soft
        state, symbol = found.ambiguous[0]
        assert "(in exact arithmetic)" in proof.sentence
        assert f"overturn {len(found.ambiguous)} of its steps, first {state} on {symbol}" in proof.sentence


def test_a_sampling_network_is_asked_with_the_given_generator() -> None:
    model = compile_machine(tomita(4)).with_transition("sample", temperature=6.0)
    answers = [
        verify(model, tomita(4), max_length=6, random_words=50, generator=torch.Generator().manual_seed(1)).soft
        for _ in range(2)
    ]
    assert answers[0] == answers[1]
