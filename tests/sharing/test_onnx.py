"""Models as ONNX graphs: one graph for every length, equal to the model, or no file at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
import torch
from torch import nn

from statewise import Zoneout
from statewise.errors import ExportError
from statewise.models import (
    ClassifierConfig,
    ForecastConfig,
    Forecaster,
    LanguageModel,
    LanguageModelConfig,
    Lexicon,
    OrthogonalNetwork,
    Reading,
    SequenceClassifier,
    StepConfig,
    TaggerConfig,
)
from statewise.sharing import check_onnx, export_onnx

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

_LEXICON = Lexicon.of([["Anna", "saw"]], tags=("O", "B-PER", "I-PER"), scheme="iob2")


def _classifier(**settings: Any) -> SequenceClassifier:
    return ClassifierConfig(**{"hidden": 6, **settings}).build(tokens=3, classes=2)


def _scaled(**settings: Any) -> SequenceClassifier:
    model = ClassifierConfig(hidden=6, readout="h", **settings).build(features=2, classes=2)
    model.standardise([20.0, -3.0], [2.0, 0.5])
    return model


def _forecaster(**settings: Any) -> Forecaster:
    made = ForecastConfig(**{"hidden": 6, **settings})
    return made.build(features=2, mean=[20.0, -3.0], deviation=[2.0, 0.5])


_REGULAR: dict[str, Any] = {"dropout": 0.2, "locked": True, "recurrent_dropout": 0.1, "zoneout": 0.3}
_REGULAR |= {"weight_drop": 0.4, "state_noise": "gaussian", "gamma": 0.5}
_CELLS = ("gru", "rnn", "mgu", "lstm", "peephole", "rac", "multiplicative")
#: What is exported in a full run: every cell, every head, every kind of readout.
MODELS: dict[str, Any] = {
    **{
        f"classifier of {cell}": (lambda c=cell: ClassifierConfig(cell=c, hidden=6).build(tokens=3, classes=2))
        for cell in _CELLS
    },
    "argmax centroids": lambda: ClassifierConfig(hidden=6, centroids=(4,), transition="argmax").build(
        tokens=3, classes=2
    ),
    "euclidean": partial(_classifier, centroids=(4,), similarity="euclidean"),
    "features": lambda: ClassifierConfig(cell="peephole", hidden=6, layers=2, readout="hc").build(
        features=3, classes=2
    ),
    "numbers by a scale": _scaled,
    "regularized": partial(_classifier, cell="lstm", layers=2, **_REGULAR),
    "forecaster": partial(_forecaster, cell="lstm", layers=2, around="mean", **_REGULAR),
    "forecaster of doubles": lambda: _forecaster(centroids=(3,)).double(),
    "reset before": lambda: StepConfig(reset_before=True, hidden=6).build(tokens=3, classes=2),
    "double": lambda: (
        StepConfig(cell="lstm", hidden=6, readout="u", centroids=(3,)).build(tokens=3, classes=2).double()
    ),
    "language model": lambda: LanguageModelConfig(hidden=(6, 6), weight_drop=0.5, noise="gaussian", gamma=0.3).build(9),
    "kept units": lambda: LanguageModelConfig(hidden=(6,), zoneout=0.3, zoneout_memory=0.1).build(9),
    "circuit": lambda: LanguageModelConfig(cell="rac", hidden=(6, 6)).build(9),
    "mixture": lambda: LanguageModelConfig(hidden=(6, 5), head="mixture", experts=3).build(9),
    "adaptive": lambda: LanguageModelConfig(hidden=(8,), head="adaptive", tied=False).build(300),
    "tagger": lambda: TaggerConfig(hidden=5, layers=2, constrained=True).build(_LEXICON),
    "softmax tagger": lambda: TaggerConfig(hidden=5, head="softmax", characters=0).build(
        _LEXICON, vectors=torch.ones(2, 4), context=3
    ),
    "regularized tagger": lambda: TaggerConfig(hidden=5, zoneout=0.2, weight_drop=0.3, centroids=3).build(_LEXICON),
    "orthogonal": lambda: OrthogonalNetwork(3, 2, 6, 2),
    "full capacity": lambda: OrthogonalNetwork(3, 2, 6, update="full-capacity", initial_state="learned"),
}


@pytest.fixture(scope="module", autouse=True)
def unchecked() -> Iterator[None]:
    """Shapes that are symbols, while a graph is made, are not for a check of annotations."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A classifier with centroids, which the operators of ONNX do not have."""
    model = ClassifierConfig(hidden=4, centroids=(3,)).build(tokens=2, classes=2, symbols="01")
    model.reading = Reading(unit="characters", symbols=("0", "1"), classes=("reject", "accept"))
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    assert export_onnx(model.train(), path) < 1e-5
    assert model.training, "a model is left in its mode"
    return path, model.eval()


