"""Exact extraction: the machine is the network at argmax, and what goes with it is true."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from networks import network, random_machine, tomita
from statewise.automata import (
    Extraction,
    UnfaithfulMachineWarning,
    all_words,
    compile_machine,
    equivalent,
    extract,
    random_words,
    witness,
)
from statewise.automata import table as table_module
from statewise.automata.freeze import freeze
from statewise.errors import ArgumentError, DtypeError, LengthError, NonFiniteError, NotMemorylessError
from statewise.models import ClassifierConfig
from statewise.transforms import Zoneout

SEEDS = st.integers(0, 2**32 - 1)
CELLS = ("gru", "rnn", "mgu", "rac", "multiplicative")


@given(
    seed=SEEDS,
    cell=st.sampled_from(CELLS),
    similarity=st.sampled_from(("dot", "euclidean", "sqeuclidean")),
    layers=st.integers(1, 3),
    readout=st.sampled_from(("u_end", "h")),
    start_token=st.booleans(),
    classes=st.integers(2, 4),
)
def test_the_machine_equals_the_network_at_argmax_for_every_configuration(
    seed: int, cell: str, similarity: str, layers: int, readout: str, start_token: bool, classes: int
) -> None:
    settings: dict[str, Any] = {"cell": cell, "similarity": similarity, "readout": readout, "start_token": start_token}
    model = network(seed, layers=layers, classes=classes, **settings)
    found = extract(model)
    if found.ambiguous:
        return
    words = list(all_words("01", 6, min_length=0 if start_token else 1))
    words += random_words("01", 50, min_length=20, max_length=60, seed=1)
    hard = model.with_transition("argmax")
    assert np.array_equal(hard.classify(words), found.machine.classify(words))
    assert np.array_equal(hard.classify(words), found.table.classify(words))


def test_scaled_up_networks_reach_several_states_so_that_the_tests_are_not_empty() -> None:
    sizes = [len(extract(network(seed, cell=cell)).reachable) for seed in range(10) for cell in ("gru", "rnn")]
    assert np.mean(np.array(sizes) >= 3) > 0.5


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = network(3, similarity="euclidean")
    whole = extract(model)
    monkeypatch.setattr(table_module, "NUMBERS_AT_ONCE", 1)
    assert extract(model).table == whole.table


def test_margins_are_the_lead_of_the_best_similarity_over_the_second() -> None:
    model = network(0)
    found = extract(model)
    layer = found.network.layers[0]
    for state in range(8):
        for symbol in range(2):
            u = layer.cell_step(found.network.embedding[symbol][None], layer.centroids[state][None])
            best = (u @ layer.centroids.T)[0].sort(descending=True).values
            assert found.margins[state, symbol] == pytest.approx(float(best[0] - best[1]))


def test_used_and_unused_centroids_are_all_centroids_and_the_used_ones_are_visited() -> None:
    model = network(5, cell="rnn")
    found = extract(model)
    assert sorted(found.used[0] + found.unused[0]) == list(range(8))
    tokens = torch.from_numpy(np.random.default_rng(0).integers(0, 2, (300, 30)))
    visited = {*model.with_transition("argmax").states(tokens).path().flatten().tolist()}
    assert visited == {*found.used[0]}


def test_one_centroid_of_infinite_margin_is_never_ambiguous() -> None:
    found = extract(network(0, centroids=(1,)))
    assert (found.min_margin, found.ambiguous, len(found.machine)) == (np.inf, (), 1)


def test_equal_centroids_are_flagged_as_ambiguous() -> None:
    model = compile_machine(tomita(4))
    with torch.no_grad():
        model.layer.get_parameter("centroids_l0")[1] = model.layer.get_parameter("centroids_l0")[0]
    assert extract(model).ambiguous


def test_a_read_out_that_rounding_could_overturn_is_flagged_as_ambiguous() -> None:
    model = compile_machine(tomita(4))
    with torch.no_grad():
        model.head.bias[0] = 10.0 * (1 - 1e-9)  # what the states of class 1 lead by
    found = extract(model)
    assert {symbol for _, symbol in found.ambiguous} == {"END"}
    assert found.output_margins.min() < 1e-5
    assert found.card.ambiguity > 0


def test_agreement_with_words_and_labels_is_measured_and_a_soft_gap_warns() -> None:
    machine = tomita(5)
    words = list(all_words("01", 6))
    labels = machine.classify(words).tolist()
    found = extract(compile_machine(machine), words=words, labels=labels)
    assert found.agreement is not None
    assert (found.soft_agreement, found.hard_agreement) == (1.0, 1.0)
    assert (found.agreement.soft_accuracy, found.agreement.hard_accuracy) == (1.0, 1.0)
    with pytest.warns(UnfaithfulMachineWarning, match="at argmax on 100.00%"):
        found = extract(compile_machine(machine, temperature=50.0), words=words)
    assert found.soft_agreement is not None
    assert found.soft_agreement < 1.0


def test_no_words_or_unpaired_labels_are_refused() -> None:
    model = compile_machine(tomita(1))
    with pytest.raises(LengthError, match="at least one word"):
        extract(model, words=[])
    with pytest.raises(LengthError, match="2 labels"):
        extract(model, words=["0"], labels=[0, 1])


def test_the_card_tells_all_and_does_not_change_when_the_model_is_trained_on() -> None:
    model = compile_machine(tomita(4))
    found = extract(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    card = found.card
    assert (card.soft_agreement, card.hard_agreement, card.ambiguity) == (1.0, 1.0, 0.0)
    assert (card.used_states, card.minimal_states) == (9, 4)
    assert card.min_margin == pytest.approx(19.28, abs=0.01)
    assert card.certified_temperature is not None
    assert card.certified_temperature > 1
    assert card.certified
    assert card.to_dict()["certified"] is True
    assert "4 minimal" in str(card)


def test_the_card_of_a_stack_has_no_certified_temperature() -> None:
    card = extract(network(1, layers=2)).card
    assert card.certified_temperature is None
    assert not card.certified


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_network_in_half_precision_has_a_card_and_its_agreements_are_the_models_own(dtype: torch.dtype) -> None:
    model = compile_machine(tomita(4)).to(dtype)
    found = extract(model)
    card = found.card
    assert (card.soft_agreement, card.hard_agreement) == (1.0, 1.0)
    words = list(all_words("01", 5))
    for transition in ("mixture", "argmax"):
        model = network(0, temperature=3.0).to(dtype).with_transition(transition)
        frozen = freeze(model, dtype=dtype)
        coded = [[int(symbol) for symbol in word] for word in words]
        assert np.mean(frozen.classify(coded).numpy() == model.classify(words)) > 0.9


def test_the_coarser_the_network_computes_the_more_steps_rounding_could_overturn() -> None:
    """Half precision has 8 bits: leads of a thousandth, which float32 decides surely, are below its rounding."""
    model = compile_machine(tomita(4))
    with torch.no_grad():
        centroids = model.layer.get_parameter("centroids_l0")
        centroids[1] = centroids[0] * (1 - 2**-7)
    assert not extract(model).ambiguous
    assert extract(model.to(torch.bfloat16)).ambiguous


def test_the_card_of_a_network_that_draws_its_states_claims_nothing_of_it() -> None:
    model = compile_machine(tomita(4)).with_transition("sample")
    found = extract(model)
    assert found.card.certified_temperature is not None
    assert found.card.certified_temperature > found.card.temperature
    assert not found.card.certified
    assert found.card.soft_agreement is None
    assert found.card.hard_agreement == 1.0
    assert found.card.to_dict()["transition"] == "sample"
    assert "states are drawn" in str(found.card)
    with pytest.raises(ArgumentError, match=r"hard=True.*generator"):
        found.network.classify([[0, 1]])


def test_the_card_of_a_network_that_moves_by_argmax_is_certified_at_any_temperature() -> None:
    for layers in (1, 2):
        card = extract(network(0, cell="rnn", layers=layers, temperature=50.0, transition="argmax")).card
        assert card.certified
        assert card.soft_agreement == 1.0
        assert "moves by argmax" in str(card)


def test_the_card_certifies_nothing_that_rounding_could_overturn() -> None:
    model = compile_machine(tomita(4)).with_transition("argmax")
    assert extract(model).card.certified
    with torch.no_grad():
        model.head.bias[0] = 10.0 * (1 - 1e-9)
    assert not extract(model).card.certified


def test_names_of_classes_can_be_given() -> None:
    model = compile_machine(tomita(1))
    assert extract(model, classes=("no", "yes")).machine.classes == ("no", "yes")
    with pytest.raises(ArgumentError, match="3 names"):
        extract(model, classes=("a", "b", "c"))


def test_labels_name_the_centroids_that_were_merged() -> None:
    found = extract(compile_machine(tomita(5)))
    together = sorted(int(part) for label in found.machine.labels for part in label.split("+"))
    assert together == sorted(found.used[0])


@pytest.mark.parametrize("cell", ["lstm", "peephole"])
def test_a_cell_with_memory_is_refused_and_counting_is_offered_by_name(cell: str) -> None:
    with pytest.raises(NotMemorylessError, match=r"memory c .* count\(model, words\)"):
        extract(ClassifierConfig(cell=cell, centroids=(4,)).build(tokens=2, classes=2))


def test_a_model_without_centroids_or_with_some_layers_plain_is_refused() -> None:
    with pytest.raises(NotMemorylessError, match=r"no layer has centroids.*learn_by_lstar"):
        extract(ClassifierConfig().build(tokens=2, classes=2))
    with pytest.raises(NotMemorylessError, match=r"layer 1 .* has no centroids"):
        extract(ClassifierConfig(layers=2, centroids=(3, 0)).build(tokens=2, classes=2))


def test_features_other_models_and_foreign_transforms_are_refused() -> None:
    with pytest.raises(ArgumentError, match="finite alphabet"):
        extract(ClassifierConfig(centroids=(3,), readout="h").build(features=2, classes=2))
    model = network(0)
    model.layer._transforms = (*model.layer.transforms, Zoneout(0.5))
    with pytest.raises(NotMemorylessError, match="Zoneout"):
        extract(model)


@pytest.mark.usefixtures("as_users_have_it")
def test_what_is_no_classifier_is_refused() -> None:
    with pytest.raises(DtypeError, match="Linear"):
        extract(torch.nn.Linear(2, 2))  # type: ignore[arg-type]


def test_weights_that_are_not_finite_are_refused() -> None:
    model = network(0)
    with torch.no_grad():
        model.layer.get_parameter("weight_hh_l0")[0, 0] = torch.nan
    with pytest.raises(NonFiniteError, match="not finite"):
        extract(model)


def test_a_stack_with_too_many_tuples_is_refused() -> None:
    with pytest.raises(ArgumentError, match="more than 1 reachable"):
        extract(network(0, layers=2, cell="rnn"), max_states=1)


@given(seed=SEEDS)
def test_every_layer_of_a_stack_may_have_its_own_number_of_centroids(seed: int) -> None:
    found = extract(network(seed, layers=2, centroids=(5, 3), cell="rnn"))
    assert found.network.sizes == (5, 3)
    assert found.states.max(axis=0).tolist() <= [4, 2]
    words = list(all_words("01", 6))
    if not found.ambiguous:
        model = network(seed, layers=2, centroids=(5, 3), cell="rnn").with_transition("argmax")
        assert np.array_equal(model.classify(words), found.machine.classify(words))


def test_extraction_leaves_the_model_as_it_was() -> None:
    model = network(2).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found = extract(model)
    assert model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    found.network.layers[0].centroids.zero_()
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_the_parts_of_an_extraction_cannot_be_changed() -> None:
    found: Extraction = extract(network(2))
    with pytest.raises(ValueError, match="read-only"):
        found.margins[0, 0] = 0.0
    with pytest.raises(AttributeError):
        found.machine = tomita(1)  # type: ignore[misc]


@given(seed=SEEDS)
def test_any_machine_comes_back_from_its_network(seed: int) -> None:
    machine = random_machine(seed, classes=3)
    found = extract(compile_machine(machine), classes=machine.classes).machine
    assert witness(found, machine) is None
    assert equivalent(found, machine)
