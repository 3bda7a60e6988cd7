"""How bounds on Elman networks grow with the number of steps, below, at and above a growth of 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from statewise.bounds.catalogue import bound_named
from statewise.bounds.elman_constants import ElmanConstants
from statewise.errors import ArgumentError
from statewise.recipes.bounds_subjects import CAPS, TITLES, gaussian_shaped
from statewise.recipes.lines import Line, Sheet, group
from statewise.recipes.published_bounds import NATS_PER_STEP, PENALTIES, SLOPES
from statewise.recipes.request import Request
from statewise.recipes.studies import Computed, Studied, Study, StudyCase, verdicts

BETAS = ("0.9", "1", "1.5")
EARLY = tuple(PENALTIES)  # where the penalty itself is told
_PER_STEP = ("thm3_l1", "bartlett_unrolled", "pac_bayes")


@dataclass(frozen=True, kw_only=True)
class ScalingSettings:
    """A class of Elman networks whose other norms are 1.

    Args:
        beta: β, the largest norm of U.
        activation: "tanh", or "identity", which does not end the growth of states.
        inputs: dx.
        hidden: dh.
        classes: dy.
        sequences: m.
        gamma: γ.
        longest: how many steps to go to.
        seed: of nothing; all is computed.
    """

    beta: float = 1.0
    activation: str = "tanh"
    inputs: int = 64
    hidden: int = 64
    classes: int = 10
    sequences: int = 10**6
    gamma: float = 1.0
    longest: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.activation not in CAPS:
            wanted = f"one of {', '.join(CAPS)}"
            raise ArgumentError(where="ScalingSettings.activation", got=self.activation, wanted=wanted)
        if self.longest < 20:
            raise ArgumentError(where="ScalingSettings.longest", got=self.longest, wanted="at least 20 steps")
        self.constants(1)  # a slip is told before anything is made

    def constants(self, steps: int) -> ElmanConstants:
        """The class for so many steps.

        Args:
            steps: t.
        """
        return ElmanConstants(
            inputs=self.inputs,
            hidden=self.hidden,
            classes=self.classes,
            steps=steps,
            norm_u=self.beta,
            norm_w=1.0,
            norm_v=1.0,
            input_bound=1.0,
            cap=CAPS[self.activation],
        )

    def log_penalty(self, bound: str, steps: int) -> float:
        """The logarithm of what a bound adds after so many steps; not clipped.

        Args:
            bound: its name.
            steps: t.

        >>> round(math.exp(ScalingSettings().log_penalty("thm2", 4)), 4)
        84.7059
        """
        subject = gaussian_shaped(self.constants(steps))
        return bound_named(bound).log_penalty(subject, gamma=self.gamma, m=self.sequences)

    @property
    def looks(self) -> list[int]:
        """The numbers of steps that are looked at: four a decade, and those of the table."""
        decades = {round(10 ** (place / 4)) for place in range(4 * math.ceil(math.log10(self.longest)) + 1)}
        return sorted({steps for steps in decades | set(EARLY) if steps <= self.longest} | self.ends)

    @property
    def ends(self) -> set[int]:
        """Between which the slope is told: the last decade."""
        return {max(1, self.longest // 10), self.longest}


class Scaling(Study):
    """The growth of all bounds with t, for three β, with bounded and unbounded states."""

    name = "generalization-bounds/scaling"
    title = "How bounds grow with the number of steps"
    rows = BETAS
    usual_rows = BETAS
    sizes = tuple(CAPS)
    seconds = 2.0

    def complete(self, request: Request) -> Request:
        return super().complete(replace(request, sizes=request.sizes or self.sizes))

    def settings(self, line: Line, *, smoke: bool) -> ScalingSettings:
        return ScalingSettings(beta=float(line.row), activation=line.size, longest=100 if smoke else 10_000)

    def compute(self, case: StudyCase, data: Any) -> Computed:
        return Computed(found=growth(case.settings))

    def sheet(self, measured: Sequence[Studied], request: Request) -> Sheet:
        columns = ["β", "activation", "whose", "slope of Theorem 2", "of kl", *(f"Theorem 2, t = {t}" for t in EARLY)]
        columns += [f"nats a step of {TITLES[name]}" for name in _PER_STEP] + ["runs", "seconds"]
        rows = []
        for line, runs in group(measured).items():
            rows += [_ours(line, runs[0]), _reference(line, smoke=request.smoke)]
        return Sheet(columns, rows, 3)

    def notes(self, measured: Sequence[Studied]) -> list[str]:
        return [
            "dx = dh = 64, dy = 10, all norms but β and the inputs' length are 1, m = 10^6, γ = 1. Slopes are those of "
            "ln(penalty) against ln t over the last decade, from 1,000 to 10,000 steps; nats a step are those that the "
            "last step adds. The certificate kl is told by its nats over m. Nothing is clipped at 1. The paper prints "
            "orders only: the reference is an earlier implementation of the same formulas.",
            *verdicts(claims(measured)),
        ]


def growth(settings: ScalingSettings) -> dict[str, Any]:
    """The numbers of a class: slopes, penalties, and the curves of the picture.

    Args:
        settings: the class.
    """
    looks, ends = settings.looks, sorted(settings.ends)
    curves = {name: [settings.log_penalty(name, steps) for steps in looks] for name in TITLES}
    at = {name: dict(zip(looks, curve, strict=True)) for name, curve in curves.items()}
    width = math.log(ends[1] / ends[0])
    return {
        **{f"slope_{name}": (at[name][ends[1]] - at[name][ends[0]]) / width for name in TITLES},
        **{f"penalty_{steps}": math.exp(at["thm2"][steps]) for steps in EARLY},
        **{
            f"per_step_{name}": at[name][settings.longest] - settings.log_penalty(name, settings.longest - 1)
            for name in _PER_STEP
        },
        "steps": looks,
        "log_penalties": curves,
    }


def claims(measured: Sequence[Studied]) -> list[tuple[str, bool]]:
    """What is known of the growth, and whether it is so; only of what was made, and not of a smoke run.

    Args:
        measured: finished cases.
    """
    found = {(one.line.size, one.line.row): one.found for one in measured if not one.smoke}
    answers = []
    for key, slope in SLOPES.items():
        if key in found:
            ours = found[key]["slope_thm2"]
            text = f"β = {key[1]}, {key[0]}: the slope of Theorem 2 is {slope} (ours {ours:.4f})"
            answers.append((text, abs(ours - slope) <= 0.0005 + 1e-9))
    if (one := found.get(("tanh", "1"))) is not None:
        close = all(abs(one[f"penalty_{steps}"] / known - 1) < 1e-5 for steps, known in PENALTIES.items())
        answers.append(
            ("β = 1, tanh: Theorem 2 is linear in t until states have the length √64 (four penalties)", close)
        )
    if (one := found.get(("tanh", "1.5"))) is not None:
        close = all(abs(one[f"per_step_{name}"] - NATS_PER_STEP) < 1e-6 for name in _PER_STEP)
        answers.append(("β = 1.5, tanh: (3a), (3b) and (4) grow by ln 1.5 = 0.405465 nats a step", close))
    return answers


def _ours(line: Line, run: Studied) -> list[str]:
    found = run.found
    slope = found["slope_thm2"]
    told = [f"{slope:.3f}" if slope < 10 else "exponential", f"{found['slope_kl_occam']:.3f}"]
    told += [f"{found[f'penalty_{steps}']:.4f}" for steps in EARLY]
    told += [f"{found[f'per_step_{name}']:.6f}" for name in _PER_STEP]
    return [line.row, line.size, "ours", *told, "1", f"{run.seconds:.1f}"]


def _reference(line: Line, *, smoke: bool) -> list[str]:
    slope = SLOPES.get((line.size, line.row))
    first = ["-" if slope is None else f"{slope:.3f}", "-"]
    known = PENALTIES if (line.size, line.row) == ("tanh", "1") else {}
    early = [f"{known[steps]:.4f}" if steps in known else "-" for steps in EARLY]
    grows = f"{NATS_PER_STEP:.6f}" if (line.size, line.row) == ("tanh", "1.5") else "-"
    whose = "reference (not comparable)" if smoke else "reference"
    return [line.row, line.size, whose, *first, *early, *[grows] * len(_PER_STEP), "-", "-"]


RECIPES = (Scaling(),)
