"""Weights by name: those of a resume point are all of the model's, or none are taken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from statewise.data import sample_corpus
from statewise.errors import RunFolderError
from statewise.models import LanguageModelConfig
from statewise.train import TrainingSettings, train_language_model
from statewise.train.tensor_file import read_document, read_tensors, write_tensors
from statewise.train.weights import restore_weights


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ({"weight": torch.ones(2, 3)}, "got no bias"),
        ({"weight": torch.ones(2, 3), "bias": torch.ones(2), "gate": torch.ones(1)}, "gate, which it has not"),
        ({"weight": torch.ones(2, 3), "bias": torch.ones(1)}, r"bias of \(1,\)"),  # would be spread over both
    ],
)
def test_weights_of_another_model_are_refused_and_none_is_put(weights: dict[str, torch.Tensor], told: str) -> None:
    model = nn.Linear(3, 2)
    before = model.weight.detach().clone()
    with pytest.raises(RunFolderError, match=told):
        restore_weights(model, weights)
    assert torch.equal(model.weight, before)


def test_files_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """Which had two entries in their metadata, in any order."""
    path = tmp_path / "model.safetensors"
    entries = {"document": '{"epoch": 3}', "aliases": '{"out": "in"}'}
    save_file({"in": torch.ones(2)}, path, entries)
    tensors, document = read_tensors(path)
    assert document == read_document(path) == {"epoch": 3}
    assert tensors["out"] is tensors["in"]
    save_file({"in": torch.ones(2)}, path)
    with pytest.raises(RunFolderError, match="no document in its metadata"):
        read_tensors(path)


def test_all_weights_are_put() -> None:
    model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    restore_weights(model, dict(other.named_parameters()))
    assert torch.equal(model.weight, other.weight)
    assert torch.equal(model.bias, other.bias)


def test_a_language_model_does_not_go_on_from_a_resume_point_without_one_parameter(tmp_path: Path) -> None:
    config, settings = LanguageModelConfig(hidden=(6,)), TrainingSettings(epochs=1, batch=20, bptt=40)
    train_language_model(config, settings, sample_corpus(), tmp_path / "run")
    path = tmp_path / "run" / "resume.safetensors"
    tensors, document = read_tensors(path)
    name = next(name for name in tensors if name.startswith("model.layers"))
    write_tensors(path, {each: tensor for each, tensor in tensors.items() if each != name}, document)
    with pytest.raises(RunFolderError, match=f"got no {name.removeprefix('model.')}"):
        train_language_model(config, replace(settings, epochs=2), sample_corpus(), tmp_path / "run", resume=True)
