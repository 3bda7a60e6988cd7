"""Known answers for automata read from networks (Wang & Niepert 2019, "State-Regularized RNNs", Theorems 3.1, 3.2)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from networks import network, random_machine, tomita
from statewise.automata import (
    MooreMachine,
    ProbabilisticMachine,
    all_words,
    compile_machine,
    count,
    equivalent,
    extract,
    random_words,
    witness,
)
from statewise.models import ClassifierConfig, SequenceClassifier

DOUBLE = torch.float64


class TestOneCentroid:
    """K5: with k = 1 every state is that centroid, and every word has the same class."""

    def test_every_state_is_the_centroid(self) -> None:
        model = network(0, centroids=(1,))
        trace = model.states(torch.tensor([[0, 1, 1, 0]]))
        centroid = model.layer.get_parameter("centroids_l0")
        assert trace.probabilities[0] is not None
        assert bool((trace.probabilities[0] == 1).all())
        torch.testing.assert_close(trace.states[0], centroid.expand(1, 5, -1))

    @pytest.mark.parametrize("cell", ["gru", "rnn", "mgu", "rac"])
    def test_the_machine_has_one_state_and_the_network_one_answer(self, cell: str) -> None:
        model = network(1, centroids=(1,), cell=cell, classes=3)
        assert len(extract(model).machine) == 1
        assert len({*model.classify(list(all_words("01", 6))).tolist()}) == 1


class TestCompiledMachines:
    """K14: a machine becomes a GRU with k = d = n |Σ| + 1, and comes back from it."""

    @pytest.mark.parametrize(("number", "size"), [(1, 5), (2, 7), (3, 11), (4, 9), (5, 9), (6, 7), (7, 11)])
    @pytest.mark.parametrize("readout", ["u_end", "h"])
    def test_tomita_machines_come_back(self, number: int, size: int, readout: str) -> None:
        machine = tomita(number)
        model = compile_machine(machine, readout=readout)
        assert model.config.hidden == model.config.centroids[0] == size
        assert extract(model).machine == machine.minimise()

    def test_two_hundred_random_machines_come_back(self) -> None:
        found = [equivalent(extract(compile_machine(m)).machine, m) for m in map(random_machine, range(200))]
        assert sum(found) == 200

    @pytest.mark.parametrize("number", range(1, 8))
    def test_the_mixture_at_temperature_1_makes_no_error_and_is_nearly_one_hot(self, number: int) -> None:
        machine = tomita(number)
        model = compile_machine(machine, dtype=DOUBLE)
        words = list(all_words("01", 8))
        assert np.array_equal(model.classify(words), machine.classify(words))
        tokens = torch.tensor(list(itertools.product((0, 1), repeat=8)))
        probabilities = model.states(tokens).probabilities[0]
        assert probabilities is not None
        assert float(probabilities.amax(2).min()) >= 0.99999996

    def test_machines_of_several_classes_come_back(self) -> None:
        for seed in range(20):
            machine = random_machine(seed, classes=4)
            assert witness(extract(compile_machine(machine), classes=machine.classes).machine, machine) is None


def second_order(machine: MooreMachine, *, temperature: float) -> SequenceClassifier:
    """K15: S = I and ``u = T_a h``, by a circuit whose input opens the rows of one symbol's transition matrix.

    The state is repeated for each symbol, so that ``(W x) * (U h)`` keeps one copy of ``T_a h`` alone.
    """
    states, symbols = machine.transitions.shape
    width = states * symbols
    config = ClassifierConfig(
        cell="rac", hidden=width, embedding=symbols + 2, centroids=(width,), temperature=temperature, readout="h"
    )
    model = config.build(tokens=symbols, classes=2, symbols=machine.alphabet).to(DOUBLE)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        assert model.embedding is not None
        model.embedding.weight.copy_(torch.eye(symbols + 2, dtype=DOUBLE))
        opens, moves = model.layer.get_parameter("weight_ih_l0"), model.layer.get_parameter("weight_hh_l0")
        # The unit (a, q) stands for being in q after the symbol a.
        for a in range(symbols):
            opens[a * states : (a + 1) * states, a] = 1
            for b, q in itertools.product(range(symbols), range(states)):
                moves[a * states + machine.transitions[q, a], b * states + q] = 1
        opens[machine.start, model.start_id] = 1
        model.layer.get_parameter("centroids_l0").copy_(torch.eye(width, dtype=DOUBLE))
        for unit in range(width):
            model.head.weight[int(machine.outputs[unit % states]), unit] = 1
    return model


class TestSecondOrder:
    """K15: with S = I and a linear cell the certainty of a step is e^(1/τ) / (e^(1/τ) + k - 1)."""

    @pytest.mark.parametrize(("temperature", "certainty"), [(1.0, 0.404610), (0.1, 0.999818)])
    def test_the_certainty_at_five_centroids(self, temperature: float, certainty: float) -> None:
        machine = MooreMachine(
            alphabet=("a",), transitions=np.array([[1], [2], [3], [4], [0]]), outputs=np.array([1, 0, 0, 0, 0])
        )
        model = second_order(machine, temperature=temperature)
        laws = extract(model).probabilities
        assert laws.max(axis=2) == pytest.approx(certainty, abs=1e-6)
        assert certainty == pytest.approx(math.exp(1 / temperature) / (math.exp(1 / temperature) + 4), abs=1e-6)

    @pytest.mark.parametrize("number", range(1, 8))
    def test_tomita_machines_come_back_from_it(self, number: int) -> None:
        machine = tomita(number)
        model = second_order(machine, temperature=0.01)
        assert equivalent(extract(model).machine, machine)
        words = list(all_words("01", 8))
        assert np.array_equal(model.classify(words), machine.classify(words))


class TestInvariance:
    """K16: the machine does not depend on the temperature, the order of centroids, or unreachable ones."""

    @pytest.mark.parametrize("seed", range(6))
    def test_of_the_temperature(self, seed: int) -> None:
        model = network(seed, cell="rnn")
        tables = [extract(model.with_transition("mixture", temperature=tau)).table for tau in (0.01, 1.0, 100.0)]
        assert tables[0] == tables[1] == tables[2]

    @pytest.mark.parametrize("seed", range(6))
    def test_of_a_permutation_of_the_centroids(self, seed: int) -> None:
        model = network(seed, cell="rnn")
        before = extract(model)
        order = torch.randperm(8, generator=torch.Generator().manual_seed(seed))
        with torch.no_grad():
            centroids = model.layer.get_parameter("centroids_l0")
            centroids.copy_(centroids[order].clone())
        after = extract(model)
        assert after.machine == before.machine
        assert after.table.canonical() == before.table.canonical()
        assert {int(order[state]) for state in after.used[0]} == {*before.used[0]}

    def test_of_a_second_copy_of_an_unreachable_centroid(self) -> None:
        tested = 0
        for seed in range(10):
            model = network(seed, cell="rnn")
            before = extract(model)
            if not before.unused[0] or len(before.used[0]) < 2:
                continue
            tested += 1
            larger = network(seed, cell="rnn", centroids=(9,))
            weights = model.state_dict()
            rows = weights["layer.centroids_l0"]
            weights["layer.centroids_l0"] = torch.cat([rows, rows[before.unused[0][0]][None]])
            larger.load_state_dict(weights)
            assert extract(larger).machine == before.machine
        assert tested >= 3


class TestRandomWeights:
    """K17: the machine agrees with the network at argmax on all words up to length 8."""

    @pytest.mark.parametrize("layers", [1, 2])
    @pytest.mark.parametrize("cell", ["gru", "rnn"])
    def test_no_mismatch(self, layers: int, cell: str) -> None:
        words = list(all_words("01", 8))
        reached = []
        for seed in range(8):
            model = network(seed, layers=layers, cell=cell, centroids=(7,))
            found = extract(model)
            hard = model.with_transition("argmax").classify(words)
            assert np.array_equal(hard, found.machine.classify(words))
            reached.append(len(found.reachable))
        assert sum(size >= 3 for size in reached) >= 4  # else the test would be empty


class TestProbabilisticAutomaton:
    """K18, Theorem 3.1: sampled states have the law p_0 P_{w_1} ... P_{w_T}; the mixture's alpha has not."""

    def test_the_matrix_case(self) -> None:
        laws = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.5, 0.5]]])
        machine = ProbabilisticMachine(
            alphabet=("0", "1"), start=np.array([1.0, 0.0]), laws=laws, outputs=np.array([0, 1])
        )
        assert machine.law("011") == pytest.approx([0.431, 0.569], abs=1e-12)

    def test_sampling_networks_follow_the_law_within_four_standard_errors_and_the_mixture_does_not(self) -> None:
        runs, tokens = 20_000, [0, 1, 1, 0]
        model = network(4, scale=4.0, centroids=(4,), hidden=6, cell="rnn")
        law = ProbabilisticMachine.of(extract(model)).law("0110")
        assert law.max() < 0.95  # else there is nothing to tell apart
        batch = torch.tensor([tokens]).expand(runs, -1)
        drawn = model.with_transition("sample").states(batch, generator=torch.Generator().manual_seed(0))
        centroids = model.layer.get_parameter("centroids_l0")
        chosen = torch.cdist(drawn.states[0][:, -1], centroids).argmin(1)
        shares = np.bincount(chosen.numpy(), minlength=4) / runs
        error = np.sqrt(law * (1 - law) / runs)
        assert (np.abs(shares - law) <= 4 * error).all()
        mixture = model.states(torch.tensor([tokens])).probabilities[0]
        assert mixture is not None
        assert (np.abs(mixture[0, -1].numpy() - law) > 4 * error).any()


class TestCounting:
    """Algorithm 1: on a compiled machine counting finds what exact extraction finds; on too few words it says so."""

    @pytest.mark.parametrize("number", range(1, 8))
    @pytest.mark.parametrize("run", ["soft", "hard"])
    def test_tomita_machines_by_counting(self, number: int, run: str) -> None:
        machine = tomita(number)
        words = random_words("01", 200, max_length=15, seed=0)
        found = count(compile_machine(machine), words, run=run)
        assert (found.ambiguity, found.unseen, found.approximate) == (0.0, 0, False)
        assert equivalent(found.machine, machine)
