"""The kinds of models that can be saved: what each is built from, beside its weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from statewise.models.classifier import SequenceClassifier
from statewise.models.classifier_config import ClassifierConfig
from statewise.models.config import LanguageModelConfig
from statewise.models.forecaster import Forecaster
from statewise.models.forecaster_config import ForecastConfig
from statewise.models.language import LanguageModel
from statewise.models.lexicon import Lexicon
from statewise.models.orthogonal_network import OrthogonalConfig, OrthogonalNetwork
from statewise.models.parts import Parts
from statewise.models.steps import StepClassifier, StepConfig
from statewise.models.tagger import Tagger
from statewise.models.tagger_config import TaggerConfig


@dataclass(frozen=True, kw_only=True)
class Words:
    """What a language model is built for."""

    words: int


@dataclass(frozen=True, kw_only=True)
class Sequences:
    """What a classifier is built for; ``scaled`` says that it standardises features by a scale of its own."""

    tokens: int | None
    features: int | None
    classes: int
    symbols: tuple[str, ...] | None = None
    scaled: bool = False


@dataclass(frozen=True, kw_only=True)
class Steps:
    """What a classifier of steps is built for; ``scaled`` as for one of sequences."""

    tokens: int | None
    features: int | None
    classes: int
    scaled: bool = False


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """What a forecaster is built for; it always has a scale."""

    features: int


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """What a tagger is built for: its lexicon, the width of given word vectors, and that of vectors from outside."""

    tags: tuple[str, ...]
    words: tuple[str, ...]
    characters: tuple[str, ...]
    scheme: str
    vectors: int | None
    context: int


@dataclass(frozen=True, kw_only=True)
class Nothing:
    """What a network is built for whose config says it all."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How a model of a kind is described and built.

    Attributes:
        model: its class.
        config: the class of its settings.
        task: the class of what it is built for.
        of: what a model was built for.
        build: the model with fresh weights.
        layers: how many recurrent layers the settings ask for.
    """

    model: type[nn.Module]
    config: type[Any]
    task: type[Any]
    of: Callable[[Any], Any]
    build: Callable[[Any, Any], nn.Module]
    layers: Callable[[Any], int]


def _of_tagger(model: Tagger) -> Sentences:
    lexicon, vectors = model.lexicon, model.words.weight
    # Vectors that were learnt from nothing are trained without being fine-tuned.
    given = not vectors.requires_grad or model.config.finetune or vectors.shape[1] != model.config.words
    return Sentences(
        tags=lexicon.tags,
        words=lexicon.words,
        characters=lexicon.characters,
        scheme=lexicon.scheme,
        vectors=vectors.shape[1] if given else None,
        context=model.context,
    )


def _tagger(config: TaggerConfig, task: Sentences) -> Tagger:
    lexicon = Lexicon(tags=task.tags, words=task.words, characters=task.characters, scheme=task.scheme)
    rows = None if task.vectors is None else torch.zeros(len(task.words), task.vectors)
    return config.build(lexicon, vectors=rows, context=task.context)


def _with_scale(model: Parts, task: Sequences | Steps) -> Parts:
    """The model with room for a scale, if it has one; the numbers themselves are among the weights."""
    if task.scaled:
        model.standardise([0.0] * (task.features or 0), [1.0] * (task.features or 0))
    return model


KINDS = {
    "LanguageModel": Kind(
        model=LanguageModel,
        config=LanguageModelConfig,
        task=Words,
        of=lambda model: Words(words=model.words),
        build=lambda config, task: config.build(task.words),
        layers=lambda config: len(config.hidden),
    ),
    "SequenceClassifier": Kind(
        model=SequenceClassifier,
        config=ClassifierConfig,
        task=Sequences,
        of=lambda model: Sequences(
            tokens=model.tokens,
            features=model.features,
            classes=model.classes,
            symbols=model.symbols,
            scaled=model.has_scale,
        ),
        build=lambda config, task: _with_scale(
            config.build(tokens=task.tokens, features=task.features, classes=task.classes, symbols=task.symbols), task
        ),
        layers=lambda config: config.layers,
    ),
    "StepClassifier": Kind(
        model=StepClassifier,
        config=StepConfig,
        task=Steps,
        of=lambda model: Steps(
            tokens=model.tokens, features=model.features, classes=model.classes, scaled=model.has_scale
        ),
        build=lambda config, task: _with_scale(
            config.build(tokens=task.tokens, features=task.features, classes=task.classes), task
        ),
        layers=lambda config: config.layers,
    ),
    "Forecaster": Kind(
        model=Forecaster,
        config=ForecastConfig,
        task=Numbers,
        of=lambda model: Numbers(features=model.features),
        build=lambda config, task: config.build(features=task.features),
        layers=lambda config: config.layers,
    ),
    "Tagger": Kind(
        model=Tagger,
        config=TaggerConfig,
        task=Sentences,
        of=_of_tagger,
        build=_tagger,
        layers=lambda config: config.layers,
    ),
    "OrthogonalNetwork": Kind(
        model=OrthogonalNetwork,
        config=OrthogonalConfig,
        task=Nothing,
        of=lambda model: Nothing(),
        build=lambda config, task: config.build(),
        layers=lambda config: config.depth,
    ),
}


def kind_of(model: nn.Module) -> str | None:
    """The name of a model's kind; None for others. A subclass is none: it may compute something else.

    Args:
        model: any module.

    >>> kind_of(nn.Linear(1, 1)) is None
    True
    """
    return next((name for name, kind in KINDS.items() if type(model) is kind.model), None)
