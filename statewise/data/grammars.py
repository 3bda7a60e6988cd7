"""Tomita's seven regular languages over 0 and 1, each twice: as its least automaton and as a rule in Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np

from statewise.automata import MooreMachine
from statewise.data.examples import Sequences
from statewise.data.generate import sample_words
from statewise.data.languages import Language
from statewise.errors import ArgumentError

#: The lengths that Wang & Niepert (2019) trained and chose on. Their Table 10 prints 0 to 13, but the sizes of their
#: Table 9 come out with 0 to 12 only.
TRAIN_LENGTHS = (*range(13), 16, 19, 22)
VALID_LENGTHS = tuple(range(1, 29, 3))

#: For each language the rows of the transition table, on 0 and on 1, and the accepting states.
_TABLES: Mapping[str, tuple[list[list[int]], set[int]]] = {
    "1": ([[1, 0], [1, 1]], {0}),
    "2": ([[1, 2], [1, 1], [0, 1]], {0}),
    "3": ([[0, 1], [2, 0], [3, 4], [2, 3], [4, 4]], {0, 1, 3}),
    "3B": ([[0, 1], [2, 0], [3, 4], [2, 1], [4, 4]], {0, 1, 3}),
    "4": ([[1, 0], [2, 0], [3, 0], [3, 3]], {0, 1, 2}),
    "5": ([[1, 2], [0, 3], [3, 0], [2, 1]], {0}),
    "6": ([[1, 2], [2, 0], [0, 1]], {0}),
    "7": ([[0, 1], [2, 1], [2, 3], [4, 3], [4, 4]], {0, 1, 2, 3}),
}


def tomita(number: int, *, reading: str = "A") -> Language:
    """One of Tomita's languages (1982); the empty word belongs to all.

    1: no 0. 2: ``(10)*``. 3: no odd run of 0s anywhere after an odd run of 1s. 4: no ``000``. 5: an even number of 0s
    and an even number of 1s. 6: the number of 0s minus that of 1s is a multiple of 3. 7: ``0*1*0*1*``.

    Args:
        number: from 1 to 7.
        reading: of the third only: ``"A"`` as above, which is the one that the published sizes of sets go with; ``"B"``
            forbids an odd run of 0s only directly after an odd run of 1s.

    >>> [len(tomita(number).minimal) for number in range(1, 8)]
    [2, 3, 5, 4, 4, 3, 5]
    >>> tomita(3).contains("100110"), tomita(3, reading="B").contains("100110")
    (False, True)
    """
    if number not in range(1, 8):
        raise ArgumentError(where="tomita.number", got=number, wanted="one of 1 to 7")
    if reading not in ("A", "B") or (reading == "B" and number != 3):
        raise ArgumentError(where="tomita.reading", got=reading, wanted="'A'; 'B' of the third language only")
    key = f"{number}{'B' if reading == 'B' else ''}"
    table, accepting = _TABLES[key]
    outputs = np.array([state in accepting for state in range(len(table))], dtype=np.int64)
    least = MooreMachine(alphabet=("0", "1"), transitions=np.array(table), outputs=outputs)
    return Language(name=f"tomita {key}", alphabet=("0", "1"), minimal=least, rule=_RULES[key])


def tomita_sets(number: int, seed: int) -> tuple[Sequences, Sequences]:
    """The words that Wang & Niepert (2019, Tables 9 and 10) trained and chose on, drawn anew by the same rules.

    Args:
        number: from 1 to 7.
        seed: what the draw depends on.

    >>> [(len(part), int(part.counts[1])) for part in tomita_sets(5, seed=0)]
    [(1651, 771), (1298, 608)]
    """
    language = tomita(number)
    train, valid = np.random.SeedSequence(seed).generate_state(2).tolist()
    return sample_words(language, lengths=TRAIN_LENGTHS, seed=train), sample_words(
        language, lengths=VALID_LENGTHS, seed=valid
    )


def _third(word: str) -> bool:
    runs = re.findall("0+|1+", word)
    odd = [index for index, run in enumerate(runs) if run[0] == "1" and len(run) % 2]
    return not any(len(run) % 2 for run in runs[min(odd, default=len(runs)) :] if run[0] == "0")


def _third_directly(word: str) -> bool:
    return not any(len(ones) % 2 and len(zeros) % 2 for ones, zeros in re.findall("(1+)(0+)", word))


_RULES: Mapping[str, Callable[[str], bool]] = {
    "1": lambda word: "0" not in word,
    "2": lambda word: word == "10" * (len(word) // 2),
    "3": _third,
    "3B": _third_directly,
    "4": lambda word: "000" not in word,
    "5": lambda word: word.count("0") % 2 == 0 and word.count("1") % 2 == 0,
    "6": lambda word: (word.count("0") - word.count("1")) % 3 == 0,
    "7": lambda word: word.count("10") <= 1,
}
