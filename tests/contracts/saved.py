"""What every model that can be saved must do: come out of its folder the same, and never out of a damaged one."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from safetensors.torch import load as load_bytes
from safetensors.torch import save as save_bytes
from torch import Tensor

import statewise
from statewise.errors import ArgumentError, ModelFolderError, NewerFormatError, NonFiniteError, StatewiseError
from statewise.files import read_tensors, write_tensors
from statewise.models import Saved
from statewise.models.saving import seal

WEIGHTS, CONFIG = "model.safetensors", "config.json"
Damage = Callable[[Path], object]


def rewrite(folder: Path, change: Callable[[dict[str, Any], dict[str, Tensor]], object]) -> None:
    """Change what the weights' file says, as a skilful forger would: with a checksum that fits, and no config.json."""
    tensors, document = read_tensors(folder / WEIGHTS)
    tensors, document = dict(tensors), copy.deepcopy(document)
    change(document, tensors)
    document["checksum"] = seal(document, tensors)
    write_tensors(folder / WEIGHTS, tensors, document)
    (folder / CONFIG).unlink(missing_ok=True)


def forged(change: Callable[[dict[str, Any], dict[str, Tensor]], object]) -> Damage:
    return lambda folder: rewrite(folder, change)


def _bytes(place: int, value: bytes) -> Damage:
    def damage(folder: Path) -> None:
        content = bytearray((folder / WEIGHTS).read_bytes())
        content[place : place + len(value) or None] = value
        (folder / WEIGHTS).write_bytes(bytes(content))

    return damage


def _cut(share: float) -> Damage:
    def damage(folder: Path) -> None:
        content = (folder / WEIGHTS).read_bytes()
        (folder / WEIGHTS).write_bytes(content[: int(share * len(content))])

    return damage


def _flip_a_weight(folder: Path) -> None:
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (folder / WEIGHTS).write_bytes(bytes(content))


