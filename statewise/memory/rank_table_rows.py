"""One row of a table of ranks, and what a whole table says."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from statewise.memory.counts import conjecture, end_cap, repaired_conjecture, state_bound
from statewise.memory.generic import generic_rank
from statewise.memory.rank_table_cases import Shape
from statewise.memory.sharper_bound import sharper_state_bound
from statewise.memory.telling import counted

VERDICTS = ("equal", "larger", "violated")


@dataclass(frozen=True, kw_only=True)
class RankRow:
    """The rank of one shape, and what it is held against.

    Args:
        inputs: M.
        width: R.
        steps: T.
        depth: L.
        rank: that almost all circuits have, at least.
        conjecture: ``min{ms(min{M,R}, K_L), M^(T/2)}``, as printed.
        repaired: ``min{ms(min{M,R}, K_L), U2}``.
        state_bound: U1.
        end_cap: U2.
        primes: modulo which it was found, one for each run.
        seeds: of the weights.
        found: the rank of each run.
        failure_probability: that all runs found too little, at most; 0 if the rank is proved.
        seconds: that it took.
    """

    inputs: int
    width: int
    steps: int
    depth: int
    rank: int
    conjecture: int
    repaired: int
    state_bound: int
    end_cap: int
    primes: tuple[int, ...]
    seeds: tuple[int, ...]
    found: tuple[int, ...]
    failure_probability: float
    seconds: float

    @property
    def shape(self) -> Shape:
        """M, R and T."""
        return Shape(self.inputs, self.width, self.steps)

    @property
    def upper(self) -> int:
        """The least of both upper bounds."""
        return min(self.state_bound, self.end_cap)

    @property
    def deficit(self) -> int:
        """By how much the rank falls short of it."""
        return self.upper - self.rank

    @property
    def sharper(self) -> int:
        """The least upper bound that is known: with U1 made sharper."""
        return min(self.end_cap, sharper_state_bound(M=self.inputs, R=self.width, T=self.steps, L=self.depth))

    @property
    def proved(self) -> bool:
        """Whether the rank meets it: then it is the rank of almost all circuits."""
        return self.rank == self.sharper

    @property
    def verdict(self) -> str:
        """How the rank compares with the printed conjecture: "equal", "larger" or "violated"."""
        if self.rank == self.conjecture:
            return "equal"
        return "larger" if self.rank > self.conjecture else "violated"

    @property
    def certain(self) -> bool:
        """Whether the verdict is proved: larger ranks have a certificate, violations need an upper bound below."""
        return {"larger": True, "violated": self.upper < self.conjecture, "equal": self.proved}[self.verdict]

    @property
    def repaired_holds(self) -> bool:
        """Whether the rank meets the repaired conjecture."""
        return self.rank >= self.repaired


@dataclass(frozen=True, kw_only=True)
class RankTable:
    """Ranks of many shapes of one depth.

    Args:
        depth: L.
        rows: in the order in which the shapes were given.
    """

    depth: int
    rows: tuple[RankRow, ...]

    @property
    def verdicts(self) -> dict[str, int]:
        """How many rows meet, exceed and violate the printed conjecture."""
        found = Counter(row.verdict for row in self.rows)
        return {verdict: found[verdict] for verdict in VERDICTS}

    @property
    def violations(self) -> tuple[RankRow, ...]:
        """The rows that violate the printed conjecture."""
        return tuple(row for row in self.rows if row.verdict == "violated")

    @property
    def short(self) -> tuple[RankRow, ...]:
        """The rows whose rank is below both upper bounds."""
        return tuple(row for row in self.rows if row.deficit)

    @property
    def sentence(self) -> str:
        """What the table says."""
        told = ", ".join(f"{count} {verdict}" for verdict, count in self.verdicts.items())
        fails = sum(not row.repaired_holds for row in self.rows)
        deficits = sorted({row.deficit for row in self.short})
        fall = "falls" if len(self.short) == 1 else "fall"
        short = f"; {len(self.short)} {fall} short of it by {', '.join(map(str, deficits))}" if deficits else ""
        return (
            f"L = {self.depth}, {counted(len(self.rows), 'shape')}, against the printed conjecture: {told}; "
            f"against the repaired one: {fails} violated. The rank is min{{U1, U2}} in "
            f"{len(self.rows) - len(self.short)}{short}. Proved: {sum(row.proved for row in self.rows)}."
        )


def rank_row(
    shape: Shape, *, depth: int, runs: int = 2, seed: int = 0, start: str = "ones", backend: str = "auto"
) -> RankRow:
    """The rank of one shape, and what it is held against.

    Args:
        shape: M, R and T.
        depth: L.
        runs: at most.
        seed: of the first run.
        start: "ones" or "drawn".
        backend: of the elimination.

    >>> row = rank_row(Shape(6, 5, 4), depth=3)
    >>> row.rank, row.conjecture, row.repaired, row.verdict, row.certain
    (30, 35, 30, 'violated', True)
    """
    inputs, width, steps = shape
    sizes: dict[str, Any] = {"M": inputs, "R": width, "T": steps, "L": depth}
    found = generic_rank(
        inputs=inputs, width=width, steps=steps, depth=depth, runs=runs, seed=seed, start=start, backend=backend
    )
    return RankRow(
        inputs=inputs,
        width=width,
        steps=steps,
        depth=depth,
        rank=found.rank,
        conjecture=conjecture(**sizes),
        repaired=repaired_conjecture(**sizes),
        state_bound=state_bound(R=width, T=steps, L=depth),
        end_cap=end_cap(**sizes),
        primes=found.primes,
        seeds=found.seeds,
        found=found.found,
        failure_probability=found.failure_probability,
        seconds=round(found.seconds, 3),
    )
