"""Models in folders: every kind, and what only one kind has."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import statewise
from contracts.saved import CONFIG, WEIGHTS, SavedContract, rewrite
from statewise.errors import ExportError, ModelFolderError
from statewise.models import (
    ClassifierConfig,
    ForecastConfig,
    LanguageModel,
    LanguageModelConfig,
    Lexicon,
    OrthogonalConfig,
    OrthogonalNetwork,
    Reading,
    Saved,
    StepConfig,
    Tagger,
    TaggerConfig,
)

LEXICON = Lexicon.of([["Anna", "saw", "Otto"]], tags=("O", "B-PER", "I-PER"), scheme="iob2")


def drawn(model: Saved, seed: int) -> Saved:
    """The model with weights of its own, biases among them."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return model


class TestLanguageModel(SavedContract):
    """With dropped weights, noise, centroids and a tied head."""

    huge = ({"hidden": [1 << 50, 8]}, {"hidden": [1] * 100_000}, {"embedding": 1 << 60}, {"experts": 1 << 62})

    def build(self, seed: int) -> Saved:
        config = LanguageModelConfig(hidden=(8, 8), weight_drop=0.5, noise="gaussian", gamma=0.5, centroids=3)
        return drawn(config.build(20), seed)

    def ask(self, model: LanguageModel) -> tuple[Tensor, ...]:
        found, ((h, c),) = model(torch.arange(18).view(6, 3))
        return found, h, c

    def test_a_tied_weight_is_one_weight_afterwards(self, kept: Path) -> None:
        same = LanguageModel.load(kept)
        assert same.head.weight is same.embedding.weight

    def test_a_model_built_by_hand_says_how_to_make_it_from_a_config(self, tmp_path: Path) -> None:
        with pytest.raises(ExportError, match=r"LanguageModelConfig\(\.\.\.\)\.build"):
            LanguageModel(10, statewise.LSTM(4, 4)).save(tmp_path / "x")
        assert not (tmp_path / "x").exists()

    def test_a_model_changed_by_hand_is_not_saved_as_what_it_was(self, tmp_path: Path) -> None:
        model: Any = LanguageModelConfig(hidden=(8,), centroids=3).build(20)
        model.layers[0].retune(statewise.Centroids, temperature=0.5)
        with pytest.raises(ExportError, match=r"layers\.0 other than its config builds it"):
            model.save(tmp_path / "x")

    def test_how_a_text_becomes_words_is_kept(self, tmp_path: Path) -> None:
        model = LanguageModelConfig(hidden=(8,)).build(4)
        words = ("<unk>", "<eos>", "the", "cät")
        model.reading = Reading(unit="symbols", symbols=words, lower=True, unknown="<unk>", end="<eos>")
        model.metrics = {"valid perplexity": 12.5, "best_epoch": 3}
        same = statewise.load(model.save(tmp_path / "x"))
        assert same.reading == model.reading
        assert same.metrics == model.metrics
        assert same.reading.encode("The CÄT\nsat") == [2, 3, 1, 0, 1]
        assert same.reading.decode([3, 0]) == ["cät", "<unk>"]


class TestMixture(SavedContract):
    """Layers of two widths, a mixture, nothing tied, units that are kept."""

    huge = ({"experts": 1 << 62}, {"hidden": [1 << 62, 1 << 62]})

    def build(self, seed: int) -> Saved:
        kept: dict[str, Any] = {"zoneout": 0.2, "zoneout_memory": 0.1, "recurrent_dropout": 0.1, "locked": True}
        config = LanguageModelConfig(hidden=(8, 6), head="mixture", experts=3, tied=False, **kept)
        return drawn(config.build(20), seed)

    def ask(self, model: LanguageModel) -> tuple[Tensor, ...]:
        return (model(torch.arange(18).view(6, 3))[0],)


class TestSequenceClassifier(SavedContract):
    """With centroids of a temperature of their own."""

    def build(self, seed: int) -> Saved:
        config = ClassifierConfig(cell="multiplicative", hidden=8, layers=2, centroids=(4, 0))
        model = config.build(tokens=3, classes=2, symbols="abc")
        model.retune(temperature=0.25)
        return drawn(model, seed)

    def ask(self, model: Any) -> tuple[Tensor, ...]:
        return (model(torch.tensor([[0, 1, 2], [1, 1, 0]]), torch.tensor([3, 0])),)


