"""Networks with regularizers as automata and under certificates: read as they are in evaluation, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from networks import network
from statewise.automata import all_words, count, extract, random_words, verify
from statewise.bounds import certify
from statewise.bounds.reading import read_model
from statewise.data import Sequences
from statewise.errors import NotMemorylessError
from statewise.models import ClassifierConfig

#: What is off in evaluation, so that the machine is that of the weights alone.
SILENT: dict[str, dict[str, Any]] = {
    "weight drop": {"weight_drop": 0.5},
    "noise": {"state_noise": "gaussian", "gamma": 0.5},
    "noise fed back": {"cell": "rnn", "state_noise": "gaussian", "gamma": 0.5},
    "dropout": {"dropout": 0.3, "locked": True, "recurrent_dropout": 0.3},
    "together": {"weight_drop": 0.5, "state_noise": "gamma", "gamma": 0.5, "recurrent_dropout": 0.3},
}
WORDS = random_words("01", 300, max_length=10, seed=0)


def examples() -> Sequences:
    return Sequences.from_words(WORDS, [int("0" not in word) for word in WORDS])


@pytest.mark.parametrize("name", SILENT)
def test_the_machine_is_the_network_at_argmax_in_either_mode(name: str) -> None:
    model = network(1 if SILENT[name].get("cell") == "rnn" else 2, **SILENT[name])
    resting = extract(model).machine
    assert len(resting) > 1
    model.train()
    model(torch.tensor([[0, 1, 1]]))  # so that weights are dropped now
    assert extract(model).machine == resting
    words = [*all_words("01", 5), *random_words("01", 50, max_length=30, seed=1)]
    hard = model.eval().with_transition("argmax")
    assert np.array_equal(hard.classify(words), resting.classify(words))


def test_the_same_weights_without_them_make_the_same_machine() -> None:
    dropped, plain = network(2, weight_drop=0.5), network(2)
    raw = {
        name.replace("parametrizations.", "").removesuffix(".original"): each
        for name, each in dropped.state_dict().items()
    }
    plain.load_state_dict(raw)
    assert extract(dropped).machine == extract(plain).machine


class TestZoneout:
    def test_no_exact_machine_is_claimed_and_the_way_round_is_told(self) -> None:
        model = network(2, zoneout=0.2)
        with pytest.raises(NotMemorylessError, match="Zoneout") as refused:
            extract(model)
        assert "count(model, words)" in refused.value.remedy
        assert not model.memoryless
        assert "Zoneout" in model.why_not_memoryless

    def test_counting_gives_an_approximate_machine(self) -> None:
        model = network(2, zoneout=0.2)
        with pytest.warns(UserWarning, match="approximate"):
            found = count(model, WORDS)
        assert found.approximate

    def test_a_proof_is_not_claimed_either(self) -> None:
        plain = network(2)
        machine = extract(plain).machine
        found = verify(network(2, zoneout=0.2), machine)
        assert found.proof is None
        assert "Zoneout" in found.no_proof

    def test_a_certificate_says_what_does_not_apply(self) -> None:
        found = certify(network(2, zoneout=0.2), examples(), iid=True)
        assert "Zoneout" in found.inapplicable["automaton"]
        assert "act on the state in eval mode" in found.inapplicable["kl"]


def test_norms_are_those_of_the_whole_weights_where_some_are_dropped_in_training() -> None:
    model = ClassifierConfig(cell="rnn", hidden=5, readout="h", weight_drop=0.5).build(tokens=2, classes=2)
    model.train()(torch.tensor([[0, 1, 1]]))
    reading = read_model(model.eval())
    assert reading.matrices is not None
    raw = model.layer.get_parameter("parametrizations.weight_hh_l0.original").detach()
    np.testing.assert_array_equal(reading.matrices.layers[0][0].states["state"], raw.double().numpy())
