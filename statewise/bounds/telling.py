"""A certificate as a page of text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from statewise.bounds.certificate import percent

if TYPE_CHECKING:
    from statewise.bounds.certificate import Certificate, Claim

_MATRICES = 12  # that a page shows, the dearest


def tell(certificate: Certificate) -> str:
    """The whole certificate in words and tables.

    Args:
        certificate: what is told.
    """
    parts = [certificate.sentence, _summary(certificate), _claims(certificate)]
    if certificate.matrices:
        parts.append(_matrices(certificate))
    if certificate.what_if:
        parts.append(
            "What if (errors being the same; nats of the method in brackets):\n"
            + _indented(map(str, certificate.what_if))
        )
    if certificate.needed:
        parts.append(_needed(certificate))
    if certificate.inapplicable:
        parts.append("Do not apply:\n" + _indented(f"{name}: {why}" for name, why in certificate.inapplicable.items()))
    parts.append("Rests on:\n" + _indented(f"{each.statement}: {each.check}" for each in certificate.assumptions))
    return "\n\n".join(parts)


def aligned(rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Rows in columns, the first few flush left and the others flush right.

    >>> print(aligned([["bound", "value"], ["kl", "0.1"]]))
    bound  value
    kl       0.1
    """
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            text.ljust(width) if at < left else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _summary(certificate: Certificate) -> str:
    best = certificate.best
    told = [
        f"error on these sequences {percent(certificate.error)}",
        f"best bound: {best.name} ({best.title}; {best.origin})",
    ]
    if certificate.growth is not None:
        told.append(f"growth of a difference with each step: {_exp(certificate.growth)}")
    if certificate.decay is not None:
        told.append(f"of the state: {_exp(certificate.decay)}")
    return "; ".join(told)


def _claims(certificate: Certificate) -> str:
    head = ["bound", "what it is", "value", "margin", "risk", "nats", "unclipped"]
    rows = [head, *(_claim(claim) for claim in certificate.claims)]
    split = sum(claim.guarantee for claim in certificate.claims)
    told = "nats: the length of a description, which m sequences pay for; unclipped: what is added to the risk"
    return f"Bounds, of which {split} share delta = {certificate.delta:g} ({told}):\n" + _indented(
        aligned(rows, left=2).split("\n")
    )


def _claim(claim: Claim) -> list[str]:
    gamma = "-" if claim.gamma is None else f"{claim.gamma:.4g}"
    penalty = "-" if claim.log_penalty is None else _exp(claim.log_penalty)
    kind = f"{claim.title} ({claim.origin}{'' if claim.guarantee else ', no guarantee'})"
    nats = f"{claim.total_nats:,.0f}" if claim.nats else "-"
    value = f"{claim.value:.4g}" if claim.guarantee else "-"
    return [claim.name, kind, value, gamma, f"{claim.risk:.4g}", nats, penalty]


def _matrices(certificate: Certificate) -> str:
    dearest = sorted(certificate.matrices, key=lambda each: -each.nats)
    rows = [["matrix", "size", "norm", "ln L", "nats"]]
    for each in dearest[:_MATRICES]:
        size = f"{each.rows} x {each.columns}" + ("" if each.rank is None else f", rank {each.rank}")
        rows.append([each.name, size, f"{each.norm:.4g}", f"{each.log_lipschitz:.2f}", f"{each.nats:,.0f}"])
    rest = dearest[_MATRICES:]
    if rest:
        rows.append([f"{len(rest)} others", "", "", "", f"{sum(each.nats for each in rest):,.0f}"])
    return "Nats of each matrix:\n" + _indented(aligned(rows, left=2).split("\n"))


def _by_reason(inapplicable: Mapping[str, str]) -> list[str]:
    """What does not apply, a line for each reason.

    >>> _by_reason({"kl": "no head", "dudley": "no head", "bits": "no weights"})
    ['kl, dudley: no head', 'bits: no weights']
    """
    names: dict[str, list[str]] = {}
    for name, why in inapplicable.items():
        names.setdefault(why, []).append(name)
    return [f"{', '.join(those)}: {why}" for why, those in names.items()]


def _needed(certificate: Certificate) -> str:
    told = [
        f"{percent(target)}: {'never, at this risk' if count is None else f'{count:,}'}"
        for target, count in certificate.needed.items()
    ]
    return "Sequences needed, errors and network being the same:\n" + _indented(told)


def _indented(lines: Iterable[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)


def _exp(logarithm: float) -> str:
    """A number from its logarithm, as a power of ten where it is huge.

    >>> _exp(0.0), _exp(5492.368)
    ('1', '10^2385.3')
    """
    return f"{math.exp(logarithm):.4g}" if logarithm < 16 else f"10^{logarithm / math.log(10):.1f}"