class TestClassifierOfPictures(SavedContract):
    def build(self, seed: int) -> Saved:
        model = ClassifierConfig(cell="peephole", hidden=8, readout="hc").build(features=1, classes=3)
        order = (3, 1, 0, 2)
        model.reading = Reading(unit="pixels", height=2, width=2, permutation=order, classes=("a", "b", "c"))
        return drawn(model, seed)

    def ask(self, model: Any) -> tuple[Tensor, ...]:
        return (model(torch.linspace(-1, 1, 8).view(2, 4, 1)),)


#: Every regularizer of the recurrent stack that goes with the others.
REGULAR: dict[str, Any] = {"dropout": 0.2, "locked": True, "recurrent_dropout": 0.1, "zoneout": 0.3}
REGULAR |= {"weight_drop": 0.4, "state_noise": "gaussian", "gamma": 0.5}


class TestRegularizedClassifier(SavedContract):
    """With everything that acts in training, and zoneout, which acts in eval mode too, by its expectation."""

    def build(self, seed: int) -> Saved:
        config = ClassifierConfig(cell="lstm", hidden=8, layers=2, embedding_dropout=0.1, **REGULAR)
        return drawn(config.build(tokens=3, classes=2), seed)

    def ask(self, model: Any) -> tuple[Tensor, ...]:
        return (model(torch.tensor([[0, 1, 2], [1, 1, 0]]), torch.tensor([3, 1])),)

    def test_zoneout_acts_in_eval_mode_after_loading(self, kept: Path) -> None:
        model: Any = statewise.load(kept)
        plain: Any = ClassifierConfig(cell="lstm", hidden=8, layers=2, weight_drop=0.4).build(tokens=3, classes=2)
        plain.load_state_dict(model.state_dict())
        assert not torch.allclose(self.ask(model)[0], self.ask(plain.eval())[0], atol=1e-3)


class TestClassifierOfNumbers(SavedContract):
    """Which standardises what it reads by the scale of its training set."""

    def build(self, seed: int) -> Saved:
        model = ClassifierConfig(hidden=8, readout="h").build(features=2, classes=3)
        model.standardise([20.0, -3.0], [2.0, 0.5])
        model.reading = Reading(unit="numbers", features=("heat", "wind"), classes=("a", "b", "c"))
        return drawn(model, seed)

    def ask(self, model: Any) -> tuple[Tensor, ...]:
        return (model(torch.linspace(-3, 20, 16).view(2, 4, 2)),)

    def test_its_scale_and_the_names_of_its_features_are_kept(self, kept: Path) -> None:
        model: Any = statewise.load(kept)
        assert model.scale_mean.tolist() == [20.0, -3.0]
        assert model.scale_deviation.tolist() == [2.0, 0.5]
        assert model.reading.features == ("heat", "wind")


class TestStepsOfNumbers(SavedContract):
    def build(self, seed: int) -> Saved:
        model = StepConfig(hidden=8, readout="u").build(features=1, classes=2)
        model.standardise([5.0], [3.0])
        return drawn(model, seed)

    def ask(self, model: Any) -> tuple[Tensor, ...]:
        return (model(torch.linspace(0, 9, 8).view(2, 4, 1)),)


class TestForecaster(SavedContract):
    def build(self, seed: int) -> Saved:
        config = ForecastConfig(cell="lstm", hidden=8, layers=2, around="mean", **REGULAR)
        model = config.build(features=2, mean=[20.0, -3.0], deviation=[2.0, 0.5])
        model.reading = Reading(unit="numbers", features=("heat", "wind"))
        return drawn(model, seed)

    def ask(self, model: Any) -> tuple[Tensor, ...]:
        paths = model.forecast(torch.ones(4, 2), steps=2, samples=3, generator=torch.Generator().manual_seed(0))
        return (*model.predict(torch.linspace(-3, 20, 16).view(2, 4, 2)), paths.values)


class TestStepClassifier(SavedContract):
    def build(self, seed: int) -> Saved:
        return drawn(StepConfig(cell="mgu", hidden=8, readout="u", centroids=(3,)).build(tokens=3, classes=2), seed)

    def ask(self, model: Any) -> tuple[Tensor, ...]:
        return (model(torch.tensor([[0, 1, 2], [1, 1, 0]]), torch.tensor([3, 1])),)


