"""Which engine walks the chain, and the two kernels: C++ on the CPU, Triton on a CUDA device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from statewise.engine import ENGINES
from statewise.errors import ArgumentError, EngineError, SecondDerivativeError
from statewise.heads.crf_reference import Scores, prefix_log_partitions
from statewise.heads.crf_span import Span
from statewise.kernels import load_triton, traced, transformed
from statewise.native import load_native, operators

MOST_TAGS = 128  # that the accelerator's kernel keeps in registers


Made = tuple[Tensor, ...]
Gradients = tuple[Tensor, Tensor, Tensor, Tensor]  # of emissions, transitions, start and end


class Path(NamedTuple):
    """Tags, int64 and within their range, and how much they and their transitions count; None means the default."""

    tags: Tensor
    weights: Tensor | None
    pair_weights: Tensor | None


class Walker(ABC):
    """An engine with a forward recursion and a backward one of its own."""

    name: ClassVar[str]

    @abstractmethod
    def why_not(self, emissions: Tensor) -> str | None:
        """The reason why it cannot walk these, or None if it can."""

    @abstractmethod
    def forward(self, emissions: Tensor, scores: Scores, span: Span, *, every: bool) -> tuple[Tensor, Made]:
        """``log Z`` of every prefix or only of the whole, (batch,), and what backward needs besides."""

    @abstractmethod
    def backward(
        self, grad: Tensor, emissions: Tensor, scores: Scores, span: Span, made: Made, *, every: bool
    ) -> Gradients:
        """The gradients from those of the prefixes."""

    @abstractmethod
    def score(self, emissions: Tensor, scores: Scores, span: Span, path: Path) -> Tensor:
        """The weighted score of one path for each sequence, (batch,)."""

    @abstractmethod
    def score_backward(self, grad: Tensor, emissions: Tensor, scores: Scores, span: Span, path: Path) -> Gradients:
        """The gradients from those of the scores."""


class NativeWalker(Walker):
    """C++ on the CPU, a thread a sequence."""

    name = "cpu"

    def why_not(self, emissions: Tensor) -> str | None:
        if emissions.device.type != "cpu":
            return f"the emissions are on {emissions.device.type}"
        if transformed():
            return "torch.func's transforms cannot see into it"
        return None if load_native().available else load_native().reason

    def forward(self, emissions: Tensor, scores: Scores, span: Span, *, every: bool) -> tuple[Tensor, Made]:
        found, *made = operators.crf_forward(*_alike(emissions, scores), span.lengths, every)
        return found, tuple(made)

    def backward(
        self, grad: Tensor, emissions: Tensor, scores: Scores, span: Span, made: Made, *, every: bool
    ) -> Gradients:
        weights, sums, logged = made
        matrix, start, end = contiguous(scores)
        return operators.crf_backward(grad.contiguous(), matrix, start, end, span.lengths, every, weights, sums, logged)

    def score(self, emissions: Tensor, scores: Scores, span: Span, path: Path) -> Tensor:
        given = (path.tags, span.lengths, path.weights, path.pair_weights)
        return operators.crf_path_score(*_alike(emissions, scores), *given)

    def score_backward(self, grad: Tensor, emissions: Tensor, scores: Scores, span: Span, path: Path) -> Gradients:
        given = (grad.contiguous(), *contiguous(scores), path.tags, span.lengths, path.weights, path.pair_weights)
        return operators.crf_path_score_backward(*given)


class TritonWalker(Walker):
    """One program a sequence, the transitions in its registers."""

    name = "triton"

    def why_not(self, emissions: Tensor) -> str | None:
        status = load_triton()
        if not status.available:
            return status.reason
        if emissions.device.type != status.device:
            return f"the emissions are on {emissions.device.type}"
        if emissions.dtype == torch.float64:
            return "it has no double precision"
        if emissions.shape[-1] > MOST_TAGS:
            return f"it takes at most {MOST_TAGS} tags"
        return "torch.func's transforms cannot see into it" if transformed() else None

    def forward(self, emissions: Tensor, scores: Scores, span: Span, *, every: bool) -> tuple[Tensor, Made]:
        from statewise.kernels.crf import crf_forward

        found, reached = crf_forward(emissions.contiguous(), *contiguous(scores), span.there, every=every)
        return found, (reached,)

    def backward(
        self, grad: Tensor, emissions: Tensor, scores: Scores, span: Span, made: Made, *, every: bool
    ) -> Gradients:
        from statewise.kernels.crf import crf_backward

        given = (grad.contiguous(), emissions.contiguous(), *contiguous(scores), span.there)
        return crf_backward(*given, *made, every=every)

    def score(self, emissions: Tensor, scores: Scores, span: Span, path: Path) -> Tensor:
        from statewise.kernels.crf import crf_path_score

        return crf_path_score(emissions.contiguous(), *contiguous(scores), path.tags, span.there, *path[1:])

    def score_backward(self, grad: Tensor, emissions: Tensor, scores: Scores, span: Span, path: Path) -> Gradients:
        from statewise.kernels.crf import crf_path_score_backward

        return crf_path_score_backward(grad.contiguous(), emissions.contiguous(), path.tags, span.there, *path[1:])


def contiguous(scores: Scores) -> tuple[Tensor, Tensor, Tensor]:
    """The scores as a kernel reads them."""
    return scores.transitions.contiguous(), scores.start.contiguous(), scores.end.contiguous()


def _alike(emissions: Tensor, scores: Scores) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Emissions and scores in one dtype, as the C++ kernel reads them."""
    return emissions.to(scores.start.dtype).contiguous(), *contiguous(scores)


NATIVE, TRITON = NativeWalker(), TritonWalker()


