"""Asking a language model: how likely is this text, and how would it go on?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from statewise.errors import ArgumentError, LengthError
from statewise.models.language import LanguageModel, State


@dataclass(frozen=True)
class Score:
    """How well a model predicts a text.

    Attributes:
        nll: the summed negative log-likelihood, in nats.
        tokens: how many tokens were predicted.
        state: of the model afterwards, to score what follows.

    >>> Score(nll=2.0 * 0.6931471805599453, tokens=2).perplexity
    2.0
    """

    nll: float
    tokens: int
    state: State | None = None

    @property
    def perplexity(self) -> float:
        """``exp(nll / tokens)``."""
        if self.tokens == 0:
            raise LengthError(where="Score.perplexity", got="no predicted token", wanted="at least one")
        return perplexity(self.nll / self.tokens)


def perplexity(nll: float) -> float:
    """``exp(nll)`` of a mean negative log-likelihood; infinity where that overflows.

    >>> perplexity(0.0), perplexity(1e6)
    (1.0, inf)
    """
    return math.exp(nll) if nll < 700 else math.inf


def score(
    model: LanguageModel,
    segments: Iterable[tuple[Int[Tensor, "steps batch"], Int[Tensor, "steps batch"]]],
    *,
    state: State | None = None,
) -> Score:
    """Score consecutive segments of text, carrying the state, with everything random switched off.

    The sum runs over all tokens of all segments: each counts once, whatever the lengths of the segments are. A target
    of -1 is read but not scored. The model is left in the mode in which it was.

    Args:
        model: the language model.
        segments: pairs of what is read and what follows, in order.
        state: what came before; None for the layers' own beginning.

    >>> import statewise
    >>> model = LanguageModel(10, statewise.LSTM(4, 4), generator=torch.Generator().manual_seed(0))
    >>> words = torch.arange(9).view(9, 1)
    >>> whole = score(model, [(words[:-1], words[1:])])
    >>> halves = score(model, [(words[:4], words[1:5]), (words[4:-1], words[5:])])
    >>> whole.tokens, abs(whole.nll - halves.nll) < 1e-5
    (8, True)
    """
    sums: list[tuple[Tensor, Tensor]] = []  # on the device: nothing waits until the end
    with in_mode(model, training=False), torch.no_grad():
        for tokens, targets in segments:
            features, _, state = model.features(tokens, state)
            scored = targets >= 0
            nll = model.head.nll(features, targets.clamp(min=0)).double()
            sums.append((torch.where(scored, nll, 0.0).sum(), scored.sum()))
    if not sums:
        return Score(0.0, 0, state)
    nlls, counts = (torch.stack(parts).sum() for parts in zip(*sums, strict=True))
    return Score(float(nlls), int(counts), state)


def generate(
    model: LanguageModel,
    prompt: Int[Tensor, "steps batch"],
    *,
    length: int,
    temperature: float = 1.0,
    top: int | None = None,
    forbidden: Iterable[int] = (),
    generator: torch.Generator | None = None,
) -> Int[Tensor, "length batch"]:
    """Let a model go on from a prompt.

    Each word is drawn from ``softmax(log p / temperature)``, restricted to the ``top`` likeliest words.

    Args:
        model: the language model; noise and dropout are off, and its mode is left as it was.
        prompt: at least one word.
        length: how many words to add.
        temperature: 1 for the model's own distribution; 0 for the likeliest word every time.
        top: draw only among so many likeliest words; None for all.
        forbidden: words never to be drawn, such as ``<unk>``.
        generator: source of the draws, on the CPU; None means torch's global one.

    >>> import statewise
    >>> model = LanguageModel(10, statewise.LSTM(4, 4))
    >>> generate(model, torch.zeros(1, 2, dtype=torch.long), length=5).shape
    torch.Size([5, 2])
    """
    banned = sorted(set(forbidden))
    _check_sampling(model, length, temperature, top)
    _check_words(model, prompt, banned)
    words, tokens, state = [], prompt, None
    with in_mode(model, training=False), torch.no_grad():
        for _ in range(length):
            features, _, state = model.features(tokens, state)
            # Only the last step's: those of a long prompt over a large vocabulary would not fit into memory.
            logits = model.head.log_prob(features[-1:])[0].double()
            logits[:, banned] = -torch.inf
            tokens = _draw(logits, temperature, top, generator).unsqueeze(0)
            words.append(tokens)
    return torch.cat(words) if words else prompt[:0]


def _draw(
    logits: Float[Tensor, "batch words"], temperature: float, top: int | None, generator: torch.Generator | None
) -> Int[Tensor, " batch"]:
    if temperature == 0.0:
        return logits.argmax(-1)
    if top is not None and top < logits.shape[-1]:
        least = logits.topk(top).values[:, -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    # The likeliest word is 0 before it is divided: a temperature near 0 may send all others to -inf, but never all.
    probabilities = ((logits - logits.amax(-1, keepdim=True)) / temperature).softmax(-1).cpu()
    return torch.multinomial(probabilities, 1, generator=generator).squeeze(1).to(logits.device)


def _check_sampling(model: LanguageModel, length: int, temperature: float, top: int | None) -> None:
    if isinstance(length, bool) or not isinstance(length, int) or length < 0:
        raise ArgumentError(where="generate.length", got=length, wanted="a whole number >= 0")
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not 0 <= temperature < math.inf:
        raise ArgumentError(
            where="generate.temperature", got=temperature, wanted="a finite number >= 0", remedy="1 leaves p as it is."
        )
    if top is not None and (type(top) is not int or not 1 <= top <= model.words):
        raise ArgumentError(where="generate.top", got=top, wanted=f"None, or a whole number from 1 to {model.words}")


def _check_words(model: LanguageModel, prompt: Tensor, banned: list[int]) -> None:
    for where, ids in (("generate.prompt", prompt.unique().tolist()), ("generate.forbidden", banned)):
        outside = [each for each in ids if type(each) is not int or not 0 <= each < model.words]
        if outside:
            raise ArgumentError(where=where, got=outside[0], wanted=f"words from 0 to {model.words - 1}")
    if len(banned) == model.words:
        raise ArgumentError(where="generate.forbidden", got="every word", wanted="a word that can be drawn")


@contextmanager
def in_mode(model: nn.Module, *, training: bool) -> Iterator[None]:
    """Training or eval mode for a while; afterwards every module is in the mode in which it was.

    Args:
        model: all of whose modules change.
        training: the mode.

    >>> model = nn.Dropout()
    >>> with in_mode(model, training=False):
    ...     model.training
    False
    >>> model.training
    True
    """
    modes = {module: module.training for module in model.modules()}
    model.train(training)
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode
