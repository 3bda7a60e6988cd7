"""Tagged sentences where a tagger reads them, and how well it tags them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from statewise.analysis import Calibration, calibration
from statewise.data import SpanScores, TaggedSentences, score_spans
from statewise.errors import ArgumentError
from statewise.models import Tagger
from statewise.models.encoded import Encoded, TokenBatch, to_device
from statewise.models.lexicon import Lexicon
from statewise.models.text import in_mode
from statewise.train.classify_data import EpochBatches

NO_TAG = -100  # beyond a sentence's end


class TagSet:
    """Tagged sentences as numbers.

    Args:
        lexicon: of the tagger.
        sentences: the set, in the scheme of the lexicon's tags.
        context: a vector for each token, from outside; None for none.
        where: its name, for errors.
    """

    def __init__(
        self,
        lexicon: Lexicon,
        sentences: TaggedSentences,
        *,
        context: npt.NDArray[np.floating[Any]] | None = None,
        where: str = "train",
    ) -> None:
        check_scheme(sentences, lexicon.scheme, where=where)
        self.sentences = sentences
        self.encoded = Encoded(lexicon, sentences.sentences, context=context, where=where)
        _check_known(lexicon, sentences, where)
        tags = [tag for some in sentences.tags for tag in some]
        self._tags = np.array(lexicon.numbers(tags, where=where), dtype=np.int64)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Of the sentences."""
        return self.encoded.lengths

    def __len__(self) -> int:
        return len(self.encoded)

    def batch(self, tagger: Tagger, which: npt.NDArray[np.int64]) -> tuple[TokenBatch, Int[Tensor, "steps batch"]]:
        """Some sentences as a tagger reads them, and the numbers of their tags, where its weights are.

        Args:
            tagger: who reads them.
            which: numbers of sentences.
        """
        tags = self.encoded.padded(self._tags, which, fill=NO_TAG)
        return tagger.batch(self.encoded, which), to_device(tags, tagger.head.weight.device)


@dataclass(frozen=True)
class TagMeasured:
    """How well a tagger does on a set.

    Attributes:
        loss: the mean over sentences of the summed negative log-likelihood, in nats.
        accuracy: the share of tokens with the right tag.
        f1: of the spans, by the rules of conlleval; of tags without spans the accuracy.
        precision: of the spans.
        recall: of the spans.
        strict_f1: of the spans that are well formed.
        sentences: how many there were.
        tokens: and how many tokens.

    >>> print(TagMeasured(1.5, 0.98, 0.91, 0.92, 0.9, 0.905, 10, 120))
    F1 91.00 % (strict 90.50), loss 1.5000
    """

    loss: float
    accuracy: float
    f1: float
    precision: float
    recall: float
    strict_f1: float
    sentences: int
    tokens: int

    def __str__(self) -> str:
        return f"F1 {100 * self.f1:.2f} % (strict {100 * self.strict_f1:.2f}), loss {self.loss:.4f}"

    def record(self) -> dict[str, Any]:
        """As the metrics of a run have it."""
        return dict(vars(self))

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> TagMeasured:
        """What :meth:`record` gave.

        Args:
            record: of a file.
        """
        return cls(**record)


def check_scheme(sentences: TaggedSentences, scheme: str, *, where: str) -> None:
    """Refuse tags that mark spans otherwise than those that a tagger learns.

    Args:
        sentences: a set.
        scheme: of the training set.
        where: the name of the set, for errors.
    """
    if sentences.scheme != scheme:
        raise ArgumentError(
            where=where,
            got=f"tags in scheme {sentences.scheme}",
            wanted=f"{scheme}, as the training set has",
            remedy=f'Convert it: .converted("{scheme}").',
        )


def _check_known(lexicon: Lexicon, sentences: TaggedSentences, where: str) -> None:
    """Refuse tags that a tagger has never seen: it has no probability for them."""
    known, strange = set(lexicon.tags), Counter(tag for some in sentences.tags for tag in some)
    for tag in known:
        strange.pop(tag, None)
    if not strange:
        return
    first, some = next((at, some) for at, some in enumerate(sentences.tags) if not known.issuperset(some))
    word = sentences.sentences[first][next(at for at, tag in enumerate(some) if tag not in known)]
    told = ", ".join(f"{tag} ({count} times)" if count > 1 else tag for tag, count in strange.most_common(5))
    raise ArgumentError(
        where=where,
        got=f"tags that the training set has not: {told}; the first in sentence {first + 1}, at the word {word!r}",
        wanted=f"some of {', '.join(lexicon.tags)}",
        remedy="Train on sentences with them; or leave out the sentences that have them, or mark those words O.",
    )


