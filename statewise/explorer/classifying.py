"""Classifiers of symbols and of texts, to be explored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.data import split_words
from statewise.data.vocabulary import UNKNOWN
from statewise.errors import RunFolderError, UnknownSymbolError
from statewise.explorer.disturbance import Setting
from statewise.explorer.subjects import EVERYTHING, Example, Followed, Row, Subject, padded
from statewise.layers import RecurrentLayer
from statewise.models import SequenceClassifier
from statewise.models.views import view_of
from statewise.train.classify_folder import IMDB_WORDS

SOME = 12  # symbols that an error names


class ClassifierSubject(Subject):
    """A classifier of words over an alphabet, or of texts.

    Args:
        name: what to call the run.
        model: the classifier.
        told: what the run was told.
    """

    kind = "classifier"

    def __init__(self, name: str, model: SequenceClassifier, told: Mapping[str, Any]) -> None:
        if model.symbols is None:
            raise RunFolderError(
                where=name,
                got="a classifier of numbers or pictures",
                wanted="a classifier of symbols or texts, a tagger or a language model",
                remedy="What cannot be typed cannot be explored here.",
            )
        source = told.get("source", {})
        super().__init__(name, model, outcomes=tuple(told["examples"]["classes"]), alphabet=model.symbols)
        self.model, self._numbers = model, {symbol: at for at, symbol in enumerate(model.symbols)}
        self.unit = _unit(model.symbols, source.get("unit") or "auto")
        self.glue = "" if self.unit == "characters" else " "
        self.start = "START" if model.config.start_token else None
        self._last = source.get("truncate") or (IMDB_WORDS if source.get("data") == "imdb" else 0)

    @property
    def layers(self) -> tuple[RecurrentLayer, ...]:
        return (self.model.layer,)

    def known(self, token: str) -> bool:
        return token in self._numbers

    def split(self, text: str) -> Row:
        if self.unit == "words":
            return tuple(split_words(text)[-self._last :])
        blank = " " in self._numbers
        found = text.split() if self.unit == "symbols" else list(text if blank else text.strip())
        strange = next((at for at, symbol in enumerate(found) if symbol not in self._numbers), None)
        if strange is not None:
            more = "" if len(self.alphabet) <= SOME else f" and {len(self.alphabet) - SOME:,} more"
            raise UnknownSymbolError(
                where=f"text, symbol {strange + 1}",
                got=repr(found[strange][:40]),
                wanted=f"one of {', '.join(map(repr, self.alphabet[:SOME]))}{more}",
                remedy="Type symbols of the run's alphabet only.",
            )
        return tuple(found)

    def heard(self, tokens: Row) -> Row:
        """The symbols that the network takes tokens for.

        Args:
            tokens: of a text; those that it does not know are one.
        """
        return tuple(token if token in self._numbers else UNKNOWN for token in tokens)

    def follow(self, rows: Sequence[Row], setting: Setting, *, noisy: bool = False) -> Followed:
        inputs, lengths = padded([[self._numbers[token] for token in self.heard(row)] for row in rows])
        view = view_of(self.model)
        setting.tune(view.layer, noisy=noisy)
        trace = view.states(inputs, lengths, collect=EVERYTHING, generator=setting.generator())
        shares = view.prefix_logits(trace).double().softmax(-1)
        return Followed(trace=trace, shares=shares, best=shares.argmax(2))

    def quality(self, followed: Followed, examples: Sequence[Example]) -> Float[Tensor, " batch"]:
        right = torch.tensor([self.outcomes.index(example.answer[0]) for example in examples])
        return followed.at_the_end(followed.shares).gather(1, right.unsqueeze(1)).squeeze(1)


def _unit(symbols: Sequence[str], said: str) -> str:
    """What a step reads of a text.

    >>> _unit(("a", "b"), "auto"), _unit(("the", UNKNOWN), "auto"), _unit(("open", "close"), "auto")
    ('characters', 'words', 'symbols')
    """
    if said != "auto":
        return said
    if UNKNOWN in symbols:
        return "words"
    return "characters" if all(len(symbol) == 1 for symbol in symbols) else "symbols"
