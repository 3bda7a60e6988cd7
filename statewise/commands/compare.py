"""The same model without regularization, with dropout, and with noise: what helps on this text, and by how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from statewise.commands.shared import first_process, say
from statewise.data import Corpus
from statewise.errors import RunFolderError
from statewise.models import LanguageModelConfig
from statewise.recipes.noisin_language import DROPOUTS
from statewise.report import Table
from statewise.train.fit import TrainingResult, train_language_model
from statewise.train.settings import TrainingSettings
from statewise.transforms import Noise

STD = 0.5  # of noise whose spread is not named
_RATES = ("input_dropout", "hidden_dropout", "recurrent_dropout", "output_dropout")


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
    source: Mapping[str, Any] | None = None,
) -> dict[str, TrainingResult]:
    """Train the variants of a model, and print by how much each beats the others.

    Args:
        config: the model, with the noise and the dropout that are asked about.
        settings: how each variant is trained.
        corpus: on what.
        folder: gets a folder for each variant.
        device: where.
        resume: go on with variants that are there.
        console: where to print the table.
        told: where to tell of the progress.
        source: where the text came from.
    """
    asked = variants(config)
    taken = [name for name in asked if (folder / name / "config.json").exists()]
    if taken and not resume and first_process():
        raise RunFolderError(
            where=str(folder),
            got=f"runs of {', '.join(taken)}",
            wanted="a new or empty folder",
            remedy=f"Go on with them (--resume --out {folder}), or name another folder (--out).",
        )
    results = {}
    for name, variant in asked.items():
        say(told, f"{name}:")
        results[name] = train_language_model(
            variant, settings, corpus, folder / name, device=device, resume=resume, console=told, source=source
        )
    gains(results).print(console)
    return results


def variants(config: LanguageModelConfig) -> dict[str, LanguageModelConfig]:
    """The model without regularization, with dropout, with noise, and with both if both are asked for.

    Without rates of its own the dropout is that of Dieng et al. 2018; without a law the noise is Gaussian.

    Args:
        config: the model that is asked about.

    >>> list(variants(LanguageModelConfig(noise="gamma", gamma=0.4)))
    ['none', 'dropout', 'gamma']
    >>> list(variants(LanguageModelConfig(input_dropout=0.2, noise="gamma", gamma=0.4)))
    ['none', 'dropout', 'gamma', 'dropout+gamma']
    """
    if config.noise is None:
        config = replace(config, noise="gaussian", gamma=Noise.from_std("gaussian", STD).gamma)
    asked = {name: getattr(config, name) for name in _RATES}
    both = any(asked.values())
    nothing: dict[str, float] = dict.fromkeys(_RATES, 0.0)
    rates = asked if both else DROPOUTS
    found = {
        "none": _with(config, nothing, noise=False),
        "dropout": _with(config, rates, noise=False),
        str(config.noise): _with(config, nothing, noise=True),
    }
    return found | ({f"dropout+{config.noise}": config} if both else {})


def gains(results: Mapping[str, TrainingResult]) -> Table:
    """The test perplexities of variants, and how much lower each is than those of the others.

    Args:
        results: by name.
    """
    names = list(results)
    rows = [
        [name, f"{one.valid_perplexity:.2f}", f"{one.test_perplexity:.2f}", str(one.best_epoch)]
        + ["-" if name == other else _change(one, results[other]) for other in names]
        + [f"{one.seconds:.0f}"]
        for name, one in results.items()
    ]
    columns = ("model", "valid", "test", "best epoch", *(f"against {name}" for name in names), "seconds")
    return Table(columns=columns, rows=rows, notes=[conclusion(results)])


def conclusion(results: Mapping[str, TrainingResult]) -> str:
    """What the numbers say, in a sentence."""
    best = min(results, key=lambda name: results[name].test_perplexity)
    if best == "none":
        return "Nothing helped on this text: the model without regularization has the lowest test perplexity."
    others = [name for name in results if name != best and name in ("none", "dropout")]
    said = " and ".join(
        f"{-_gain(results[best], results[other]):.1f} % lower than "
        + ("without regularization" if other == "none" else "with dropout")
        for other in others
    )
    return f"Best is {best}: its test perplexity, {results[best].test_perplexity:.2f}, is {said}."


def _with(config: LanguageModelConfig, rates: Mapping[str, float], *, noise: bool) -> LanguageModelConfig:
    dropped = replace(config, **rates)  # type: ignore[arg-type]
    return dropped if noise else replace(dropped, noise=None, gamma=0.0)


def _gain(one: TrainingResult, other: TrainingResult) -> float:
    return (one.test_perplexity / other.test_perplexity - 1) * 100


def _change(one: TrainingResult, other: TrainingResult) -> str:
    return f"{_gain(one, other):+.1f} %"
