"""Dynamic evaluation of a language model on a stream of tokens."""

from __future__ import annotations

from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from statewise.data import Columns, TokenStream
from statewise.models import LanguageModel
from statewise.models.text import Score
from statewise.train.dynamic import dynamic_evaluation, gradient_statistics
from statewise.train.dynamic_steps import Convention, GradientStatistics
from statewise.train.evaluation import columns_of
from statewise.train.progress import watched

SEGMENT = 5


def dynamic_perplexity(
    model: LanguageModel,
    train: TokenStream | GradientStatistics,
    stream: TokenStream,
    *,
    lr: float,
    decay: float,
    epsilon: float,
    convention: Convention = "new",
    segment: int = SEGMENT,
    statistics_batch: int = 100,
    device: torch.device | str = "cpu",
    console: Console | None = None,
) -> Score:
    """Score every token of a stream but the first by a model that goes on learning from those before.

    RMS with decay (Krause et al. 2018): see :func:`~statewise.train.dynamic_evaluation`. Rate and decay are meant for
    segments of five tokens, and go with the length of others. Afterwards the model is what it was.

    Args:
        model: the language model, on ``device``.
        train: the training text, or the statistics of its gradients.
        stream: the text to be scored, in one column.
        lr: the learning rate.
        decay: the pull towards the model as it was.
        epsilon: what is added to the root of the gradient statistics.
        convention: "new" or "old"; see :func:`~statewise.train.dynamic_evaluation`.
        segment: tokens after which the model learns.
        statistics_batch: columns in which the training text is read.
        device: where the model is.
        console: where to tell of the progress; None for silence.

    >>> import statewise
    >>> from statewise.data import sample_corpus
    >>> corpus = sample_corpus()
    >>> model = LanguageModel(len(corpus.vocabulary), statewise.LSTM(8, 8))
    >>> still, moving = (
    ...     dynamic_perplexity(model, corpus.train, corpus.test, lr=lr, decay=0.0, epsilon=1e-3) for lr in (0.0, 1e-4)
    ... )
    >>> still.tokens == len(corpus.test) - 1, moving.perplexity < still.perplexity
    (True, True)
    """
    if isinstance(train, TokenStream):
        train = language_statistics(
            model, train, segment=segment, batch=statistics_batch, device=device, console=console
        )
    columns = columns_of(stream, 1, device)
    return dynamic_evaluation(
        _loss_of(model),
        model.named_parameters(),
        watched(columns.segments(segment), "dynamic evaluation", total=columns.updates(segment), console=console),
        statistics=train,
        lr=lr * segment / SEGMENT,
        decay=decay * segment / SEGMENT,
        epsilon=epsilon,
        convention=convention,
        model=model,
    )


def language_statistics(
    model: LanguageModel,
    train: TokenStream,
    *,
    segment: int = SEGMENT,
    batch: int = 100,
    device: torch.device | str = "cpu",
    console: Console | None = None,
) -> GradientStatistics:
    """How large the gradients of a language model are on its training text.

    Args:
        model: the language model, on ``device``.
        train: the training text.
        segment: tokens of a segment.
        batch: columns in which the text is read, or fewer where it has not two tokens for each.
        device: where the model is.
        console: where to tell of the progress; None for silence.
    """
    columns = Columns(train, max(1, min(batch, len(train) // 2))).to(device)
    segments = watched(
        columns.segments(segment), "gradient statistics", total=columns.updates(segment), console=console
    )
    return gradient_statistics(_loss_of(model), model.named_parameters(), segments, model=model)


def _loss_of(model: LanguageModel) -> Any:
    def loss(tokens: Tensor, targets: Tensor, state: Any) -> tuple[Tensor, int, Any]:
        features, _, state = model.features(tokens, state)
        return model.head.nll(features, targets).sum(), targets.numel(), state

    return loss
