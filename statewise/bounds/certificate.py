"""What can be proved of a trained network, as an object: the number, what it rests on, and a sentence to quote."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from statewise.automata import Assumption
from statewise.bounds.kl import binary_kl
from statewise.files import write_atomically

#: The network as it runs, which most bounds speak of.
NETWORK = "the network"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One bound on the error of one predictor, which holds with its own share of the failure probability.

    Attributes:
        name: of the bound.
        title: in words.
        origin: "repaired" where the paper's proof has a gap that is closed here, "new", or "printed": no guarantee.
        value: the bound on the probability of an error, at most 1.
        about: the predictor.
        delta: the share of the failure probability.
        risk: what was observed: the share of sequences within the margin, of wrong ones, or the mean ramp.
        gamma: the margin; None where there is none.
        nats: what had to be paid, by name: the class, the choices, the confidence. Bounds of the form
            ``kl(risk ‖ value) <= nats / m`` have all of it here.
        log_penalty: the logarithm of what other bounds add to the risk, before it is cut at 1; None for those above.
        sequences: how many it was counted on.
        guarantee: whether the value may be quoted.
    """

    name: str
    title: str
    origin: str
    value: float
    about: str = NETWORK
    delta: float = 0.0
    risk: float = 0.0
    gamma: float | None = None
    nats: Mapping[str, float] = field(default_factory=dict)
    log_penalty: float | None = None
    sequences: int = 0
    guarantee: bool = True

    @property
    def total_nats(self) -> float:
        """All that was paid."""
        return math.fsum(self.nats.values())

    def needed(self, target: float) -> int | None:
        """How many sequences would bring the value to a target, were the risk and the network the same.

        ``m = nats / kl(risk ‖ target)``; None where the risk alone is not below the target, or for bounds of another
        form.

        Args:
            target: an error probability.

        >>> claim = Claim(name="x", title="x", origin="new", value=0.5, risk=0.05, nats={"class": 1000.0})
        >>> claim.needed(0.2064014078), claim.needed(0.05)
        (10000, None)
        """
        if self.log_penalty is not None or not self.nats or target <= self.risk:
            return None
        return math.ceil(self.total_nats / binary_kl(self.risk, target) * (1 - 1e-9))


@dataclass(frozen=True, kw_only=True)
class MatrixReport:
    """What one matrix adds to the price of the network.

    Attributes:
        name: such as "U" or "W forget".
        rows: of the matrix.
        columns: of the matrix, with one for a bias.
        norm: the bound on it within the class.
        log_lipschitz: ln of how far the logits move when it moves by one; -inf if they do not.
        nats: its part of the cover.
        rank: the rank of the class it is covered with, where that is cheaper than all its entries; else None.
    """

    name: str
    rows: int
    columns: int
    norm: float
    log_lipschitz: float
    nats: float
    rank: int | None = None