class TestGraph:
    def test_words_of_unequal_lengths_and_the_empty_word_get_the_model_s_logits(
        self, exported: tuple[Path, Any]
    ) -> None:
        path, model = exported
        session = onnxruntime.InferenceSession(str(path))
        for batch, steps in ((1, 0), (1, 1), (3, 50), (7, 200)):
            tokens = torch.randint(2, (batch, steps), generator=torch.Generator().manual_seed(steps))
            lengths = torch.arange(batch) * steps // batch
            (found,) = session.run(None, {"tokens": tokens.numpy(), "lengths": lengths.numpy()})
            with torch.no_grad():
                torch.testing.assert_close(torch.from_numpy(found), model(tokens, lengths), rtol=1e-4, atol=1e-5)

    def test_the_loop_is_one_scan_whatever_the_length(self, exported: tuple[Path, Any]) -> None:
        graph = onnx.load(str(exported[0])).graph
        assert [node.op_type for node in graph.node].count("Scan") == 1

    def test_the_metadata_say_what_it_is(self, exported: tuple[Path, Any]) -> None:
        told = json.loads(onnx.load(str(exported[0])).metadata_props[0].value)
        assert (told["format"], told["version"], told["kind"]) == ("statewise-onnx", 1, "SequenceClassifier")
        assert told["reading"]["classes"] == ["reject", "accept"]
        assert told["reading"]["symbols"] == ["0", "1"]

    def test_a_file_of_other_weights_is_found_out(self, exported: tuple[Path, Any]) -> None:
        other = ClassifierConfig(hidden=4, centroids=(3,)).build(tokens=2, classes=2)
        with pytest.raises(ExportError, match="a difference of"):
            check_onnx(exported[0], other)

    def test_a_file_that_is_no_graph_is_a_named_error(self, tmp_path: Path, exported: tuple[Path, Any]) -> None:
        (tmp_path / "x.onnx").write_bytes(exported[0].read_bytes()[:100])
        with pytest.raises(ExportError, match=r"x\.onnx"):
            check_onnx(tmp_path / "x.onnx", exported[1])

    def test_a_check_that_fails_leaves_what_was_there(
        self, exported: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "old.onnx").write_bytes(b"old")
        content = exported[0].read_bytes()
        monkeypatch.setattr("statewise.sharing.onnx_export._graph", lambda *_: content)
        other = ClassifierConfig(hidden=4, centroids=(3,)).build(tokens=2, classes=2)
        for name in ("old.onnx", "new.onnx"):
            with pytest.raises(ExportError):
                export_onnx(other, tmp_path / name)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"old.onnx": b"old"}


class TestNumbers:
    """Models that standardise what they read by a scale of their own; zoneout acts in eval mode, by its expectation."""

    def test_a_classifier_takes_values_as_they_are(self, tmp_path: Path) -> None:
        model = _scaled(zoneout=0.3).eval()
        export_onnx(model, tmp_path / "x.onnx")
        values = torch.tensor([[[22.0, -3.5], [18.0, -2.0]]])
        session = onnxruntime.InferenceSession(str(tmp_path / "x.onnx"))
        (found,) = session.run(None, {"features": values.numpy(), "lengths": torch.tensor([2]).numpy()})
        torch.testing.assert_close(torch.from_numpy(found), model(values).detach(), rtol=1e-4, atol=1e-5)

    def test_a_forecaster_gives_laws_in_the_units_of_the_values(self, tmp_path: Path) -> None:
        model = _forecaster()
        export_onnx(model, tmp_path / "x.onnx")
        session = onnxruntime.InferenceSession(str(tmp_path / "x.onnx"))
        assert [each.name for each in session.get_outputs()] == ["mean", "deviation"]
        values = torch.tensor([[[22.0, -3.5], [18.0, -2.0], [1e9, 1e9]]])
        found = session.run(None, {"features": values.numpy(), "lengths": torch.tensor([2]).numpy()})
        for one, other in zip(found, model.predict(values[:, :2]), strict=True):
            torch.testing.assert_close(torch.from_numpy(one)[:, :2], other, rtol=1e-4, atol=1e-4)
            assert not one[:, 2:].any()


class TestRefused:
    def test_what_draws_in_eval_mode_is_refused_with_a_remedy(self, tmp_path: Path) -> None:
        model = ClassifierConfig(hidden=4, centroids=(3,), transition="sample").build(tokens=2, classes=2)
        with pytest.raises(ExportError, match=r"Centroids, which acts by chance.*with_transition"):
            export_onnx(model, tmp_path / "x.onnx")
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("model", [nn.Linear(1, 1), StepConfig(hidden=4).build(tokens=2, classes=2).half()])
    def test_other_modules_and_half_precision_are_refused(self, tmp_path: Path, model: nn.Module) -> None:
        with pytest.raises(ExportError, match=r"Linear|float16"):
            export_onnx(model, tmp_path / "x.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("build", MODELS.values(), ids=MODELS.keys())
def test_every_model_equals_its_graph(build: Any, tmp_path: Path) -> None:
    model = build()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.7, 0.7, generator=torch.Generator().manual_seed(parameter.numel()))
    bound = 1e-12 if next(model.parameters()).dtype == torch.float64 else 1e-4
    assert export_onnx(model, tmp_path / "model.onnx") < bound


@pytest.mark.slow
def test_a_model_built_by_hand_with_zoneout_is_exported_too(tmp_path: Path) -> None:
    import statewise

    model = LanguageModel(7, statewise.LSTM(4, 4, transforms=Zoneout(0.3, memory=0.2)))
    assert export_onnx(model, tmp_path / "model.onnx") < 1e-5
