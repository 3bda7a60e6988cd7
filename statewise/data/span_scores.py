"""How well predicted spans agree with the true ones: precision, recall and F1, by a convention that has a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from statewise.data.spans import Span, check_convention, spans
from statewise.data.tagged import TaggedSentences, tag_rows
from statewise.errors import ArgumentError, LengthError

Tags = TaggedSentences | Sequence[Sequence[str]]


@dataclass(frozen=True)
class SpanCounts:
    """How many spans there are, and the scores that follow from it; nothing of nothing is 0.

    Args:
        gold: the true ones.
        predicted: those that were predicted.
        correct: the predicted ones that are true: type, beginning and end agree.

    >>> counts = SpanCounts(gold=4, predicted=2, correct=1)
    >>> counts.precision, counts.recall, round(counts.f1, 4)
    (0.5, 0.25, 0.3333)
    """

    gold: int
    predicted: int
    correct: int

    @property
    def precision(self) -> float:
        """How many of the predicted spans are true."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """How many of the true spans were predicted."""
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall, which is ``2 correct / (gold + predicted)``."""
        return 2 * self.correct / (self.gold + self.predicted) if self.gold + self.predicted else 0.0


@dataclass(frozen=True)
class SpanScores:
    """Scores of predicted spans; printed as the script conlleval prints them, in percent.

    Args:
        tokens: how many tokens there are.
        correct_tokens: how many have the true tag.
        overall: the spans of all types together, so that ``overall.f1`` is the micro-averaged F1.
        by_type: the spans of each type, sorted by name.
        convention: by which spans were found, see `spans`.
        scheme: by which a strict convention was strict; None for ``"conll"``.
    """

    tokens: int
    correct_tokens: int
    overall: SpanCounts
    by_type: Mapping[str, SpanCounts]
    convention: str
    scheme: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_type", MappingProxyType(dict(self.by_type)))

    @property
    def precision(self) -> float:
        """How many of the predicted spans are true."""
        return self.overall.precision

    @property
    def recall(self) -> float:
        """How many of the true spans were predicted."""
        return self.overall.recall

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall, of all types together."""
        return self.overall.f1

    @property
    def accuracy(self) -> float:
        """How many tokens have the true tag."""
        return self.correct_tokens / self.tokens if self.tokens else 0.0

    def __str__(self) -> str:
        whole = self.overall
        head = f"processed {self.tokens} tokens with {whole.gold} phrases; "
        lines = [head + f"found: {whole.predicted} phrases; correct: {whole.correct}."]
        if self.tokens:
            lines.append(f"accuracy: {100 * self.accuracy:6.2f}%; {_percent(whole)}")
        lines += [f"{name:>17}: {_percent(found)}  {found.predicted}" for name, found in self.by_type.items()]
        return "\n".join(lines)

    def __reduce__(self) -> tuple[type[SpanScores], tuple[object, ...]]:
        # A read-only view of a dictionary cannot cross process borders, the dictionary can.
        parts = (self.tokens, self.correct_tokens, self.overall, dict(self.by_type), self.convention, self.scheme)
        return SpanScores, parts


def score_spans(gold: Tags, predicted: Tags, convention: str = "conll", scheme: str | None = None) -> SpanScores:
    """Compare predicted tags with the true ones, span by span.

    A span is correct if its type, its beginning and its end are. What a span is depends on the convention, and the
    scores with it: of ``I-PER I-PER`` where IOB2 wants ``B-PER I-PER``, ``"conll"`` says that it is right, ``"strict"``
    that nothing was found.

    Args:
        gold: the true tags of each sentence.
        predicted: those of the same sentences, in the same scheme; they may be malformed.
        convention: ``"conll"``, the rules of the script conlleval, or ``"strict"``; see `spans`.
        scheme: to be strict by; None for that of ``gold``, if it has one.

    >>> gold = [["B-PER", "I-PER", "O", "B-LOC"]]
    >>> print(score_spans(gold, [["I-PER", "I-PER", "O", "B-PER"]]))
    processed 4 tokens with 2 phrases; found: 2 phrases; correct: 1.
    accuracy:  50.00%; precision:  50.00%; recall:  50.00%; FB1:  50.00
                  LOC: precision:   0.00%; recall:   0.00%; FB1:   0.00  0
                  PER: precision:  50.00%; recall: 100.00%; FB1:  66.67  2
    >>> score_spans(gold, [["I-PER", "I-PER", "O", "B-PER"]], "strict", "iob2").f1
    0.0

    Raises:
        LengthError: the sentences are not as many or as long; names the first that differs.
    """
    totals: list[Counter[str]] = [Counter(), Counter(), Counter()]
    for true, guessed in each_sentence(gold, predicted, convention, scheme):
        for total, found in zip(totals, (true, guessed, true & guessed), strict=True):
            total.update(span.type for span in found)
    names = sorted({name for total in totals for name in total})
    pairs = [
        (true, guessed)
        for rows in zip(tag_rows(gold), tag_rows(predicted), strict=True)
        for true, guessed in zip(*rows, strict=True)
    ]
    return SpanScores(
        tokens=len(pairs),
        correct_tokens=sum(true == guessed for true, guessed in pairs),
        overall=SpanCounts(*(total.total() for total in totals)),
        by_type={name: SpanCounts(*(total[name] for total in totals)) for name in names},
        convention=convention,
        scheme=_scheme(gold, convention, scheme),
    )


def add_scores(scores: Sequence[SpanScores]) -> SpanScores:
    """The scores of several predictions taken together: all counts are added up.

    Args:
        scores: by one convention; one or more.

    >>> scores = score_spans([["B-PER"]], [["B-PER"]])
    >>> add_scores([scores, scores]).overall
    SpanCounts(gold=2, predicted=2, correct=2)
    """
    names = sorted({name for each in scores for name in each.by_type})
    return SpanScores(
        tokens=sum(each.tokens for each in scores),
        correct_tokens=sum(each.correct_tokens for each in scores),
        overall=_added(each.overall for each in scores),
        by_type={name: _added(each.by_type.get(name, SpanCounts(0, 0, 0)) for each in scores) for name in names},
        convention=scores[0].convention,
        scheme=scores[0].scheme,
    )


def each_sentence(
    gold: Tags, predicted: Tags, convention: str, scheme: str | None
) -> Iterator[tuple[frozenset[Span], frozenset[Span]]]:
    """The true and the predicted spans of each sentence, after a look at all lengths."""
    schemes = {given.scheme for given in (gold, predicted) if isinstance(given, TaggedSentences)}
    if len(schemes) > 1:
        remedy = "Convert one of them: .converted(scheme)."
        raise ArgumentError(where="score_spans", got=" and ".join(sorted(schemes)), wanted="one scheme", remedy=remedy)
    scheme = _scheme(gold, convention, scheme)
    check_convention("score_spans", convention, scheme)
    rows = tag_rows(gold), tag_rows(predicted)
    if len(rows[0]) != len(rows[1]):
        got, wanted = f"{len(rows[1])} sentences", f"{len(rows[0])}, as in gold"
        raise LengthError(where="score_spans.predicted", got=got, wanted=wanted)
    for place, (true, guessed) in enumerate(zip(*rows, strict=True)):
        if len(true) != len(guessed):
            where = f"score_spans.predicted, sentence {place}"
            raise LengthError(where=where, got=f"{len(guessed)} tags", wanted=f"{len(true)}, as in gold")
    found = ((frozenset(spans(row, convention, scheme)) for row in pair) for pair in zip(*rows, strict=True))
    return ((true, guessed) for true, guessed in found)


def _scheme(gold: Tags, convention: str, scheme: str | None) -> str | None:
    if convention == "conll":
        return None
    return gold.scheme if scheme is None and isinstance(gold, TaggedSentences) else scheme


def _added(counts: Iterable[SpanCounts]) -> SpanCounts:
    rows = [(each.gold, each.predicted, each.correct) for each in counts]
    return SpanCounts(*map(sum, zip(*rows, strict=True)))


def _percent(found: SpanCounts) -> str:
    rates = f"precision: {100 * found.precision:6.2f}%; recall: {100 * found.recall:6.2f}%"
    return f"{rates}; FB1: {100 * found.f1:6.2f}"
