"""Whole models: what a person trains, saves and asks."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.models.classifier import SequenceClassifier
    from statewise.models.classifier_config import ClassifierConfig
    from statewise.models.config import LanguageModelConfig
    from statewise.models.forecaster import Forecaster
    from statewise.models.forecaster_config import ForecastConfig
    from statewise.models.language import LanguageModel, Losses
    from statewise.models.lexicon import Lexicon
    from statewise.models.orthogonal_network import OrthogonalConfig, OrthogonalNetwork
    from statewise.models.paths import Paths
    from statewise.models.reading import Reading
    from statewise.models.saved import Saved
    from statewise.models.steps import StepClassifier, StepConfig
    from statewise.models.tagger import Tagger
    from statewise.models.tagger_config import TaggerConfig
    from statewise.models.text import Score, generate, perplexity, score
    from statewise.models.traces import Trace

__all__ = [
    "ClassifierConfig",
    "ForecastConfig",
    "Forecaster",
    "LanguageModel",
    "LanguageModelConfig",
    "Lexicon",
    "Losses",
    "OrthogonalConfig",
    "OrthogonalNetwork",
    "Paths",
    "Reading",
    "Saved",
    "Score",
    "SequenceClassifier",
    "StepClassifier",
    "StepConfig",
    "Tagger",
    "TaggerConfig",
    "Trace",
    "generate",
    "perplexity",
    "score",
]

lazy_imports(__name__)
