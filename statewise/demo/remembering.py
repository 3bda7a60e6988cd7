"""What the networks must remember of the first half of a word, measured."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.memory import SeparationSpectrum, advise, generic_rank, grid_tensor, matricize
from statewise.memory.advise import Advised
from statewise.memory.certificate import GenericRank
from statewise.memory.spectrum import table_spectrum
from statewise.models import SequenceClassifier

STEPS = 8  # of the words whose halves are set against each other
BUDGET, LENGTH, SYMBOLS = 4096, 20, 8  # of the question about an architecture


@dataclass(frozen=True, kw_only=True)
class Remembered:
    """How the two halves of a word interact in a network.

    Args:
        table: the probability of acceptance of every first half (a row) followed by every second half (a column).
        halves: the halves, in the order of rows and columns.
        spectrum: the singular values of the table.
    """

    table: Float[Tensor, "halves halves"]
    halves: tuple[str, ...]
    spectrum: SeparationSpectrum


def remembered(model: SequenceClassifier) -> Remembered:
    """Every first half of a word followed by every second half, as a network judges it.

    The separation rank of the table says how many different things of the first half matter in the second (Ziv 2019).

    Args:
        model: a classifier of words of two classes.
    """
    symbols = model.symbols or ()
    first = _halves(symbols)

    def accepts(x: Float[Tensor, "steps words symbols"]) -> Float[Tensor, " words"]:
        words = [[symbols[at] for at in word] for word in x.argmax(2).T.tolist()]
        return torch.from_numpy(model.probabilities(words)[:, 1])

    tensor = grid_tensor(accepts, torch.eye(len(symbols)).double(), STEPS)
    table = matricize(tensor, STEPS // 2)
    return Remembered(table=table, halves=first, spectrum=table_spectrum(table))


def architecture() -> tuple[GenericRank, Advised]:
    """What almost every network of a small shape can remember, exactly; and depths and widths within a budget."""
    rank = generic_rank(inputs=6, width=5, steps=4, depth=3)
    return rank, advise(budget=BUDGET, steps=LENGTH, inputs=SYMBOLS, classes=SYMBOLS)


def _halves(symbols: tuple[str, ...]) -> tuple[str, ...]:
    words = [""]
    for _ in range(STEPS // 2):
        words = [word + symbol for word in words for symbol in symbols]
    return tuple(words)
