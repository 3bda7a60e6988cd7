"""How often a network and its machine give words the same class, softly and at argmax."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from statewise.automata.moore import MooreMachine, Word
from statewise.errors import LengthError
from statewise.models import SequenceClassifier

if TYPE_CHECKING:
    from statewise.automata.extract import Extraction


class UnfaithfulMachineWarning(UserWarning):
    """The machine does not describe the network as it is deployed: softly, it gives other classes than at argmax."""


@dataclass(frozen=True)
class Faithfulness:
    """Shares of words.

    Attributes:
        words: how many there were.
        soft: the share to which the network as it is gives the machine's class; None if it draws its states and was not
            asked itself.
        hard: the share to which the network at argmax gives the machine's class.
        soft_accuracy: the share to which the network as it is gives the label; None without labels.
        hard_accuracy: the share to which the network at argmax gives the label; None without labels.
    """

    words: int
    soft: float | None
    hard: float
    soft_accuracy: float | None = None
    hard_accuracy: float | None = None


def compare_with_words(
    model: SequenceClassifier, machine: MooreMachine, words: Sequence[Word], *, labels: Sequence[int] | None = None
) -> Faithfulness:
    """The agreement of a network and a machine on words; warns if softly it is worse than at argmax.

    Args:
        model: a classifier of tokens with centroids.
        machine: over its alphabet.
        words: at least one.
        labels: their true classes.
    """
    if len(words) == 0 or (labels is not None and len(labels) != len(words)):
        got = f"{len(words)} words" + ("" if labels is None else f" and {len(labels)} labels")
        raise LengthError(where="extract words", got=got, wanted="at least one word, and as many labels if any")
    expected = machine.classify(words)
    soft, hard = model.classify(words), model.with_transition("argmax").classify(words)
    agrees = share(soft, expected), share(hard, expected)
    found = Faithfulness(len(words), *agrees)
    if labels is not None:
        truth = np.asarray(labels)
        found = Faithfulness(len(words), *agrees, share(soft, truth), share(hard, truth))
    if agrees[0] < agrees[1]:
        moves = "draws its states" if model.config.transition == "sample" else "computes with mixtures of states"
        warnings.warn(
            f"the network as it is agrees with the machine on {agrees[0]:.2%} of the words, at argmax on "
            f"{agrees[1]:.2%}: it {moves}, which no finite machine describes. "
            "Train with transition='noisy', or deploy it at a lower temperature or at argmax.",
            UnfaithfulMachineWarning,
            stacklevel=3,
        )
    return found


def as_it_is(extraction: Extraction, certified: bool) -> bool:
    """Whether a network as it is, not only at argmax or as a mixture, provably equals the machine that was read off it.

    A certificate speaks of the mixture, and the table of the network at argmax; neither of one that draws its states,
    nor of steps that rounding could overturn.

    Args:
        extraction: of the network.
        certified: whether there is a certificate at its temperature.
    """
    if extraction.network.samples or extraction.ambiguous:
        return False
    return certified or extraction.network.hard


def share(found: np.ndarray, wanted: np.ndarray) -> float:
    """How much of two arrays is equal."""
    return float(np.mean(found == wanted))
