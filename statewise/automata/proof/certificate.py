"""What a proof says that a soft network follows its automaton at a finite temperature, and what it rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Assumption:
    """Something that the proof needs, and how it was checked.

    Args:
        statement: what must hold.
        check: how that was found out, with the figures.
        holds: whether it does.
    """

    statement: str
    check: str
    holds: bool


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Whether the mixture network of eq. 6 provably runs along the automaton's path, for every word of every length.

    By induction: where the automaton is in q, ``h_t = s_q + sum_j a_j (s_j - s_q)`` with weights ``a_j`` below bounds
    that belong to q. Then each rival's similarity stays below the target's by a margin ``m_j > 0``, so that the next
    weights are at most ``exp(-m_j / tau)``, which is within the next state's bounds; and the read-out has one class
    there (the finite-temperature argument to Wang & Niepert 2019, Theorem 3.2, with a bound for each rival).

    Attributes:
        holds: whether all of it could be proven.
        temperature: for which it was asked; it then holds for all lower ones too.
        radii: for each reachable centroid, how far the state can be from it; empty if nothing was proven.
        gap: the smallest lead of a target over a rival, at the centroids.
        lipschitz: a proven Lipschitz constant of the cell in its state on these balls, the largest over all steps.
        diameter: the largest distance of two centroids.
        centroids: how many there are.
        similarity: of the centroids.
        assumptions: what the proof rests on.
        failure: which step or read-out could not be bounded; empty if all could.
    """

    holds: bool
    temperature: float
    radii: dict[int, float]
    gap: float
    lipschitz: float
    diameter: float
    centroids: int
    similarity: str
    assumptions: tuple[Assumption, ...]
    failure: str

    @property
    def radius(self) -> float | None:
        """The largest of the radii; None if nothing was proven."""
        return max(self.radii.values()) if self.holds else None

    @property
    def sentence(self) -> str:
        """The result in one sentence that can be quoted."""
        if not self.holds:
            return f"No proof at temperature {self.temperature:g}: {self.failure}"
        return (
            f"At every temperature up to {self.temperature:g} the soft network gives every word, of every length, "
            f"the class of the extracted automaton, and its state stays within {self.radius:.3g} of the automaton's "
            f"centroid (in exact arithmetic, with the weights as they are)."
        )

    def __str__(self) -> str:
        lines = [self.sentence, *(f"  [{'x' if a.holds else ' '}] {a.statement}: {a.check}" for a in self.assumptions)]
        return "\n".join(lines)


def left_side(
    *,
    centroids: int,
    diameter: float,
    gap: float,
    lipschitz: float,
    radius: float,
    temperature: float,
    similarity: str = "dot",
) -> float:
    """The simple form of the certificate: it holds where this is at most ``radius``.

    ``(k - 1) D exp(-(gap - D L rho) / tau)``; for "euclidean" ``2 L rho`` and for "sqeuclidean" ``2 D L rho`` takes
    the place of ``D L rho``. :func:`certify` uses the same argument rival by rival, which proves more.

    Args:
        centroids: k.
        diameter: D, the largest distance of two centroids.
        gap: the smallest lead of a step's target.
        lipschitz: L of the cell in its state, on the balls.
        radius: rho.
        temperature: tau.
        similarity: of the centroids.

    >>> sizes = {"centroids": 9, "diameter": 14.14, "gap": 19.28, "lipschitz": 1.13, "radius": 1e-3}
    >>> f"{left_side(**sizes, temperature=1.0):.1e} {left_side(**sizes, temperature=2.0):.1e}"
    '4.9e-07 7.4e-03'
    """
    factor = {"dot": diameter, "euclidean": 2.0, "sqeuclidean": 2 * diameter}[similarity]
    return (centroids - 1) * diameter * math.exp(-(gap - factor * lipschitz * radius) / temperature)