@dataclass(frozen=True)
class WhatIf:
    """What a change would be worth, were the errors the same.

    Attributes:
        change: such as "project U to 1.0 (kl)", with the method that it would help.
        nats: by how much the price changes; negative is better.
        value: the bound that would come of it.
    """

    change: str
    nats: float
    value: float

    def __str__(self) -> str:
        return f"{self.change}: {self.nats:+,.0f} nats, bound {self.value:.4g}"


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """How far a classifier can be trusted, and why: made by :func:`certify`.

    Attributes:
        value: the least bound that is proved of the network itself, at the confidence ``1 - delta``.
        delta: the probability, over the draw of the sequences, that anything claimed here is false.
        sequences: m.
        classes: K.
        error: the share of wrong answers on the data.
        best: the claim with that value.
        other: the least claim about another predictor, such as the network with hard transitions, if it is lower.
        claims: all bounds side by side, the best first; printed orders without a guarantee last.
        inapplicable: bounds that say nothing of this network, and why.
        assumptions: what the claims rest on, and how it was checked.
        matrices: the price of each matrix at the margin of the "kl" bound; empty where norms do not apply.
        growth: ln β, by how much a difference grows with each step.
        decay: ln θ, the same of the state of gated cells; None for others.
        what_if: what changes would be worth.
        needed: sequences for some targets, if risk and network were the same; None if no number is enough. Empty for
            bounds that are not of the form ``kl(risk ‖ value) <= nats / m``.
    """

    value: float
    delta: float
    sequences: int
    classes: int
    error: float
    best: Claim
    other: Claim | None
    claims: tuple[Claim, ...]
    inapplicable: Mapping[str, str]
    assumptions: tuple[Assumption, ...]
    matrices: tuple[MatrixReport, ...] = ()
    growth: float | None = None
    decay: float | None = None
    what_if: tuple[WhatIf, ...] = ()
    needed: Mapping[float, int | None] = field(default_factory=dict)

    @property
    def vacuous(self) -> bool:
        """Whether guessing would be as good: the bound is at least ``1 - 1/K``."""
        return self.value >= 1 - 1 / self.classes

    @property
    def sentence(self) -> str:
        """What may be quoted."""
        if self.other is not None and self.other.value < 1 - 1 / self.classes:
            return f"{self._of_network()} {self._quoted(self.other)}"
        return self._of_network()

    def _quoted(self, claim: Claim) -> str:
        return sentence_of(claim.value, delta=self.delta, sequences=claim.sequences, about=claim.about)

    def _of_network(self) -> str:
        if not self.vacuous:
            return self._quoted(self.best)
        sentence = f"Nothing can be proved of this network from {self.sequences:,} sequences"
        if not self.matrices or self.best.name not in ("kl", "low-rank"):
            return f"{sentence}: the best bound is {percent(self.value)}, no better than guessing."
        worst = max(self.matrices, key=lambda matrix: matrix.nats)
        return (
            f"{sentence}: the best bound is {percent(self.value)}; of its price, the matrix {worst.name} "
            f"({worst.rows} x {worst.columns}, norm {worst.norm:.3g}) has {worst.nats:,.0f} nats."
        )

    def claim(self, name: str) -> Claim:
        """The claim of one bound.

        Args:
            name: of the bound.
        """
        return next(claim for claim in self.claims if claim.name == name)

    def to_json(self) -> dict[str, Any]:
        """All of it, as a JSON file holds it; numbers that are not finite are texts."""
        derived = {"sentence": self.sentence, "vacuous": self.vacuous}
        plain: dict[str, Any] = _plain({**derived, **asdict(self)})
        return plain

    def save(self, path: Path | str) -> Path:
        """Write :meth:`to_json` to a file; gives where it is.

        Args:
            path: the file; written whole or not at all.
        """
        place = Path(path)
        write_atomically(place, self.json_text())
        return place

    def json_text(self) -> str:
        """:meth:`to_json` as the text of a file."""
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def __str__(self) -> str:
        from statewise.bounds.telling import tell

        return tell(self)


def sentence_of(value: float, *, delta: float, sequences: int, about: str = NETWORK) -> str:
    """What may be quoted of a bound that was proved.

    Args:
        value: the bound.
        delta: the probability that it is wrong.
        sequences: m.
        about: the predictor.
    """
    return (
        f"With probability at least {100 * (1 - delta):.6g} % over the draw of the {sequences:,} sequences, {about} "
        f"errs on at most {percent(value)} of new ones."
    )


def percent(value: float) -> str:
    """A probability in per cent, rounded up so that it stays a bound.

    >>> percent(0.04501), percent(0.00451234), percent(1.0)
    ('4.51 %', '0.452 %', '100 %')
    """
    if value >= 1:
        return "100 %"
    digits = 2 if value >= 0.01 else 3
    scaled = math.ceil(value * 100 * 10**digits - 1e-9) / 10**digits
    return f"{scaled:.{digits}f} %"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
