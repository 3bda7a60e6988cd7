"""Language models, to be explored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.data import Vocabulary
from statewise.explorer.disturbance import Setting
from statewise.explorer.subjects import EVERYTHING, Example, Followed, Row, Subject, inside, padded
from statewise.heads import apply_outside
from statewise.layers import Collected, RecurrentLayer
from statewise.models import LanguageModel, Trace
from statewise.models.views import resting_view


class LanguageSubject(Subject):
    """A language model, which reads the end of a sentence first, and says after each word which one may follow.

    Args:
        name: what to call the run.
        model: the language model.
        vocabulary: its words.
        told: what the run was told.
    """

    kind = "language model"

    def __init__(self, name: str, model: LanguageModel, vocabulary: Vocabulary, told: Mapping[str, Any]) -> None:
        words = tuple(vocabulary.decode(range(len(vocabulary))))
        super().__init__(name, model, outcomes=words, alphabet=words, most_tokens=128)
        self.model, self.vocabulary, self.start = model, vocabulary, vocabulary.end
        self._lower = bool(told.get("source", {}).get("lower", False))

    @property
    def layers(self) -> tuple[RecurrentLayer, ...]:
        found = tuple(layer for layer in self.model.layers if isinstance(layer, RecurrentLayer))
        assert len(found) == len(self.model.layers)
        return found

    @cached_property
    def cost(self) -> int:
        """Weights that a step is multiplied with, those of the softmax among them, tied or not."""
        recurrent = sum(weight.numel() for layer in self.layers for weight in layer.parameters())
        return recurrent + len(self.vocabulary) * self.layers[-1].hidden_size

    def known(self, token: str) -> bool:
        return token in self.vocabulary

    def split(self, text: str) -> Row:
        return tuple((text.lower() if self._lower else text).split())

    def follow(self, rows: Sequence[Row], setting: Setting, *, noisy: bool = False) -> Followed:
        end = self.vocabulary.end_id
        ids, lengths = padded([[end, *self.vocabulary.encode(list(row))] for row in rows], fill=end)
        view, parts = resting_view(self.model), list[Collected]()
        generator = setting.generator()
        with torch.no_grad():
            hidden = view.embedding(ids.T)
            for layer in view.layers:
                assert isinstance(layer, RecurrentLayer)
                setting.tune(layer, noisy=noisy)
                hidden, _, seen = layer(hidden, collect=EVERYTHING, generator=generator)
                parts.append(seen)
            features = apply_outside(view.outputs, hidden, training=False, generator=generator)
            shares = view.head.log_prob(features).double().exp().transpose(0, 1)
        # Padding comes last, and a language model looks back only: what is before it does not change.
        trace = Trace.of(_stacked(parts), lengths=lengths, has_start=True)
        return Followed(trace=trace, shares=shares, best=shares.argmax(2))

    def quality(self, followed: Followed, examples: Sequence[Example]) -> Float[Tensor, " batch"]:
        """The geometric mean of the probabilities of the words, their end among them: 1 over the perplexity."""
        end = self.vocabulary.end_id
        targets, lengths = padded([[*self.vocabulary.encode(list(each.tokens)), end] for each in examples], fill=end)
        logs = followed.shares.gather(2, targets.unsqueeze(2)).squeeze(2).clamp(min=1e-300).log()
        among = inside(lengths, targets.shape[1])
        return (torch.where(among, logs, 0.0).sum(1) / lengths).exp()


def _stacked(parts: Sequence[Collected]) -> Collected:
    """What all layers have shown, as if they were one stack."""
    return Collected(
        states=tuple(each for part in parts for each in part.states),
        cells=tuple(each for part in parts for each in part.cells),
        gates=tuple(each for part in parts for each in part.gates),
        probabilities=tuple(each for part in parts for each in part.probabilities),
    )