class TestTagger(SavedContract):
    """With a constrained CRF and characters; vectors of its own."""

    def build(self, seed: int) -> Saved:
        config = TaggerConfig(hidden=8, words=6, characters=4, character_hidden=3, constrained=True)
        return drawn(config.build(LEXICON), seed)

    def ask(self, model: Any) -> tuple[Tensor, ...]:
        batch = model.read([["Anna", "left"], ["Otto"]])
        return model(batch), model.decode(batch)

    def test_it_tags_raw_words(self, kept: Path) -> None:
        sentences = [["Anna", "saw", "Emil"], ["Otto"]]
        model: Any = self.build(0)
        assert Tagger.load(kept).tag(sentences) == model.eval().tag(sentences)

    def test_tags_without_end_are_refused_before_their_matrix_is_made(self, folder: Path) -> None:
        many = [f"B-{number}" for number in range(200_000)]
        rewrite(folder, lambda document, _: document["built_for"].update(tags=many))
        with pytest.raises(ModelFolderError, match="200000 tags"):
            statewise.load(folder)


class TestTaggerWithGivenVectors(SavedContract):
    def build(self, seed: int) -> Saved:
        vectors = torch.randn(len(LEXICON.words), 5, generator=torch.Generator().manual_seed(seed))
        kept: dict[str, Any] = {"zoneout": 0.2, "weight_drop": 0.3, "noise": "gaussian", "gamma": 0.1, "centroids": 3}
        config = TaggerConfig(cell="gru", hidden=8, head="softmax", characters=0, **kept)
        return drawn(config.build(LEXICON, vectors=vectors, context=3), seed)

    def ask(self, model: Any) -> tuple[Tensor, ...]:
        context = torch.linspace(-1, 1, 9).view(3, 3).numpy()
        return (model(model.read([["Anna", "left"], ["Otto"]], context=context)),)

    def test_its_vectors_stay_frozen(self, kept: Path) -> None:
        model: Any = statewise.load(kept)
        assert not model.words.weight.requires_grad


class TestOrthogonalNetwork(SavedContract):
    huge = ({"hidden": 1 << 50}, {"depth": 1 << 40}, {"rho": 1 << 40})

    def build(self, seed: int) -> Saved:
        return drawn(OrthogonalConfig(inputs=4, classes=2, hidden=8, depth=2, rho=3).build(), seed)

    def ask(self, model: Any) -> tuple[Tensor, ...]:
        return (model(torch.ones(5, 2, 4), torch.full((2, 2, 8), 0.1)),)

    def test_its_matrices_are_orthogonal_still(self, kept: Path) -> None:
        assert OrthogonalNetwork.load(kept).orthogonality() < 1e-5


class TestFullCapacity(SavedContract):
    huge = ({"hidden": 1 << 50}, {"depth": 1 << 40})

    def build(self, seed: int) -> Saved:
        options: dict[str, Any] = {"update": "full-capacity", "initial_state": "learned", "limit": None}
        return drawn(OrthogonalNetwork(4, 2, 8, every_step=False, **options), seed)

    def ask(self, model: Any) -> tuple[Tensor, ...]:
        return (model(torch.ones(5, 2, 4)),)


def test_a_place_without_a_model_is_a_named_error(tmp_path: Path) -> None:
    for place, got in ((tmp_path / "nowhere", "no folder"), (tmp_path, "without model.safetensors")):
        with pytest.raises(ModelFolderError, match=got):
            statewise.load(place)


def _save_for_ever(folder: str, ready: Any) -> None:
    models = [StepConfig(hidden=hidden).build(tokens=3, classes=2) for hidden in (8, 12)]
    for number in range(10_000):
        models[number % 2].save(folder)
        ready.set()


@pytest.mark.slow
def test_a_process_killed_while_it_saves_leaves_a_model_that_loads(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    for attempt in range(3):
        ready = context.Event()
        process = context.Process(target=_save_for_ever, args=(str(tmp_path / "m"), ready))
        process.start()
        assert ready.wait(60)
        time.sleep(0.03 * attempt + 0.011)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join(20)
        assert statewise.load(tmp_path / "m").config.hidden in (8, 12)
    StepConfig(hidden=8).build(tokens=3, classes=2).save(tmp_path / "m")
    assert {path.name for path in (tmp_path / "m").iterdir()} == {".lock", CONFIG, WEIGHTS}
