"""The automaton certificate: its formula, its table of Tomita's grammars, what it speaks of, and that it holds."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from networks import network, tomita
from statewise.automata import MooreMachine, all_words, compile_machine, extract, from_regex, random_words
from statewise.bounds.automaton import (
    AutomatonCertificate,
    bound_automaton,
    certify_automaton,
    certify_extraction,
    disagreement,
)
from statewise.bounds.kl import kl_inverse
from statewise.bounds.machine_count import machine_nats
from statewise.data import Sequences
from statewise.data import tomita as language
from statewise.errors import ArgumentError, DtypeError, LengthError, NonFiniteError, NotMemorylessError
from statewise.models import ClassifierConfig
from statewise.train import Hardening, learn_automaton

#: Wang & Niepert 2019, Table 9: how many words the networks of the seven grammars were trained on.
PAPER = {1: 265, 2: 257, 3: 2141, 4: 2571, 5: 1651, 6: 2523, 7: 1561}
#: The bound with no error on so many words, and delta = 0.05.
BOUNDS = {1: 0.03215, 2: 0.04909, 3: 0.01015, 4: 0.00672, 5: 0.01044, 6: 0.00511, 7: 0.01390}


@pytest.mark.parametrize("number", PAPER)
def test_the_true_machines_of_tomita_are_certified_at_the_papers_sample_sizes(number: int) -> None:
    truth = language(number).minimal
    assert truth is not None
    found = bound_automaton(truth, sequences=PAPER[number])
    assert found.value == pytest.approx(BOUNDS[number], abs=5e-6)
    assert not found.vacuous
    assert 0 <= found.sequences_for(0.5) < PAPER[number] / 7


def test_the_bound_is_the_inverse_of_the_nats_a_sequence() -> None:
    machine = tomita(7)
    found = bound_automaton(machine, sequences=1000, errors=30, delta=0.01)
    nats = math.log(160675 * 2**5) + math.log(5 * 6) + math.log(100)
    assert found.nats == pytest.approx(nats, rel=1e-12)
    assert found.value == pytest.approx(kl_inverse(0.03, nats / 1000), rel=1e-12)
    assert found.nats == machine_nats(machine) - math.log(0.01)
    assert (found.states, found.symbols, found.classes, found.rate) == (5, 2, 2, 0.03)


@pytest.mark.parametrize("errors", [0, 40])
def test_so_many_sequences_reach_a_target_and_one_less_does_not(errors: int) -> None:
    found = bound_automaton(tomita(4), sequences=1000, errors=errors)
    needed = found.sequences_for(0.1)
    assert kl_inverse(found.rate, found.nats / needed) <= 0.1 < kl_inverse(found.rate, found.nats / (needed - 1))


def test_errors_are_counted_on_the_words_by_the_number_of_their_class() -> None:
    machine = MooreMachine(
        alphabet=("a",), transitions=np.array([[1], [2], [0]]), outputs=np.arange(3), classes=("x", "y", "z")
    )
    found = certify_automaton(machine, ["", "a", "aa", "aaa"], [0, 1, 1, 2])
    assert (found.errors, found.sequences, found.states, found.classes) == (2, 4, 3, 3)
    assert found.vacuous


def test_states_that_are_not_needed_do_not_count() -> None:
    twice = MooreMachine(
        alphabet=("0", "1"),
        transitions=np.array([[1, 0], [1, 1], [0, 2], [3, 1]]),
        outputs=np.array([1, 0, 1, 0]),
        start=2,
    )
    least = twice.minimise()
    assert len(least) < len(twice)
    assert bound_automaton(twice, sequences=100) == bound_automaton(least, sequences=100)


class TestCoverage:
    """The machine of at most two states that errs least on a sample; the law and its labels are known exactly."""

    words = tuple(all_words("01", 5))
    law = np.array([1 / (6 * 2 ** len(word)) for word in words])
    truth = from_regex("(0*10?)*", "01").classify(words)

    def machines(self) -> list[MooreMachine]:
        tables = (
            (n, table, outputs)
            for n in (1, 2)
            for table in itertools.product(range(n), repeat=2 * n)
            for outputs in itertools.product(range(2), repeat=n)
        )
        return sorted(
            {
                MooreMachine(
                    alphabet=("0", "1"), transitions=np.array(table).reshape(n, 2), outputs=np.array(outputs)
                ).minimise()
                for n, table, outputs in tables
            },
            key=lambda machine: (len(machine), machine.transitions.tolist(), machine.outputs.tolist()),
        )

    def repeat(
        self, *, noise: float, sample: int, delta: float, times: int = 200
    ) -> list[tuple[float, AutomatonCertificate]]:
        """The true error and the certificate of the machine that was chosen, as often as asked."""
        machines = self.machines()
        answers = np.stack([machine.classify(self.words) for machine in machines])
        true = noise + (1 - 2 * noise) * (answers != self.truth) @ self.law
        draw, found = np.random.default_rng(0), []
        for _ in range(times):
            at = draw.choice(len(self.words), sample, p=self.law)
            labels = self.truth[at] ^ (draw.random(sample) < noise)
            errors = (answers[:, at] != labels).sum(1)
            best = int(errors.argmin())
            certificate = bound_automaton(machines[best], sequences=sample, errors=int(errors[best]), delta=delta)
            found.append((float(true[best]), certificate))
        return found

    def test_there_are_two_constant_machines_and_twenty_four_of_two_states(self) -> None:
        assert [len(machine) for machine in self.machines()] == [1] * 2 + [2] * 24

    @pytest.mark.parametrize("delta", [0.05, 0.5])
    @pytest.mark.parametrize(("noise", "sample"), [(0.0, 10), (0.2, 10), (0.2, 100), (0.4, 30), (0.5, 30), (0.5, 300)])
    def test_the_true_error_is_above_the_bound_no_more_often_than_allowed(
        self, noise: float, sample: int, delta: float
    ) -> None:
        found = self.repeat(noise=noise, sample=sample, delta=delta)
        assert np.mean([true > certificate.value for true, certificate in found]) <= delta

    @pytest.mark.parametrize("delta", [0.05, 0.5])
    def test_without_the_nats_of_the_machine_it_would_be_more_often(self, delta: float) -> None:
        found = self.repeat(noise=0.5, sample=30, delta=delta)
        bare = [kl_inverse(each.rate, -math.log(delta) / each.sequences) for _, each in found]
        assert np.mean([true > bound for (true, _), bound in zip(found, bare, strict=True)]) > 1.5 * delta

    def test_random_labels_are_not_certified_below_the_true_error(self) -> None:
        """At delta = 0.05 one sample in twenty might be; at 0.001 none in two hundred should, and none is."""
        for true, certificate in self.repeat(noise=0.5, sample=300, delta=0.001):
            assert true == pytest.approx(0.5)
            assert certificate.value >= 0.5
            assert certificate.vacuous


@pytest.mark.parametrize("number", [6])
def test_a_learnt_network_is_certified_and_its_true_error_is_below(number: int) -> None:
    """Trained on independent words, as many as in the paper; the true error is counted over all words up to 22."""
    truth = language(number).minimal
    assert truth is not None
    words = random_words("01", PAPER[number], max_length=22, seed=number)
    labels = truth.classify(words)
    learnt = learn_automaton(Sequences.from_words(words, labels, symbols="01"), hardening=Hardening(restarts=5))
    found = certify_extraction(learnt.extraction, words, labels)
    assert found.errors == 0
    assert found.value == pytest.approx(BOUNDS[number], abs=5e-6)
    assert disagreement(learnt.machine, truth, lengths=range(23)) <= found.value


@pytest.mark.slow
def test_a_network_that_learnt_from_few_words_is_wrong_and_its_certificate_allows_for_it() -> None:
    truth = tomita(3)
    words = random_words("01", 40, max_length=8, seed=0)
    labels = truth.classify(words)
    learnt = learn_automaton(Sequences.from_words(words, labels, symbols="01"), hardening=Hardening(restarts=5))
    found = certify_extraction(learnt.extraction, words, labels)
    assert 0 < disagreement(learnt.machine, truth, lengths=range(9)) <= found.value < 1


def test_the_true_error_counts_the_words_on_which_two_machines_differ() -> None:
    one, other = tomita(3), tomita(7)
    shares = []
    for length in (0, 3, 7):
        words = list(all_words("01", length, min_length=length))
        shares.append(np.mean(one.classify(words) != other.classify(words)))
    assert disagreement(one, other, lengths=(0, 3, 7)) == pytest.approx(np.mean(shares))
    renamed = replace(other, classes=("accept", "reject"), outputs=1 - other.outputs)
    assert disagreement(one, renamed, lengths=(0, 3, 7)) == disagreement(one, other, lengths=(0, 3, 7))
    with pytest.raises(LengthError, match="disagreement"):
        disagreement(one, other, lengths=())


class TestOfWhat:
    """Which form of a network a certificate speaks of."""

    words = tuple(random_words("01", 300, max_length=12, seed=0))
    labels = tomita(4).classify(words)

    def test_a_soft_network_that_provably_follows_its_machine(self) -> None:
        model = compile_machine(tomita(4))
        found = certify_extraction(model, self.words, self.labels)
        assert found.predictor == "the network as it is"
        assert not found.remark
        assert all(each.holds for each in found.assumptions)
        assert "At every temperature up to 1" in found.assumptions[-1].check
        same = certify_automaton(tomita(4), self.words, self.labels)
        assert (found.value, found.nats) == (same.value, same.nats)
        assert certify_extraction(extract(model), self.words, self.labels) == found

    def test_at_a_high_temperature_only_at_argmax(self) -> None:
        found = certify_extraction(compile_machine(tomita(4), temperature=20.0), self.words, self.labels)
        assert found.predictor == "the network at argmax"
        assert "No proof at temperature 20" in found.remark
        assert found.remark in str(found)

    def test_a_network_that_moves_by_argmax_needs_no_proof(self) -> None:
        model = compile_machine(tomita(4), temperature=20.0).with_transition("argmax")
        found = certify_extraction(model, self.words, self.labels)
        assert found.predictor == "the network as it is (it moves by argmax)"
        assert not found.remark

    def test_a_network_that_draws_its_states_is_no_machine(self) -> None:
        model = compile_machine(tomita(4)).with_transition("sample")
        found = certify_extraction(model, self.words, self.labels)
        assert found.predictor == "the network at argmax"
        assert "draws its states" in found.remark

    def test_of_several_layers_there_is_no_proof_but_at_argmax(self) -> None:
        found = certify_extraction(network(0, cell="rnn", layers=2), self.words, self.labels)
        assert found.predictor == "the network at argmax"
        assert "2 layers" in found.remark

    def test_steps_that_rounding_could_overturn_leave_the_machine_alone(self) -> None:
        model = compile_machine(tomita(4))
        with torch.no_grad():
            model.layer.get_parameter("centroids_l0")[1] = model.layer.get_parameter("centroids_l0")[0]
        found = certify_extraction(model, self.words, self.labels)
        assert found.predictor == "the machine that was read off the network"
        assert "Rounding could overturn" in found.remark

    def test_without_a_start_token_there_is_no_empty_word(self) -> None:
        model = network(1, cell="rnn", start_token=False)
        with pytest.raises(LengthError, match="an empty word"):
            certify_extraction(model, ["1", ""], [0, 1])
        assert certify_extraction(model, ["1", "0"], [0, 1]).sequences == 2

    def test_a_network_with_memory_or_without_finite_weights_is_refused(self) -> None:
        lstm = ClassifierConfig(cell="lstm", hidden=4).build(tokens=2, classes=2, symbols="01")
        with pytest.raises(NotMemorylessError):
            certify_extraction(lstm, self.words, self.labels)
        broken = compile_machine(tomita(4))
        with torch.no_grad():
            broken.head.weight[0, 0] = torch.nan
        with pytest.raises(NonFiniteError):
            certify_extraction(broken, self.words, self.labels)


def test_the_sentence_quotes_no_less_than_what_was_proved() -> None:
    found = bound_automaton(tomita(1), sequences=12_345, delta=0.001)
    assert found.sentence == (
        "With probability 0.999, the machine errs on at most 0.11% of sequences: a machine of 2 states over 2 symbols "
        "takes 5.7 nats to say, and 0 of 12,345 independent sequences were wrong."
    )
    assert found.value < 0.0011
    assert "Nothing is proved of the machine" in bound_automaton(tomita(1), sequences=5).sentence


def test_the_certificate_is_plain_data() -> None:
    found = bound_automaton(tomita(1), sequences=100, errors=3)
    told = json.loads(json.dumps(found.to_dict()))
    assert told["value"] == found.value
    assert told["description"]["code"] == "any table"
    assert told["description"]["states"] == told["states"] == 2
    assert told["vacuous"] is False
    assert "independent draws" in str(found)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"sequences": 0}, "got 0 sequences"),
        ({"sequences": 10, "errors": 11}, "from 0 to 10"),
        ({"sequences": 10, "errors": -1}, "from 0 to 10"),
        ({"sequences": 10, "delta": 0.0}, "between 0 and 1"),
        ({"sequences": 10, "delta": 1.0}, "between 0 and 1"),
        ({"sequences": 10, "delta": math.nan}, "between 0 and 1"),
    ],
)
def test_impossible_samples_are_refused(settings: dict[str, float], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        bound_automaton(tomita(1), **settings)  # type: ignore[arg-type]


def test_words_and_labels_are_checked() -> None:
    machine = tomita(1)
    with pytest.raises(LengthError, match="0 words and 0 labels"):
        certify_automaton(machine, [], [])
    with pytest.raises(LengthError, match="1 words and 2 labels"):
        certify_automaton(machine, ["1"], [0, 1])
    with pytest.raises(ArgumentError, match="numbers from 0 to 1"):
        certify_automaton(machine, ["1"], [2])
    with pytest.raises(DtypeError, match="whole numbers"):
        certify_automaton(machine, ["1"], np.array([0.5]))
    with pytest.raises(ArgumentError, match="one of the alphabet"):
        certify_automaton(machine, ["2"], [0])
    with pytest.raises(ArgumentError, match="above the share of errors"):
        bound_automaton(machine, sequences=10, errors=2).sequences_for(0.2)


def test_one_sequence_is_a_sample_that_proves_nothing() -> None:
    found = certify_automaton(tomita(1), ["1"], [1])
    assert 0.5 < found.value < 1
    assert found.vacuous
