"""Tagged sentences from columns, JSONL and tables."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statewise.data import read_sentences, read_tagged
from statewise.errors import ArgumentError, DataError
from support import shared_data

SENTENCES = (("U.N.", "official", "Ekeus", "1\u00a0000"), ("Bagh\u0085dad", "."))
TAGS = (("I-ORG", "O", "I-PER", "O"), ("I-LOC", "O"))
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}


def write(path: Path, content: str) -> Path:
    path.write_bytes(PACKED[path.suffix if path.suffix in PACKED else ""](content.encode()))
    return path


def rows(glue: str = " ", end: str = "\n") -> str:
    """The sentences in three columns, of which the second is the same everywhere."""
    return end.join(
        "".join(glue.join((token, "NN", tag)) + end for token, tag in zip(*pair, strict=True))
        for pair in zip(SENTENCES, TAGS, strict=True)
    )


class TestColumns:
    @pytest.mark.parametrize("packed", PACKED)
    @pytest.mark.parametrize(
        ("glue", "end"), [(" ", "\n"), ("\t", "\n"), ("  ", "\r\n"), ("\t", "\r\n"), ("   ", "\n")]
    )
    def test_blanks_tabs_line_ends_and_archives(self, tmp_path: Path, packed: str, glue: str, end: str) -> None:
        data = read_tagged(write(tmp_path / f"eng.train{packed}", rows(glue, end)))
        assert (data.sentences, data.tags, data.scheme, data.name) == (SENTENCES, TAGS, "iob1", "eng.train")

    def test_blank_lines_may_be_many_and_hold_blanks(self, tmp_path: Path) -> None:
        content = "\n \t\n" + rows().replace("\n\n", "\n \n\n\n") + "\n\n"
        assert read_tagged(write(tmp_path / "a.conll", content)).sentences == SENTENCES

    def test_columns_are_chosen_from_either_end(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.conll", "1 the DT O\n2 cat NN I-X\n")
        assert read_tagged(path, token=1, tag=2).tags == (("DT", "NN"),)
        assert read_tagged(path, token=-3).sentences == (("the", "cat"),)
        assert read_sentences(path, token=1) == (("the", "cat"),)

    def test_documents_are_dropped_or_kept(self, tmp_path: Path) -> None:
        content = "-DOCSTART- -X- O\n\na NN O\n-DOCSTART-\nb NN I-X\n"
        assert read_tagged(write(tmp_path / "a.conll", content)).sentences == (("a",), ("b",))
        content = "-DOCSTART- -X- O\n\na NN O\n"
        kept = read_tagged(write(tmp_path / "a.conll", content), documents="keep")
        assert kept.sentences == (("-DOCSTART-",), ("a",))

    @pytest.mark.parametrize("documents", ["drop", "keep"])
    def test_within_a_sentence_the_marker_of_documents_is_a_word(self, tmp_path: Path, documents: str) -> None:
        path = write(tmp_path / "a.conll", "the O\n-DOCSTART- O\nline O\n\na -DOCSTART-\n")
        found = read_tagged(path, documents=documents, scheme="none")
        assert found.sentences == (("the", "-DOCSTART-", "line"), ("a",))
        assert found.tags == (("O", "O", "O"), ("-DOCSTART-",))
        path = write(tmp_path / "b.conll", "the\n-DOCSTART-\nline\n")
        assert read_sentences(path, documents=documents) == (("the", "-DOCSTART-", "line"),)

    @pytest.mark.parametrize("marker", ["-DOCSTART- -DOCSTART- O", "-DOCSTART-", " -DOCSTART- O", "0 -DOCSTART- O"])
    def test_a_marker_needs_no_blank_line_after_it(self, tmp_path: Path, marker: str) -> None:
        path = write(tmp_path / "a.conll", f"{marker}\n1 De O\n2 kat O\n\n{marker}\n1 Nu O\n")
        assert read_tagged(path, token=1).sentences == (("De", "kat"), ("Nu",))
        assert read_tagged(path, token=1, documents="keep").sentences[::2] == (("-DOCSTART-",), ("-DOCSTART-",))

    def test_comments_are_left_out_where_that_is_said(self, tmp_path: Path) -> None:
        content = "# sent_id = 1\n# text = # it\n1\t#\tSYM\n2\tit\tPRP\n"
        path = write(tmp_path / "a.tab", content)
        assert read_tagged(path, token=1, comments=True).sentences == (("#", "it"),)
        content = "# a comment of any length\na O\n\n# more\nb O\n"
        assert len(read_tagged(write(tmp_path / "a.conll", content), comments=True)) == 2
        with pytest.raises(DataError, match=r"line 4: got 2 columns, wanted 3, as in the first row\. If it"):
            read_tagged(write(tmp_path / "a.conll", "a NN O\nb NN O\n\n# more\n"))

    @pytest.mark.parametrize(
        ("content", "error"),
        [
            ("a NN O\nb O\n", "a.conll, line 2: got 2 columns, wanted 3, as in the first row"),
            ("a NN B-X\n\nb NN X-PER\n", "line 3, field 2: got 'X-PER', wanted 'O', or one of B- I- and a type"),
            ("a NN B-X\nb NN B-\n", "line 2, field 2: got 'B-'"),
            ("a\tNN\tO\n\tNN\tO\n", "line 2, field 0: got nothing, wanted a token"),
            ("a\tNN\tO\nb\tNN\t\n", "line 2, field 2: got nothing, wanted a tag"),
            (" NN O\n", "line 1, field 0: got nothing, wanted a token"),
            ("a O\rb O\n", r"a.conll, line 1: got a carriage return \(.r\) inside"),
            ("a O\nb O\r\r\n", r"a.conll, line 2: got a carriage return"),
            ("a\nb\n", "line 1: got column 0 of 1 for both, wanted a token and its tag in two columns"),
            ("a B-X\n# text\n", r"line 2, field 1: got 'text'.*If it is a comment, say comments=True"),
            ("\n\n", "a.conll: got no sentences"),
            ("", "line 1: got an empty file"),
        ],
    )
    def test_faults_are_named_with_line_and_field(self, tmp_path: Path, content: str, error: str) -> None:
        with pytest.raises(DataError, match=error):
            read_tagged(write(tmp_path / "a.conll", content))

    def test_a_column_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="line 1: got 2 columns, wanted a column 5 for the token"):
            read_tagged(write(tmp_path / "a.conll", "a O\n"), token=5)
        with pytest.raises(ArgumentError, match="the place of a column"):
            read_tagged(write(tmp_path / "a.conll", "a O\n"), token="word")

    def test_malformed_tags_are_refused_or_repaired(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.conll", "a O\nb I-X\n")
        with pytest.raises(DataError, match="line 2, field 1: got 'I-X' after 'O', wanted 'B-X' there"):
            read_tagged(path, scheme="iob2")
        assert read_tagged(path, scheme="iob2", malformed="repair").tags == (("O", "B-X"),)
        assert read_tagged(path).scheme == "iob1"
        path = write(tmp_path / "a.conll", "a B-X\n\n" * 50 + "a O\nb I-X\n")
        with pytest.raises(DataError, match=r"line 102, field 1: got 'I-X' after 'O', wanted 'B-X' there\. Say malf"):
            read_tagged(path)

    @pytest.mark.parametrize("scheme", ["auto", "bioes", "bilou"])
    def test_bilou_is_read_as_bioes(self, tmp_path: Path, scheme: str) -> None:
        path = write(tmp_path / "a.conll", "a B-X\nb L-X\nc U-Y\nd O\n")
        data = read_tagged(path, scheme=scheme)
        assert (data.tags, data.scheme) == ((("B-X", "E-X", "S-Y", "O"),), "bioes")
        assert read_tagged(path, scheme="none").tag_names == ("O", "B-X", "L-X", "U-Y")
        with pytest.raises(DataError, match=r"line 1, field 1: got 'B-X' before 'S-X'.*U as S"):
            read_tagged(write(tmp_path / "a.conll", "a B-X\nb U-X\n"), scheme=scheme)
        with pytest.raises(DataError, match="got 'U-X', wanted 'O', or one of B- I- E- S-"):
            read_tagged(write(tmp_path / "a.conll", "a S-X\nb U-X\n"), scheme=scheme)

    def test_parts_of_speech_have_no_scheme(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.conll", "a DT\ncat NN\n( -LRB-\n")
        assert read_tagged(path).scheme == "none"
        with pytest.raises(DataError, match=r"field 1: got 'DT'.*say scheme='none'"):
            read_tagged(path, scheme="iob2")

    @pytest.mark.parametrize("wrong", [{"scheme": "bio"}, {"documents": "cut"}, {"kind": "xml"}, {"malformed": "?"}])
    def test_unknown_settings_are_refused(self, tmp_path: Path, wrong: dict[str, Any]) -> None:
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            read_tagged(write(tmp_path / "a.conll", "a O\n"), **wrong)

    @given(data=st.data())
    def test_what_is_written_is_read(self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
        # The marker of documents is often drawn, but where it begins a sentence it would not be read as a word.
        word = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters=" "), min_size=1)
        row = st.tuples(word | st.just("-DOCSTART-"), st.sampled_from(["O", "I-X", "B-X", "I-Y"]))
        sentence = st.lists(row, min_size=1, max_size=6).filter(lambda rows: rows[0][0] != "-DOCSTART-")
        wanted = data.draw(st.lists(sentence, min_size=1, max_size=4))
        glue = data.draw(st.sampled_from([" ", "\t"]))
        path = tmp_path_factory.mktemp("files") / "a.conll"
        # The mark at the beginning of a file is not part of its first word.
        mark = "" if not wanted[0][0][0].startswith("\ufeff") else "\ufeff"
        write(path, mark + "\n".join("".join(f"{glue.join(row)}\n" for row in rows) for rows in wanted))
        found = read_tagged(path, scheme="iob1")
        assert [list(zip(*pair, strict=True)) for pair in found] == wanted


class TestObjects:
    @pytest.mark.parametrize(("tokens", "tags"), [("tokens", "tags"), ("words", "labels"), ("Tokens", "ner_tags")])
    def test_usual_names(self, tmp_path: Path, tokens: str, tags: str) -> None:
        lines = [json.dumps({"id": 1, tokens: a, tags: b}) for a, b in zip(SENTENCES, TAGS, strict=True)]
        path = write(tmp_path / "a.jsonl.gz", "\n\n".join(lines))
        assert read_tagged(path).sentences == SENTENCES
        assert read_tagged(path).tags == TAGS
        assert read_sentences(path) == SENTENCES

    def test_other_names_numbers_and_texts(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", '{"t": ["a", "b"], "n": [0, 1]}\n{"t": "c", "n": "B-X"}\n')
        data = read_tagged(path, token="t", tag="n", tag_names=("O", "B-X"))
        assert data.tags == (("O", "B-X"), ("B-X",))

    @pytest.mark.parametrize(
        ("line", "error"),
        [
            ('{"tokens": ["a"], "tags": ["O", "O"]}', "field 'tags': got 2 tags, wanted 1"),
            ('{"tokens": ["a", ""], "tags": ["O", "O"]}', "field 'tokens': got nothing at 1, wanted a token"),
            ('{"tokens": [], "tags": []}', "field 'tokens': got none"),
            ('{"tokens": ["a"], "tags": [3]}', "field 'tags': got 3, wanted a string. If tags are numbers"),
            ('{"tokens": ["a"], "tags": [null]}', "field 'tags': got None"),
            ('{"tokens": {"a": 1}, "tags": ["O"]}', "field 'tokens': got a dict"),
            ('{"tags": ["O"]}', "got only 'tags', wanted an entry tokens"),
            ('{"tokens": ["a"]}', "got only 'tokens', wanted an entry tags"),
            ('{"tokens": ["a", "b"], "tags": ["B-X", "Z-X"]}', "field 'tags': got 'Z-X' for token 1"),
            (r'{"tokens": ["a", "b\nc"], "tags": ["O", "O"]}', r"got 'b.nc' as token 1, wanted a token without line"),
            (r'{"tokens": ["a\rb"], "tags": ["O"]}', r"got 'a.rb' as token 0"),
            (r'{"tokens": ["\ud800"], "tags": ["O"]}', r"got '.ud800' as token 0.*of whole characters"),
            ('{"tokens": ["a"], "tags": ["B-X y"]}', "got 'B-X y' as tag 0, wanted a tag without white space"),
            ("[1]", "got a list"),
            ("{", "one JSON object a line"),
        ],
    )
    def test_faults_are_named_with_line_and_field(self, tmp_path: Path, line: str, error: str) -> None:
        path = write(tmp_path / "a.jsonl", "\n" + line + "\n")
        with pytest.raises(DataError, match=f"a.jsonl, line 2.*{error}"):
            read_tagged(path)

    def test_sentences_to_be_tagged_may_have_line_ends_but_no_half_characters(self, tmp_path: Path) -> None:
        assert read_sentences(write(tmp_path / "a.jsonl", r'{"tokens": ["a\nb"]}')) == (("a\nb",),)
        with pytest.raises(DataError, match=r"line 1: got '.udfff' as token 0"):
            read_sentences(write(tmp_path / "a.jsonl", r'{"tokens": ["\udfff"]}'))

    def test_tokens_are_not_their_own_tags(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", '{"tokens": ["a"], "tags": ["O"]}')
        with pytest.raises(DataError, match="line 1: got 'tokens' for both"):
            read_tagged(path, tag="tokens")
        with pytest.raises(DataError, match="line 1: got 'tokens' for both"):
            read_tagged(write(tmp_path / "a.csv", "tokens,tags\na,O\n"), tag=0)

    def test_a_place_means_nothing_in_an_object(self, tmp_path: Path) -> None:
        with pytest.raises(ArgumentError, match="the name of an entry"):
            read_tagged(write(tmp_path / "a.jsonl", "{}\n"), token=0)


class TestTables:
    WANTED = (("He", "saw", "Paris"), ("Oslo",)), (("O", "O", "B-LOC"), ("B-LOC",))

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("a.csv", "sentence,token,tag\n1,He,O\n1,saw,O\n1,Paris,B-LOC\n2,Oslo,B-LOC\n"),
            ("a.csv", "Sentence #,Word,POS,Tag\nSentence: 1,He,PRP,O\n,saw,V,O\n,Paris,N,B-LOC\nx,Oslo,N,B-LOC\n"),
            ("a.tsv", "tag\ttoken\tsentence_id\nO\tHe\ta\nO\tsaw\ta\nB-LOC\tParis\ta\nB-LOC\tOslo\tb\n"),
            ("a.csv", 'tokens,tags\nHe saw Paris,O O B-LOC\n"Oslo","B-LOC"\n'),
            ("a.tsv", "id\twords\tlabels\n1\tHe  saw Paris\tO O B-LOC\n2\tOslo\tB-LOC\n"),
            ("a.tsv", "He\tO\nsaw\tO\nParis\tB-LOC\n\nOslo\tB-LOC\n"),
        ],
    )
    def test_the_header_says_what_it_is(self, tmp_path: Path, name: str, content: str) -> None:
        path = write(tmp_path / name, content)
        data = read_tagged(path)
        assert (data.sentences, data.tags) == self.WANTED
        assert read_sentences(path) == self.WANTED[0]

    def test_columns_by_name_or_place(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv", "s,w,t\n1,He,O\n1,saw,O\n1,Paris,B-LOC\n2,Oslo,B-LOC\n")
        assert read_tagged(path, token="w", tag="t", sentence="s").tags == self.WANTED[1]
        assert read_tagged(path, token=1, tag=-1, sentence=0).tags == self.WANTED[1]
        path = write(tmp_path / "a.csv", "sentence,t\nHe saw Paris,O O B-LOC\nOslo,B-LOC\n")
        assert read_tagged(path, token="sentence", tag="t").sentences == self.WANTED[0]

    @pytest.mark.parametrize(
        ("content", "error"),
        [
            ("a,b\n1,2\n", "line 1: got 'a', 'b', wanted a column of tokens"),
            ("sentence,token,tag\n1,a,O\n2,b,O\n1,c,O\n", "line 4, field 'sentence': got sentence '1' again"),
            ("sentence,token,tag\n,a,O\n", "line 2, field 'sentence': got nothing"),
            ("sentence,token,tag\n1,,O\n", "line 2, field 'token': got nothing"),
            ("sentence,token,tag\n1,a,\n", "line 2, field 'tag': got nothing"),
            ("sentence,token,tag\n1,a\n", "line 2: got 2 fields, wanted 3, as in the header"),
            ("sentence,token,tag\n1,a,B-X\n1,b,Q-X\n", "line 3, field 'tag': got 'Q-X'"),
            ("tokens,tags\na b,O\n", "line 2, field 'tags': got 1 tags, wanted 2"),
            ("tokens,tags\n ,O\n", "line 2, field 'tokens': got none"),
            ('tokens,tags\n"a\nb c",O O\n', r"line 2: got 'a.nb' as token 0"),
            ("sentence,token,tag\n1,a,B-X y\n", "line 2: got 'B-X y' as tag 0"),
            ("token,tag\na,O\n", "line 1: got 'token', 'tag'.*called sentence, token and tag.*called tokens and tags"),
        ],
    )
    def test_faults_are_named_with_line_and_field(self, tmp_path: Path, content: str, error: str) -> None:
        with pytest.raises(DataError, match=error):
            read_tagged(write(tmp_path / "a.csv", content))

    def test_named_tokens_without_sentences_are_no_sentences_of_one_word(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv", "token,tag\na,O\nb,O\n")
        with pytest.raises(DataError, match=r"got a column 'token', and none of sentences.*called tokens and tags"):
            read_tagged(path, token="token", tag="tag")


class TestPlainText:
    def test_a_sentence_a_line_with_blanks_between_tokens(self, tmp_path: Path) -> None:
        path = write(tmp_path / "new.txt.xz", "U.N.  official\tEkeus 1\u00a0000 \r\n\nBagh\u0085dad .\n")
        assert read_sentences(path) == SENTENCES
        assert read_sentences(write(tmp_path / "new.conll", "a\nb\n\nc\n")) == (("a", "b"), ("c",))
        assert read_sentences(write(tmp_path / "odd", "a b\n"), kind="text") == (("a", "b"),)
        with pytest.raises(DataError, match="got no sentences"):
            read_sentences(write(tmp_path / "new.txt", "\n \n"))
        with pytest.raises(DataError, match=r"new\.txt, line 2: got a carriage return"):
            read_sentences(write(tmp_path / "new.txt", "a b\nc\rd\n"))


@pytest.mark.data
@pytest.mark.usefixtures("as_users_have_it")
class TestConll2003:
    @pytest.mark.parametrize(
        ("part", "sentences", "documents", "tokens", "entities"),
        [
            ("train", 14_041, 946, 203_621, (7_140, 3_438, 6_321, 6_600)),
            ("testa", 3_250, 216, 51_362, (1_837, 922, 1_341, 1_842)),
            ("testb", 3_453, 231, 46_435, (1_668, 702, 1_661, 1_617)),
        ],
    )
    def test_the_published_counts(
        self, part: str, sentences: int, documents: int, tokens: int, entities: tuple[int, ...]
    ) -> None:
        path = shared_data(f"conll2003/eng.{part}.xz")
        data = read_tagged(path)
        assert (data.scheme, len(data), data.tokens) == ("iob1", sentences, tokens)
        assert data.spans_by_type() == dict(zip(("LOC", "MISC", "ORG", "PER"), entities, strict=True))
        bioes = data.converted("bioes")
        assert len(bioes.tag_names) == 17
        assert bioes.spans_by_type() == data.spans_by_type()
        assert bioes.converted("iob2").converted("bioes") == bioes
        if part == "testa":
            assert len(read_tagged(path, documents="keep")) == sentences + documents


CONLLU = """# sent_id = 1
# text = vámonos al mar
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\tvm\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\tpp\t_\t1\tobj\t_\t_
2.1\tempty\t_\tVERB\t_\t_\t_\t_\t_\t_
3\tmar\tmar\tNOUN\tnc\t_\t1\tobl\t_\t_

1\t#\t#\tSYM\tfz\t_\t0\troot\t_\t_
"""


def test_universal_dependencies_are_words_and_their_parts_of_speech(tmp_path: Path) -> None:
    (tmp_path / "es.conllu").write_text(CONLLU, encoding="utf-8")
    found = read_tagged(tmp_path / "es.conllu")
    assert found.sentences == (("vamos", "nos", "mar"), ("#",))
    assert (found.tags, found.scheme) == ((("VERB", "PRON", "NOUN"), ("SYM",)), "none")
    assert read_tagged(tmp_path / "es.conllu", tag=4).tags == (("vm", "pp", "nc"), ("fz",))
    assert read_sentences(tmp_path / "es.conllu") == found.sentences
    (tmp_path / "es.txt").write_text(CONLLU, encoding="utf-8")
    assert read_tagged(tmp_path / "es.txt", kind="conllu").sentences == found.sentences
