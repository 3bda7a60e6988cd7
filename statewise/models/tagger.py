"""A tagger: a tag for every word of a sentence, by a recurrent network that reads words and their characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from statewise.engine.layout import moved
from statewise.errors import ArgumentError, ShapeError
from statewise.heads import CRF, Constraints, apply_outside
from statewise.heads.cross_entropy import at_least_single
from statewise.layers import LSTM
from statewise.layers.packing import Packing, pad
from statewise.mixup import Pairs
from statewise.models.encoded import Encoded, TokenBatch
from statewise.models.lexicon import UNKNOWN, Lexicon
from statewise.models.parts import make_embedding, make_head
from statewise.models.saved import Saved
from statewise.models.tagger_config import TaggerConfig
from statewise.models.text import in_mode
from statewise.models.traces import Trace
from statewise.models.views import resting_view
from statewise.transforms import LockedDropout, OutputDropout, SequenceTransform

Emissions = Float[Tensor, "steps sequences tags"]


class Tagger(Saved):
    """A recurrent tagger with a softmax or a conditional random field on top.

    ``x_t = P [v(w_t); chars(w_t); context_t]``, ``h = layers(x)``, ``z_t = A h_t + b``, and the scores ``z`` are read
    by a softmax at each step or by a linear-chain CRF (Huang et al. 2015; Lample et al. 2016; Karamzade et al. 2020,
    section 4). Sequences are mixed where ``pairs`` says: the features before dropout, the states inside the
    recurrence, or the states before the head.

    Args:
        config: everything but what follows.
        lexicon: words, characters and tags.
        vectors: a row for each word of the lexicon; None for random ones, which are trained.
        context: the width of vectors from outside that every token has; 0 for none.
        generator: source of all weights; None means torch's global one.

    >>> lexicon = Lexicon.of([["Anna", "saw", "Otto"]], tags=("O", "B-PER"))
    >>> tagger = TaggerConfig(hidden=8).build(lexicon, generator=torch.Generator().manual_seed(0))
    >>> [len(tags) for tags in tagger.tag([["Anna", "saw"], ["Otto"]])]
    [2, 1]
    """

    def __init__(
        self,
        config: TaggerConfig,
        lexicon: Lexicon,
        *,
        vectors: Float[Tensor, "words width"] | None = None,
        context: int = 0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.config, self.lexicon, self.context = config, lexicon, context
        self.words = _word_vectors(config, lexicon, vectors, generator)
        width = self.words.embedding_dim + context
        self.letters: nn.Embedding | None = None
        self.speller: LSTM | None = None
        if config.characters:
            self.letters = make_embedding(len(lexicon.characters) + 1, config.characters, generator)
            self.speller = LSTM(config.characters, config.character_hidden, bidirectional=True, generator=generator)
            width += 2 * config.character_hidden
        self.projection = make_head(width, width, generator) if config.projection else None
        self.layer = config.build_layer(width, generator=generator)
        self.head = make_head(config.hidden * self.layer.num_directions, len(lexicon.tags), generator)
        self.crf: CRF | None = None
        if config.head == "crf":
            limited = config.constrained and lexicon.scheme != "none"
            constraints = Constraints.of_tags(lexicon.tags, scheme=lexicon.scheme) if limited else None
            self.crf = CRF(len(lexicon.tags), constraints=constraints, generator=generator)

    @property
    def outside(self) -> tuple[SequenceTransform, ...]:
        """What acts in training outside the layers: dropout of what enters and of what leaves them."""
        kind = LockedDropout if self.config.locked else OutputDropout
        return (kind(self.config.dropout),) if self.config.dropout > 0.0 else ()

    def forward(
        self, batch: TokenBatch, *, pairs: Pairs | None = None, generator: torch.Generator | None = None
    ) -> Emissions:
        """The scores of the tags at every step, of the sentences or, if they are mixed, of the pairs.

        Args:
            batch: the sentences.
            pairs: which of them are mixed, where and how strongly; None for none.
            generator: source of everything drawn; None means torch's global one.
        """
        emissions: Tensor = self.head(self.states(batch, pairs=pairs, generator=generator))
        return emissions

    def states(
        self, batch: TokenBatch, *, pairs: Pairs | None = None, generator: torch.Generator | None = None
    ) -> Float[Tensor, "steps sequences hidden"]:
        """What the head reads; arguments as in :meth:`forward`."""
        site = self._site(batch, pairs)
        features, lengths = self._features(batch), batch.lengths
        if site == "input":
            assert pairs is not None
            features, lengths = pairs.mix(features), pairs.lengths
        features = self._entering(features, generator)
        if pairs is None or site != "through_time":
            packing = Packing.of(lengths, device=features.device)
            states = packing.pad(self.layer(packing.pack_sorted(features), generator=generator)[0].data)
        else:
            # Mixed with nothing, a member that has ended is still projected: what is nothing before the matrix need not
            # be after it. Layers below the mixing one end with the sentence.
            lengths = _shared_lengths(pairs) if pairs.policy == "zero" and not pairs.layer else lengths
            packing = Packing.of(lengths, device=features.device)
            pairing = pairs.pairing_of(packing.ranks[pairs.first], packing.ranks[pairs.second])
            states = pad(self.layer(packing.pack_sorted(features), pairing=pairing, generator=generator)[0])
        states = self._dropped(states, generator)
        return pairs.mix(states) if pairs is not None and site == "pre_output" else states

    def trace(
        self,
        batch: TokenBatch,
        *,
        collect: Iterable[str] = ("states",),
        generator: torch.Generator | None = None,
    ) -> Trace:
        """What happens inside at every step, in eval mode and without gradients; the directions lie side by side.

        Args:
            batch: the sentences.
            collect: some of "states", "cells", "gates", "probabilities".
            generator: source of what transforms draw that act in eval mode too.
        """
        resting = resting_view(self)
        with torch.no_grad():
            features = resting._entering(resting._features(batch), generator)
            packing = Packing.of(batch.lengths, device=features.device)
            _, _, seen = resting.layer(packing.pack(features), collect=collect, generator=generator)
        return Trace.of(seen, lengths=batch.lengths.to(features.device), has_start=False)

    def read_out(
        self, states: Float[Tensor, "steps sequences hidden"], lengths: Int[Tensor, " sequences"]
    ) -> tuple[Float[Tensor, "steps sequences tags"], Int[Tensor, "steps sequences"]]:
        """What :meth:`probabilities` and :meth:`decode` say, by the top states of sentences that were read already.

        Args:
            states: that the head reads.
            lengths: of the sentences.
        """
        emissions: Tensor = self.head(states)
        shares = emissions.softmax(-1) if self.crf is None else self.crf.marginals(emissions, lengths)
        return shares, self._best(emissions, lengths)

    def loss(
        self,
        batch: TokenBatch,
        tags: Int[Tensor, "steps batch"],
        *,
        pairs: Pairs | None = None,
        mode: str | None = None,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, ""]:
        """What is minimised: the negative log-likelihood of a sentence or a pair, summed over its steps, on average.

        Args:
            batch: the sentences.
            tags: their numbers; beyond a sentence's end -100.
            pairs: which of them are mixed; None for none.
            mode: how a CRF's targets are mixed: "coupled", "prefix" or "paper"; None chooses.
            generator: source of everything drawn; None means torch's global one.
        """
        emissions = self(batch, pairs=pairs, generator=generator)
        if pairs is None:
            return self._nll(emissions, tags, batch.lengths).mean()
        if self.crf is not None:
            return pairs.crf(self.crf, emissions, tags, mode=mode)
        return pairs.cross_entropy(emissions, tags)

    def nll(self, batch: TokenBatch, tags: Int[Tensor, "steps batch"]) -> Float[Tensor, " batch"]:
        """The negative log-likelihood of each sentence's tags, in nats.

        Args:
            batch: the sentences.
            tags: their numbers; beyond a sentence's end -100.
        """
        return self._nll(self(batch), tags, batch.lengths)

    def judge(
        self, batch: TokenBatch, tags: Int[Tensor, "steps batch"]
    ) -> tuple[Float[Tensor, " batch"], Int[Tensor, "steps batch"]]:
        """The negative log-likelihood of each sentence's tags, and the tags that are likeliest, in one pass.

        Args:
            batch: the sentences.
            tags: their numbers; beyond a sentence's end -100.
        """
        emissions = self(batch)
        return self._nll(emissions, tags, batch.lengths), self._best(emissions, batch.lengths)

    def decode(self, batch: TokenBatch) -> Int[Tensor, "steps batch"]:
        """The likeliest tags: at each step, or of a CRF the likeliest sequence; anything beyond an end.

        Args:
            batch: the sentences.
        """
        return self._best(self(batch), batch.lengths)

    def probabilities(self, batch: TokenBatch) -> Float[Tensor, "steps batch tags"]:
        """How likely each tag is at each step; of a CRF the marginals.

        Args:
            batch: the sentences.
        """
        emissions = self(batch)
        return emissions.softmax(-1) if self.crf is None else self.crf.marginals(emissions, batch.lengths)

    def log_probabilities(self, batch: TokenBatch) -> Float[Tensor, "steps batch tags"]:
        """The logarithms of :meth:`probabilities`, where those of a tag that is all but excluded are still numbers.

        Args:
            batch: the sentences.
        """
        emissions = self(batch)
        if self.crf is None:
            return at_least_single(emissions).log_softmax(-1)
        return self.crf.marginals(emissions.double(), batch.lengths).log()

    def read(
        self, sentences: Sequence[Sequence[str]], *, context: npt.NDArray[np.floating[Any]] | None = None
    ) -> TokenBatch:
        """Sentences as the other methods take them, where the tagger's weights are.

        Args:
            sentences: words in their order.
            context: a vector for each word of all sentences, of a tagger that reads such; None for none.

        >>> tagger = TaggerConfig(hidden=4).build(Lexicon.of([["Anna", "left"]], tags=("O", "B-PER")))
        >>> tagger.eval().probabilities(tagger.read([["Anna", "left"], ["Otto"]])).shape
        torch.Size([2, 2, 2])
        """
        encoded = Encoded(self.lexicon, sentences, context=context)
        return self.batch(encoded, np.arange(len(encoded)))

    def tag(self, sentences: Sequence[Sequence[str]], *, batch: int = 256) -> list[list[str]]:
        """The tags of sentences, in eval mode.

        Args:
            sentences: words in their order.
            batch: how many are read at once.
        """
        encoded = Encoded(self.lexicon, sentences)
        found: list[list[str]] = [[] for _ in sentences]
        with in_mode(self, training=False), torch.no_grad():
            for which, tokens in self._batches(encoded, batch):
                best = self._allowed(self.decode(tokens), tokens.lengths).T.tolist()
                for place, length, numbers in zip(which.tolist(), tokens.lengths.tolist(), best, strict=True):
                    found[place] = [self.lexicon.tags[number] for number in numbers[:length]]
        return found

    def extended(self, words: Sequence[str], vectors: Float[Tensor, "words width"]) -> Tagger:
        """The same tagger with the vectors of more words, so that it knows some that it was not trained with.

        Args:
            words: those that its lexicon has keep the vectors that they have.
            vectors: a row for each word, from where the tagger's own came from.

        >>> lexicon = Lexicon(tags=("O", "B-PER"), words=("anna",))
        >>> tagger = TaggerConfig(hidden=4, characters=0).build(lexicon, vectors=torch.ones(1, 3))
        >>> tagger.extended(["otto", "anna"], torch.zeros(2, 3)).lexicon.words
        ('anna', 'otto')
        """
        weight = self.words.weight
        if weight.requires_grad and not self.config.finetune:
            raise ArgumentError(
                where="Tagger.extended",
                got="a tagger whose word vectors are its own",
                wanted="one that was trained with given vectors",
            )
        if vectors.shape != (len(words), weight.shape[1]):
            wanted = f"({len(words)}, {weight.shape[1]}), as wide as the tagger's vectors"
            raise ShapeError(where="Tagger.extended, vectors", got=tuple(vectors.shape), wanted=wanted)
        known = set(self.lexicon.words)
        places = {word: place for place, word in enumerate(words) if word not in known}
        lexicon = replace(self.lexicon, words=(*self.lexicon.words, *places))
        rows = torch.cat((weight.detach(), vectors[list(places.values())].to(weight)))
        # Its weights are copied below: nothing of the user's is drawn.
        fresh: dict[str, Any] = {"context": self.context, "generator": torch.Generator()}
        made = Tagger(self.config, lexicon, vectors=rows[1:].cpu(), **fresh).to(weight)
        made.load_state_dict({**self.state_dict(), "words.weight": rows})
        return made.train(self.training)

    @staticmethod
    def _allowed(best: Tensor, lengths: Tensor) -> Tensor:
        """The decoded tags, refused where constraints leave none."""
        if bool((best[0] < 0).any()):
            length = int(lengths[int((best[0] < 0).nonzero()[0])])
            raise ArgumentError(
                where="Tagger.tag",
                got=f"a sentence of {length} words",
                wanted="one for which the scheme allows a sequence of the tags that there are",
                remedy="Train on all tags of the scheme, or with constrained=False.",
            )
        return best

    def _batches(
        self, encoded: Encoded, size: int
    ) -> Iterator[tuple[np.ndarray[tuple[int], np.dtype[np.int64]], TokenBatch]]:
        order = np.argsort(encoded.lengths, kind="stable")
        for start in range(0, len(order), size):
            which = order[start : start + size]
            yield which, self.batch(encoded, which)

    def batch(self, encoded: Encoded, which: np.ndarray[tuple[int], np.dtype[np.int64]]) -> TokenBatch:
        """Some sentences, with what this tagger reads of them, where its weights are.

        Args:
            encoded: the sentences of a set.
            which: their numbers.
        """
        width = 0 if encoded.context is None else encoded.context.shape[1]
        if width != self.context:
            raise ShapeError(
                where="Tagger, context",
                got=f"vectors of width {width}" if width else "none",
                wanted=f"vectors of width {self.context}, with which it was built" if self.context else "none",
            )
        return encoded.batch(which, characters=self.speller is not None, device=self.head.weight.device)

    def _site(self, batch: TokenBatch, pairs: Pairs | None) -> str | None:
        """Where sentences are mixed."""
        if pairs is None:
            return None
        if not torch.equal(pairs.own_lengths, batch.lengths):
            raise ShapeError(
                where="Tagger pairs",
                got=f"pairs of {len(pairs.own_lengths)} sentences with other lengths than those of the batch",
                wanted="pairs that were drawn for this batch",
                remedy="Draw them with mixup.draw(batch.lengths).",
            )
        if not self.training:
            raise ArgumentError(
                where="Tagger pairs",
                got="pairs in eval mode",
                wanted="none: sentences are mixed in training only",
                remedy="Call the tagger without them, or call .train() first.",
            )
        return pairs.site

    def _features(self, batch: TokenBatch) -> Float[Tensor, "steps batch width"]:
        """What is known of every token, side by side; zero beyond a sentence's end."""
        distinct: Tensor = self.words(batch.rows)
        if self.letters is not None and self.speller is not None:
            assert batch.characters is not None
            spelt = batch.characters._replace(data=self.letters(batch.characters.data))
            _, (ends, _) = self.speller(spelt)
            distinct = torch.cat((distinct, ends[0], ends[1]), dim=1)
        features = distinct[batch.places]
        if batch.context is not None:
            features = torch.cat((features, batch.context.to(features.dtype)), dim=2)
        return torch.where(_inside(batch.lengths, features), features, 0)

    def _entering(self, features: Tensor, generator: torch.Generator | None) -> Tensor:
        p = self.config.word_dropout
        if self.training and p > 0:
            kept = torch.full(features.shape[:2], 1 - p, device=features.device)
            features = features * torch.bernoulli(kept, generator=generator).unsqueeze(2).to(features.dtype)
        features = self._dropped(features, generator)
        return features if self.projection is None else self.projection(features)

    def _dropped(self, sequence: Tensor, generator: torch.Generator | None) -> Tensor:
        if not self.training or not self.outside:
            return sequence
        return apply_outside(self.outside, sequence, training=True, generator=generator)

    def _nll(self, emissions: Tensor, tags: Tensor, lengths: Tensor) -> Float[Tensor, " batch"]:
        if self.crf is not None:
            # Only what lies beyond an end may have no tag.
            inside = _inside(lengths, emissions).squeeze(2)
            return self.crf.nll(emissions, torch.where(inside, tags, 0), lengths)
        # A tag of -100 costs nothing.
        found = cross_entropy(at_least_single(emissions.flatten(0, 1)), tags.flatten(), reduction="none")
        return found.view(tags.shape).sum(0)

    def _best(self, emissions: Tensor, lengths: Tensor) -> Tensor:
        return emissions.argmax(-1) if self.crf is None else self.crf.decode(emissions, lengths)[0]


