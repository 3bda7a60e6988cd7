"""How well a language model predicts a text, each token counted once."""

from __future__ import annotations

import math
from typing import Any

import torch

from statewise.data import Columns, TokenStream
from statewise.errors import ArgumentError
from statewise.models import LanguageModel, score
from statewise.models.text import Score, in_mode
from statewise.objectives import tile
from statewise.weights import WeightDrop

TOKENS_AT_ONCE = 4096


def evaluate_stream(
    model: LanguageModel,
    stream: TokenStream,
    *,
    batch: int = 1,
    device: torch.device | str = "cpu",
    at_once: int = TOKENS_AT_ONCE,
) -> Score:
    """Score every token of a stream but the first, with the state carried and everything random switched off.

    The stream is read in ``batch`` columns, each of which begins with a fresh state and with the token before it. So
    one column gives the model the whole past, and more of them are faster.

    Args:
        model: the language model, on ``device``.
        stream: the tokens.
        batch: columns, or fewer where the stream has not a token for each.
        device: where the model is.
        at_once: tokens of a segment, all columns together; changes memory and speed, not the result.

    >>> import statewise
    >>> model = LanguageModel(10, statewise.LSTM(4, 4))
    >>> evaluate_stream(model, TokenStream(torch.arange(10).numpy()), batch=2).tokens
    9
    """
    columns = columns_of(stream, batch, device)
    return score(model, columns.segments(max(1, at_once // columns.batch_size)))


def evaluate_with_noise(
    model: LanguageModel,
    stream: TokenStream,
    *,
    samples: int,
    batch: int = 1,
    device: torch.device | str = "cpu",
    at_once: int = TOKENS_AT_ONCE,
    generator: torch.Generator | None = None,
) -> Score:
    """Score every token of a stream but the first with noise and dropout on, averaged over many draws.

    ``-log mean_k p(x_t | z_t^(k))``: the Monte-Carlo predictive of an ensemble whose members share their weights, each
    with a state of its own (Dieng et al. 2018, section 4; Gal & Ghahramani 2016).

    Args:
        model: the language model, on ``device``.
        stream: the tokens.
        samples: how many draws.
        batch: columns, each with so many copies.
        device: where the model is.
        at_once: tokens of a segment, all columns and copies together.
        generator: source of all draws, on ``device``; None means torch's global one.

    >>> import statewise
    >>> model = LanguageModel(10, statewise.LSTM(4, 4, transforms=statewise.Noise("gaussian", 1.0)))
    >>> evaluate_with_noise(model, TokenStream(torch.arange(10).numpy()), samples=3).tokens
    9
    """
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
        raise ArgumentError(where="evaluate_with_noise.samples", got=samples, wanted="a whole number >= 1")
    columns = columns_of(stream, batch, device)
    # Copies in one pass would share dropped weights and words, which are drawn once a pass.
    apart = model.embedding_dropout > 0.0 or any(isinstance(part, WeightDrop) for part in model.modules())
    copies = [1] * samples if apart else [samples]
    states: list[Any] = [None] * len(copies)
    sums = []
    with in_mode(model, training=True), torch.no_grad():
        for tokens, targets in columns.segments(max(1, at_once // (columns.batch_size * copies[0]))):
            found = []
            for index, count in enumerate(copies):
                features, _, states[index] = model.features(tile(tokens, count), states[index], generator=generator)
                nll = model.head.nll(features, tile(targets.clamp(min=0), count), generator=generator).double()
                found.append((-nll).unflatten(1, (count, columns.batch_size)))
            averaged = torch.cat(found, 1).logsumexp(1) - math.log(samples)
            sums.append(torch.where(targets >= 0, -averaged, 0.0).sum())
    return Score(float(torch.stack(sums).sum()), columns.predicted)


def columns_of(stream: TokenStream, batch: int, device: torch.device | str = "cpu") -> Columns:
    """A stream such that every token but the first is predicted once, in at most so many columns.

    >>> columns_of(TokenStream(torch.arange(4).numpy()), 10).batch_size
    3
    """
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise ArgumentError(where="batch", got=batch, wanted="a whole number >= 1")
    return Columns(stream, max(1, min(batch, len(stream) - 1)), overlap=True, remainder=True).to(device)
