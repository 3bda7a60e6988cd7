"""Ways to write spans as tags, one a token: IOB1, IOB2 and BIOES; which one some tags are in, and from each to each.

========  ==========================================================================================================
IOB1      ``I-X`` in a span of type X, ``B-X`` at its first token where it touches another one of the same type
IOB2      ``B-X`` at the first token of every span, ``I-X`` at the others; also called BIO
BIOES     ``S-X`` for a span of one token; else ``B-X`` at the first, ``E-X`` at the last, ``I-X`` between; or IOBES;
          BILOU is the same in other letters, and read as BIOES: ``L-X`` for ``E-X``, ``U-X`` for ``S-X``
none      tags that mark no spans, such as parts of speech
========  ==========================================================================================================

Every scheme has ``O`` for a token that is in no span.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from statewise.data.spans import OUTSIDE, check_scheme, first_letters, spans, split_tag, write_tags
from statewise.errors import ArgumentError

LETTERS = {"iob1": "BI", "iob2": "BI", "bioes": "BIES"}
#: What BILOU calls the letters of BIOES.
BILOU = {"L": "E", "U": "S"}
_ALL = "BIES"
_CLEAR = 10  # so many spans begin with I for each that begins with an idle B, or IOB1 is not what is meant


class Fault(NamedTuple):
    """A tag that is not as its scheme wants it: the sentence and the token, from 0, and the tag in words."""

    sentence: int
    token: int
    got: str
    wanted: str


def convert_tags(tags: Sequence[str], source: str, target: str) -> tuple[str, ...]:
    """The tags of one sentence in another scheme; the spans stay the same.

    What is malformed is read by the rules of conlleval, see `spans`, and written as it should be. So a conversion to
    the own scheme repairs.

    Args:
        tags: one for each token.
        source: the scheme that they are in.
        target: the scheme that is wanted. Only tags of ``"none"`` become ``"none"``, and they nothing else.

    >>> convert_tags(["I-PER", "I-PER", "B-PER", "O"], "iob1", "bioes")
    ('B-PER', 'E-PER', 'S-PER', 'O')

    Raises:
        ArgumentError: a tag is none of the source's.
    """
    check_scheme("convert_tags", source)
    check_scheme("convert_tags", target)
    if (source == "none") != (target == "none"):
        wanted = "two schemes of spans, or 'none' twice"
        raise ArgumentError(where="convert_tags", got=f"{source!r} and {target!r}", wanted=wanted)
    if source == "none":
        return tuple(tags)
    if fault := find_unknown([tags], source):
        raise ArgumentError(where=f"convert_tags.tags, token {fault.token}", got=fault.got, wanted=fault.wanted)
    return write_tags(spans(tags), len(tags), target)


def detect_scheme(sentences: Iterable[Sequence[str]]) -> str:
    """The scheme that these tags are in, but for slips.

    ``"none"`` if no tag looks like that of a span (a letter B, I, E or S, a hyphen, a type). Else ``"bioes"`` if there
    is an E or an S. Else what spans begin with tells, but for those that touch one of their type: ``"iob1"`` if it is
    I, and at most a tenth as often B, as twice in CoNLL-2003; ``"iob2"`` otherwise, so that a stray I after an O does
    not make IOB1 of it, but is what `find_malformed` finds.

    Of BILOU make BIOES first: `from_bilou`.

    Args:
        sentences: the tags of each sentence.

    >>> detect_scheme([["I-PER", "O"]]), detect_scheme([["B-PER", "O"]]), detect_scheme([["NNP", "VBZ"]])
    ('iob1', 'iob2', 'none')
    """
    rows = list(sentences)
    distinct = {tag for row in rows for tag in row}
    if not any(_marks_span(tag, _ALL) for tag in distinct):
        # Sentences without any span are good in every scheme; nothing but O is more likely theirs than of words.
        return "iob2" if distinct == {OUTSIDE} else "none"
    if any(split_tag(tag)[0] in ("E", "S") for tag in distinct if _marks_span(tag, _ALL)):
        return "bioes"
    begun = Counter(letter for row in rows for _, letter in first_letters(row, spans(row)))
    return "iob1" if begun["I"] and begun["I"] >= _CLEAR * begun["B"] else "iob2"


def from_bilou(sentences: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...] | None:
    """Tags of BILOU as those of BIOES; None if these are not BILOU's: no L and no U, or other letters too.

    Args:
        sentences: the tags of each sentence.

    >>> from_bilou([["B-PER", "L-PER", "U-LOC"]]), from_bilou([["B-PER", "E-PER"]])
    ((('B-PER', 'E-PER', 'S-LOC'),), None)
    """
    distinct = {tag for row in sentences for tag in row}
    if not any(_marks_span(tag, "LU") for tag in distinct):
        return None
    if not all(tag == OUTSIDE or _marks_span(tag, "BILU") for tag in distinct):
        return None
    written = {tag: "-".join((BILOU.get(tag[0], tag[0]), tag[2:])) if tag != OUTSIDE else tag for tag in distinct}
    return tuple(tuple(written[tag] for tag in row) for row in sentences)


def find_unknown(sentences: Sequence[Sequence[str]], scheme: str) -> Fault | None:
    """The first tag that a scheme does not have, wherever it stands, such as ``X-PER`` or ``B-``; None if it has all.

    >>> find_unknown([["O", "X-PER"]], "iob2")
    Fault(sentence=0, token=1, got="'X-PER'", wanted="'O', or one of B- I- and a type")
    """
    check_scheme("find_unknown", scheme)
    distinct = {tag for row in sentences for tag in row}
    wrong = {tag for tag in distinct if not _is_known(tag, scheme)}
    if not wrong:
        return None
    at, place = next((at, place) for at, row in enumerate(sentences) for place, tag in enumerate(row) if tag in wrong)
    wanted = "a tag" if scheme == "none" else f"'O', or one of {' '.join(f'{x}-' for x in LETTERS[scheme])} and a type"
    return Fault(at, place, repr(sentences[at][place]), wanted)


def find_malformed(sentences: Sequence[Sequence[str]], scheme: str) -> Fault | None:
    """The first tag that cannot stand where it does, such as an I of IOB2 after an O; None if there is none.

    Of IOB1 there is none: a B where an I would do is in published data, and clear.

    >>> find_malformed([["O", "I-PER"]], "iob2")
    Fault(sentence=0, token=1, got="'I-PER' after 'O'", wanted="'B-PER' there")
    """
    check_scheme("find_malformed", scheme)
    if scheme in ("none", "iob1"):
        return None
    for at, row in enumerate(sentences):
        written = write_tags(spans(row), len(row), scheme)
        if written == tuple(row):
            continue
        place = next(place for place, tag in enumerate(row) if tag != written[place])
        # The end of a span of BIOES is told by what follows, all else by what stands before.
        ends = split_tag(written[place])[0] in ("E", "S") and split_tag(row[place])[0] in ("B", "I")
        other = (row[place + 1] if place + 1 < len(row) else None) if ends else (row[place - 1] if place else None)
        beside = f"{'before' if ends else 'after'} {other!r}" if other else f"at the {'end' if ends else 'beginning'}"
        return Fault(at, place, f"{row[place]!r} {beside}", f"{written[place]!r} there")
    return None


def _is_known(tag: str, scheme: str) -> bool:
    return bool(tag) if scheme == "none" else tag == OUTSIDE or _marks_span(tag, LETTERS[scheme])


def _marks_span(tag: str, letters: str) -> bool:
    letter, kind = split_tag(tag)
    return len(letter) == 1 and letter in letters and bool(kind)
