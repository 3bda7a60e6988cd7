"""Why a certificate is what it is: the price of each matrix, and what changes would be worth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from statewise.bounds.certificate import Claim, MatrixReport, WhatIf
from statewise.bounds.kl import kl_inverse
from statewise.bounds.methods import Case
from statewise.bounds.network_class import NetworkClass, prefixed
from statewise.bounds.occam import margin_scale

#: Bits of a weight, of which a certificate says what they would be worth.
BITS = (8, 4, 2)
_MOST = 8  # changes that are told


def diagnose(case: Case, claims: Mapping[str, Claim], best: Claim) -> dict[str, Any]:
    """What a certificate says beyond its claims: matrices, growth, decay and what-ifs.

    Args:
        case: what the methods were given.
        claims: by name.
        best: of them.
    """
    changes = list(_quantised(case, claims))
    if "kl" not in claims:
        return {"what_if": _helpful(changes, best)}
    claim, profile = claims["kl"], case.measured.subject.profile
    log_scale = margin_scale(_gamma(claim))
    nats = profile.nats(log_scale)
    matrices = tuple(
        MatrixReport(
            name=block.name,
            rows=block.rows,
            columns=block.columns,
            norm=block.bound,
            log_lipschitz=block.log_lipschitz,
            nats=nats[block.name],
        )
        for block in profile.blocks
    )
    changes += _projected(case, claim)
    return {
        "matrices": matrices,
        "growth": profile.log_growth,
        "decay": profile.log_decay,
        "what_if": _helpful(changes, best),
    }


def _helpful(changes: list[WhatIf], best: Claim) -> tuple[WhatIf, ...]:
    """Those that lower the certificate, most first; where it is 1, those that cost fewer nats."""
    some = [change for change in changes if change.nats < -0.5 and (change.value < best.value or best.value >= 1)]
    return tuple(sorted(some, key=lambda change: (change.value, change.nats))[:_MOST])


def _projected(case: Case, claim: Claim) -> Iterator[WhatIf]:
    """What it would be worth to bring each norm that is above 1 down to 1."""
    network = case.measured.network
    if network is None:
        return
    before = case.measured.subject.profile.cover_nats(margin_scale(_gamma(claim)))
    for name, changed in _with_smaller_norms(network):
        after = changed.profile().cover_nats(margin_scale(_gamma(claim)))
        value = kl_inverse(claim.risk, max(0.0, claim.total_nats + after - before) / case.seen.sequences)
        yield WhatIf(f"project {name} to 1.0 (kl)", after - before, value)


def _with_smaller_norms(network: NetworkClass) -> Iterator[tuple[str, NetworkClass]]:
    """The class with each norm above 1 at 1, one after the other."""
    names = iter([prefix for prefix, _ in prefixed(network.directions)])
    for place, directions in enumerate(network.directions):
        for side, layer in enumerate(directions):
            prefix = next(names)
            for name, norm in layer.norms.items():
                if norm > 1 + 1e-6:
                    other = replace(layer, norms={**layer.norms, name: 1.0})
                    both = (*directions[:side], other, *directions[side + 1 :])
                    layers = (*network.directions[:place], both, *network.directions[place + 1 :])
                    yield prefix + name, replace(network, layers=layers)
    if network.head_norm > 1 + 1e-6:
        yield "V", replace(network, head_norm=1.0)


def _quantised(case: Case, claims: Mapping[str, Claim]) -> Iterator[WhatIf]:
    """What weights of a few bits would be worth."""
    claim = claims.get("bits")
    if claim is None:
        return
    entries = sum(parameter.numel() for parameter in case.reading.model.parameters())
    for bits in BITS:
        nats = bits * entries * math.log(2)
        if nats < claim.nats["weights"]:
            total = claim.total_nats - claim.nats["weights"] + nats
            value = kl_inverse(claim.risk, total / case.seen.sequences)
            yield WhatIf(f"round all weights to {bits} bits (bits)", nats - claim.nats["weights"], value)


def _gamma(claim: Claim) -> float:
    assert claim.gamma is not None
    return claim.gamma
