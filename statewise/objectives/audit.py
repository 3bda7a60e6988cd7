"""The unbiasedness auditor: is the mean of a noisy layer the layer without noise?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from statewise.errors import ArgumentError
from statewise.layers.base import State
from statewise.objectives.means import Watch
from statewise.objectives.resampling import TINY, Resampler, Seen

VERDICTS = ("strong", "weak", "biased")
CALLS, SHARED_CALLS = 32, 128  # independent calls; more where a call has noise that its rows share
ROUNDING = 1e-10


class Worst(NamedTuple):
    """The deviation that stands out most: where it is and how large."""

    part: str
    step: int
    row: int
    unit: int
    value: float
    half_width: float


@dataclass(frozen=True, eq=False)
class Deviation:
    """How far means are from where they should be.

    Attributes:
        values: the estimated deviation, shape (steps, batch, units); the units of the output, and for a conditional
            mean those of the state (where it differs) and of the memory after them.
        half_width: of confidence intervals around all values, which hold simultaneously.
        parts: for each group of units what it is, and how many.
        steps: the steps, counted from 1, at which there is a deviation beyond doubt.
        nonzero: whether there is one at all; many small ones may be beyond doubt together, and none alone.
        decided: False where the noise has tails too heavy for the number of samples.
    """

    values: Float[Tensor, "steps batch units"]
    half_width: Float[Tensor, "steps batch units"]
    parts: tuple[tuple[str, int], ...]
    steps: tuple[int, ...]
    nonzero: bool
    decided: bool

    @property
    def worst(self) -> Worst:
        """The value that stands out most, measured by its interval."""
        score = (self.values.abs() / self.half_width).nan_to_num(nan=0.0)
        step, row, unit = (int(index) for index in torch.unravel_index(score.argmax(), score.shape))
        value, half_width = float(self.values[step, row, unit]), float(self.half_width[step, row, unit])
        ends = itertools.accumulate(size for _, size in self.parts)
        (part, size), end = next((part, end) for part, end in zip(self.parts, ends, strict=True) if unit < end)
        return Worst(part, step + 1, row, unit - end + size, value, half_width)

    @property
    def resolution(self) -> float:
        """The half-width of the widest interval: deviations of single units below it may go unseen."""
        return float(self.half_width.amax())


@dataclass(frozen=True, eq=False)
class LayerAudit:
    """What was found of one layer of a stack.

    Attributes:
        layer: its index, counted from 0 at the bottom.
        mean: ``E[z_t] - h_t``, against the layer in eval mode.
        conditional: ``E[z_t | input, state] - f(input, state)``, one step at a time from a noisy pass.
        clean_state: whether what the layer feeds back is free of noise, exactly.
    """

    layer: int
    mean: Deviation
    conditional: Deviation
    clean_state: bool

    @property
    def verdict(self) -> str:
        """One of "strong", "weak" and "biased"."""
        if self.conditional.nonzero or (self.clean_state and self.mean.nonzero):
            return "biased"
        return "strong" if self.clean_state else "weak"

    @property
    def sentence(self) -> str:
        """What was found, to be quoted."""
        name = f"layer {self.layer} is "
        if self.verdict == "biased":
            if not self.conditional.nonzero:
                return name + f"biased: {_told(self.mean, 'from the start, the mean of')}"
            return name + f"biased: {_told(self.conditional, 'given its input and state, the mean of')}"
        if self.verdict == "strong":
            return name + (
                "strongly unbiased: its mean is the layer without noise at every step "
                f"(within {self.mean.resolution:.1g} a unit), and no noise is fed back"
            )
        after = f"; {_told(self.mean, 'from the start, the mean of')}" if self.mean.nonzero else ""
        return name + (
            "weakly unbiased: given its input and state, its mean is the transition without noise "
            f"(within {self.conditional.resolution:.1g} a unit), but noise reaches its state{after}"
        )


@dataclass(frozen=True, eq=False)
class Audit:
    """The verdict on a layer or stack, and all that led to it.

    Attributes:
        layers: what was found of each layer.
        samples: how many noises were drawn.
        confidence: the probability that none of all tests raises a false alarm.
        assumptions: what the verdict presumes.
    """

    layers: tuple[LayerAudit, ...]
    samples: int
    confidence: float
    assumptions: tuple[str, ...] = (
        "unbiased means: as in eval mode",
        "the verdict is about these inputs, this initial state and these weights",
        "noise has the mean that its law says, within the wider intervals of the plain means",
        "a mask that is locked over time is drawn anew for the conditional test",
        "a bias smaller than the intervals may go unseen; more samples make them narrower",
    )

    @property
    def verdict(self) -> str:
        """The verdict "strong" if every layer is, "biased" if any is, else "weak"."""
        return max((layer.verdict for layer in self.layers), key=VERDICTS.index)

    @property
    def sentence(self) -> str:
        """What was found, to be quoted."""
        found = "; ".join(layer.sentence for layer in self.layers)
        return f"{self.verdict}: {found} ({self.samples} samples, confidence {self.confidence:g})"

    def __repr__(self) -> str:
        return f"Audit({self.sentence!r})"


def audit(
    layer: nn.Module,
    inputs: Tensor,
    hx: State | None = None,
    *,
    samples: int = 16384,
    confidence: float = 0.999,
    generator: torch.Generator | None = None,
) -> Audit:
    """Whether the noise of a layer is unbiased, by drawing it many times.

    For each layer of a stack, two means are compared with the network in eval mode: that of the state from the start,
    ``E[z_t] = h_t`` (strong, Dieng et al. 2018, eq. 13), and that of one step from a given input and state,
    ``E[z_t | x_t, z_{t-1}] = f(x_t, z_{t-1})`` (weak, eq. 14, layer by layer). A layer is "strong" if the first holds
    and its state is free of noise, "weak" if noise reaches its state and the second holds, else "biased". Dropout of
    inputs, of recurrent terms and of weights is biased, since the mean of a squashed sum is not the squashed mean.

    All intervals hold simultaneously, and a verdict raises a false alarm with a probability of ``1 - confidence``. The
    layer is copied, and its own mode, masks and generators stay as they are.

    Args:
        layer: any recurrent layer of statewise, or a plain one of torch.nn.
        inputs: a few sequences of a few steps, as the layer takes them; real ones, since biases depend on them.
        hx: the initial state; None for layers that start at zero.
        samples: how many noises to draw, at least 1024; a tenth of the resolution takes a hundred times as many.
        confidence: of all statements together.
        generator: source of the noises; None means torch's global one.

    >>> from statewise import LSTM, Noise
    >>> layer = LSTM(3, 4, transforms=Noise("gaussian", 0.5, placement="last"))
    >>> audit(layer, torch.randn(2, 1, 3), samples=1024).verdict
    'strong'
    """
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1024:
        raise ArgumentError(where="audit.samples", got=samples, wanted="a whole number of at least 1024")
    if not 0.5 <= confidence < 1:
        raise ArgumentError(where="audit.confidence", got=confidence, wanted="a probability from 0.5 to below 1")
    source = Resampler(layer, inputs, hx, generator)
    calls = SHARED_CALLS if source.shares_noise else CALLS
    copies = -(-samples // calls)
    means, varies = _from_the_start(source, calls, copies)
    steps = [_step_by_step(source, index, calls, copies) for index in range(source.layer.num_layers)]
    watches = [watch for pair in (*means, *steps) for watch in pair]
    alarms = {
        "interval_alarm": (1 - confidence) / 2 / sum(watch.means for watch in watches),
        "direction_alarm": (1 - confidence) / 2 / (len(watches) * (source.steps + 1)),
    }
    layers = []
    for index, (mean, conditional) in enumerate(zip(means, steps, strict=True)):
        parts = tuple((name, part.shape[-1]) for name, part in _parts(source, source.clean[index], index))
        found = _deviation(conditional, parts, alarms)
        if not found.decided:
            raise _too_heavy(index, copies * calls)
        layers.append(LayerAudit(index, _deviation(mean, parts[:1], alarms), found, not varies[index]))
    return Audit(tuple(layers), copies * calls, confidence)


def _from_the_start(source: Resampler, calls: int, copies: int) -> tuple[list[_Watches], list[bool]]:
    """The means of whole passes, and for each layer whether its state or memory ever varied."""
    watches = [_Watches.of(calls, seen.output) for seen in source.clean]
    varies = [False] * len(watches)
    for _ in range(calls):
        noisy, tiny = source.passes(copies)
        for index, (seen, clean) in enumerate(zip(noisy, source.clean, strict=True)):
            weak = None if tiny is None else tiny[index].output
            shape = (source.steps, copies, source.batch, -1)
            watches[index].add(clean.output, seen.output.reshape(shape), None if weak is None else weak.reshape(shape))
            for one, still in ((seen.state, clean.state), (seen.memory, clean.memory)):
                if one is not None and still is not None:
                    apart = (one - still.repeat(1, copies, 1)).abs().amax()
                    varies[index] |= bool(apart > _rounding(still))
    return watches, varies


def _step_by_step(source: Resampler, layer: int, calls: int, copies: int) -> _Watches:
    def laid_out(seen: Seen) -> Tensor:
        whole = torch.cat([part for _, part in _parts(source, seen, layer)], -1)
        rows: Tensor = whole.unflatten(0, (-1, source.steps, source.batch))
        return rows.transpose(0, 1)

    clean = laid_out(source.clean_step(layer))[:, 0]
    watches = _Watches.of(calls, clean)
    for _ in range(calls):
        noisy, tiny = source.one_step(layer, copies)
        watches.add(clean, laid_out(noisy), None if tiny is None else laid_out(tiny))
    return watches


class _Watches(NamedTuple):
    """Deviations as they are, and without the share that is linear in the noise.

    The response to the same noise made tiny, scaled up again, is linear in the noise, so its mean is zero; without it
    most of the variance is gone, and the bias stays. What is linear has no bias unless the noise has: the plain
    deviations tell.
    """

    plain: Watch
    curved: Watch

    @classmethod
    def of(cls, calls: int, like: Tensor) -> _Watches:
        return cls(Watch(calls, _rounding(like)), Watch(calls, _rounding(like)))

    def add(self, clean: Tensor, noisy: Tensor, tiny: Tensor | None) -> None:
        """Take a call: the clean values (steps, batch, units), the others with copies as their second dimension."""
        deviation = noisy.mean(1) - clean
        self.plain.add(deviation)
        self.curved.add(deviation if tiny is None else deviation - (tiny.mean(1) - clean) / TINY)


def _parts(source: Resampler, seen: Seen, layer: int) -> Iterator[tuple[str, Tensor]]:
    """What is tested of a step: the output, the state where another transform lies between, and the memory."""
    yield "output", seen.output
    if source.changes_output(layer):
        yield "state", seen.state
    if seen.memory is not None:
        yield "memory", seen.memory


def _deviation(watches: _Watches, parts: tuple[tuple[str, int], ...], alarms: dict[str, float]) -> Deviation:
    plain, curved = watches.plain.judge(**alarms), watches.curved.judge(**alarms)
    # What is seen without the linear share is seen more sharply; only biased noise is seen in the plain means alone.
    shown = plain if (plain.nonzero and not curved.nonzero) or curved.heavy else curved
    steps = tuple(step + 1 for step, found in enumerate((plain.steps | curved.steps).tolist()) if found)
    return Deviation(
        values=shown.values,
        half_width=shown.half_width,
        parts=parts,
        steps=steps,
        nonzero=plain.nonzero or curved.nonzero,
        decided=not (plain.heavy and curved.heavy),
    )


def _too_heavy(layer: int, samples: int) -> ArgumentError:
    return ArgumentError(
        where="audit.samples",
        got=f"{samples} samples of noise whose tails are too heavy for so few, in layer {layer}",
        wanted="means that are nearly normal",
        remedy=f"Give samples={16 * samples}, or audit with weaker noise.",
    )


def _rounding(tensor: Tensor) -> float:
    return ROUNDING * max(1.0, float(tensor.abs().amax()))


def _told(found: Deviation, what: str) -> str:
    worst = found.worst
    first = f" (from step {found.steps[0]} on)" if found.steps else ""
    if abs(worst.value) > worst.half_width:
        return (
            f"{what} {worst.part} unit {worst.unit} is off by {worst.value:.3g} +- {worst.half_width:.1g} at step "
            f"{worst.step} of sequence {worst.row}{first}"
        )
    return f"{what} its units is off together{first}, though none alone beyond {worst.half_width:.1g}"
