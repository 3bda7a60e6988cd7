"""Networks of usual sizes as bounds see them, Elman and gated: only their norms matter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from statewise.bounds.catalogue import bound_named
from statewise.bounds.elman_constants import ElmanConstants
from statewise.bounds.gates import GatedClass, GateRows
from statewise.bounds.kl import kl_inverse
from statewise.bounds.lstm import LSTMClass
from statewise.bounds.mgu import MGUClass
from statewise.bounds.network_class import NetworkClass
from statewise.bounds.occam import margin_scale
from statewise.bounds.subject import Subject
from statewise.errors import ArgumentError
from statewise.recipes.bounds_subjects import TITLES, gaussian_shaped

DELTA = 0.05


@dataclass(frozen=True, kw_only=True)
class VacuousSettings:
    """A network as bounds see it.

    Args:
        cell: "rnn", "mgu" or "lstm".
        inputs: dx.
        hidden: dh.
        classes: dy.
        steps: t.
        sequences: m.
        gamma: γ.
        input_bound: B_x.
        norm_u: of U, or of the candidate's U.
        norm_w: of W, or of the candidate's W.
        norm_v: of V.
        gate_norm: of every matrix of a gate.
        gate_reach: how far the sum before a sigmoid can be from 0.
        seed: of nothing; all is computed.
    """

    cell: str = "rnn"
    inputs: int = 28
    hidden: int = 16
    classes: int = 10
    steps: int = 28
    sequences: int = 60_000
    gamma: float = 1.0
    input_bound: float = 1.0
    norm_u: float = 1.0
    norm_w: float = 3.0
    norm_v: float = 3.0
    gate_norm: float = 0.1
    gate_reach: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        # A slip is told before anything is made.
        if self.cell == "rnn":
            _ = self.elman
        elif self.cell in ("mgu", "lstm"):
            self.gated(refined=False)
        else:
            raise ArgumentError(where="VacuousSettings.cell", got=self.cell, wanted="rnn, mgu or lstm")

    @property
    def elman(self) -> ElmanConstants:
        """The class, if the cell is "rnn"."""
        names = {entry.name for entry in fields(ElmanConstants)} & {entry.name for entry in fields(self)}
        return ElmanConstants(**{name: getattr(self, name) for name in names})

    def gated(self, *, refined: bool) -> NetworkClass:
        """The class, if the cell is "mgu" or "lstm".

        Args:
            refined: whether the gates of an LSTM are bounded a second time, with the bound on its state.
        """
        gates = ("forget",) if self.cell == "mgu" else ("input", "forget", "output")
        norms = {f"{side} {gate}": self.gate_norm for side in "WU" for gate in gates}
        half = GateRows(row_norm=self.gate_reach / 2 / self.input_bound, row_sum=self.gate_reach / 2)
        options: dict[str, Any] = {
            "hidden": self.hidden,
            "features": self.inputs,
            "norms": {**norms, "W candidate": self.norm_w, "U candidate": self.norm_u},
            "gates": dict.fromkeys(gates, half),
        }
        layer: GatedClass = MGUClass(**options) if self.cell == "mgu" else LSTMClass(**options, refined=refined)
        return NetworkClass(
            layers=(layer,),
            head_norm=self.norm_v,
            classes=self.classes,
            steps=self.steps,
            input_bound=self.input_bound,
        )


_TOY = {"inputs": 1, "hidden": 4, "classes": 2, "steps": 20, "norm_v": 4.0, "norm_w": 2.0}
_SPEECH = {"inputs": 40, "hidden": 256, "classes": 12, "steps": 100, "sequences": 85_000}
_ELMAN: Mapping[str, Mapping[str, Any]] = {
    "toy": {**_TOY, "sequences": 100_000, "gamma": 0.5},
    "row-mnist16": {"input_bound": math.sqrt(28)},
    "row-mnist128": {"hidden": 128, "input_bound": math.sqrt(28)},
    "pixel-mnist": {"inputs": 1, "hidden": 128, "steps": 784},
    "speech": {**_SPEECH, "input_bound": math.sqrt(40)},
}
_GATES: Mapping[str, Mapping[str, Any]] = {
    "normalised": {"gate_norm": 0.1, "gate_reach": 0.2},
    "typical": {"gate_norm": 1.0, "gate_reach": 10.0},
}


def named_network(name: str) -> VacuousSettings:
    """A network of the table.

    Args:
        name: such as "toy-0.9", with β, or "lstm16-typical", with its units and how its gates are.

    >>> named_network("lstm16-typical").gate_reach, named_network("row-mnist128-1.5").norm_u
    (10.0, 1.5)
    """
    net, _, kind = name.rpartition("-")
    if kind not in _GATES:
        return VacuousSettings(norm_u=float(kind), **_ELMAN[net])
    cell = net.rstrip("0123456789")
    return VacuousSettings(cell=cell, hidden=int(net.removeprefix(cell)), norm_w=1.0, **_GATES[kind])


def elman_numbers(settings: VacuousSettings) -> dict[str, Any]:
    """All bounds of a class of Elman networks.

    Args:
        settings: the class.
    """
    subject, kl = gaussian_shaped(settings.elman), bound_named("kl_occam")
    known: dict[str, Any] = {"gamma": settings.gamma, "m": settings.sequences, "delta": DELTA}
    log_penalties = {name: bound_named(name).log_penalty(subject, **known) for name in TITLES}
    nats = subject.profile.cover_nats(margin_scale(settings.gamma))
    return {
        "parameters": settings.elman.parameters,
        "beta": settings.norm_u,
        "log10_needed": log10_needed(subject, settings.gamma),
        "kl_0": kl.value(subject, risk=0.0, **known),
        "kl_5": kl.value(subject, risk=0.05, **known),
        "nats": nats,
        "nats_per_parameter": nats / settings.elman.parameters,
        **{f"log10_{name}": value / math.log(10) for name, value in log_penalties.items()},
    }


def log10_needed(subject: Subject, gamma: float) -> float:
    """How many sequences, as a logarithm, would bring the penalty of Theorem 2 down to 1, which is still worth nothing.

    Args:
        subject: the class.
        gamma: γ.
    """
    low, high = 1.0, 40.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        above = bound_named("thm2").log_penalty(subject, gamma=gamma, m=round(10**middle)) > 0
        low, high = (middle, high) if above else (low, middle)
    return high


def gated_numbers(settings: VacuousSettings) -> dict[str, Any]:
    """The certificate of a class of gated networks.

    Args:
        settings: the class.
    """
    profile, scale = settings.gated(refined=False).profile(), margin_scale(settings.gamma)
    nats, price = profile.cover_nats(scale), -math.log(DELTA)
    assert profile.log_decay is not None
    return {
        "parameters": profile.parameters,
        "kl_0": kl_inverse(0.0, (nats + price) / settings.sequences),
        "kl_5": kl_inverse(0.05, (nats + price) / settings.sequences),
        "nats": nats,
        "nats_per_parameter": nats / profile.parameters,
        "theta": math.exp(profile.log_decay),
        "beta": math.exp(profile.log_growth),
        "refined_nats": settings.gated(refined=True).profile().cover_nats(scale),
    }
