"""``statewise export``: a run becomes a folder that loads, or a file that was compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import statewise
from commands.typing_commands import Typed
from statewise.errors import RunFolderError
from statewise.train import load_language_model, load_tagger


def test_a_language_model_becomes_a_folder_with_all_that_is_needed(typed: Typed, trained: Path, tmp_path: Path) -> None:
    said = typed("export", str(trained), "--out", str(tmp_path / "shared"), "--licence", "mit")
    assert "Written" in said
    model, vocabulary, _ = load_language_model(trained)
    same = statewise.load(tmp_path / "shared")
    assert all(torch.equal(tensor, same.state_dict()[name]) for name, tensor in model.state_dict().items())
    assert same.reading is not None
    assert same.reading.symbols == vocabulary.words
    words = vocabulary.words[3]
    assert same.reading.encode(f"{words} zzzz") == [3, vocabulary.unknown_id, vocabulary.end_id]
    assert {"valid_perplexity", "test_perplexity"} <= same.metrics.keys()
    assert 'license: "mit"' in (tmp_path / "shared" / "README.md").read_text()


def test_a_tagger_tags_as_it_did(typed: Typed, tagger: Path, tmp_path: Path) -> None:
    told = json.loads(typed("export", str(tagger), "--out", "shared", "--json"))
    assert told["kind"] == "Tagger"
    assert told["files"] == ["README.md", "config.json", "model.safetensors"]
    same = statewise.models.Tagger.load(tmp_path / "shared")
    sentences = [["Anna", "saw", "Rotterdam"]]
    assert same.tag(sentences) == load_tagger(tagger)[0].tag(sentences)
    assert same.reading is not None
    assert same.reading.scheme == "iob1"


def test_a_page_of_the_user_s_own_is_kept(typed: Typed, trained: Path, tmp_path: Path) -> None:
    typed("export", str(trained), "--out", "shared")
    (tmp_path / "shared" / "README.md").write_text("mine")
    typed("export", str(trained), "--out", "shared")
    assert (tmp_path / "shared" / "README.md").read_text() == "mine"


def test_a_run_loads_and_is_cited_as_it_is(trained: Path) -> None:
    assert statewise.load(trained).metrics["best_epoch"] >= 1
    assert "dieng2018noisin" in statewise.cite(str(trained))


def test_nothing_is_overwritten_that_is_not_ours(refused: Typed, trained: Path, tmp_path: Path) -> None:
    before = (trained / "config.json").read_bytes()
    assert "which is read" in refused("export", str(trained), "--out", str(trained))
    assert (trained / "config.json").read_bytes() == before
    (tmp_path / "file").write_text("x")
    assert "which is a file" in refused("export", str(trained), "--out", "file")
    assert "which is a folder" in refused("export", str(trained), "--format", "onnx", "--out", str(tmp_path))
    assert "no such option" in refused("export", str(trained), "--format", "onnx", "--licence", "mit", "--out", "x")


def test_a_damaged_run_is_a_named_error(trained: Path, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors", "vocabulary.txt", "metrics.jsonl"):
        (tmp_path / name).write_bytes((trained / name).read_bytes())
    told = json.loads((tmp_path / "config.json").read_text())
    wrong: list[Any] = [{**told["model"], "hidden": [1 << 50]}, {**told["model"], "hidden": "x"}, None, []]
    for model in wrong:
        (tmp_path / "config.json").write_text(json.dumps({**told, "model": model}))
        with pytest.raises(RunFolderError):
            statewise.load(tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_have_it")
def test_a_run_becomes_an_onnx_file(typed: Typed, trained: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    told = json.loads(typed("export", str(trained), "--format", "onnx", "--out", "a/words.onnx", "--json"))
    assert told["largest_difference"] < 1e-4
    assert (tmp_path / "a" / "words.onnx").stat().st_size > 1000
