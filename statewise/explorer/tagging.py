"""Taggers, to be explored."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from statewise.data.tagged_columns import split_blanks
from statewise.errors import RunFolderError
from statewise.explorer.disturbance import Setting
from statewise.explorer.subjects import EVERYTHING, Example, Followed, Row, Subject, inside, padded
from statewise.layers import RecurrentLayer
from statewise.models import Tagger
from statewise.models.lexicon import UNKNOWN
from statewise.models.views import view_of


class TaggerSubject(Subject):
    """A tagger; a step's outcome is the tag of its word, by the whole sentence.

    Args:
        name: what to call the run.
        tagger: the network.
    """

    kind = "tagger"

    def __init__(self, name: str, tagger: Tagger) -> None:
        if tagger.context:
            raise RunFolderError(
                where=name,
                got="a tagger that reads vectors from outside",
                wanted="one that reads words only",
                remedy="The vectors of words that are typed are not known.",
            )
        # All beginnings of a sentence are read too, so that a long one costs as its square.
        super().__init__(name, tagger, outcomes=tagger.lexicon.tags, alphabet=tagger.lexicon.words, most_tokens=64)
        self.tagger = tagger

    @property
    def layers(self) -> tuple[RecurrentLayer, ...]:
        return (self.tagger.layer,)

    def known(self, token: str) -> bool:
        return self.tagger.lexicon.row(token) != UNKNOWN

    def split(self, text: str) -> Row:
        return tuple(split_blanks(" ".join(text.split("\n"))))

    def follow(self, rows: Sequence[Row], setting: Setting, *, noisy: bool = False) -> Followed:
        view = view_of(self.tagger).eval()
        setting.tune(view.layer, noisy=noisy)
        batch = view.read(rows)
        trace = view.trace(batch, collect=EVERYTHING, generator=setting.generator())
        with torch.no_grad():
            shares, best = view.read_out(trace.states[-1].transpose(0, 1), batch.lengths)
        return Followed(trace=trace, shares=shares.double().transpose(0, 1), best=best.T.clamp(min=0))

    def summary(self, followed: Followed) -> Float[Tensor, "batch width"]:
        """The mean of the top states over the words: a sentence that is read from both ends has no last state."""
        lengths = followed.trace.lengths
        among = inside(lengths, followed.top.shape[1]).unsqueeze(2)
        return torch.where(among, followed.top, 0.0).sum(1) / lengths.unsqueeze(1)

    def answers(self, followed: Followed) -> list[Row]:
        """The tag of every word; of a CRF those of the likeliest sequence."""
        best, lengths = followed.best.tolist(), followed.trace.lengths.tolist()
        return [tuple(self.outcomes[tag] for tag in row[:length]) for row, length in zip(best, lengths, strict=True)]

    def prefixes(self, tokens: Row, setting: Setting) -> list[Row]:
        """The tags of every beginning of a sentence, from its first word to the whole.

        Args:
            tokens: the sentence.
            setting: temperature; noise is left out.
        """
        return self.answers(self.follow([tokens[:end] for end in range(1, len(tokens) + 1)], setting))

    def quality(self, followed: Followed, examples: Sequence[Example]) -> Float[Tensor, " batch"]:
        """The mean probability of the right tags."""
        numbers = {tag: at for at, tag in enumerate(self.outcomes)}
        right, lengths = padded([[numbers[tag] for tag in example.answer] for example in examples])
        found = followed.shares.gather(2, right.unsqueeze(2)).squeeze(2)
        return torch.where(inside(lengths, right.shape[1]), found, 0.0).sum(1) / lengths
