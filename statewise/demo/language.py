"""A language that one network learns exactly, and another by heart."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statewise.automata import Verification, certified_temperature, random_words, verify
from statewise.automata.symbols import Word
from statewise.bounds import Certificate, certify
from statewise.data import Language, Sequences, sample_words, tomita
from statewise.models import ClassifierConfig, SequenceClassifier
from statewise.train import (
    ClassifierSettings,
    Hardening,
    LearntAutomaton,
    learn_automaton,
    load_classifier,
    train_classifier,
)

EPOCHS = 150
LENGTHS = (8, 16, 32, 64, 128, 256)
SHORT = 8  # words to learn from are shorter
ASKED = 300  # words of each length
CERTIFIED = 2000  # independent words for the certificate
DESCRIBED = "words of 0 and 1 in which the number of 0s less the number of 1s is divisible by 3"

#: What a person would take: an LSTM of as many units, with nothing done to its state.
PLAIN = ClassifierConfig(cell="lstm", hidden=32, embedding=16, readout="h")


@dataclass(frozen=True, kw_only=True)
class Learnt:
    """Two networks that have learnt a language from the same words, and what can be said of each.

    Args:
        language: that they have learnt.
        words: how many words they have learnt it from.
        automaton: the state-regularized network and its machine.
        plain: the plain network.
        plain_right: its share of right answers on the words that it has learnt from.
        lengths: of new words.
        right: for each network, its share of right answers on new words of each length.
        verified: what was compared and proved of the state-regularized network.
        trust: what can be proved of its error, and of that of the plain one.
    """

    language: Language
    words: int
    automaton: LearntAutomaton
    plain: SequenceClassifier = field(repr=False)
    plain_right: float
    lengths: tuple[int, ...]
    right: dict[str, tuple[float, ...]]
    verified: Verification
    trust: tuple[Certificate, Certificate]


def learn(*, seed: int, epochs: int = EPOCHS, show: Callable[[str, int, int], None]) -> Learnt:
    """Train both networks, and ask what they have learnt.

    Args:
        seed: of words and weights.
        epochs: of the plain network.
        show: is told what is done, how far it is, and how far it goes.
    """
    language = tomita(6)
    words = sample_words(language, lengths=range(SHORT), seed=seed)
    show("state-regularized network", 0, 1)
    automaton = learn_automaton(words, hardening=Hardening(seed=seed))
    automaton.model.retune(temperature=certified_temperature(automaton.extraction))
    show("state-regularized network", 1, 1)
    plain, right = _plain(words, seed=seed, epochs=epochs, show=lambda epoch: show("plain LSTM", epoch, epochs))
    networks = {"state-regularized": automaton.model.eval(), "plain LSTM": plain}
    shares: dict[str, tuple[float, ...]] = dict.fromkeys(networks, ())
    for done, length in enumerate(LENGTHS, start=1):
        asked = random_words(words.symbols, ASKED, min_length=length, max_length=length, seed=seed)
        for name, network in networks.items():
            shares[name] += (_right(network, asked, language),)
        show("asking about long words", done, len(LENGTHS))
    show("proving", 0, 3)
    assert language.minimal is not None  # every language of Tomita is regular
    verified = verify(automaton.model, language.minimal)
    show("proving", 1, 3)
    draws = random_words(words.symbols, CERTIFIED, max_length=20, seed=seed + 1)
    data = Sequences.from_words(draws, [language.run(word) for word in draws])
    trust = []
    for done, network in enumerate(networks.values(), start=2):
        trust.append(certify(network, data, iid=True))
        show("proving", done, 3)
    return Learnt(
        language=language,
        words=len(words),
        automaton=automaton,
        plain=plain,
        plain_right=right,
        lengths=LENGTHS,
        right=shares,
        verified=verified,
        trust=(trust[0], trust[1]),
    )


def _plain(
    words: Sequences, *, seed: int, epochs: int, show: Callable[[int], None]
) -> tuple[SequenceClassifier, float]:
    """A plain network after some epochs, and its share of right answers on the words themselves."""

    def note(record: dict[str, Any]) -> None:
        show(int(record["epoch"]))

    settings = ClassifierSettings(epochs=epochs, lr=0.01, batch=32, seed=seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "plain"
        train_classifier(PLAIN, settings, words, words, {}, folder, on_epoch=note)
        model, _ = load_classifier(folder)
    right = float((model.classify([words.word(at) for at in range(len(words))]) == words.labels).mean())
    return model, right


def _right(model: SequenceClassifier, words: Sequence[Word], language: Language) -> float:
    return float((model.classify(words) == [language.run(word) for word in words]).mean())
