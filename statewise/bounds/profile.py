"""What a class of networks comes to: how much each matrix moves the output, and how many nats cover the class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from statewise.bounds.logs import log_of, softplus
from statewise.errors import ArgumentError


@dataclass(frozen=True, kw_only=True)
class Block:
    """One weight matrix of a class of networks.

    Args:
        name: such as "U" or "layer 0: W forget".
        rows: of the matrix, its bias not counted.
        columns: of the matrix, with one for a bias that is folded in.
        bound: the largest norm in the class; spectral, unless the class says otherwise.
        log_lipschitz: ln L, how far the output moves when the matrix does, in the same norm.
        frobenius: a bound on the Frobenius norm, if one is known that is below √min(rows, columns) times ``bound``.
        free: how many numbers describe a member; None for all entries.
        stretch: the cover of a ball of radius B at distance ρ has ``(1 + 2·stretch·B/ρ)^free`` members.

    >>> block = Block(name="U", rows=2, columns=3, bound=1.0, log_lipschitz=0.0)
    >>> block.parameters, round(block.cover_nats(math.log(0.5)), 9)
    (6, 9.656627475)
    """

    name: str
    rows: int
    columns: int
    bound: float
    log_lipschitz: float
    frobenius: float | None = None
    free: int | None = None
    stretch: float = 1.0

    @property
    def reach(self) -> float:
        """From how many radii on one member is near all: 1 where the middle of the ball is a member."""
        return 1.0

    def __post_init__(self) -> None:
        if self.rows < 1 or self.columns < 1:
            raise ArgumentError(where=f"{self.name}", got=f"{self.rows} x {self.columns}", wanted="a matrix")
        if not 0 <= self.bound < math.inf:
            raise ArgumentError(where=f"the norm of {self.name}", got=self.bound, wanted="a finite number >= 0")
        if math.isnan(self.log_lipschitz):
            raise ArgumentError(where=f"the Lipschitz constant of {self.name}", got="NaN", wanted="a number >= 0")

    @property
    def parameters(self) -> int:
        """How many numbers describe a member."""
        return self.rows * self.columns if self.free is None else self.free

    @property
    def radius(self) -> float:
        """A bound on the Frobenius norm."""
        usual = math.sqrt(min(self.rows, self.columns)) * self.bound
        return usual if self.frobenius is None else min(usual, self.frobenius)

    def cover_nats(self, log_distance: float) -> float:
        """``P ln(1 + 2B/ρ)``: the logarithm of how many members suffice to be within ρ of each; 0 if one does.

        A volume argument in the ball's own norm; the members of the cover are in the class.

        Args:
            log_distance: ln ρ.
        """
        log_bound = log_of(self.bound)
        if log_distance >= log_bound + math.log(self.reach):
            return 0.0
        return self.parameters * softplus(math.log(2 * self.stretch) + log_bound - log_distance)


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A class of networks, as bounds see it; all that can be astronomically large is a logarithm.

    ``‖y - y'‖_2 <= sum_k L_k ‖A_k - A'_k‖`` for any two members and any input within the class's bound.

    Args:
        architecture: in words.
        blocks: the matrices.
        steps: t, the most steps of a sequence.
        log_hidden: ln η_t, the bound on the length of the state that is read.
        log_output: ln r, the bound on the length of the logits.
        log_growth: ln β, the growth of a difference with each step.
        log_decay: ln θ, the growth of the state itself, of gated cells; None for others.
        shares: of the distance that each block may use up; None for shares in proportion to their parameters.

    >>> u = Block(name="U", rows=4, columns=4, bound=1.0, log_lipschitz=math.log(34))
    >>> v = Block(name="V", rows=2, columns=4, bound=2.0, log_lipschitz=math.log(2))
    >>> w = Block(name="W", rows=4, columns=2, bound=1.0, log_lipschitz=math.log(20))
    >>> net = Profile(
    ...     architecture="Elman",
    ...     blocks=(u, v, w),
    ...     steps=10,
    ...     log_hidden=math.log(2),
    ...     log_output=math.log(4),
    ...     log_growth=0.0,
    ... )
    >>> round(net.cover_nats(math.log(0.5 / (2 * math.sqrt(2)))), 6)
    202.455221
    """

    architecture: str
    blocks: tuple[Block, ...]
    steps: int
    log_hidden: float
    log_output: float
    log_growth: float
    log_decay: float | None = None
    shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ArgumentError(where=f"the steps of {self.architecture}", got=self.steps, wanted="at least 1")
        if self.shares is not None and len(self.shares) != len(self.blocks):
            raise ArgumentError(
                where="Profile.shares", got=len(self.shares), wanted=f"one for each of {len(self.blocks)}"
            )

    @property
    def parameters(self) -> int:
        """How many numbers describe a member."""
        return sum(block.parameters for block in self.blocks)

    @cached_property
    def log_shares(self) -> tuple[float, ...]:
        """The logarithms of π_k, the part of the distance that each block may use up."""
        if self.shares is not None:
            return tuple(map(math.log, self.shares))
        return tuple(math.log(block.parameters / self.parameters) for block in self.blocks)

    def log_distances(self, log_scale: float) -> tuple[float, ...]:
        """``ln ρ_k``, ``ρ_k = π_k scale / L_k``: how near each block must be so that logits move by at most the scale.

        Args:
            log_scale: its logarithm.
        """
        return tuple(
            math.inf if block.log_lipschitz == -math.inf else share + log_scale - block.log_lipschitz
            for block, share in zip(self.blocks, self.log_shares, strict=True)
        )

    def nats(self, log_scale: float) -> dict[str, float]:
        """What each block adds to :meth:`cover_nats`.

        Args:
            log_scale: as there.
        """
        distances = self.log_distances(log_scale)
        return {block.name: block.cover_nats(at) for block, at in zip(self.blocks, distances, strict=True)}

    def cover_nats(self, log_scale: float) -> float:
        """How many members, as ln N, suffice to be near each: so that its logits nowhere differ by more than the scale.

        Args:
            log_scale: the logarithm of the scale.
        """
        return math.fsum(self.nats(log_scale).values())
