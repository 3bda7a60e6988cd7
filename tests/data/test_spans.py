"""Spans and their scores: conlleval's rules, strict ones, and whether a difference is one."""

from __future__ import annotations

import pickle
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statewise.data import SpanScores, TaggedSentences, compare_span_runs, compare_spans, score_spans, spans
from statewise.errors import ArgumentError, LengthError

SCHEMES = {"iob2": "BI", "bioes": "BIES"}


def tags(letters: str) -> st.SearchStrategy[str]:
    return st.sampled_from(["O", *(f"{letter}-{kind}" for letter, kind in product(letters, ("PER", "LOC")))])


@st.composite
def pairs(draw: st.DrawFn, letters: str = "BIES") -> tuple[list[list[str]], list[list[str]]]:
    """True and predicted tags, neither of them well formed, that agree in places."""
    gold = draw(st.lists(st.lists(tags(letters), min_size=1, max_size=8), min_size=1, max_size=5))
    return gold, [[draw(st.one_of(st.just(tag), tags(letters))) for tag in row] for row in gold]


def seqevals(gold: list[list[str]], predicted: list[list[str]], **options: Any) -> tuple[float, float, float]:
    score = import_module("seqeval.metrics.sequence_labeling").precision_recall_fscore_support
    precision, recall, f1, _ = score(gold, predicted, average="micro", zero_division=0, **options)
    return float(precision), float(recall), float(f1)


def three(scores: SpanScores) -> Any:
    return pytest.approx((scores.precision, scores.recall, scores.f1), rel=1e-12)


class TestConll:
    @pytest.mark.parametrize(
        ("sentence", "found"),
        [
            ("B-PER I-PER O", [("PER", 0, 2)]),
            ("I-PER I-PER B-PER", [("PER", 0, 2), ("PER", 2, 3)]),
            ("I-PER I-LOC", [("PER", 0, 1), ("LOC", 1, 2)]),
            ("B-PER I-LOC I-LOC", [("PER", 0, 1), ("LOC", 1, 3)]),
            ("O O", []),
            ("S-PER S-PER", [("PER", 0, 1), ("PER", 1, 2)]),
            ("B-PER E-PER B-PER E-PER", [("PER", 0, 2), ("PER", 2, 4)]),
            ("E-PER E-PER I-PER", [("PER", 0, 1), ("PER", 1, 2), ("PER", 2, 3)]),
            ("I-PER E-PER I-PER O", [("PER", 0, 2), ("PER", 2, 3)]),
            ("I-a-b I-a-c", [("a-b", 0, 1), ("a-c", 1, 2)]),
            ("X-PER X-PER O", [("PER", 0, 2)]),
        ],
    )
    def test_known_spans(self, sentence: str, found: list[tuple[str, int, int]]) -> None:
        assert [tuple(span) for span in spans(sentence.split())] == found

    def test_a_worked_example_prints_as_conlleval_prints_it(self) -> None:
        """By hand: of four true spans two are found; a span too long, a type too many and a malformed one besides."""
        gold = ["B-PER I-PER O B-LOC O", "B-ORG I-ORG O O B-LOC"]
        predicted = ["I-PER I-PER O B-LOC I-LOC", "B-ORG I-ORG O B-MISC B-PER"]
        scores = score_spans([row.split() for row in gold], [row.split() for row in predicted])
        assert str(scores) == (
            "processed 10 tokens with 4 phrases; found: 5 phrases; correct: 2.\n"
            "accuracy:  60.00%; precision:  40.00%; recall:  50.00%; FB1:  44.44\n"
            "              LOC: precision:   0.00%; recall:   0.00%; FB1:   0.00  1\n"
            "             MISC: precision:   0.00%; recall:   0.00%; FB1:   0.00  1\n"
            "              ORG: precision: 100.00%; recall: 100.00%; FB1: 100.00  1\n"
            "              PER: precision:  50.00%; recall: 100.00%; FB1:  66.67  2"
        )
        assert (scores.by_type["PER"].gold, scores.by_type["PER"].predicted, scores.by_type["PER"].correct) == (1, 2, 1)
        assert pickle.loads(pickle.dumps(scores)) == scores

    @given(pair=pairs())
    def test_scores_are_seqevals(self, pair: tuple[list[list[str]], list[list[str]]]) -> None:
        assert seqevals(*pair) == three(score_spans(*pair))

    @given(pair=pairs(letters="BI"))
    def test_the_same_spans_in_any_scheme_score_the_same(self, pair: tuple[list[list[str]], list[list[str]]]) -> None:
        gold, predicted = (TaggedSentences.of(rows, rows, scheme="iob1") for rows in pair)
        plain = score_spans(gold, predicted)
        for scheme in ("iob2", "bioes"):
            other = score_spans(gold.converted(scheme), predicted.converted(scheme))
            assert (other.overall, other.by_type) == (plain.overall, plain.by_type)


