"""IOB1, IOB2 and BIOES: the same spans in other letters."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statewise.data import Span, TaggedSentences, convert_tags, detect_scheme, score_spans, spans
from statewise.data.spans import write_tags
from statewise.data.tag_schemes import find_malformed, find_unknown
from statewise.errors import ArgumentError, DtypeError, LengthError

CHUNKS = ("iob1", "iob2", "bioes")
TYPES = ("PER", "LOC", "art-work")
EVERY_PAIR = pytest.mark.parametrize(("source", "target"), [(one, other) for one in CHUNKS for other in CHUNKS])


@st.composite
def sentences_of_spans(draw: st.DrawFn) -> tuple[tuple[Span, ...], int]:
    """Spans that do not overlap but often touch, and the number of tokens."""
    cuts = sorted(draw(st.sets(st.integers(0, 12), min_size=2)))
    kinds = draw(st.lists(st.sampled_from((None, *TYPES)), min_size=len(cuts), max_size=len(cuts)))
    found = [Span(kind, *pair) for kind, pair in zip(kinds, pairwise(cuts), strict=False) if kind]
    return tuple(found), cuts[-1] + draw(st.integers(0, 3))


class TestConversion:
    @given(sentence=sentences_of_spans())
    def test_every_convention_finds_the_spans_that_were_written(self, sentence: tuple[tuple[Span, ...], int]) -> None:
        found, length = sentence
        for scheme in CHUNKS:
            tags = write_tags(found, length, scheme)
            assert spans(tags) == spans(tags, "strict", scheme) == found
            assert find_unknown([tags], scheme) is None
            assert find_malformed([tags], scheme) is None

    @EVERY_PAIR
    @given(sentence=sentences_of_spans())
    def test_there_and_back_is_where_it_began(
        self, source: str, target: str, sentence: tuple[tuple[Span, ...], int]
    ) -> None:
        tags = write_tags(*sentence, source)
        there = convert_tags(tags, source, target)
        assert there == write_tags(*sentence, target)
        assert convert_tags(there, target, source) == tags

    def test_a_known_sentence(self) -> None:
        iob1 = ["I-PER", "I-PER", "B-PER", "O", "I-LOC", "I-ORG", "I-ORG", "B-ORG"]
        iob2 = ("B-PER", "I-PER", "B-PER", "O", "B-LOC", "B-ORG", "I-ORG", "B-ORG")
        bioes = ("B-PER", "E-PER", "S-PER", "O", "S-LOC", "B-ORG", "E-ORG", "S-ORG")
        assert convert_tags(iob1, "iob1", "iob2") == iob2
        assert convert_tags(iob2, "iob2", "bioes") == bioes
        assert convert_tags(bioes, "bioes", "iob1") == tuple(iob1)

    def test_tags_without_spans_become_nothing_else(self) -> None:
        assert convert_tags(["NNP", "VBZ"], "none", "none") == ("NNP", "VBZ")
        with pytest.raises(ArgumentError, match="two schemes of spans, or 'none' twice"):
            convert_tags(["NNP"], "none", "iob2")
        with pytest.raises(ArgumentError, match=r"convert_tags\.scheme: got 'bilou'|convert_tags\.scheme: got bilou"):
            convert_tags(["O"], "bilou", "iob2")

    def test_a_foreign_tag_is_named(self) -> None:
        with pytest.raises(ArgumentError, match="token 1: got 'E-PER', wanted 'O', or one of B- I- and a type"):
            convert_tags(["O", "E-PER"], "iob2", "bioes")


class TestDetection:
    @given(sentence=sentences_of_spans())
    def test_what_is_written_in_a_scheme_agrees_with_the_one_found(
        self, sentence: tuple[tuple[Span, ...], int]
    ) -> None:
        """Some tags agree with several; whichever is found, it gives the same spans."""
        for scheme in CHUNKS:
            tags = write_tags(*sentence, scheme)
            found = detect_scheme([tags])
            assert find_unknown([tags], found) is None
            assert find_malformed([tags], found) is None
            assert spans(tags, "strict", found) == sentence[0]

    @pytest.mark.parametrize(
        ("rows", "scheme"),
        [
            ([["I-PER", "B-PER"], ["I-LOC"]], "iob1"),
            ([["I-PER", "O"], ["B-PER"]], "iob2"),
            ([["I-PER", "O"]] * 20 + [["B-MISC"], ["I-PER", "B-MISC"]], "iob1"),
            ([["B-PER", "I-PER"], ["O"]], "iob2"),
            ([["B-PER", "B-PER"]], "iob2"),
            ([["S-PER", "O"]], "bioes"),
            ([["B-PER", "E-PER"]], "bioes"),
            ([["O", "O"]], "iob2"),
            ([["NNP", "-LRB-", "O"]], "none"),
            ([["B", "I", "O"]], "none"),
        ],
    )
    def test_known_cases(self, rows: list[list[str]], scheme: str) -> None:
        assert detect_scheme(rows) == scheme

    def test_a_slip_does_not_change_the_scheme(self) -> None:
        rows = [["O", "B-LOC"]] * 500 + [["O", "I-LOC"]]
        assert detect_scheme(rows) == "iob2"
        assert find_malformed(rows, "iob2") == (500, 1, "'I-LOC' after 'O'", "'B-LOC' there")
        read = TaggedSentences.of(rows, rows, scheme="iob1")
        assert score_spans(read, read, "strict").overall == (counts := score_spans(read, read).overall)
        assert counts.gold == 501

    @pytest.mark.parametrize(
        ("tags", "scheme", "token", "got", "wanted"),
        [
            (["O", "I-PER"], "iob2", 1, "'I-PER' after 'O'", "'B-PER' there"),
            (["I-PER"], "iob2", 0, "'I-PER' at the beginning", "'B-PER' there"),
            (["B-PER", "I-LOC"], "iob2", 1, "'I-LOC' after 'B-PER'", "'B-LOC' there"),
            (["B-PER", "O"], "bioes", 0, "'B-PER' before 'O'", "'S-PER' there"),
            (["B-PER", "I-PER"], "bioes", 1, "'I-PER' at the end", "'E-PER' there"),
            (["O", "E-PER"], "bioes", 1, "'E-PER' after 'O'", "'S-PER' there"),
        ],
    )
    def test_what_is_malformed_is_named(self, tags: list[str], scheme: str, token: int, got: str, wanted: str) -> None:
        assert find_malformed([["O"], tags], scheme) == (1, token, got, wanted)


class TestTaggedSentences:
    DATA = TaggedSentences.of(
        [["Ada", "met", "Paris"], ["Oslo"]], [["I-PER", "O", "I-PER"], ["I-LOC"]], scheme="iob1", name="two"
    )

    def test_it_counts(self) -> None:
        assert (len(self.DATA), self.DATA.tokens, self.DATA.lengths.tolist()) == (2, 4, [3, 1])
        assert self.DATA.tag_names == ("O", "I-LOC", "I-PER")
        assert self.DATA.spans_by_type() == {"LOC": 1, "PER": 2}
        assert self.DATA.word_counts()["Ada"] == 1

    def test_parts_and_joins(self) -> None:
        assert self.DATA[1] == (("Oslo",), ("I-LOC",))
        assert TaggedSentences.join([self.DATA[:1], self.DATA[1:]], name="two") == self.DATA
        assert self.DATA.select([1, 0]).sentences == (("Oslo",), ("Ada", "met", "Paris"))
        assert dict(self.DATA) == dict(zip(self.DATA.sentences, self.DATA.tags, strict=True))
        assert self.DATA.converted("bioes").converted("iob1") == self.DATA
        with pytest.raises(ArgumentError, match="bioes and iob1"):
            TaggedSentences.join([self.DATA, self.DATA.converted("bioes")])

    def test_faults_are_refused(self) -> None:
        with pytest.raises(LengthError, match="sentence 1: got 2 tags"):
            TaggedSentences.of([["a"], ["b"]], [["O"], ["O", "O"]])
        with pytest.raises(LengthError, match="sentence 0: got no tokens"):
            TaggedSentences.of([[]], [[]])
        with pytest.raises(LengthError, match="tags of 0 sentences"):
            TaggedSentences.of([["a"]], [])
        with pytest.raises(ArgumentError, match="sentence 0, token 1: got nothing"):
            TaggedSentences.of([["a", ""]], [["O", "O"]])
        with pytest.raises(ArgumentError, match="sentence 0, token 0: got 'B-'"):
            TaggedSentences.of([["a"]], [["B-"]], scheme="iob2")

    @pytest.mark.usefixtures("as_users_have_it")
    def test_lists_are_refused_with_what_takes_them(self) -> None:
        with pytest.raises(DtypeError, match=r"TaggedSentences\.of takes lists"):
            TaggedSentences([["a"]], [["O"]])  # type: ignore[arg-type]
