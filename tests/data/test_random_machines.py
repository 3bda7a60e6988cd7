"""Random minimal automata."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from contracts.languages import LanguageContract
from statewise.automata import MooreMachine
from statewise.data import Language, random_machine, random_machines
from statewise.errors import ArgumentError


class TestLanguage(LanguageContract):
    longest = 6
    machine = random_machine(6, 3, seed=2)

    def make(self) -> Language:
        return Language.machine(self.machine)

    def oracle(self, word: str) -> int:
        state = self.machine.start
        for letter in word:
            state = int(self.machine.transitions[state]["abc".index(letter)])
        return int(self.machine.outputs[state])


class TestMachines:
    @pytest.mark.parametrize("states", range(2, 9))
    @pytest.mark.parametrize("symbols", [1, 2, 3, 4])
    def test_it_has_exactly_so_many_states_all_of_them_needed(self, states: int, symbols: int) -> None:
        for seed in range(5):
            machine = random_machine(states, symbols, seed)
            assert machine.transitions.shape == (states, symbols)
            assert machine == machine.trim() == machine.canonical()
            assert len(machine.minimise()) == states
            assert set(machine.outputs.tolist()) == {0, 1}
            assert random_machine(states, symbols, seed) == machine

    def test_all_minimal_machines_of_two_states_come_equally_often(self) -> None:
        every = {
            MooreMachine(alphabet=("a", "b"), transitions=np.array(table).reshape(2, 2), outputs=np.array(outputs))
            for table in product((0, 1), repeat=4)
            for outputs in ((0, 1), (1, 0))
        }
        every = {machine for machine in every if len(machine.minimise()) == 2}
        found = Counter(random_machine(2, 2, seed) for seed in range(720))
        assert set(found) == every
        expected = 720 / len(every)
        assert sum((count - expected) ** 2 / expected for count in found.values()) < 60

    def test_more_classes_all_occur(self) -> None:
        assert set(random_machine(6, 2, 0, classes=("x", "y", "z")).outputs.tolist()) == {0, 1, 2}

    def test_several_states_of_one_class_are_refused_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(random_machines, "_MOST_TRIES", 0)
        with pytest.raises(ArgumentError, match=r"random_machine\.classes: got \('x',\), wanted two or more"):
            random_machine(3, 2, 0, classes=("x",))

    @pytest.mark.parametrize(("states", "symbols"), [(1, 2), (3, 0), (3, 27)])
    def test_a_demand_without_sense_is_refused(self, states: int, symbols: int) -> None:
        with pytest.raises(ArgumentError, match="random_machine"):
            random_machine(states, symbols, 0)

    def test_a_machine_too_large_to_be_found_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(random_machines, "_MOST_TRIES", 500)
        with pytest.raises(ArgumentError, match="fewer states"):
            random_machine(25, 1, 0)
