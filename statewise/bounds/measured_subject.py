"""All that bounds need to know of a trained network, measured once, with the price of each constant."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from statewise.bounds.conv import ConvClass
from statewise.bounds.elman_constants import ElmanConstants
from statewise.bounds.grid import SLACK, Ledger
from statewise.bounds.logs import Floats
from statewise.bounds.matrices import GATES, SIGMOID, NetworkMatrices
from statewise.bounds.measured_class import network_blocks, network_class
from statewise.bounds.network_class import NetworkClass, prefixed
from statewise.bounds.profile import Profile
from statewise.bounds.subject import Subject
from statewise.errors import AssumptionError
from statewise.layers import ConvReadout, ConvRNN

#: Matrices up to this size are decomposed to see whether a low rank describes them: a rule that does not look at data.
DECOMPOSED = 512


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredSubject:
    """The class around a network, as bounds want it.

    Attributes:
        subject: what bounds are given.
        network: the class itself; None of networks of filters, which have no norms to choose.
        paid: the nats of its norms, by name.
        extra: for bounds that need further constants, by the bound's name: the nats of those.
    """

    subject: Subject
    network: NetworkClass | None
    paid: Mapping[str, float]
    extra: Mapping[str, Mapping[str, float]]

    def ledger(self, bound: str) -> dict[str, float]:
        """The nats of all constants that a bound needs.

        Args:
            bound: its name.
        """
        return {**self.paid, **self.extra.get(bound, {})}


def measure_network(
    matrices: NetworkMatrices,
    *,
    steps: int,
    input_bound: float,
    promised: Mapping[str, float],
    reference: NetworkMatrices | None = None,
) -> MeasuredSubject:
    """Measure all constants of a network.

    Args:
        matrices: of the network.
        steps: the most steps of a sequence.
        input_bound: on the length of a step; infinite for tokens.
        promised: constants that were fixed beforehand, by name.
        reference: a network that was fixed beforehand, around which the class lies.
    """
    ledger = Ledger(promised=promised)
    network = network_class(matrices, steps=steps, input_bound=input_bound, ledger=ledger, reference=reference)
    blocks = network_blocks(matrices)
    _refuse_unknown(promised, ledger)
    sums = Ledger()
    entry_sums = None
    if matrices.embedding is None:  # whose norm is no spectral one
        entry_sums = {
            name: sums.up(f"entries of {name}", float(np.abs(each).sum()) * SLACK) for name, each in blocks.items()
        }
    rows = Ledger()
    elman = _elman(matrices, network)
    subject = Subject(
        profile=network.profile(),
        paper=_paper(network),
        elman=elman,
        entry_sums=entry_sums,
        cell_rows=None if elman is None else rows.up("rows of U and W", _rows(blocks["U"], blocks["W"])),
        head_rows=None if elman is None else rows.up("rows of V", _rows(blocks["V"])),
        squared_norm=float(sum(np.square(each).sum() for each in blocks.values())) * SLACK,
        singular_values={
            name: np.linalg.svd(each, compute_uv=False).tolist()
            for name, each in blocks.items()
            if min(each.shape) <= DECOMPOSED and name != "embedding"
        },
        balls=frozenset() if reference is not None else _balls(matrices),
    )
    extra = {"thm3_l1": sums.nats, "bartlett_unrolled": rows.nats}
    return MeasuredSubject(subject=subject, network=network, paid=dict(ledger.nats), extra=extra)


def measure_filters(layer: ConvRNN, readout: ConvReadout, *, steps: int, input_bound: float) -> MeasuredSubject:
    """The class of a network of filters: all of its constants are fixed by its sizes.

    Args:
        layer: of the network.
        readout: of the network.
        steps: the most steps of a sequence.
        input_bound: on the length of a step.
    """
    filters = ConvClass.of(layer, readout, steps=steps, input_bound=input_bound)
    return MeasuredSubject(
        subject=Subject(profile=filters.tight(), paper=filters.paper()), network=None, paid={}, extra={}
    )


def _refuse_unknown(promised: Mapping[str, float], ledger: Ledger) -> None:
    if unknown := sorted(set(promised) - set(ledger.nats)):
        raise AssumptionError(
            where="certify.promised", got=f"a promise on {unknown[0]}", wanted=f"some of {', '.join(ledger.nats)}"
        )


def _elman(matrices: NetworkMatrices, network: NetworkClass) -> ElmanConstants | None:
    """The constants of a plain Elman network; None of others."""
    layer = network.directions[0][0]
    plain = len(network.directions) == len(network.directions[0]) == 1 and network.embedding is None
    if layer.kind != "rnn" or not plain or layer.start is not None:
        return None
    bound = network.input_bound
    return ElmanConstants(
        inputs=layer.features + layer.bias,
        hidden=layer.hidden,
        classes=network.classes,
        steps=network.steps,
        norm_u=layer.norms["U"],
        norm_w=layer.norms["W"],
        norm_v=network.head_norm,
        input_bound=math.hypot(bound, 1.0) if layer.bias else bound,
        cap=1.0 if matrices.layers[0][0].activation == "tanh" else math.inf,
        head_bias=network.head_bias,
    )


def _paper(network: NetworkClass) -> Profile | None:
    try:
        return network.paper()
    except AssumptionError:
        return None


def _balls(matrices: NetworkMatrices) -> frozenset[str]:
    """The blocks of whose class nothing is known but the norm: those of gates have bounded rows as well."""
    found = {"V"}
    for prefix, layer in prefixed(matrices.layers):
        free = [gate for gate in GATES[layer.kind] if gate not in SIGMOID]
        names = [f"W {gate}" for gate in free] + [f"U {gate}" for gate in free if layer.kind != "gru"]
        found |= {prefix + name.removesuffix(" state") for name in names}
    return frozenset(found)


def _rows(*matrices: Floats) -> float:
    """The lengths of the rows of matrices side by side, added up."""
    return float(np.linalg.norm(np.concatenate(matrices, axis=1), axis=1).sum()) * SLACK
