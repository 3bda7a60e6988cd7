"""What has a network learnt? Learn a rule from labelled words, read the machine off the weights, and prove it.

A door opens when its lever was pulled (``p``) exactly twice since the last reset (``r``); looking (``l``) does nothing.
State-regularized networks (Wang & Niepert 2019) learn that from words and nothing else. The machine that one of them
computes is printed, drawn, compared with the true one, and proven to be the network, for words of every length. Then a
question is asked that no test set answers: can the door ever be open right after a reset?

Run it with ``python examples/read_an_automaton.py``; it takes seconds on a CPU.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from statewise.automata import (
    MooreMachine,
    certified_temperature,
    extract,
    from_regex,
    is_empty,
    shortest_word,
    to_table,
    verify,
    witness,
)
from statewise.data import Language, Sequences, sample_words
from statewise.report import save_drawing
from statewise.train import LearntAutomaton, learn_automaton

ALPHABET = "lpr"


def is_open(word: str) -> bool:
    """The rule; the network never sees it, only words and their classes."""
    return word.rpartition("r")[2].count("p") == 2


def make_words() -> Sequences:
    """Words of up to six symbols, and some longer ones."""
    language = Language.predicate(is_open, ALPHABET, classes=("shut", "open"))
    return sample_words(language, lengths=[*range(7), 9, 12], seed=0)


def show(learnt: LearntAutomaton) -> None:
    """Print the machine and how far it may be trusted."""
    print(learnt.message)
    print()
    print(to_table(learnt.machine))
    print()
    print(learnt.extraction.card)
    print()


def prove(learnt: LearntAutomaton) -> None:
    """Lower the temperature to where the soft network provably is the machine, and print the proof."""
    temperature = certified_temperature(extract(learnt.model))
    if temperature > 0:
        learnt.model.retune(temperature=temperature)
    print(verify(learnt.model, learnt.machine, max_length=6, random_words=200))
    print()


def compare(machine: MooreMachine) -> None:
    """Is it the rule? Equivalence is decided, not sampled."""
    truth = from_regex("(.*r)?l*pl*pl*", ALPHABET)
    learnt = machine.accepting("open")
    difference = witness(learnt, truth)
    print("the learnt machine is the rule:", "yes" if difference is None else f"no, see {difference!r}")
    after_reset = learnt & from_regex(".*r", ALPHABET)
    print("open right after a reset:", "never" if is_empty(after_reset) else f"yes, {shortest_word(after_reset)!r}")
    print("the shortest way to open it:", repr(shortest_word(learnt)))


def draw(machine: MooreMachine) -> None:
    """Write a picture; here into a folder that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        path = save_drawing(machine, Path(folder) / "door.svg", title="the door")
        print(f"drawn: {path.name}, {path.stat().st_size:,} bytes")


def main() -> None:
    """Learn, show, prove, compare, draw."""
    torch.set_num_threads(1)  # for matrices this small more threads only wait for each other
    learnt = learn_automaton(make_words())
    show(learnt)
    prove(learnt)
    compare(learnt.machine)
    draw(learnt.machine)


if __name__ == "__main__":
    main()
