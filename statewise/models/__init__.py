"""Whole models: what a person trains, saves and asks."""

from statewise.models.config import LanguageModelConfig
from statewise.models.language import LanguageModel, Losses
from statewise.models.text import Score, generate, perplexity, score

__all__ = ["LanguageModel", "LanguageModelConfig", "Losses", "Score", "generate", "perplexity", "score"]