class _Refused(torch.autograd.Function):
    """Lets a gradient be used, but not be differentiated again: that would be silently wrong."""

    @staticmethod
    def forward(ctx: Any, grad: Tensor, *sources: Tensor) -> Tensor:
        return grad.view_as(grad)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        raise SecondDerivativeError.asked("CRF", "Build it with engine='reference', which autograd can differentiate.")


def _first_only(grads: Gradients, likes: Sequence[Tensor], sources: Sequence[Tensor]) -> list[Tensor]:
    """Gradients in the dtypes of what they are of, which depend on sources that are not to be differentiated."""
    fitted = [each.to(like.dtype) for each, like in zip(grads, likes, strict=True)]
    if not torch.is_grad_enabled():
        return fitted
    return [_Refused.apply(each, *sources) for each in fitted]  # type: ignore[no-untyped-call]


class WalkedPrefixes(torch.autograd.Function):
    """The log partitions of all prefixes by a kernel."""

    @staticmethod
    def forward(
        ctx: Any,
        walker: Walker,
        span: Span,
        every: bool,
        emissions: Tensor,
        transitions: Tensor,
        start: Tensor,
        end: Tensor,
    ) -> Tensor:
        found, made = walker.forward(emissions, Scores(transitions, start, end), span, every=every)
        ctx.walker, ctx.span, ctx.every = walker, span, every
        ctx.save_for_backward(emissions, transitions, start, end, *made)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        emissions, transitions, start, end, *made = ctx.saved_tensors
        tensors = (emissions, transitions, start, end)
        with torch.no_grad():
            scores = Scores(transitions, start, end)
            grads = ctx.walker.backward(grad, emissions, scores, ctx.span, tuple(made), every=ctx.every)
        return None, None, None, *_first_only(grads, tensors, (grad, *tensors))


class WalkedScores(torch.autograd.Function):
    """The weighted scores of given paths by a kernel; the weights get no gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        walker: Walker,
        span: Span,
        tags: Tensor,
        weights: Tensor | None,
        pair_weights: Tensor | None,
        emissions: Tensor,
        transitions: Tensor,
        start: Tensor,
        end: Tensor,
    ) -> Tensor:
        ctx.walker, ctx.span = walker, span
        ctx.save_for_backward(tags, weights, pair_weights, emissions, transitions, start, end)
        return walker.score(emissions, Scores(transitions, start, end), span, Path(tags, weights, pair_weights))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        path, tensors = Path(*ctx.saved_tensors[:3]), ctx.saved_tensors[3:]
        with torch.no_grad():
            grads = ctx.walker.score_backward(grad, tensors[0], Scores(*tensors[1:]), ctx.span, path)
        return None, None, None, None, None, *_first_only(grads, tensors, (grad,))


def choose(emissions: Tensor, engine: str = "auto") -> tuple[Walker | None, dict[str, str]]:
    """The engine for these emissions, None being the reference, and for each other why it is not the one.

    Args:
        emissions: (steps, batch, tags).
        engine: "auto", or the name of one that must be it.

    >>> choose(torch.zeros(2, 1, 3), "reference")[0] is None
    True
    """
    if engine not in ENGINES:
        raise ArgumentError(where="CRF.engine", got=engine, wanted=f"one of {', '.join(ENGINES)}")
    if engine == "reference":
        return None, {}
    reasons: dict[str, str] = {}
    for walker in (NATIVE, TRITON):
        if walker.name == engine or (engine == "auto" and not (walker.name == "triton" and load_triton().interpreted)):
            reason = walker.why_not(emissions)
            if reason is None:
                return walker, reasons
            reasons[walker.name] = reason
    if engine != "auto":
        remedy = 'Give engine="auto" to have the fastest that can.'
        raise EngineError(
            where="CRF.engine", got=f"{engine}: {reasons[engine]}", wanted="an engine that can run", remedy=remedy
        )
    return None, reasons


def serving(emissions: Tensor, engine: str) -> Walker | None:
    """The engine that serves these emissions now: torch's compiler knows the operators of the CPU's, and no other."""
    walker = choose(emissions, engine)[0]
    return None if traced() and walker is not NATIVE else walker


def score_of(walker: Walker, emissions: Tensor, scores: Scores, span: Span, path: Path) -> Tensor:
    """The weighted score of one path for each sequence by an engine, (batch,); the weights get no gradient."""
    if traced():
        given = (path.tags, span.lengths, path.weights, path.pair_weights)
        found: Tensor = torch.ops.statewise.crf_path_score(*_alike(emissions, scores), *given)
    else:
        found = WalkedScores.apply(walker, span, *path, emissions, *scores)  # type: ignore[no-untyped-call]
    return found


def walk(emissions: Tensor, scores: Scores, span: Span, engine: str, *, every: bool) -> Tensor:
    """``log Z`` of every prefix, (steps, batch), or only those of the whole sequences, (batch,).

    Args:
        emissions: (steps, batch, tags).
        scores: of the chain, at least single precision.
        span: how far the sequences reach.
        engine: as ``choose``.
        every: whether every prefix is wanted.
    """
    walker = serving(emissions, engine)
    if walker is not None and traced():
        return torch.ops.statewise.crf_forward(*_alike(emissions, scores), span.lengths, every)[0]  # type: ignore[no-any-return]
    if walker is not None:
        return WalkedPrefixes.apply(walker, span, every, emissions, *scores)  # type: ignore[no-any-return, no-untyped-call]
    with torch.autocast(emissions.device.type, enabled=False):
        found = prefix_log_partitions(emissions.to(scores.start.dtype), scores, span.inside)
    return found if every else span.at_end(found)