def _inside(lengths: Tensor, like: Tensor) -> Tensor:
    """Which steps lie before the end of their sentence, (steps, batch, 1)."""
    inside = torch.arange(like.shape[0])[:, None] < lengths
    return moved(inside, like.device).unsqueeze(2)


def _shared_lengths(pairs: Pairs) -> Int[Tensor, " batch"]:
    """For each sentence its own length, or that of the longest pair that it belongs to."""
    lengths = pairs.own_lengths.clone()
    for members in (pairs.first, pairs.second):
        lengths.scatter_reduce_(0, members, pairs.lengths, "amax")
    return lengths


def _word_vectors(
    config: TaggerConfig, lexicon: Lexicon, vectors: Tensor | None, generator: torch.Generator | None
) -> nn.Embedding:
    """The word vectors; a word without one is zero."""
    rows = len(lexicon.words) + 1
    if vectors is None:
        words = make_embedding(rows, config.words, generator)
        with torch.no_grad():
            words.weight[UNKNOWN] = 0
        return words
    if vectors.ndim != 2 or len(vectors) != rows - 1:
        raise ShapeError(
            where="Tagger.vectors",
            got=tuple(vectors.shape),
            wanted=f"({rows - 1}, width), a row for each word of the lexicon",
        )
    matrix = torch.cat((vectors.new_zeros(1, vectors.shape[1]), vectors)).to(torch.get_default_dtype())
    made: nn.Embedding = nn.Embedding.from_pretrained(matrix, freeze=not config.finetune)
    return made