class TestStrict:
    @pytest.mark.parametrize("scheme", SCHEMES)
    @given(data=st.data())
    def test_scores_are_seqevals_strict_ones(self, scheme: str, data: st.DataObject) -> None:
        gold, predicted = data.draw(pairs(letters=SCHEMES[scheme]))
        theirs = getattr(import_module("seqeval.scheme"), {"iob2": "IOB2", "bioes": "IOBES"}[scheme])
        strict = import_module("seqeval.metrics.v1").precision_recall_fscore_support
        precision, recall, f1, _ = strict(gold, predicted, average="micro", zero_division=0, scheme=theirs)
        assert (precision, recall, f1) == three(score_spans(gold, predicted, "strict", scheme))

    def test_the_two_conventions_differ_on_what_is_malformed(self) -> None:
        gold, predicted = [["B-PER", "I-PER"]], [["I-PER", "I-PER"]]
        assert score_spans(gold, predicted, "conll").f1 == 1
        assert score_spans(gold, predicted, "strict", "iob2").f1 == 0
        tagged = TaggedSentences.of([["Ada", "Lovelace"]], gold, scheme="iob2")
        assert score_spans(tagged, predicted, convention="strict").scheme == "iob2"

    @pytest.mark.parametrize(
        ("sentence", "found"),
        [("I-PER B-PER", 2), ("B-PER I-PER", 1), ("O B-PER", 1), ("I-LOC B-PER", 2), ("I-PER S-PER B-PER I-PER", 2)],
    )
    def test_iob1_may_have_a_b_where_it_is_not_needed(self, sentence: str, found: int) -> None:
        assert len(spans(sentence.split(), "strict", "iob1")) == found


class TestScores:
    def test_nothing_of_nothing_is_nothing(self) -> None:
        scores = score_spans([["O", "O"]], [["O", "O"]])
        assert (scores.precision, scores.recall, scores.f1, scores.accuracy) == (0, 0, 0, 1)
        assert score_spans([], []).accuracy == 0

    def test_what_does_not_fit_is_refused(self) -> None:
        with pytest.raises(LengthError, match="sentence 1: got 2 tags, wanted 1"):
            score_spans([["O"], ["O"]], [["O"], ["O", "O"]])
        with pytest.raises(LengthError, match="got 1 sentences, wanted 2"):
            score_spans([["O"], ["O"]], [["O"]])
        with pytest.raises(ArgumentError, match="a scheme, to be strict by"):
            score_spans([["O"]], [["O"]], "strict")
        with pytest.raises(ArgumentError, match="mark no spans"):
            score_spans([["O"]], [["O"]], "strict", "none")
        with pytest.raises(ArgumentError, match="one of conll, strict"):
            score_spans([["O"]], [["O"]], "lenient")
        one = TaggedSentences.of([["a"]], [["B-X"]], scheme="iob2")
        with pytest.raises(ArgumentError, match=r"Convert one of them"):
            score_spans(one, one.converted("bioes"))