def predict(tagger: Tagger, examples: TagSet, *, batch: int) -> tuple[float, tuple[tuple[str, ...], ...]]:
    """The summed negative log-likelihood of a set, and the tags that a tagger gives it, with all that is random off.

    Args:
        tagger: the model.
        examples: the set.
        batch: how many sentences run at once.
    """
    summed = torch.zeros((), dtype=torch.float64, device=tagger.head.weight.device)
    found: list[tuple[npt.NDArray[np.int64], Tensor]] = []
    batches = EpochBatches.sorted(examples.lengths, batch=batch)
    with in_mode(tagger, training=False), torch.no_grad():
        for part in batches.slices():
            which = batches.places[part]
            tokens, tags = examples.batch(tagger, which)
            nll, best = tagger.judge(tokens, tags)
            summed += nll.double().sum()
            found.append((which, best))
    tagged: list[tuple[str, ...]] = [()] * len(examples)
    names = np.array(tagger.lexicon.tags, dtype=object)
    for which, best in found:
        for place, numbers in zip(which.tolist(), best.cpu().numpy().T, strict=True):
            tagged[place] = tuple(names[numbers[: examples.lengths[place]]])
    return float(summed), tuple(tagged)


def mean_loss(tagger: Tagger, examples: TagSet, which: npt.NDArray[np.int64], *, batch: int) -> float:
    """The mean loss of some sentences, with all that is random off.

    Args:
        tagger: the model.
        examples: the set.
        which: numbers of sentences.
        batch: how many of them run at once.
    """
    summed = torch.zeros((), dtype=torch.float64, device=tagger.head.weight.device)
    batches = EpochBatches.sorted(examples.lengths[which], batch=batch)
    with in_mode(tagger, training=False), torch.no_grad():
        for part in batches.slices():
            places = which[batches.places[part]]
            summed += tagger.loss(*examples.batch(tagger, places)).double() * len(places)
    return float(summed) / len(which)


def measure_tags(tagger: Tagger, examples: TagSet, *, batch: int) -> TagMeasured:
    """How well a tagger does on a set.

    Args:
        tagger: the model.
        examples: the set.
        batch: how many sentences run at once.
    """
    nll, tagged = predict(tagger, examples, batch=batch)
    return judged(examples.sentences, tagged, nll=nll)


def calibrate(tagger: Tagger, examples: TagSet, *, batch: int) -> Calibration:
    """How far the probabilities of a tagger's tags can be trusted, token by token.

    Args:
        tagger: the model.
        examples: the set.
        batch: how many sentences run at once.
    """
    probabilities, labels = [], []
    batches = EpochBatches.sorted(examples.lengths, batch=batch)
    with in_mode(tagger, training=False), torch.no_grad():
        for part in batches.slices():
            tokens, tags = examples.batch(tagger, batches.places[part])
            inside = tags != NO_TAG
            probabilities.append(tagger.log_probabilities(tokens)[inside].cpu())
            labels.append(tags[inside].cpu())
    return calibration(torch.cat(probabilities), torch.cat(labels))


def judged(gold: TaggedSentences, tagged: tuple[tuple[str, ...], ...], *, nll: float) -> TagMeasured:
    """Compare tags with the right ones.

    Args:
        gold: the set with its tags.
        tagged: those that were given.
        nll: the summed negative log-likelihood of the right ones.
    """
    pairs = [
        (mine, yours)
        for one, other in zip(gold.tags, tagged, strict=True)
        for mine, yours in zip(one, other, strict=True)
    ]
    right = sum(mine == yours for mine, yours in pairs)
    accuracy = right / max(1, len(pairs))
    scores = {}
    if gold.scheme != "none":
        for convention in ("conll", "strict"):
            scores[convention] = score_spans(gold.tags, tagged, convention=convention, scheme=gold.scheme)
    conll: SpanScores | None = scores.get("conll")
    strict: SpanScores | None = scores.get("strict")
    return TagMeasured(
        loss=nll / max(1, len(gold)),
        accuracy=accuracy,
        f1=accuracy if conll is None else conll.f1,
        precision=accuracy if conll is None else conll.precision,
        recall=accuracy if conll is None else conll.recall,
        strict_f1=accuracy if strict is None else strict.f1,
        sentences=len(gold),
        tokens=len(pairs),
    )
