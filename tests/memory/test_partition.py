"""Ranks between any two sets of steps: against tables that are written down, and below what is proved."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
import torch

from statewise.errors import ArgumentError
from statewise.memory.circuit import Circuit, drawn_circuit
from statewise.memory.drawn import drawn_weights
from statewise.memory.elimination import rank
from statewise.memory.field import Field, Integers
from statewise.memory.generic import generic_rank
from statewise.memory.grid import grid_matrix
from statewise.memory.partition import partition_bound, partition_of, partition_table
from statewise.memory.separation import network_rank
from statewise.memory.spectrum import separation_spectrum

INTEGERS = Circuit(
    inputs=([[1, 2], [3, -1]], [[1, -1], [2, 1]]), recurrent=([[1, 1], [0, 1]], [[1, 0], [1, 1]]), readout=[1, 2]
)


@pytest.mark.parametrize("rows", [(0, 2), (1,), (0, 1, 3), (1, 2)])
def test_entries_are_those_of_the_words_with_these_steps(rows: tuple[int, ...]) -> None:
    """Word by word: the entry at a word of the rows and one of the others is the score of both put together."""
    weights = INTEGERS.over(Integers())
    flat, table = grid_matrix(weights, steps=4, split=2).reshape(-1), partition_table(weights, steps=4, rows=rows)
    others = [step for step in range(4) if step not in rows]
    for place, word in enumerate(np.ndindex(2, 2, 2, 2)):
        row, column = (int("".join(str(word[step]) for step in side), 2) for side in (rows, others))
        assert table[row, column] == flat[place]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_every_partition_has_the_rank_of_its_table_and_no_more_than_is_proved(depth: int) -> None:
    """All 32 partitions of six steps; turned around they have the same rank."""
    weights = drawn_weights(Field(), inputs=2, width=2, depth=depth, seed=0)
    for size in range(1, 6):
        for rows in combinations(range(6), size):
            found = generic_rank(inputs=2, width=2, steps=6, depth=depth, split=rows)
            table = rank(partition_table(weights, steps=6, rows=rows), Field())
            others = tuple(step for step in range(6) if step not in rows)
            assert found.rank == table == generic_rank(inputs=2, width=2, steps=6, depth=depth, split=others).rank
            assert found.rank <= found.upper


def test_one_layer_meets_at_every_change_of_sides() -> None:
    """A tensor train with bonds of R: each place where one side ends and the other begins doubles the rank."""
    sides = ([0, 1, 2, 3], [2, 3, 4], [0, 1, 4, 5])
    ranks = [generic_rank(inputs=2, width=2, steps=8, depth=1, split=rows).rank for rows in sides]
    assert ranks == [2, 4, 8]
    assert [partition_bound(M=2, R=2, T=8, L=1, rows=tuple(rows)) for rows in sides[1:]] == [4, 8]


def test_the_first_steps_are_a_split() -> None:
    split, steps = generic_rank(inputs=3, width=2, steps=6, depth=2), [2, 0, 1]
    found = generic_rank(inputs=3, width=2, steps=6, depth=2, split=steps)
    assert (found.rank, found.split, found.upper, found.sentence) == (split.rank, 3, split.upper, split.sentence)


def test_floats_agree_where_they_can() -> None:
    circuit = drawn_circuit(inputs=2, width=3, depth=1)
    exact = network_rank(circuit, steps=6, split=[0, 2, 4])
    readout = torch.from_numpy(circuit.readout)
    floats = separation_spectrum(circuit.layer(), torch.eye(2).double(), 6, split=[0, 2, 4], readout=readout)
    assert exact.rank == floats.rank() == 8
    assert "steps 0, 2 and 4 against all others (counted from 0), over 6 steps: proved" in exact.sentence


def test_the_product_of_bonds_is_proved_of_random_weights() -> None:
    """Each cut of a partition costs at most the rank of its split, for this very circuit."""
    circuit = drawn_circuit(inputs=3, width=2, depth=2, seed=3)
    for rows in [(0, 3), (1, 2, 5), (2, 3), (0, 2, 4)]:
        inside = [step in rows for step in range(6)]
        edges = [step for step, (before, after) in enumerate(pairwise(inside), 1) if before != after]
        bonds = [network_rank(circuit, steps=6, split=edge).rank for edge in edges]
        assert network_rank(circuit, steps=6, split=rows).rank <= np.prod(bonds)


@pytest.mark.parametrize(("wrong", "told"), [([0, 0], "at most once"), ([6], "from 0 to 5"), ([-1], "whole number")])
def test_steps_that_are_not_there_are_refused(wrong: list[int], told: str) -> None:
    with pytest.raises(ArgumentError, match=told):
        partition_of(6, wrong, where="here")


def test_tables_that_are_too_large_and_samples_are_refused() -> None:
    with pytest.raises(ArgumentError, match="Take fewer steps"):
        generic_rank(inputs=2, width=2, steps=30, depth=2, split=[0, 2])
    with pytest.raises(ArgumentError, match="a Start and an End"):
        network_rank(INTEGERS, steps=4, split=[0, 2], samples=5)