class TestComparison:
    GOLD = (("B-PER", "I-PER", "O", "B-LOC"), ("B-ORG", "O"), ("O", "B-PER"))

    @given(pair=pairs(letters="BI"), seed=st.integers(0, 2**32 - 1))
    def test_a_few_sentences_are_compared_exactly(
        self, pair: tuple[list[list[str]], list[list[str]]], seed: int
    ) -> None:
        """Against all exchanges of all sentences, one by one."""
        gold, one = pair
        generator = np.random.default_rng(seed)
        other = [[tag if generator.random() < 0.5 else "O" for tag in row] for row in gold]
        found = compare_spans(gold, one, other, draws=20)
        assert found.difference == score_spans(gold, one).f1 - score_spans(gold, other).f1
        extreme = 0
        for swap in product((False, True), repeat=len(gold)):
            mine, yours = (
                [b if s else a for s, a, b in zip(swap, *rows, strict=True)] for rows in ((one, other), (other, one))
            )
            extreme += abs(score_spans(gold, mine).f1 - score_spans(gold, yours).f1) >= abs(found.difference) - 1e-12
        assert found.exact
        assert found.p == pytest.approx(extreme / 2 ** len(gold), abs=1e-12)

    def test_equal_predictions_do_not_differ(self) -> None:
        found = compare_spans(self.GOLD, self.GOLD, self.GOLD)
        assert (found.difference, found.p, found.interval, found.differing) == (0, 1, (0, 0), 0)

    def test_many_sentences_are_drawn_and_agree_with_the_sign_test(self) -> None:
        """One is right on 40 sentences of one span where the other finds nothing there, and the reverse on 20.

        Recall decides: with every exchange F1 is a rising function of how many the first gets, so the p-value is that
        of the sign test, 2 P(Bin(60, 1/2) >= 40) = 0.0135.
        """
        right, wrong = [["B-PER"]], [["O"]]
        gold = right * 60
        one, other = right * 40 + wrong * 20, wrong * 40 + right * 20
        found = compare_spans(gold, one, other, draws=20_000, seed=3)
        assert not found.exact
        assert found.p == pytest.approx(0.0135, abs=0.004)
        low, high = found.interval
        assert 0 < low < found.difference < high
        again = compare_spans(gold, one, other, draws=20_000, seed=3)
        assert again == found
        assert "F1 80.00 and 50.00: +30.00" in str(found)

    @pytest.mark.parametrize("sentences", [12, 60])  # all exchanges, and some
    def test_a_run_that_is_copied_proves_nothing_more(self, sentences: int) -> None:
        generator = np.random.default_rng(sentences)
        gold = [["B-PER", "O", "B-LOC"]] * sentences
        one, other = (
            [[tag if generator.random() < share else "O" for tag in row] for row in gold] for share in (0.8, 0.6)
        )
        once = compare_spans(gold, one, other, draws=500)
        found = compare_span_runs(gold, [one] * 5, [other] * 5, draws=500)
        assert once.exact == (sentences == 12)
        assert (found.p, found.interval, found.difference) == (once.p, once.interval, once.difference)
        assert found.one.overall.correct == 5 * once.one.overall.correct
        assert found.one.by_type["PER"].gold == 5 * sentences

    @given(pair=pairs(letters="BI"))
    def test_runs_are_exchanged_sentence_by_sentence(self, pair: tuple[list[list[str]], list[list[str]]]) -> None:
        """Against all exchanges of whole sentences, with the counts of all runs added up."""
        gold, first = pair
        nothing = [["O"] * len(row) for row in gold]
        ones, others = [gold, first], [first, nothing]
        found = compare_span_runs(gold, ones, others, draws=20)

        def f1(runs: list[list[list[str]]]) -> float:
            return score_spans(gold * 2, runs[0] + runs[1]).f1

        assert found.difference == pytest.approx(f1(ones) - f1(others), abs=1e-12)
        extreme = 0
        for swap in product((False, True), repeat=len(gold)):
            mine, yours = (
                [[b if s else a for s, a, b in zip(swap, *rows, strict=True)] for rows in zip(*sides, strict=True)]
                for sides in ((ones, others), (others, ones))
            )
            extreme += abs(f1(mine) - f1(yours)) >= abs(found.difference) - 1e-12
        assert found.p == pytest.approx(extreme / 2 ** len(gold), abs=1e-12)

    def test_bad_settings_are_refused(self) -> None:
        with pytest.raises(ArgumentError, match="draws=0"):
            compare_spans(self.GOLD, self.GOLD, self.GOLD, draws=0)
        with pytest.raises(LengthError, match="got 2 and 1 predictions"):
            compare_span_runs(self.GOLD, [self.GOLD] * 2, [self.GOLD])
        with pytest.raises(LengthError, match="one or more"):
            compare_span_runs(self.GOLD, [], [])
