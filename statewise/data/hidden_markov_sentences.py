"""Sentences with names of people, places and firms, drawn from a hidden Markov model, so that every example runs.

Many names may be of any type: it is told by the words around, as in ``Mr Jordan`` and ``in Jordan``. So a tagger must
read the context; and since the model is known, so is the best that any tagger can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from jaxtyping import Float64

from statewise.data.hidden_markov import BestTagging, best_states, state_posteriors
from statewise.data.tagged import TaggedSentences
from statewise.errors import ArgumentError, UnknownSymbolError

SCHEME = "iob2"

_TYPES = ("PER", "LOC", "ORG")
_PARTS = ("train", "valid", "test")
_PLAIN = (
    "the a of to and but on with after before while this that it he she they was were had has said saw met took made "
    "new old last first two three many prices rain talks market team game vote report week month year day . , May Will "
    "Mark Bill Rose March"
)
#: What announces a name of each type; now and then it stands elsewhere too.
_CUES = {
    "PER": "Mr Mrs Dr President minister captain coach singer",
    "LOC": "in near from at through towards across outside",
    "ORG": "for by bought sued joined owns firm shares",
}
#: The first words of names: of one type only, and of any.
_FIRST = {
    "PER": "Anna John Maria Peter Ingrid Omar Lucia Chen Tomas Aisha Karl Nadia Bill Mark Rose Will",
    "LOC": "Oslo Lima Quito Bergen Kyoto Porto Leeds Dakar Tunis Turin Malmo Perth Basel Ghent Split March",
    "ORG": "Nortel Reutex Alcom Benco Dynaco Fintra Gramex Hexal Intron Jaxon Kelmar Lumex Mediq Novar Opel",
}
_SHARED = (
    "Washington Jordan Lincoln Chelsea Sydney Florence Austin Houston Paris Georgia Victoria Madison Santos Ford "
    "Hamilton Stanley Morgan Barclay Wells Kent Milan Troy Lloyd"
)
#: The words that follow in names.
_NEXT = {
    "PER": "Smith Jones Garcia Muller Rossi Novak Silva Haddad Olsen Tanaka",
    "LOC": "City Bay Valley River North South Hills Beach County Island",
    "ORG": "Inc Corp Ltd Bank Group United Motors Airlines Press Holdings",
}


@dataclass(frozen=True, eq=False, repr=False)
class HiddenMarkovTagger:
    """The model that the sentences are drawn from, as a tagger: none is better on average.

    Args:
        ambiguity: how probable it is that a name's word is one that every type has.
        cues: how probable it is that a word before a name announces its type.
    """

    ambiguity: float = 0.6
    cues: float = 0.8

    #: The tag of each state: in no name; before a name of each type; the first word of a name; those that follow.
    tags: tuple[str, ...] = field(
        default=("O",) * 4 + tuple(f"{letter}-{name}" for letter in "BI" for name in _TYPES), init=False
    )

    def __post_init__(self) -> None:
        for name, value in (("ambiguity", self.ambiguity), ("cues", self.cues)):
            if not 0 <= value <= 1:
                raise ArgumentError(where=f"HiddenMarkovTagger.{name}", got=value, wanted="a number from 0 to 1")

    @cached_property
    def words(self) -> tuple[str, ...]:
        """All words, sorted."""
        lists = (*_CUES.values(), *_FIRST.values(), *_NEXT.values(), _PLAIN, _SHARED)
        return tuple(sorted({word for some in lists for word in some.split()}))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    @cached_property
    def start(self) -> Float64[np.ndarray, "states"]:
        """The probability of each state at the first word: as after a word that belongs to no name."""
        found: npt.NDArray[np.float64] = self.moves[0]
        return found

    @cached_property
    def moves(self) -> Float64[np.ndarray, "states states"]:
        """The probability of the next state (a column) after each (a row)."""
        found = np.zeros((10, 10))
        for kind in range(3):
            before, first, inside = 1 + kind, 4 + kind, 7 + kind
            # After a word that announces a name comes one; a name follows another only now and then.
            found[before, first] = 1
            for row, more in ((first, 0.5), (inside, 0.25)):
                found[row, inside] = more
                found[row, 4:7] += 0.15 * (1 - more) / 3
                found[row, 1:4] += 0.1 * (1 - more) / 3
                found[row, 0] = 1 - found[row, 1:].sum()
        found[0, 0], found[0, 1:4], found[0, 4:7] = 0.7, 0.24 / 3, 0.06 / 3
        return found

    @cached_property
    def shown(self) -> Float64[np.ndarray, "states words"]:
        """The probability of each word in each state."""
        at = self._places
        found = np.zeros((10, len(at)))

        def spread(row: int, words: str, share: float) -> None:
            places = [at[word] for word in words.split()]
            found[row, places] += share / len(places)

        spread(0, _PLAIN, 0.9)
        for kind, name in enumerate(_TYPES):
            spread(0, _CUES[name], 0.1 / 3)
            spread(1 + kind, _CUES[name], self.cues)
            spread(1 + kind, _PLAIN, 1 - self.cues)
            spread(4 + kind, _SHARED, self.ambiguity)
            spread(4 + kind, _FIRST[name], 1 - self.ambiguity)
            spread(7 + kind, _SHARED, self.ambiguity / 2)
            spread(7 + kind, _NEXT[name], 1 - self.ambiguity / 2)
        return found

    @cached_property
    def tag_names(self) -> tuple[str, ...]:
        """The tags, each once."""
        return tuple(dict.fromkeys(self.tags))

    def posteriors(self, sentence: Sequence[str]) -> Float64[np.ndarray, "steps tags"]:
        """The probability of each of ``tag_names`` at each word.

        Args:
            sentence: of words of the model.
        """
        states = state_posteriors(self.start, self.moves, self._likelihood(sentence))
        of_tag = np.array([[tag == name for name in self.tag_names] for tag in self.tags], dtype=np.float64)
        return states @ of_tag

    def tag(self, sentences: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
        """The most probable tag of each word, which makes the fewest wrong ones; they need not be well formed.

        Args:
            sentences: of words of the model.
        """
        return tuple(
            tuple(self.tag_names[best] for best in self.posteriors(sentence).argmax(-1)) for sentence in sentences
        )

    def viterbi(self, sentences: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
        """The tags of the most probable chain of states of each sentence, which are well formed.

        Args:
            sentences: of words of the model.
        """
        return tuple(
            tuple(self.tags[state] for state in best_states(self.start, self.moves, self._likelihood(sentence)))
            for sentence in sentences
        )

    def best(self, data: TaggedSentences) -> BestTagging:
        """How well `tag` and the posteriors do on some sentences, on average over words.

        Args:
            data: of the model, in its scheme.
        """
        right, summed = 0, 0.0
        for sentence, tags in data:
            found = self.posteriors(sentence)
            true = np.array([self.tag_names.index(tag) for tag in tags])
            right += int((found.argmax(-1) == true).sum())
            summed -= float(np.log(found[np.arange(len(true)), true]).sum())
        return BestTagging(accuracy=right / data.tokens, nll=summed / data.tokens)

    def sample(
        self, count: int, *, seed: int = 0, lengths: tuple[int, int] = (4, 16), name: str = ""
    ) -> TaggedSentences:
        """Draw sentences.

        Args:
            count: how many.
            seed: what the draw depends on.
            lengths: the least and the greatest number of words, between which all are as probable.
            name: what to call them.
        """
        if count < 1 or not 1 <= lengths[0] <= lengths[1]:
            got = f"count={count}, lengths={lengths}"
            raise ArgumentError(where="HiddenMarkovTagger.sample", got=got, wanted="1 or more, and 1 <= least <= most")
        generator = np.random.default_rng(seed)
        steps = generator.integers(lengths[0], lengths[1] + 1, size=count)
        states, words = np.empty((2, count, lengths[1]), dtype=np.int64)
        for step, chances in enumerate(generator.random((lengths[1], 2, count))):
            rows = self.moves[states[:, step - 1]] if step else np.tile(self.start, (count, 1))
            states[:, step] = _drawn(rows, chances[0])
            words[:, step] = _drawn(self.shown[states[:, step]], chances[1])
        return TaggedSentences.of(
            ((self.words[word] for word in row[:length]) for row, length in zip(words, steps, strict=True)),
            ((self.tags[state] for state in row[:length]) for row, length in zip(states, steps, strict=True)),
            scheme=SCHEME,
            name=name,
        )

    def _likelihood(self, sentence: Sequence[str]) -> Float64[np.ndarray, "steps states"]:
        at = self._places
        for place, word in enumerate(sentence):
            if word not in at:
                raise UnknownSymbolError(where=f"token {place}", got=repr(word), wanted="a word of the model")
        return self.shown[:, [at[word] for word in sentence]].T


@dataclass(frozen=True)
class HiddenMarkovSentences:
    """Sentences to train on, to choose by and to report, and the model that they are drawn from.

    Args:
        train: what a tagger is trained on.
        valid: what its settings are chosen by.
        test: what is reported.
        model: the best possible tagger.
    """

    train: TaggedSentences
    valid: TaggedSentences
    test: TaggedSentences
    model: HiddenMarkovTagger


def hidden_markov_sentences(
    *, train: int = 400, valid: int = 100, test: int = 200, seed: int = 0, ambiguity: float = 0.6, cues: float = 0.8
) -> HiddenMarkovSentences:
    """Draw sentences with names of three types, in IOB2.

    Args:
        train: how many sentences to train on.
        valid: how many to choose by.
        test: how many to report.
        seed: what the draw of all three depends on; each has its own random numbers, so that the size of one does not
            change another.
        ambiguity: how probable it is that a name's word is one that every type has; only the context tells then.
        cues: how probable it is that the word before a name announces its type.

    >>> data = hidden_markov_sentences()
    >>> print(*data.train.sentences[1])
    and was Victoria .
    >>> data.train.tag_names
    ('O', 'B-LOC', 'B-ORG', 'B-PER', 'I-LOC', 'I-ORG', 'I-PER')
    >>> round(data.model.best(data.test).accuracy, 3)
    0.961
    """
    model = HiddenMarkovTagger(ambiguity, cues)
    seeds = np.random.SeedSequence(seed).generate_state(len(_PARTS))
    parts = {
        name: model.sample(count, seed=int(own), name=f"sample {name}")
        for name, count, own in zip(_PARTS, (train, valid, test), seeds, strict=True)
    }
    return HiddenMarkovSentences(**parts, model=model)


def _drawn(rows: npt.NDArray[np.float64], chances: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """One place of each row, with the probabilities that the row has."""
    sums = rows.cumsum(-1)
    return np.asarray((sums / sums[:, -1:] <= chances[:, None]).sum(-1), dtype=np.int64)
