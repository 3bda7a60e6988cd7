"""Tagged sentences from files, whatever form they have; and sentences without tags, to be tagged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from statewise.data.tables import Column, name_ending, refuse_row, without_archive
from statewise.data.tag_schemes import Fault, detect_scheme, find_malformed, find_unknown, from_bilou
from statewise.data.tagged import Rows, TaggedSentences
from statewise.data.tagged_columns import DOCUMENT, RawSentence, column_sentences, split_blanks, whole_lines
from statewise.data.tagged_tables import json_sentences, name_of, names_tagged, table_sentences
from statewise.data.text import Text
from statewise.errors import ArgumentError, DataError
from statewise.models.lexicon import SCHEMES

KINDS = ("columns", "conllu", "jsonl", "csv", "tsv")
#: What may be said of the scheme of a file.
READ_SCHEMES = ("auto", *SCHEMES, "bilou")

_FIRST_AND_LAST, _DEPENDENCIES = (0, -1), (1, 3)  # the columns of tokens and tags
_AS_BIOES = ("auto", "bioes", "bilou")  # of which BILOU's letters are read as those of BIOES
_SURROGATE = "\ud800-\udfff"  # half a character, which JSON can write and no file in UTF-8 can hold
_NO_CHARACTER = re.compile(f"[{_SURROGATE}]")
_NO_TOKEN = re.compile(f"[\r\n{_SURROGATE}]")
_NO_TAG = re.compile(rf"[\s{_SURROGATE}]")


def read_tagged(
    path: Path | str,
    *,
    token: Column | None = None,
    tag: Column | None = None,
    sentence: Column | None = None,
    scheme: str = "auto",
    malformed: str = "refuse",
    documents: str = "drop",
    comments: bool = False,
    tag_names: Sequence[str] | None = None,
    kind: str | None = None,
    name: str | None = None,
) -> TaggedSentences:
    r"""Read tagged sentences.

    The name of the file says what it is, ``.gz``, ``.xz`` or ``.bz2`` behind it set aside:

    - ``.jsonl``: an object a line, with a list of tokens and one of tags, e.g. ``{"tokens": [...], "tags": [...]}``.
    - ``.csv``, ``.tsv``: a table with a header; a token a row, with columns such as ``sentence``, ``token``, ``tag``;
      or a sentence a row, with ``tokens`` and ``tags``, each a text with blanks between. A TSV without such a header is
      in columns.
    - ``.conllu``: the columns of Universal Dependencies, with comments; words are in column 1, their universal part of
      speech, which is the tag if no other column is named, in column 3. Ranges of words such as ``1-2`` and empty nodes
      such as ``8.1`` are left out.
    - any other: columns, as of CoNLL: a token a line, tabs or blanks between the columns, a blank line after a
      sentence.

    Args:
        path: the file, plain or compressed.
        token: where the tokens are. In columns by place, from 0, or from the end where it is negative; None for the
            first one (CoNLL-U: 1). In tables by name or place, in objects by name; None for one of the usual names.
        tag: where the tags are, likewise; in columns None is for the last one.
        sentence: where a table has the name or the number of a token's sentence; None for one of the usual names.
        scheme: ``"iob1"``, ``"iob2"``, ``"bioes"`` or ``"none"``; ``"auto"`` finds it out, see `detect_scheme`. Tags
            of BILOU become those of BIOES, with ``"auto"``, ``"bioes"`` and ``"bilou"``.
        malformed: what to do about a tag that cannot stand where it does, such as an I of IOB2 after an O: ``"refuse"``
            it, or ``"repair"`` it by the rules of conlleval.
        documents: ``"drop"`` leaves out the lines of ``-DOCSTART-`` that divide documents; ``"keep"`` has each as a
            sentence.
        comments: whether lines in columns that begin with ``#`` are comments; in columns with tabs only those without
            a tab. Otherwise such a line is a row whose token begins with ``#``, and refused only if it has more or
            fewer columns than others, or if its last word is no tag: ``# #`` is a row of published data.
        tag_names: the names of tags that JSONL has as numbers, in order.
        kind: ``"columns"``, ``"conllu"``, ``"jsonl"``, ``"csv"`` or ``"tsv"``, where the name does not say.
        name: what to call the sentences; None for the name of the file.

    Raises:
        DataError: the file is absent or malformed; names the line and the field. So is a token with a line end and a
            tag with white space: neither could be written in columns.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.conll")
    ...     _ = path.write_text("Ada NNP I-PER\nwrote VBD O\n\nParis NNP I-LOC\n")
    ...     read_tagged(path)
    TaggedSentences(two.conll: 2 sentences, 3 tokens, 1 LOC, 1 PER; iob1)
    """
    if scheme not in READ_SCHEMES:
        raise ArgumentError(where="read_tagged.scheme", got=scheme, wanted=f"one of {', '.join(READ_SCHEMES)}")
    if malformed not in ("refuse", "repair"):
        raise ArgumentError(where="read_tagged.malformed", got=malformed, wanted="'refuse' or 'repair'")
    source = _Source("read_tagged", Path(path), kind or kind_of(Path(path)), documents, comments)
    raw = list(source.sentences(token, tag, sentence, tagged=True, tag_names=tag_names))
    if not raw:
        raise DataError(where=str(path), got="no sentences", wanted="a token and its tag in each row")
    tags = tuple(tuple(found.tags) for found in raw)
    bilou = from_bilou(tags) if scheme in _AS_BIOES else None
    tags = tags if bilou is None else bilou
    found = detect_scheme(tags) if scheme == "auto" else scheme.replace("bilou", "bioes")
    if fault := find_unknown(tags, found):
        comment = source.kind == "columns" and raw[fault.sentence].tokens[fault.token].startswith("#")
        remedy = (
            "If it is a comment, say comments=True." if comment else "If the tags mark no spans, say scheme='none'."
        )
        source.refuse(raw, fault, remedy if found != "none" else "")
    read = TaggedSentences(_tokens(raw), tags, found, without_archive(Path(path)) if name is None else name)
    if fault := find_malformed(tags, found):
        if malformed == "refuse":
            letters = "" if bilou is None else "L is read as E, and U as S. "
            remedy = "Say malformed='repair' to read it as conlleval does, or another scheme."
            source.refuse(raw, fault, letters + remedy)
        return read.converted(found)
    return read


def read_sentences(
    path: Path | str,
    *,
    token: Column | None = None,
    sentence: Column | None = None,
    documents: str = "drop",
    comments: bool = False,
    kind: str | None = None,
) -> Rows:
    r"""Read sentences without tags, to be tagged.

    A file whose name ends in ``.txt`` is plain text, one sentence a line, tokens between blanks; a line without tokens
    is no sentence. All other forms are those of `read_tagged`, whose tags are left aside, if there are any.

    Args:
        path: the file, plain or compressed.
        token: where the tokens are, as for `read_tagged`.
        sentence: where the sentences' names or numbers are, as for `read_tagged`.
        documents: ``"drop"`` leaves out the lines of ``-DOCSTART-`` in columns; ``"keep"`` does not.
        comments: as for `read_tagged`.
        kind: ``"text"``, ``"columns"``, ``"conllu"``, ``"jsonl"``, ``"csv"`` or ``"tsv"``, where the name does not say.

    Raises:
        DataError: the file is absent or malformed; names the line and the field.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "new.txt")
    ...     _ = path.write_text("Ada wrote .\nParis sleeps .\n")
    ...     read_sentences(path)
    (('Ada', 'wrote', '.'), ('Paris', 'sleeps', '.'))
    """
    place = Path(path)
    found = kind or ("text" if name_ending(place) == "txt" else kind_of(place))
    if found == "text":
        rows = tuple(tuple(tokens) for _, line in whole_lines(place) if (tokens := split_blanks(line)))
    else:
        source = _Source("read_sentences", place, found, documents, comments)
        rows = _tokens(list(source.sentences(token, None, sentence, tagged=False, tag_names=None)))
    if not rows:
        raise DataError(where=str(path), got="no sentences", wanted="one or more")
    return rows


@dataclass(frozen=True)
class _Source:
    """A file, and in which form it is."""

    caller: str
    path: Path
    kind: str
    documents: str
    comments: bool

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ArgumentError(where=f"{self.caller}.kind", got=self.kind, wanted=f"one of {', '.join(KINDS)}")
        if self.documents not in ("drop", "keep"):
            raise ArgumentError(where=f"{self.caller}.documents", got=self.documents, wanted="'drop' or 'keep'")

    def sentences(
        self,
        token: Column | None,
        tag: Column | None,
        sentence: Column | None,
        *,
        tagged: bool,
        tag_names: Sequence[str] | None,
    ) -> Iterator[RawSentence]:
        """The sentences; those that only begin a document are left out where that is wanted, in whatever form.

        Raises:
            DataError: the file is malformed, or a token or a tag has a sign that no column can hold.
        """
        if self.kind == "jsonl":
            names = (name_of(f"{self.caller}.{what}", asked) for what, asked in (("token", token), ("tag", tag)))
            found = json_sentences(self.path, *names, tagged=tagged, tag_names=tag_names)
        elif self.kind == "csv" or (self.kind == "tsv" and self._has_header(token, tag, sentence)):
            found = table_sentences(self.path, self.kind, token=token, tag=tag, sentence=sentence, tagged=tagged)
        else:
            dependencies = self.kind == "conllu"
            usual = _DEPENDENCIES if dependencies else _FIRST_AND_LAST
            token, tag = usual[0] if token is None else token, (usual[1] if tag is None else tag) if tagged else None
            if isinstance(token, str) or isinstance(tag, str):
                wanted = "the place of a column, from 0: a file in columns has no names"
                raise ArgumentError(where=f"{self.caller}.token and tag", got=(token, tag), wanted=wanted)
            found = column_sentences(
                self.path,
                token=token,
                tag=tag,
                documents=self.documents,
                comments=self.comments or dependencies,
                dependencies=dependencies,
            )
        for each in found:
            if self.documents == "drop" and tuple(each.tokens) == (DOCUMENT,):
                continue
            # Whoever only tags sentences may write them as objects, which hold line ends.
            self._check_signs(each, each.tokens, _NO_TOKEN if tagged else _NO_CHARACTER, "token")
            self._check_signs(each, each.tags, _NO_TAG, "tag")
            yield each

    def refuse(self, raw: list[RawSentence], fault: Fault, remedy: str) -> NoReturn:
        """Raise the error of a tag, with the line that it stands in."""
        found = raw[fault.sentence]
        several = len(set(found.lines)) == 1 < len(found.tokens)
        got = f"{fault.got} for token {fault.token}" if several else fault.got
        refuse_row(self.path, found.lines[fault.token], got, fault.wanted, remedy, field=found.field)

    def _check_signs(self, found: RawSentence, words: Sequence[str], refused: re.Pattern[str], what: str) -> None:
        if not refused.search("".join(words)):
            return
        place = next(place for place, word in enumerate(words) if refused.search(word))
        wanted = f"a {what} " + ("without white space" if what == "tag" else "without line ends, of whole characters")
        refuse_row(self.path, found.lines[place], f"{words[place]!a} as {what} {place}", wanted)

    def _has_header(self, *asked: Column | None) -> bool:
        if any(isinstance(column, str) for column in asked):
            return True
        first = next((line for line in Text(path=self.path).lines() if line.strip()), "")
        return names_tagged(first.split("\t"))


def kind_of(path: Path) -> str:
    """What a file of tagged sentences is, by its name.

    Args:
        path: of the file, perhaps compressed.

    >>> kind_of(Path("eng.train.xz")), kind_of(Path("a.jsonl"))
    ('columns', 'jsonl')
    """
    ending = name_ending(path)
    return ending if ending in KINDS else "columns"


def _tokens(raw: list[RawSentence]) -> Rows:
    return tuple(tuple(found.tokens) for found in raw)
