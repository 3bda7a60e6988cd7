"""What a file is, told from its name and its first rows; what could be two things is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from statewise.errors import DataError
from statewise.lineup import recognise

SENTENCES = "the cat sleeps near the door .\nno dog barks\n\nall is well today\n"
TABLE = "EU NNP B-ORG\nrejects VBZ O\n\nPeter NNP B-PER\n"


@pytest.mark.parametrize(
    ("name", "content", "kind", "why"),
    [
        ("story.txt", SENTENCES, "lm", "plain text"),
        ("story", SENTENCES, "lm", "plain text"),
        ("names.conll", TABLE, "tag", ".conll"),
        ("names.txt", TABLE, "tag", "tags"),
        ("words.conllu", "1\tEU\tEU\tPROPN\n", "tag", ".conllu"),
        ("names.tsv", "EU\tB-ORG\nrejects\tO\n", "tag", "tags"),
        ("words.csv", "sentence,word,pos,tag\n1,EU,N,B-ORG\n", "tag", "word"),
        ("sents.csv", "tokens,tags\na b,O O\nc,O\n", "tag", "as many words"),
        ("reviews.csv", "label,text\ngood,a joy\nbad,a bore\n", "classify", "label and text"),
        ("reviews.csv", "review,sentiment\na joy to see,pos\na bore,neg\n", "classify", "sentiment and review"),
        ("text.csv", "text,label\nup and away,good\ndown,bad\n", "classify", "label and text"),
        ("bare.tsv", "good\ta joy\ngood\ta feast\nbad\ta bore\n", "classify", "2 labels"),
        ("r.jsonl", '{"label": 1, "text": "a joy"}\n', "classify", "label and text"),
        ("t.jsonl", '{"tokens": ["a"], "tags": ["O"]}\n', "tag", "tokens and tags"),
        ("s.jsonl", '{"values": [1.5, 2], "label": "up"}\n', "series", "values"),
        ("s.jsonl", '{"values": [[1.5, 2]], "label": 1}\n', "series", "values"),
        ("f.jsonl", '{"values": [1.5, 2], "next": 2.5}\n', "forecast", "next"),
        ("s.csv", "id,label,x,y\na,up,1,5\na,up,2,5\nb,flat,7,6\nb,flat,1,1\n", "series", "label"),
        ("s.csv", "label,x1,x2\n0,1.5,2\n1,2.5,3\n1,2,2\n", "series", "label"),
        ("f.csv", "date,price\n2026-01-01,1.5\n2026-01-02,1.7\n", "forecast", "date"),
    ],
)
def test_what_a_file_is(tmp_path: Path, name: str, content: str, kind: str, why: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    found = recognise(tmp_path / name)
    assert found.kind == kind
    assert why in found.why
    assert found.files == {"train": tmp_path / name}


@pytest.mark.parametrize(
    ("name", "content", "kinds"),
    [
        ("n.csv", "a,b\n1,2\n3,4\n", ("series", "forecast")),
        ("n.csv", "id,y,a\n1,2.5,2\n2,3.5,4\n", ("series", "forecast")),
        ("m.csv", "price,remark\n1.5,fine\n2,ok\n", ("classify", "series")),
        ("c.txt", "EU B-ORG\nrejects O\n", ("lm", "tag")),
        ("o.jsonl", '{"name": "x"}\n', ("tag", "classify")),
        ("o.jsonl", '{"numbers": [1, 2], "name": "x"}\n', ("series", "forecast")),
        ("o.txt", '{"label": 1, "text": "x"}\n', ("tag", "classify", "series")),
    ],
)
def test_what_could_be_two_things_is_refused_and_says_what_to_type(
    tmp_path: Path, name: str, content: str, kinds: tuple[str, ...]
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as refused:
        recognise(tmp_path / name)
    assert all(f"--kind {kind} " in str(refused.value) for kind in kinds)
    assert recognise(tmp_path / name, kinds[0]).kind == kinds[0], "what was said is not guessed"


@pytest.mark.parametrize("name", ["e.txt", "e.csv", "e.jsonl", "e.conll"])
def test_empty_and_undecodable_files_are_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match=name):
        recognise(tmp_path / name)
    (tmp_path / name).write_bytes("café".encode("latin-1") + b"\n")
    with pytest.raises(DataError, match="UTF-8"):
        recognise(tmp_path / name)


def test_archives_of_numbers(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", values=np.zeros((2, 3, 1)), labels=np.array(["a", "b"]))
    assert recognise(tmp_path / "a.npz").kind == "series"
    np.savez(tmp_path / "b.npz", values=np.zeros((2, 3, 1)))
    assert recognise(tmp_path / "b.npz").kind == "forecast"
    (tmp_path / "c.npz").write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"c\.npz"):
        recognise(tmp_path / "c.npz")


def test_folders_and_samples(tmp_path: Path) -> None:
    for part in ("train", "valid", "test"):
        (tmp_path / f"{part}.txt").write_text(SENTENCES, encoding="utf-8")
    assert set(recognise(tmp_path).files) == {"train", "valid", "test"}
    other = tmp_path / "tagged"
    other.mkdir()
    with pytest.raises(DataError, match="a file called train"):
        recognise(other)
    for part in ("train", "dev", "test"):
        (other / f"{part}.conll").write_text(TABLE, encoding="utf-8")
    found = recognise(other)
    assert (found.kind, found.files["valid"].name) == ("tag", "dev.conll")
    assert recognise("sample").kind == "lm"
    with pytest.raises(DataError, match="no such file"):
        recognise(tmp_path / "absent.csv")
