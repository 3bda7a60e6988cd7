"""A rank between two proved bounds: what random circuits over finite fields show, and what no circuit exceeds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from statewise.errors import ArgumentError
from statewise.memory.degrees import weight_copies, weight_degree
from statewise.memory.drawn import STARTS, check_shape, drawn_weights
from statewise.memory.field import Field
from statewise.memory.grid import Weights
from statewise.memory.partition import Split, partition_bound, split_text
from statewise.memory.primes import check_primes
from statewise.memory.telling import bound_text, counted
from statewise.memory.whole import whole, wholes


@dataclass(frozen=True, kw_only=True)
class GenericRank:
    """The separation rank that almost all weights of a shape have, between two proved bounds.

    A minor that is not 0 modulo a prime for one choice of whole weights is not the zero polynomial: so the rank found
    is a lower bound for almost all real weights (Ziv 2019, Claim 5). It is too small only if, in every run, the weights
    drawn were roots of all larger minors, see ``failure_probability``, or the prime divides all their coefficients.

    Args:
        inputs: M, templates, one-hot.
        width: R, channels of each layer.
        steps: T.
        depth: L, layers.
        split: s, steps of the Start, or which steps, counted from 0, are set against all others.
        start: "ones" or "drawn".
        rank: the largest that a run found: almost all circuits have at least that.
        upper: no circuit has more; see :func:`statewise.memory.sharper_bound.proved_bound`.
        primes: the field of each run.
        seeds: of the weights of each run.
        found: the rank of each run.
        failure_probability: at most so likely have almost all circuits over the fields of the runs a larger rank; 0 if
            the rank is proved. It says nothing of primes that divide all larger minors, of which none was met.
        seconds: that it took.
        samples: rows and columns of a table of random inputs from a continuum; None for all words of the templates.
    """

    inputs: int
    width: int
    steps: int
    depth: int
    split: Split
    start: str
    rank: int
    upper: int
    primes: tuple[int, ...]
    seeds: tuple[int, ...]
    found: tuple[int, ...]
    failure_probability: float
    seconds: float
    samples: int | None = None

    @property
    def proved(self) -> bool:
        """Whether the bounds meet: then the rank of almost every circuit is this one."""
        return self.rank == self.upper

    @property
    def sentence(self) -> str:
        """What is known, in one sentence."""
        sizes = f"M = {self.inputs}, R = {self.width}, T = {self.steps}, L = {self.depth}"
        shape = f"{sizes}, {split_text(self.split)}"
        whose = f"Almost every circuit with {shape}" + (" and continuous inputs" if self.samples else "")
        if self.proved:
            return f"{whose} has separation rank {self.rank}: proved."
        between = f"{whose} has separation rank at least {self.rank} and at most {bound_text(self.upper)}"
        if self.rank == self.samples:
            return f"{between}; the table of {counted(self.rank, 'sample')} could show no more."
        chance = f"by chance (probability below {self.failure_probability:.1e})"
        return f"{between}; it is {self.rank} unless all runs were misled, {chance} or by their primes."

    def describe(self) -> str:
        """The sentence, and what it rests on."""
        lines = [self.sentence, f"  upper bound  {bound_text(self.upper)}"]
        for prime, seed, value in zip(self.primes, self.seeds, self.found, strict=True):
            lines.append(f"  lower bound  {value}: a minor of that size is not 0 modulo {prime}, seed {seed}")
        return "\n".join(lines)


def certify(
    measure: Callable[[Weights, int], int],
    *,
    where: str,
    inputs: int,
    width: int,
    steps: int,
    depth: int,
    split: Split,
    seed: int,
    runs: int,
    start: str,
    primes: Sequence[int],
    samples: int | None = None,
) -> GenericRank:
    """Measure the ranks of random circuits over several fields until the upper bound is met, or the runs are over.

    Args:
        measure: the rank of a circuit over its field, of its weights and a seed.
        where: what was asked, for errors.
        inputs: M.
        width: R.
        steps: T.
        depth: L.
        split: as :func:`statewise.memory.partition.partition_of` gives it.
        seed: of the first run.
        runs: at most so many.
        start: "ones" or "drawn".
        primes: of the fields.
        samples: the sides of a table of random inputs; None for templates.
    """
    inputs, width, depth = check_shape(where, inputs=inputs, width=width, depth=depth)
    steps, runs = wholes(where, steps=steps, runs=runs)
    seed = whole(seed, where=f"{where}.seed", least=0)
    if start not in STARTS:
        raise ArgumentError(where=f"{where}.start", got=start, wanted=f"one of {', '.join(STARTS)}")
    fields = list(map(Field, check_primes(primes, where=f"{where}.primes")))
    begun, continuous = time.perf_counter(), samples is not None
    upper = partition_bound(M=inputs, R=width, T=steps, L=depth, rows=split, continuous=continuous)
    most = upper if samples is None else min(upper, samples)
    # Positive weights make a table positive. So no run is needed where one row or column, or a bound, leaves only 1.
    runs = runs if split not in (0, steps) and upper > 1 else 0
    found: list[int] = []
    while len(found) < runs and max(found, default=0) < most:
        field = fields[len(found) % len(fields)]
        own = seed + len(found)
        weights = drawn_weights(field, inputs=inputs, width=width, depth=depth, seed=own, start=start)
        found.append(measure(weights, own))
    used, best = tuple(fields[run % len(fields)].prime for run in range(len(found))), max(found, default=1)
    degree = weight_degree(steps, depth, start=start) + (weight_copies(steps, depth, 1) if continuous else 0)
    missed = 1.0 if best in (samples, upper) else failure_bound(most, degree, used)
    return GenericRank(
        inputs=inputs,
        width=width,
        steps=steps,
        depth=depth,
        split=split,
        start=start,
        rank=best,
        upper=upper,
        primes=used,
        seeds=tuple(range(seed, seed + len(found))),
        found=tuple(found),
        failure_probability=0.0 if best == upper else missed,
        seconds=time.perf_counter() - begun,
        samples=samples,
    )


def failure_bound(minor: int, degree: int, primes: Sequence[int]) -> float:
    """How likely runs with random weights all miss a rank: ``prod over runs of r D / (p - 1)``, at most 1 each.

    A minor of size r is a polynomial of degree ``r D`` in the weights, and has few roots unless it is zero over the
    field (Schwartz & Zippel).

    Args:
        minor: r, the rank that could be missed, or more.
        degree: D, of an entry in all weights.
        primes: of the runs, each with weights of its own.

    >>> failure_bound(216, 139, [2**31 - 1]) < 1.4e-5
    True
    """
    roots = minor * degree  # which may have more digits than a float has room for
    return math.prod(1.0 if roots >= prime - 1 else roots / (prime - 1) for prime in primes)
