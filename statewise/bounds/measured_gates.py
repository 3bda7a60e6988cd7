"""A certificate from gates as they were seen on the training sequences, in place of how far they could open."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from statewise.bounds.grid import NORMS, Rounded, margin_levels, nats, round_up
from statewise.bounds.kl import kl_inverse
from statewise.bounds.logs import log_add, log_geometric, log_of
from statewise.bounds.margins import ROUNDING
from statewise.bounds.mgu import MGUClass
from statewise.bounds.network_class import NetworkClass
from statewise.bounds.profile import Profile
from statewise.errors import ArgumentError, AssumptionError, ShapeError

#: How far below the level of the gates its slack is searched, in octaves.
_OCTAVES = 16


def gate_levels(
    gates: Float[Tensor, "..."], *, state_norm: float, lengths: Int[Tensor, "sequences"] | None = None
) -> Float[Tensor, "sequences"]:
    """``a(X) = max_s (max_i (1 - r_si) + B_Uh max_i r_si²)``: how much a network's states grow on each sequence.

    Args:
        gates: r of a minimal gated unit at each step, as its layer collects them: (steps, sequences, hidden).
        state_norm: B_Uh, the class's bound on the candidate's U.
        lengths: of the sequences; None where all have all steps.

    >>> gates = torch.tensor([[[0.5, 0.25]], [[0.0, 0.0]]], dtype=torch.float64)
    >>> gate_levels(gates, state_norm=2.0, lengths=torch.tensor([1])).round(decimals=9).tolist()
    [1.25]
    """
    if gates.ndim != 3:
        raise ShapeError(where="gate_levels", got=tuple(gates.shape), wanted="(steps, sequences, hidden)")
    seen = gates.detach().double()
    levels = (1 - seen).amax(2) + state_norm * seen.amax(2).square()
    if lengths is not None:
        steps = torch.arange(len(levels), device=levels.device).unsqueeze(1)
        levels = levels.masked_fill(steps >= lengths.to(levels.device), -math.inf)
    return levels.amax(0) + ROUNDING.get(gates.dtype, 2e-2) * (1 + 2 * state_norm)


@dataclass(frozen=True, kw_only=True)
class GateSensitivity:
    """How far logits and gate levels move, for two networks of which one has gates below a level on the sequence.

    With ``β = level + (2 + B_Uh) B_Ur / 4`` the state moves by at most ``src_k S_t(β)`` for each unit that matrix k
    moves, and the level by ``(1 + 2 B_Uh) / 4`` times what the gate's own matrices and the state of before add to
    ``W_r x + U_r h``. New; only one of the two networks need have such gates.

    Args:
        network: a class of one layer of minimal gated units that start from zero.
        level: what ``a(X)`` of one of the networks stays below.

    >>> layer = MGUClass(hidden=1, features=1, norms={f"{s} {g}": 1.0 for s in "WU" for g in ("forget", "candidate")})
    >>> net = NetworkClass(layers=(layer,), head_norm=2.0, classes=2, steps=2, input_bound=1.0)
    >>> found = GateSensitivity(network=net, level=1.0)
    >>> round(math.exp(found.log_growth), 9), {name: round(math.exp(log), 9) for name, log in found.log_levels.items()}
    (1.75, {'W forget': 1.3125, 'U forget': 1.3125, 'W candidate': 0.75, 'U candidate': 0.75, 'V': 0.0})
    """

    network: NetworkClass
    level: float

    def __post_init__(self) -> None:
        directions = self.network.directions
        layer = directions[0][0]
        if len(directions) != 1 or len(directions[0]) != 1 or not isinstance(layer, MGUClass) or layer.start:
            raise AssumptionError(
                where="measured gates",
                got=self.network.architecture,
                wanted="one layer of minimal gated units in one direction that starts from zero",
                remedy="Other networks have the certificate of their norms.",
            )
        if not self.level > 0:
            raise ArgumentError(where="GateSensitivity.level", got=self.level, wanted="a number > 0")

    @property
    def layer(self) -> MGUClass:
        """The one layer."""
        layer = self.network.directions[0][0]
        assert isinstance(layer, MGUClass)
        return layer

    @property
    def log_growth(self) -> float:
        """The logarithm of β."""
        B = self.layer.norms
        return math.log(self.level + (2 + B["U candidate"]) * B["U forget"] / 4)

    @property
    def log_outputs(self) -> dict[str, float]:
        """The logarithm of how far each matrix moves the logits."""
        rho, head = log_of(self.network.output_lipschitz), log_of(self.network.head_norm)
        log_sum = log_geometric(self.log_growth, self.network.steps)
        found = {name: rho + head + source + log_sum for name, source in self._log_sources.items()}
        return {**found, "V": rho + math.log(self.layer.hidden + self.network.head_bias) / 2}

    @property
    def log_levels(self) -> dict[str, float]:
        """The logarithm of how far each matrix moves the level."""
        B, log_x = self.layer.norms, self._log_input
        log_sum = log_geometric(self.log_growth, self.network.steps - 1)
        direct = {"W forget": log_x, "U forget": math.log(self.layer.hidden) / 2, "embedding": log_of(B["W forget"])}
        slope = math.log((1 + 2 * B["U candidate"]) / 4)
        moved = log_of(B["U forget"]) + log_sum
        found = {
            name: slope + log_add(moved + source, direct.get(name, -math.inf))
            for name, source in self._log_sources.items()
        }
        return {**found, "V": -math.inf}

    @property
    def _log_input(self) -> float:
        bound = self.network.log_input
        return log_add(0.0, 2 * bound) / 2 if self.layer.bias else bound

    @property
    def _log_sources(self) -> dict[str, float]:
        """What each matrix adds to the difference of states at a step."""
        B, log_x, log_root = self.layer.norms, self._log_input, math.log(self.layer.hidden) / 2
        through = (2 + B["U candidate"]) / 4
        found = {
            "W forget": math.log(through) + log_x,
            "U forget": math.log(through) + log_root,
            "W candidate": log_x,
            "U candidate": log_root,
        }
        if self.network.embedding is None:
            return found
        return {"embedding": log_of(through * B["W forget"] + B["W candidate"]), **found}


def gate_profile(network: NetworkClass, *, gamma: float, theta: float, kappa: float) -> Profile:
    """The class as a cover sees it, at scale 1: near enough that margins move by γ/2 and gate levels by κ/2.

    ``ρ_k = π_k min(γ / (2√2 L_k), κ / (2 La_k))``, at gate levels below ``θ + κ/2``.

    Args:
        network: as for :class:`GateSensitivity`.
        gamma: γ, the margin.
        theta: θ, the level from which on a training sequence counts as an error.
        kappa: κ, the slack of levels.
    """
    found = GateSensitivity(network=network, level=theta + kappa / 2)
    whole = network.profile()
    scaled = _scaled(whole, found.log_outputs, found.log_levels, gamma, kappa)
    blocks = tuple(replace(block, log_lipschitz=scaled[block.name]) for block in whole.blocks)
    return replace(whole, blocks=blocks, log_growth=found.log_growth)


def _scaled(
    whole: Profile, log_outputs: Mapping[str, float], log_levels: Mapping[str, float], gamma: float, kappa: float
) -> dict[str, float]:
    """How far each matrix moves margins or levels, whichever is more, as logarithms of shares of what they may move."""
    margin, slack = math.log(gamma / (2 * math.sqrt(2))), math.log(kappa / 2)
    return {block.name: max(log_outputs[block.name] - margin, log_levels[block.name] - slack) for block in whole.blocks}


@dataclass(frozen=True, kw_only=True)
class MeasuredGates:
    """A bound on the error probability from the margins and the gates that were seen.

    Args:
        value: the bound.
        rate: the share of training sequences with a margin of at most γ or a gate level of at least θ.
        gamma, theta, kappa: as chosen.
        cover_nats: of the class.
        choice_nats: what the choice of γ, θ and κ costs.
        log_growth: ln β.
    """

    value: float
    rate: float
    gamma: float
    theta: float
    kappa: float
    cover_nats: float
    choice_nats: float
    log_growth: float


def measured_gates(
    network: NetworkClass,
    margins: Float[Tensor, "sequences"],
    levels: Float[Tensor, "as_many"],
    *,
    delta: float,
    constants_nats: float = 0.0,
) -> MeasuredGates:
    """The best certificate over the grids of γ, θ and κ, whose choice is paid for.

    ``P(error) <= kl⁻¹(share {M_i <= γ or a(X_i) >= θ}, (ln N + ln 1/δ + nats of all constants) / m)`` with probability
    1 - δ: training sequences whose gates open too far count as errors. New; it makes the decay of the network as
    trained count where a bound for all inputs knows only how far gates could open (compare Chen, Li & Zhao 2019,
    Theorem 4, which reads as if maxima on the sample could be used; they cannot).

    Args:
        network: the class; made without bounds on gates (``gates=False``) nothing is paid for those.
        margins: of the m independent training sequences, rounding taken off.
        levels: of the same, by :func:`gate_levels`.
        delta: δ, the probability of being wrong.
        constants_nats: what the constants of the class cost.

    >>> norms = {"W forget": 0.1, "U forget": 0.1, "W candidate": 1.0, "U candidate": 1.0}
    >>> net = NetworkClass(
    ...     layers=(MGUClass(hidden=4, features=2, norms=norms),),
    ...     head_norm=2.0,
    ...     classes=2,
    ...     steps=10,
    ...     input_bound=1.0,
    ... )
    >>> found = measured_gates(net, torch.full((10000,), 1.1), torch.full((10000,), 0.85), delta=0.05)
    >>> found.rate, found.gamma, round(found.theta, 3), round(found.value, 3)
    (0.0, 1.0, 0.917, 0.031)
    """
    if not 0 < delta < 1:
        raise ArgumentError(where="measured_gates.delta", got=delta, wanted="a number between 0 and 1")
    if len(margins) != len(levels) or len(margins) < 2:
        got = f"{len(margins)} margins and {len(levels)} levels"
        raise ShapeError(where="measured_gates", got=got, wanted="as many, of 2 sequences or more")
    whole, gammas, best = network.profile(), list(margin_levels(float(margins.max()))), _nothing()
    count, shut = len(margins), -1
    for theta in _thetas(levels):
        too_open = levels >= theta.value
        if shut == (shut := int((~too_open).sum())):
            continue  # a smaller level has room for as many
        rates = [float(((margins <= gamma.value) | too_open).double().mean()) for gamma in gammas]
        for kappa in _kappas(theta.value):
            near = GateSensitivity(network=network, level=theta.value + kappa.value / 2)
            outputs, moved = near.log_outputs, near.log_levels
            for gamma, rate in zip(gammas, rates, strict=True):
                scaled = _scaled(whole, outputs, moved, gamma.value, kappa.value).values()
                cover = math.fsum(
                    block.cover_nats(share - scale)
                    for block, share, scale in zip(whole.blocks, whole.log_shares, scaled, strict=True)
                )
                fixed = cover + constants_nats - math.log(delta)
                if kl_inverse(0.0, fixed / count) >= best.value:
                    break  # smaller margins only need larger covers
                choice = gamma.nats + theta.nats + kappa.nats
                value = kl_inverse(rate, (fixed + choice) / count)
                if value < best.value:
                    best = MeasuredGates(
                        value=value,
                        rate=rate,
                        gamma=gamma.value,
                        theta=theta.value,
                        kappa=kappa.value,
                        cover_nats=cover,
                        choice_nats=choice,
                        log_growth=near.log_growth,
                    )
    return best


def _kappas(theta: float) -> Iterator[Rounded]:
    """Every power of two from θ downward."""
    top = math.floor(math.log2(theta))
    for index in range(top, top - _OCTAVES - 1, -1):
        yield Rounded(2.0**index, nats(index))


def _thetas(levels: Tensor) -> Iterator[Rounded]:
    """The points of the grid above the least level, up to the first above all."""
    least, most = float(levels.min()), float(levels.max())
    point = round_up(least)
    while True:
        yield point
        if point.value > most:
            return
        index = round(NORMS * math.log2(point.value)) + 1
        point = Rounded(2.0 ** (index / NORMS), nats(index))


def _nothing() -> MeasuredGates:
    """What can be said where every sequence is wrong."""
    return MeasuredGates(
        value=1.0, rate=1.0, gamma=1.0, theta=1.0, kappa=1.0, cover_nats=0.0, choice_nats=0.0, log_growth=0.0
    )
