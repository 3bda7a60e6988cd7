"""The same model without regularization, with dropout, and with noise: what helps on this text, and by how much."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from statewise.commands.curves import curves
from statewise.commands.shared import check_new, first_process
from statewise.data import Corpus
from statewise.errors import DivergedError
from statewise.files import write_atomically
from statewise.models import LanguageModelConfig
from statewise.models.config import DROPOUTS
from statewise.recipes.noisin_language import DROPOUTS as USUAL
from statewise.report import Table
from statewise.train.fit import TrainingResult, train_language_model
from statewise.train.run import read_config
from statewise.train.settings import TrainingSettings, as_json
from statewise.train.telling import say
from statewise.transforms import Noise

STD = 0.5  # of noise whose spread is not named
COMPARED = "compared.json"
_PENALTIES = ("activation", "temporal")


def compare(
    config: LanguageModelConfig,
    settings: TrainingSettings,
    corpus: Corpus,
    folder: Path,
    *,
    device: torch.device,
    resume: bool,
    console: Console,
    told: Console | None,
    source: Mapping[str, Any],
    tensorboard: bool = False,
) -> dict[str, TrainingResult]:
    """Train the variants of a model, and print by how much each beats the others.

    Args:
        config: the model, with the noise and the dropout that are asked about.
        settings: how each variant is trained.
        corpus: on what.
        folder: gets a folder for each variant, and a file that says what was asked.
        device: where.
        resume: go on with variants that are there.
        console: where to print the table.
        told: where to tell of the progress.
        source: where the text came from.
        tensorboard: whether each variant's curves are written too.
    """
    asked = variants(config)
    check_new(folder, resume, within=tuple(asked))
    document = {"model": as_json(config), "training": as_json(settings), "source": dict(source)}
    if not resume or not (folder / COMPARED).exists():
        note(folder, document)
    results: dict[str, TrainingResult] = {}
    failed: dict[str, DivergedError] = {}
    for name, variant in asked.items():
        say(told, f"{name}:")
        options: dict[str, Any] = {"device": device, "resume": resume, "console": told, "source": source}
        try:
            with curves(folder / name, wanted=tensorboard) as write:
                run = train_language_model(variant, settings, corpus, folder / name, on_epoch=write, **options)
            results[name] = run
        except DivergedError as error:
            failed[name] = error
            say(told, f"{name} came to nothing: {error}")
        note(folder, document)  # not before: what is refused is not what the folder has
    if not results:
        raise next(iter(failed.values()))
    gains(results, failed).print(console)
    return results


def asked_before(folder: Path) -> dict[str, Any]:
    """Model, training and source of the comparison in a folder; nothing if there is none.

    Args:
        folder: of the comparison.
    """
    path = folder / COMPARED
    return read_config(path) if path.exists() else {}


def note(folder: Path, document: Mapping[str, Any]) -> None:
    """Write down what was asked; under torchrun, in the first process.

    Args:
        folder: of the comparison.
        document: model, training and source.
    """
    if first_process():
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / COMPARED, json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def variants(config: LanguageModelConfig) -> dict[str, LanguageModelConfig]:
    """The model without regularization, with dropout, with noise, and as it is if it has more than noise.

    The first has no noise, no dropout of any kind and no penalties. Dropout has the model's rates, those of weights,
    of words and of zoneout too, or else those of Dieng et al. 2018; the model's penalties go with it. Noise is alone;
    without a law it is Gaussian.

    Args:
        config: the model that is asked about.

    >>> list(variants(LanguageModelConfig(noise="gamma", gamma=0.4)))
    ['none', 'dropout', 'gamma']
    >>> list(variants(LanguageModelConfig(input_dropout=0.2, noise="gamma", gamma=0.4)))
    ['none', 'dropout', 'gamma', 'dropout+gamma']
    """
    if config.noise is None:
        config = replace(config, noise="gaussian", gamma=Noise.from_std("gaussian", STD).gamma)
    kept = ("zoneout", "zoneout_memory")
    dropped, penalised = (any(getattr(config, name) for name in names) for names in ((*DROPOUTS, *kept), _PENALTIES))
    off = {**dict.fromkeys((*DROPOUTS, *_PENALTIES, "zoneout"), 0.0), "zoneout_memory": None}
    noisy = replace(config, **off)  # type: ignore[arg-type]
    # With one layer there is nothing between the layers to drop.
    usual = {name: rate for name, rate in USUAL.items() if name != "hidden_dropout" or len(config.hidden) > 1}
    dropping = config if dropped else replace(config, **usual)  # type: ignore[arg-type]
    found = {"none": _quiet(noisy), "dropout": _quiet(dropping), str(config.noise): noisy}
    if dropped or penalised:
        found[f"{'dropout' if dropped else 'penalties'}+{config.noise}"] = config
    return found


def gains(results: Mapping[str, TrainingResult], failed: Mapping[str, Exception] | None = None) -> Table:
    """The test perplexities of variants, and how much lower each is than those of the others.

    Args:
        results: by name.
        failed: why others have none.
    """
    lost = [f"{name} came to nothing: {error}" for name, error in (failed or {}).items()]
    names = list(results)
    rows = [
        [name, f"{one.valid_perplexity:.2f}", f"{one.test_perplexity:.2f}", str(one.best_epoch)]
        + ["-" if name == other else f"{_gain(one, results[other]):+.1f} %" for other in names]
        + [f"{one.seconds:.0f}"]
        for name, one in results.items()
    ]
    columns = ("model", "valid", "test", "best epoch", *(f"against {name}" for name in names), "seconds")
    return Table(columns=columns, rows=rows, notes=[conclusion(results), *lost])


def conclusion(results: Mapping[str, TrainingResult]) -> str:
    """What the numbers say, in a sentence: validation chooses, the test tells how good the choice is.

    Args:
        results: by name.
    """
    best = min(results, key=lambda name: results[name].valid_perplexity)
    if best == "none":
        return "Nothing helped on this text: the model without regularization has the lowest validation perplexity."
    found = []
    for other, called in (("none", "without regularization"), ("dropout", "with dropout")):
        if other in results and other != best:
            gain = _gain(results[best], results[other])
            found.append(f"{abs(gain):.1f} % {'lower' if gain < 0 else 'higher'} than {called}")
    test = f"{results[best].test_perplexity:.2f}"
    told = f"its test perplexity, {test}, is {' and '.join(found)}" if found else f"its test perplexity is {test}"
    return f"Best by validation is {best}: {told}."


def _quiet(config: LanguageModelConfig) -> LanguageModelConfig:
    return replace(config, noise=None, gamma=None)


def _gain(one: TrainingResult, other: TrainingResult) -> float:
    return (one.test_perplexity / other.test_perplexity - 1) * 100
