"""Runs that ask for none of the younger regularizers are those of before: in their numbers, and in their files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from statewise.data import Corpus, Sequences, TokenStream, copying, hidden_markov_sentences, sample_corpus
from statewise.models import ClassifierConfig, LanguageModelConfig, TaggerConfig
from statewise.models.steps import StepConfig
from statewise.train import (
    ClassifierSettings,
    RunFolder,
    TaggerSettings,
    TrainingSettings,
    load_classifier,
    load_language_model,
    load_steps,
    load_tagger,
    train_classifier,
    train_language_model,
    train_steps,
    train_tagger,
)

CLASSIFIER = ClassifierConfig(hidden=6, embedding=4, centroids=(3,), dropout=0.2, embedding_dropout=0.1)
CLASSIFIED = ClassifierSettings(epochs=2, batch=16, lr=0.01)
LANGUAGE = LanguageModelConfig(
    hidden=(6, 6), noise="gaussian", gamma=0.4, centroids=4, input_dropout=0.1, hidden_dropout=0.1,
    recurrent_dropout=0.1, output_dropout=0.1, embedding_dropout=0.1, weight_drop=0.2,
)  # fmt: skip
READ = TrainingSettings(epochs=2, batch=8, bptt=20, lr=2.0)
TAGGER = TaggerConfig(hidden=5, words=5, characters=3, character_hidden=3, noise="gaussian", gamma=0.3)
TAGGED = TaggerSettings(epochs=2, batch=8, optimizer="adam", lr=0.01)
#: Fields that the files of older runs do not have.
YOUNGER = {
    "model": ("zoneout", "zoneout_memory", "weight_drop", "locked", "recurrent_dropout", "state_noise"),
    "training": ("mixup", "alpha", "rho", "pairing", "lengths"),
}


@cache
def words() -> Sequences:
    texts = [format(number, "b") for number in range(60)]
    return Sequences.from_words(texts, [text.count("1") % 2 for text in texts])


@cache
def corpus() -> Corpus:
    whole, sizes = sample_corpus(), {"train": 1500, "valid": 300, "test": 300}
    parts = {name: TokenStream(getattr(whole, name)[:count].numpy()) for name, count in sizes.items()}
    return Corpus("sample", whole.vocabulary, **parts)


def classify(folder: Path, config: ClassifierConfig = CLASSIFIER, **options: Any) -> None:
    train_classifier(config, options.pop("settings", CLASSIFIED), words(), words(), {}, folder, **options)


def read(folder: Path, config: LanguageModelConfig = LANGUAGE, **options: Any) -> None:
    train_language_model(config, options.pop("settings", READ), corpus(), folder, **options)


def tag(folder: Path, config: TaggerConfig = TAGGER, **options: Any) -> None:
    made = hidden_markov_sentences(train=24, valid=12, test=8)
    train_tagger(config, options.pop("settings", TAGGED), made.train, made.valid, {}, folder, **options)


def step(folder: Path, **options: Any) -> None:
    train, valid = (copying(delay=5, n=3, count=count, seed=count) for count in (40, 20))
    config = StepConfig(hidden=6, cell="lstm", centroids=(3,), dropout=0.1)
    train_steps(config, options.pop("settings", CLASSIFIED), train, valid, {}, folder, **options)


def layers(folder: Path) -> None:
    classify(folder, replace(CLASSIFIER, cell="lstm", layers=2, centroids=(3, 0), readout="hc"))


def widths(folder: Path) -> None:
    read(folder, replace(LANGUAGE, hidden=(5, 6), locked=True, cell="gru", placement="outputs"))


def mixed(folder: Path) -> None:
    tag(folder, replace(TAGGER, cell="gru", head="softmax"), settings=replace(TAGGED, mixup="through-time"))


#: The sum of all weights' sizes, and the last losses, as they were before these settings existed.
GOLDEN: list[tuple[Callable[[Path], None], float, dict[str, float]]] = [
    (classify, 58.02970635704696, {"train_loss": 0.6985986391703288, "valid_loss": 0.694926093968282}),
    (layers, 146.79370790487155, {"train_loss": 0.6908340175946553, "valid_loss": 0.6934155908056773}),
    (read, 230.55428510853562, {"train_perplexity": 68.24821142396031, "valid_perplexity": 61.32096306141296}),
    (widths, 191.58186428400268, {"train_perplexity": 67.90458844407735, "valid_perplexity": 61.37785255634713}),
    (tag, 822.3238964448683, {"train_loss": 16.433093070983887, "valid_loss": 13.316998283068338}),
    (mixed, 774.0185841159546, {"train_loss": 17.50502808888753, "valid_loss": 12.797855496406555}),
    (step, 129.97490288200788, {"train_loss": 2.2624267578125, "valid_loss": 2.201073339750237}),
]


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """Sums are in the same order on every machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize(("run", "weights", "losses"), GOLDEN, ids=[run.__name__ for run, _, _ in GOLDEN])
def test_the_numbers_are_those_of_before(
    run: Callable[[Path], None], weights: float, losses: dict[str, float], tmp_path: Path
) -> None:
    """Another order of draws, or one draw more, changes the second digit; another processor the last of single."""
    run(tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    state, _ = folder.load_model()
    last = [record for record in folder.metrics() if "epoch" in record][-1]
    assert float(sum(tensor.double().abs().sum() for tensor in state.values())) == pytest.approx(weights, rel=2e-5)
    assert {name: last[name] for name in losses} == pytest.approx(losses, rel=2e-5)


#: How a run begins, how it is loaded, and settings with which it goes on for another epoch.
KINDS: dict[str, tuple[Callable[..., None], Callable[..., Any], Any]] = {
    "classifier": (classify, load_classifier, replace(CLASSIFIED, epochs=3)),
    "steps": (step, load_steps, replace(CLASSIFIED, epochs=3)),
    "tagger": (tag, load_tagger, replace(TAGGED, epochs=3)),
    "language": (read, load_language_model, replace(READ, epochs=3)),
}


def aged(folder: Path, kind: str) -> None:
    """Make a run's file as those are that were written before the fields existed."""
    path = folder / "config.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    gone = []
    for part, names in YOUNGER.items():
        if (kind, part) == ("tagger", "training"):
            continue  # which had them
        had = ("weight_drop", "locked", "recurrent_dropout") if (kind, part) == ("language", "model") else ()
        gone += [told[part].pop(name) for name in names if name in told[part] and name not in had]
    if kind in ("classifier", "steps"):
        gone.append(told["model"].pop("gamma"))
    if kind == "tagger":
        gone += [told["model"].pop(name) for name in ("centroids", "temperature")]
    assert gone
    path.write_text(json.dumps(told), encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_of_an_older_run_is_loaded_and_goes_on_with_the_same_bits(kind: str, tmp_path: Path) -> None:
    run, load, longer = KINDS[kind]
    run(tmp_path / "old")
    aged(tmp_path / "old", kind)
    load(tmp_path / "old")
    run(tmp_path / "old", settings=longer, resume=True)
    run(tmp_path / "new", settings=longer)
    states = [RunFolder(tmp_path / name).load_model()[0] for name in ("old", "new")]
    assert states[0].keys() == states[1].keys()
    for name, tensor in states[0].items():
        assert torch.equal(tensor, states[1][name]), name
