"""The spans that the tags of a sentence stand for, by the rules of conlleval or by those of one tagging scheme."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from statewise.errors import ArgumentError
from statewise.heads.crf_constraints import SCHEMES as CHUNK_SCHEMES
from statewise.models.lexicon import SCHEMES

CONVENTIONS = ("conll", "strict")
OUTSIDE = "O"

_NOTHING = (OUTSIDE, ".")  # the letters of a token in no span; the point is of the times of bracket tags
_FIRST = ("B", "S", "[", "]")  # begin a span, whatever stands before; a bracket is a span of one token
_LAST = ("E", "S", "[", "]")  # end one


class Span(NamedTuple):
    """Some consecutive tokens of one type: from ``start`` up to, not including, ``stop``."""

    type: str
    start: int
    stop: int


def split_tag(tag: str) -> tuple[str, str]:
    """The letter and the type of a tag; a type may have hyphens, and none is the empty one.

    >>> split_tag("B-PER"), split_tag("I-art-work"), split_tag("O")
    (('B', 'PER'), ('I', 'art-work'), ('O', ''))
    """
    letter, _, kind = tag.partition("-")
    return letter, kind


def spans(tags: Sequence[str], convention: str = "conll", scheme: str | None = None) -> tuple[Span, ...]:
    """The spans of one sentence.

    By ``"conll"``, the rules of the script conlleval (version of 2004-01-26), every token that is not outside belongs
    to a span, however malformed the tags are. Between two tokens a span begins where the second one has B or S; where
    the types differ; and where an I or E follows what cannot be continued: O, E or S. So the letters of IOB1, IOB2, IOE
    and BIOES are all understood. (The script itself has no S, and no B after an E: in the schemes that it was written
    for there are none.)

    By ``"strict"`` only the spans count that are written as the scheme wants it, all others are nothing: of IOB2, a B
    and then only I; of BIOES, an S alone, or a B, then only I, then an E; of IOB1, a B or an I and then only I: a B
    where an I would do is in published data, and clear.

    Args:
        tags: one for each token.
        convention: ``"conll"`` or ``"strict"``.
        scheme: ``"iob1"``, ``"iob2"`` or ``"bioes"``; asked for by ``"strict"`` only.

    >>> spans(["B-PER", "I-PER", "O", "I-LOC"])
    (Span(type='PER', start=0, stop=2), Span(type='LOC', start=3, stop=4))
    >>> spans(["B-PER", "I-PER", "O", "I-LOC"], "strict", "iob2")
    (Span(type='PER', start=0, stop=2),)
    """
    check_convention("spans", convention, scheme)
    found = _conll_spans(tags)
    if convention == "conll":
        return found
    # What is well formed is what would be written for these spans.
    tags = _without_idle(tags, found) if scheme == "iob1" else tags
    written = write_tags(found, len(tags), str(scheme))
    return tuple(span for span in found if written[span.start : span.stop] == tuple(tags[span.start : span.stop]))


def write_tags(found: Iterable[Span], length: int, scheme: str) -> tuple[str, ...]:
    """The tags of a sentence that has these spans.

    Args:
        found: spans that do not overlap, in their order.
        length: how many tokens the sentence has.
        scheme: ``"iob1"``, ``"iob2"`` or ``"bioes"``.

    >>> write_tags([Span("PER", 0, 2), Span("PER", 2, 3)], 4, "iob1")
    ('I-PER', 'I-PER', 'B-PER', 'O')
    >>> write_tags([Span("PER", 0, 2), Span("PER", 2, 3)], 4, "bioes")
    ('B-PER', 'E-PER', 'S-PER', 'O')
    """
    check_scheme("write_tags", scheme, chunks=True)
    tags = [OUTSIDE] * length
    before = Span("", 0, 0)
    for span in found:
        kind, start, stop = span
        tags[start:stop] = [f"I-{kind}"] * (stop - start)
        touches = before.stop == start > 0 and before.type == kind
        if scheme == "bioes":
            tags[stop - 1] = f"E-{kind}"
            tags[start] = f"S-{kind}" if stop - start == 1 else f"B-{kind}"
        elif scheme == "iob2" or touches:
            tags[start] = f"B-{kind}"
        before = span
    return tuple(tags)


def check_scheme(where: str, scheme: str, *, chunks: bool = False) -> None:
    """Refuse what is no scheme; where spans are asked for, ``"none"`` too."""
    known = CHUNK_SCHEMES if chunks else SCHEMES
    if scheme not in known:
        remedy = "Tags of the scheme 'none' mark no spans." if scheme == "none" else ""
        raise ArgumentError(where=f"{where}.scheme", got=scheme, wanted=f"one of {', '.join(known)}", remedy=remedy)


def check_convention(where: str, convention: str, scheme: str | None) -> None:
    """Refuse what is no convention, and the strict one without a scheme."""
    if convention not in CONVENTIONS:
        raise ArgumentError(where=f"{where}.convention", got=convention, wanted=f"one of {', '.join(CONVENTIONS)}")
    if convention == "strict" and scheme is None:
        remedy = "Say scheme='iob2', or whichever the tags are in: what is well formed depends on it."
        raise ArgumentError(where=f"{where}.scheme", got=None, wanted="a scheme, to be strict by", remedy=remedy)
    if convention == "strict":
        check_scheme(where, str(scheme), chunks=True)


def first_letters(tags: Sequence[str], found: Iterable[Span]) -> Iterator[tuple[Span, str]]:
    """The spans at whose beginning IOB1 and IOB2 differ, which touch no other of their type before, and the letter.

    Args:
        tags: of a sentence.
        found: its spans, in their order.

    >>> tags = ["B-PER", "B-PER", "O", "I-LOC"]
    >>> [(span.type, letter) for span, letter in first_letters(tags, spans(tags))]
    [('PER', 'B'), ('LOC', 'I')]
    """
    before = Span("", 0, 0)
    for span in found:
        if before.stop != span.start or before.type != span.type:
            yield span, split_tag(tags[span.start])[0]
        before = span


def _without_idle(tags: Sequence[str], found: Sequence[Span]) -> list[str]:
    """Tags of IOB1 with an I for every B that does not divide two spans."""
    written = list(tags)
    for span, letter in first_letters(tags, found):
        if letter == "B":
            written[span.start] = f"I-{span.type}"
    return written


def _conll_spans(tags: Sequence[str]) -> tuple[Span, ...]:
    found: list[Span] = []
    last, start = OUTSIDE, -1  # a start of -1: no span is open
    for place, tag in enumerate(tags):
        begins, ends = _border(last, tag)
        if start >= 0 and ends:
            found.append(Span(split_tag(last)[1], start, place))
            start = -1
        if begins:
            start = place
        last = tag
    if start >= 0:
        found.append(Span(split_tag(last)[1], start, len(tags)))
    return tuple(found)


@lru_cache(maxsize=2**14)  # there are few different tags, and many tokens
def _border(last: str, tag: str) -> tuple[bool, bool]:
    """Whether between two tokens a span begins, and whether one ends if there is one before."""
    (letter_before, type_before), (letter, kind) = split_tag(last), split_tag(tag)
    if letter in _NOTHING:
        return False, letter == OUTSIDE or type_before != kind or letter_before in _LAST
    fresh = letter in _FIRST or type_before != kind
    begins = fresh or (letter in ("I", "E") and letter_before in (OUTSIDE, *_LAST))
    return begins, begins or letter_before in _LAST
