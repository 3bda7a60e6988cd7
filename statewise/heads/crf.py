"""The linear-chain conditional random field: a distribution over whole sequences of tags."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from statewise.errors import ArgumentError, DtypeError, ShapeError
from statewise.heads.crf_constraints import Constraints
from statewise.heads.crf_decode import k_best_paths
from statewise.heads.crf_fast import choose, walk
from statewise.heads.crf_reference import NEVER, Scores, forward_scores
from statewise.heads.crf_score import check_tags, check_weights, path_score
from statewise.heads.crf_span import Span

Emissions = Float[Tensor, "steps batch tags"]
Tags = Int[Tensor, "steps batch"]
Lengths = Int[Tensor, " batch"]
PerStep = Float[Tensor, "steps batch"]
PerSequence = Float[Tensor, " batch"]

CONSTRAIN = ("decoding", "always")


class CRF(nn.Module):
    """A linear-chain conditional random field.

    ``log p(y | x) = s(y) - log Z`` with ``s(y) = start[y_1] + sum_t E[t, y_t] + sum_t A[y_t, y_{t+1}] + end[y_L]`` and
    ``Z = sum_y exp(s(y))`` over all sequences of tags (Lafferty et al. 2001). Z and its gradient cost
    O(steps tags^2), in C++ on the CPU and in one Triton kernel on a CUDA device; every result is in at least single
    precision. Whatever lies beyond ``lengths``, which belong on the CPU, is not looked at.

    Args:
        tags: how many tags there are.
        constraints: which sequences of tags are possible; None means all.
        constrain: when the constraints hold: "decoding", in ``decode`` and ``k_best`` only, or "always", so that
            impossible sequences have no part in Z either, and cannot be given as right.
        engine: "auto" for the fastest that can; or the one that must run: "cpu", "triton", or "reference", the only
            one that can be differentiated twice.
        generator: source of the first parameters, U(-0.1, 0.1); None means torch's global one.

    >>> crf = CRF(3)
    >>> E, y = torch.randn(4, 2, 3), torch.randint(3, (4, 2))
    >>> lengths = torch.tensor([4, 2])
    >>> loss = crf.nll(E, y, lengths)
    >>> torch.allclose(loss, crf.log_partition(E, lengths) - crf.score(E, y, lengths))
    True
    >>> best, score = crf.decode(E, lengths)
    >>> torch.allclose(score, crf.score(E, best, lengths), atol=1e-5), best[:, 1].tolist()[2:]
    (True, [-1, -1])
    """

    allowed: Tensor | None
    allowed_start: Tensor | None
    allowed_end: Tensor | None

    def __init__(
        self,
        tags: int,
        *,
        constraints: Constraints | None = None,
        constrain: str = "decoding",
        engine: str = "auto",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if isinstance(tags, bool) or not isinstance(tags, int) or tags < 1:
            raise ArgumentError(where="CRF.tags", got=tags, wanted="a whole number of at least 1")
        if constrain not in CONSTRAIN:
            raise ArgumentError(where="CRF.constrain", got=constrain, wanted=f"one of {', '.join(CONSTRAIN)}")
        if constraints is not None and constraints.tags != tags:
            raise ShapeError(where="CRF.constraints", got=f"those of {constraints.tags} tags", wanted=f"{tags} tags")
        choose(torch.empty(1, 1, tags), engine if engine not in ("cpu", "triton") else "auto")
        self.tags, self.constrain, self.engine = tags, constrain, engine
        self.transitions = nn.Parameter(torch.empty(tags, tags))
        self.start = nn.Parameter(torch.empty(tags))
        self.end = nn.Parameter(torch.empty(tags))
        # Not among the parameters that are saved: like the number of tags, they belong to how it was made.
        for name, given in (("allowed", "allowed"), ("allowed_start", "start"), ("allowed_end", "end")):
            value = None if constraints is None else getattr(constraints, given).clone()
            self.register_buffer(name, value, persistent=False)
        self.initialise(generator)

    def initialise(self, generator: torch.Generator | None = None) -> None:
        """Fill the parameters anew."""
        with torch.no_grad():
            for parameter in (self.transitions, self.start, self.end):
                parameter.uniform_(-0.1, 0.1, generator=generator)

    @property
    def constraints(self) -> Constraints | None:
        """Which sequences of tags are possible; None if all are."""
        if self.allowed is None:
            return None
        return Constraints(self.allowed, self.allowed_start, self.allowed_end)

    @property
    def training_constraints(self) -> Constraints | None:
        """Those that hold not only in decoding."""
        return self.constraints if self.constrain == "always" else None

    def alike(self, emissions: Emissions, *, decoding: bool = False) -> tuple[Emissions, Scores]:
        """Emissions, and what the chain adds to them, in one dtype: the wider of theirs, at least single precision.

        Args:
            emissions: E.
            decoding: whether constraints that hold only in decoding count, too: what is forbidden is -inf.
        """
        dtype = torch.promote_types(emissions.dtype, torch.promote_types(self.start.dtype, torch.float32))
        return emissions.to(dtype), self._scores(dtype, decoding=decoding)

    def check(self, tags: Tags, lengths: Lengths | None = None) -> None:
        """Refuse tags that do not exist, or paths that the constraints forbid, whenever these hold.

        Losses do this by themselves for tags on the CPU; those on a device cost the wait for them.

        Args:
            tags: y.
            lengths: of the sequences; None means that all are full.
        """
        tags = tags.cpu()
        check_tags(
            tags, Span.of(lengths, tags, where="CRF.lengths"), self.tags, _moved(self.constraints), where="CRF.tags"
        )

    def forward(
        self, emissions: Emissions, tags: Tags, lengths: Lengths | None = None, *, weights: PerStep | None = None
    ) -> PerSequence:
        """The same as ``nll``."""
        return self.nll(emissions, tags, lengths, weights=weights)

    def log_partition(self, emissions: Emissions, lengths: Lengths | None = None) -> PerSequence:
        """``log Z`` of each sequence.

        Args:
            emissions: E.
            lengths: of the sequences; None means that all are full.
        """
        return self._walk(emissions, self._span(emissions, lengths), every=False)

    def prefix_log_partitions(self, emissions: Emissions, lengths: Lengths | None = None) -> PerStep:
        """``log Z`` of the first 1, 2, ... steps, each with its end score, from one recursion; 0 beyond the lengths.

        Args:
            emissions: E.
            lengths: of the sequences; None means that all are full.
        """
        return self._walk(emissions, self._span(emissions, lengths), every=True)

    def score(
        self, emissions: Emissions, tags: Tags, lengths: Lengths | None = None, *, weights: PerStep | None = None
    ) -> PerSequence:
        """``s(y)``; with weights ``sum_t w_t E[t, y_t] + sum_t mu_t A[y_t, y_{t+1}]``, ``mu_t = (w_t + w_{t+1}) / 2``.

        The start score counts ``w_1``, the end score ``w_L`` (Karamzade et al. 2020, mixed scores), so it is linear in
        the weights, and constant ones are a factor.

        Args:
            emissions: E.
            tags: y.
            lengths: of the sequences; None means that all are full.
            weights: w; None means 1.
        """
        return self._score(emissions, tags, self._span(emissions, lengths), weights)

    def nll(
        self, emissions: Emissions, tags: Tags, lengths: Lengths | None = None, *, weights: PerStep | None = None
    ) -> PerSequence:
        """``log Z - s(y)``; with weights ``w log Z - s_w(y)``, w being their mean over the sequence.

        So it is linear in the weights, and losses of two paths whose weights sum to 1 add up to the mixed one.

        Args:
            emissions: E.
            tags: y.
            lengths: of the sequences; None means that all are full.
            weights: as in ``score``.
        """
        span = self._span(emissions, lengths)
        score = self._score(emissions, tags, span, weights)
        found = self._walk(emissions, span, every=False)
        if weights is not None:
            found = found * (torch.where(span.inside, weights.to(found.dtype), 0.0).sum(0) / span.there)
        return found - score

    @torch.no_grad()
    def decode(self, emissions: Emissions, lengths: Lengths | None = None) -> tuple[Tags, PerSequence]:
        """The best sequence of tags, -1 beyond its end, and its score (Viterbi's algorithm).

        Where the constraints allow no sequence of that length the score is -inf, and all tags are -1.

        Args:
            emissions: E.
            lengths: of the sequences; None means that all are full.
        """
        tags, found = self.k_best(emissions, lengths, k=1)
        return tags[0], found[0]

    @torch.no_grad()
    def k_best(
        self, emissions: Emissions, lengths: Lengths | None = None, *, k: int
    ) -> tuple[Int[Tensor, "k steps batch"], Float[Tensor, "k batch"]]:
        """The k best sequences of tags, the best first, and their scores; exact.

        Args:
            emissions: E.
            lengths: of the sequences; None means that all are full.
            k: how many. Where fewer are possible, or none, the score of the rest is -inf and their tags are -1.
        """
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise ArgumentError(where="CRF.k_best.k", got=k, wanted="a whole number of at least 1")
        span = self._span(emissions, lengths)
        emissions, scores = self.alike(emissions, decoding=True)
        return k_best_paths(emissions, scores, span, k)

    def marginals(self, emissions: Emissions, lengths: Lengths | None = None) -> Emissions:
        """``p(y_t = j | x)``, 0 beyond the lengths; without gradient, being itself that of ``log Z``.

        Args:
            emissions: E.
            lengths: of the sequences; None means that all are full.
        """
        span, (wide, scores) = self._span(emissions, lengths), self.alike(emissions)
        # What was made in inference mode cannot have a gradient; a copy that is made outside it can.
        with torch.inference_mode(False), torch.enable_grad():
            leaf = _trackable(wide).requires_grad_()
            total = walk(leaf, Scores(*map(_trackable, scores)), span, self.engine, every=False).sum()
            (found,) = torch.autograd.grad(total, leaf)
        return found

    @torch.no_grad()
    def pair_marginals(
        self, emissions: Emissions, lengths: Lengths | None = None
    ) -> Float[Tensor, "pairs batch tags tags"]:
        """``p(y_t = i, y_{t+1} = j | x)`` for every step but the last, 0 beyond the lengths; without gradient.

        ``p(y_t = i | y_{t+1} = j) = softmax_i(alpha_t[i] + A[i, j])`` times ``p(y_{t+1} = j)``.

        Args:
            emissions: E.
            lengths: of the sequences; None means that all are full.
        """
        span = self._span(emissions, lengths)
        later = self.marginals(emissions, lengths)[1:]
        emissions, scores = self.alike(emissions)
        reached = forward_scores(emissions, scores, span.inside, level=True)[:-1]
        shares = (reached.unsqueeze(-1) + scores.transitions).softmax(-2)
        return torch.where(later.unsqueeze(-2) == 0, 0.0, shares * later.unsqueeze(-2))

    def plan(self, emissions: Emissions) -> str:
        """Which engine serves such emissions and, of each faster one, why it does not.

        Args:
            emissions: E.

        >>> CRF(2, engine="reference").plan(torch.zeros(1, 1, 2))
        'reference'
        """
        walker, reasons = choose(self.alike(emissions)[0], self.engine)
        told = "".join(f"; not {name}: {reason}" for name, reason in reasons.items())
        return f"{'reference' if walker is None else walker.name}{told}"

    def extra_repr(self) -> str:
        return f"{self.tags}" + ("" if self.allowed is None else f", constrain={self.constrain!r}")

    def _span(self, emissions: Tensor, lengths: Tensor | None) -> Span:
        if not isinstance(emissions, Tensor) or not emissions.is_floating_point():
            got = str(emissions.dtype) if isinstance(emissions, Tensor) else type(emissions).__name__
            raise DtypeError(where="CRF.emissions", got=got, wanted="a tensor of real numbers")
        if emissions.ndim != 3 or emissions.shape[-1] != self.tags:
            raise ShapeError(
                where="CRF.emissions", got=tuple(emissions.shape), wanted=f"(steps, batch, {self.tags}), time first"
            )
        return Span.of(lengths, emissions, where="CRF.lengths")

    def _scores(self, dtype: torch.dtype, *, decoding: bool = False) -> Scores:
        found = Scores(*(each.to(dtype) for each in (self.transitions, self.start, self.end)))
        if self.allowed is None or not (decoding or self.constrain == "always"):
            return found
        assert self.allowed_start is not None and self.allowed_end is not None
        masks = (self.allowed, self.allowed_start, self.allowed_end)
        return Scores(*(torch.where(mask, each, NEVER) for each, mask in zip(found, masks, strict=True)))

    def _score(self, emissions: Tensor, tags: Tensor, span: Span, weights: Tensor | None) -> Tensor:
        check_tags(tags, span, self.tags, self.training_constraints, where="CRF.tags")
        if weights is not None:
            check_weights(weights, span, where="CRF.weights")
        return path_score(*self._ready(emissions), tags, span, weights=weights, engine=self.engine)

    def _walk(self, emissions: Tensor, span: Span, *, every: bool) -> Tensor:
        return walk(*self._ready(emissions), span, self.engine, every=every)

    def _ready(self, emissions: Tensor) -> tuple[Tensor, Scores]:
        """As ``alike``, but emissions in half precision are left: an engine reads them where they lie."""
        wide, scores = self.alike(emissions)
        half = emissions.dtype in (torch.bfloat16, torch.float16) and scores.start.dtype == torch.float32
        return emissions if half else wide, scores


def _trackable(values: Tensor) -> Tensor:
    return values.detach().clone() if values.is_inference() else values.detach()


def _moved(constraints: Constraints | None) -> Constraints | None:
    """The constraints on the CPU."""
    if constraints is None:
        return None
    assert constraints.start is not None and constraints.end is not None
    return Constraints(constraints.allowed.cpu(), constraints.start.cpu(), constraints.end.cpu())
