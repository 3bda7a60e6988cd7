"""Vectors of tokens in their sentences: files, checks, and where they may come from."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from statewise.data import ContextVectors, context_vectors_by_flair, read_context_vectors, write_context_vectors
from statewise.errors import ArgumentError, DataError, MissingExtraError, ShapeError

ENDINGS = pytest.mark.parametrize("ending", [".npz", ".safetensors"])


def some(lengths: list[int], width: int = 3, kind: type = np.float16) -> list[np.ndarray[Any, Any]]:
    generator = np.random.default_rng(sum(lengths))
    return [generator.standard_normal((length, width)).astype(kind) for length in lengths]


class TestFiles:
    @ENDINGS
    @given(
        lengths=st.lists(st.integers(1, 5), min_size=1, max_size=6),
        width=st.integers(1, 4),
        kind=st.sampled_from([np.float16, np.float32]),
    )
    def test_what_is_written_is_read_by_us_and_by_others(
        self, tmp_path_factory: pytest.TempPathFactory, ending: str, lengths: list[int], width: int, kind: type
    ) -> None:
        path = tmp_path_factory.mktemp("vectors") / f"a{ending}"
        vectors = some(lengths, width, kind)
        made = write_context_vectors(path, iter(vectors))
        assert isinstance(made.vectors, np.memmap)
        assert (made.lengths.tolist(), made.width, made.vectors.dtype) == (lengths, width, np.dtype(kind))
        assert all(np.array_equal(made[at], rows) for at, rows in enumerate(vectors))
        theirs = dict(np.load(path)) if ending == ".npz" else load_file(path)
        assert np.array_equal(theirs["vectors"], np.concatenate(vectors))
        assert theirs["lengths"].tolist() == lengths
        assert [entry.name for entry in path.parent.iterdir()] == [path.name]

    def test_files_of_others_are_read(self, tmp_path: Path) -> None:
        vectors, lengths = np.concatenate(some([2, 1])), np.array([2, 1], dtype=np.int32)
        np.savez_compressed(tmp_path / "a.npz", vectors=vectors, lengths=lengths)
        np.savez(tmp_path / "b.npz", vectors=np.asfortranarray(vectors), lengths=lengths)
        save_file({"vectors": vectors, "lengths": lengths}, tmp_path / "c.safetensors")
        for name in ("a.npz", "b.npz", "c.safetensors"):
            assert np.array_equal(read_context_vectors(tmp_path / name).vectors, vectors), name

    @ENDINGS
    def test_a_writer_that_fails_leaves_nothing(self, tmp_path: Path, ending: str) -> None:
        with pytest.raises(ShapeError, match=r"sentence 1: got float16 of shape \(1, 2\)"):
            write_context_vectors(tmp_path / f"a{ending}", [*some([1]), *some([1], width=2)])
        with pytest.raises(ArgumentError, match="got none"):
            write_context_vectors(tmp_path / f"a{ending}", [])
        assert not list(tmp_path.iterdir())

    @ENDINGS
    def test_damaged_files_are_refused(self, tmp_path: Path, ending: str) -> None:
        path = tmp_path / f"a{ending}"
        write_context_vectors(path, some([3, 2]))
        whole = path.read_bytes()
        for content in (whole[:-8], whole[:20], b"", b"nonsense and nothing else"):
            path.write_bytes(content)
            with pytest.raises(DataError, match=r"arrays 'vectors' \(tokens, width\) and 'lengths'"):
                read_context_vectors(path)
        with pytest.raises(DataError, match="No such file"):
            read_context_vectors(tmp_path / f"absent{ending}")

    def test_other_arrays_are_refused(self, tmp_path: Path) -> None:
        save_file({"vectors": np.zeros((2, 2), dtype=np.float32)}, tmp_path / "a.safetensors")
        with pytest.raises(DataError, match="no array 'lengths'"):
            read_context_vectors(tmp_path / "a.safetensors")
        np.savez(tmp_path / "a.npz", vectors=np.zeros((2, 2)), lengths=np.array([1]))
        with pytest.raises(DataError, match="got lengths that sum up to 1"):
            read_context_vectors(tmp_path / "a.npz")
        np.savez(tmp_path / "a.npz", vectors=np.zeros(2), lengths=np.array([2]))
        with pytest.raises(DataError, match=r"got vectors float64 of shape \(2,\)"):
            read_context_vectors(tmp_path / "a.npz")
        with pytest.raises(ArgumentError, match=r"ends in \.safetensors or \.npz"):
            read_context_vectors(tmp_path / "a.pt")


class TestUse:
    VECTORS = ContextVectors(np.concatenate(some([2, 1, 3])), np.array([2, 1, 3]), "a.npz")

    def test_a_batch_is_padded_steps_first(self) -> None:
        batch = self.VECTORS.batch([2, 1])
        assert batch.shape == (3, 2, 3)
        assert batch.dtype == torch.float32
        assert torch.equal(batch[:, 0], torch.from_numpy(self.VECTORS[2].astype(np.float32)))
        assert not batch[1:, 1].any()

    def test_vectors_of_other_sentences_are_refused(self) -> None:
        self.VECTORS.check([["a", "b"], ["c"], ["d", "e", "f"]])
        with pytest.raises(DataError, match=r"a.npz, sentence 1: got vectors of 1 tokens, wanted those of 2"):
            self.VECTORS.check([["a", "b"], ["c", "d"], ["e"]])
        with pytest.raises(DataError, match=r"got vectors of 3 sentences, of which sentence 2"):
            self.VECTORS.check([["a", "b"], ["c"]])


class TestFlair:
    def test_without_flair_it_says_how_to_get_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "flair.data", None)
        with pytest.raises(MissingExtraError, match="pip install flair"):
            context_vectors_by_flair([["a"]])

    def test_with_it_each_sentence_has_its_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A stand-in for flair, which is large: a token's vector is the length of its word, for each model."""
        data, embeddings = ModuleType("flair.data"), ModuleType("flair.embeddings")

        def sentence(words: list[str]) -> list[SimpleNamespace]:
            return [SimpleNamespace(text=word) for word in words]

        class Stack:
            def __init__(self, parts: list[str]) -> None:
                self.parts = parts

            def embed(self, group: list[list[SimpleNamespace]]) -> None:
                for token in (token for each in group for token in each):
                    token.embedding = torch.full((len(self.parts),), float(len(token.text)))

        vars(data)["Sentence"] = sentence
        vars(embeddings).update(StackedEmbeddings=Stack, FlairEmbeddings=str)
        monkeypatch.setitem(sys.modules, "flair", ModuleType("flair"))
        monkeypatch.setitem(sys.modules, "flair.data", data)
        monkeypatch.setitem(sys.modules, "flair.embeddings", embeddings)
        found = [rows.tolist() for rows in context_vectors_by_flair([["a", "bb"], ["ccc"], ["d"]], batch=2)]
        assert found == [[[1, 1], [2, 2]], [[3, 3]], [[1, 1]]]