def _foreign(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes(save_bytes({"a": torch.ones(2)}))


def _another_config(folder: Path) -> None:
    found = json.loads((folder / CONFIG).read_text())
    found["config"]["hidden"] = 999
    (folder / CONFIG).write_text(json.dumps(found))


def _without_a_document(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes(save_bytes(load_bytes((folder / WEIGHTS).read_bytes())))


def _first(tensors: dict[str, Tensor]) -> str:
    return next(name for name, tensor in tensors.items() if tensor.dim() == 2 and tensor.is_floating_point())


def _set(part: str, **values: Any) -> Damage:
    return forged(lambda document, _: document[part].update(values))


def _missing(document: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    del tensors[_first(tensors)]


def _wrong_shape(document: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    name = _first(tensors)
    tensors[name] = torch.cat((tensors[name], tensors[name][:1]))


def _wrong_dtype(document: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    tensors[_first(tensors)] = tensors[_first(tensors)].to(torch.int32)


#: Ways to damage a folder; each must give a named error that says where.
DAMAGES: dict[str, Damage] = {
    "the file of weights is gone": lambda folder: (folder / WEIGHTS).unlink(),
    "it is empty": _cut(0),
    "it is cut in the header": _cut(0.02),
    "it is cut in the weights": _cut(0.9),
    "its header is longer than the file": _bytes(0, struct.pack("<Q", 1 << 40)),
    "its header has no length": _bytes(0, struct.pack("<Q", 0)),
    "its header is no JSON": _bytes(8, b"]"),
    "one bit of a weight is another": _flip_a_weight,
    "it is of another program": _foreign,
    "it has no document": _without_a_document,
    "config.json is no JSON": lambda folder: (folder / CONFIG).write_text("{"),
    "config.json is of something else": lambda folder: (folder / CONFIG).write_text('{"model_type": "bert"}'),
    "config.json was edited": _another_config,
    "config.json is too deep": lambda folder: (folder / CONFIG).write_text("[" * 100_000),
    "config.json is no text": lambda folder: (folder / CONFIG).write_bytes(b"\xff\xfe\x00"),
    "the kind is unknown": forged(lambda document, _: document.update(kind="Oracle")),
    "the version is a text": forged(lambda document, _: document.update(version="1")),
    "a setting is unknown": _set("config", sorcery=1),
    "a setting has another type": _set("config", hidden="many"),
    "a setting is no object": forged(lambda document, _: document.update(config=[])),
    "the sizes are no object": forged(lambda document, _: document.update(built_for=3)),
    "a field of the document is missing": forged(lambda document, _: document.pop("reading")),
    "a field of the document is unknown": forged(lambda document, _: document.update(code="import os")),
    "the dtype is unknown": forged(lambda document, _: document.update(dtype="float8")),
    "the metrics are lists": forged(lambda document, _: document.update(metrics={"loss": [1]})),
    "the reading is of another kind": forged(lambda document, _: document.update(reading={"unit": "sorcery"})),
    "a tensor is missing": forged(_missing),
    "a tensor is too many": forged(lambda _, tensors: tensors.update(backdoor=torch.ones(1))),
    "a tensor has another shape": forged(_wrong_shape),
    "a tensor has another dtype": forged(_wrong_dtype),
}


class SavedContract:
    """For each member: how to build one with weights that are not those of a fresh one, and how to ask it."""

    #: A setting that makes the model huge, and one that asks for layers without end.
    huge: ClassVar[tuple[dict[str, Any], ...]] = ({"hidden": 1 << 50}, {"layers": 1 << 40})

    def build(self, seed: int) -> Saved:
        raise NotImplementedError

    def ask(self, model: Any) -> tuple[Tensor, ...]:
        """Outputs of the model in eval mode, for fixed inputs."""
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def kept(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return cls().build(0).save(tmp_path_factory.mktemp("kept") / "model")

    @pytest.fixture
    def folder(self, kept: Path, tmp_path: Path) -> Path:
        for name in (WEIGHTS, CONFIG):
            (tmp_path / name).write_bytes((kept / name).read_bytes())
        return tmp_path

    def test_it_comes_out_bit_by_bit_as_it_went_in(self, kept: Path) -> None:
        model, same = self.build(0), statewise.load(kept)
        assert type(same) is type(model)
        assert same.config == model.config
        assert not same.training
        before, after = model.state_dict(), same.state_dict()
        assert before.keys() == after.keys()
        assert all(torch.equal(before[name], after[name]) for name in before)
        assert [p.requires_grad for p in model.parameters()] == [p.requires_grad for p in same.parameters()]
        for one, other in zip(self.ask(model.eval()), self.ask(same), strict=True):
            assert torch.equal(one, other)

    def test_what_was_loaded_saves_the_same_bytes(self, kept: Path, tmp_path: Path) -> None:
        again = statewise.load(kept).save(tmp_path / "again")
        assert (again / WEIGHTS).read_bytes() == (kept / WEIGHTS).read_bytes()
        assert (again / CONFIG).read_bytes() == (kept / CONFIG).read_bytes()

    def test_its_class_loads_it_and_another_refuses(self, kept: Path) -> None:
        kind = type(self.build(0))
        assert type(kind.load(kept)) is kind
        other: Any = statewise.models.Tagger if kind is not statewise.models.Tagger else statewise.models.LanguageModel
        with pytest.raises(ModelFolderError, match=kind.__name__):
            other.load(kept)

    def test_loading_and_saving_draw_nothing(self, kept: Path, tmp_path: Path) -> None:
        before = torch.get_rng_state()
        statewise.load(kept).save(tmp_path / "again")
        assert torch.equal(torch.get_rng_state(), before)

    def test_double_precision_stays(self, tmp_path: Path) -> None:
        same = statewise.load(self.build(0).double().save(tmp_path / "double"))
        assert {p.dtype for p in same.parameters()} == {torch.float64}

    @pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
    def test_a_damaged_folder_is_a_named_error(self, folder: Path, damage: Damage) -> None:
        damage(folder)
        with pytest.raises(ModelFolderError) as caught:
            statewise.load(folder)
        assert str(folder) in str(caught.value)

    def test_settings_that_ask_for_terabytes_are_refused_before_any_memory_is_taken(self, folder: Path) -> None:
        content = (folder / WEIGHTS).read_bytes()
        for values in self.huge:
            (folder / WEIGHTS).write_bytes(content)
            _set("config", **values)(folder)
            with pytest.raises(ModelFolderError):
                statewise.load(folder)

    def test_a_newer_version_says_how_to_get_it(self, folder: Path) -> None:
        rewrite(folder, lambda document, _: document.update(version=2, statewise="9.1.0"))
        with pytest.raises(NewerFormatError, match=r"version 2 .* statewise 9\.1\.0.*pip install -U statewise"):
            statewise.load(folder)

    def test_weights_that_are_nan_are_refused_where_that_is_asked(self, folder: Path) -> None:
        rewrite(folder, lambda _, tensors: tensors[_first(tensors)].view(-1)[0].fill_(float("nan")))
        statewise.load(folder)
        with pytest.raises(NonFiniteError, match=WEIGHTS):
            statewise.load(folder, check_finite=True)

    def test_a_save_that_was_killed_between_its_files_leaves_the_new_model(self, folder: Path) -> None:
        """The weights' file, which holds all, was written, and config.json is still that of before."""
        new = self.build(1)
        old = (folder / CONFIG).read_bytes()
        new.save(folder)
        (folder / CONFIG).write_bytes(old)
        loaded = statewise.load(folder)
        assert all(torch.equal(tensor, new.state_dict()[name]) for name, tensor in loaded.state_dict().items())

    def test_the_folder_is_enough_without_config_json(self, folder: Path) -> None:
        (folder / CONFIG).unlink()
        statewise.load(folder)

    def test_a_reading_of_other_classes_is_refused(self, tmp_path: Path) -> None:
        model = self.build(0)
        model.reading = statewise.models.Reading(symbols=tuple("abcdefghijklmnopqrstuvwxyz"), classes=("a",) * 1)
        with pytest.raises(ArgumentError):
            model.save(tmp_path / "x")
        assert not (tmp_path / "x").exists()

    def test_files_of_something_else_are_never_overwritten(self, tmp_path: Path) -> None:
        (tmp_path / CONFIG).write_text('{"task": "language model"}')
        with pytest.raises(StatewiseError, match=CONFIG):
            self.build(0).save(tmp_path)
        assert (tmp_path / CONFIG).read_text() == '{"task": "language model"}'
        assert not (tmp_path / WEIGHTS).exists()
