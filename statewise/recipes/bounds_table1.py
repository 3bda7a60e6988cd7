"""Table 1 of Chen, Li & Zhao 2019, measured: with which powers of t and d the repaired bounds grow."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from statewise.bounds.elman_constants import ElmanConstants
from statewise.bounds.pac_bayes import pac_bayes
from statewise.bounds.penalties import theorem_2
from statewise.bounds.two_one import entry_sum, tied, unrolled
from statewise.errors import ArgumentError
from statewise.recipes.bounds_subjects import CAPS
from statewise.recipes.lines import Line, Sheet
from statewise.recipes.published_bounds import TABLE1, Growth
from statewise.recipes.request import Request
from statewise.recipes.studies import Computed, Studied, Study, StudyCase, verdicts

#: β of the three ranges.
RANGES: Mapping[str, float] = {"below": 0.9, "equal": 1.0, "above": 1.5}
SIGNS = {"below": "β < 1", "equal": "β = 1", "above": "β > 1"}
GAMMA, SEQUENCES, NORM = 1.0, 10**6, 1.0
_FAILURES = math.log(20)


@dataclass(frozen=True, kw_only=True)
class Table1Settings:
    """Classes of Elman networks with equal sizes and norms of 1.

    Args:
        beta: β.
        units: dx, dh and dy where powers of t are measured.
        longest: t where powers of d are measured; those of t are measured over the decade before.
        widest: dx, dh and dy up to which powers of d are measured.
        seed: of nothing; all is computed.
    """

    beta: float = 1.0
    units: int = 64
    longest: int = 10_000
    widest: int = 4096
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("units", 2), ("longest", 20), ("widest", 32)):
            if getattr(self, name) < least:
                got = getattr(self, name)
                raise ArgumentError(where=f"Table1Settings.{name}", got=got, wanted=f"at least {least}")

    def constants(self, steps: int, units: int, activation: str) -> ElmanConstants:
        """The class of a size.

        Args:
            steps: t.
            units: dx, dh and dy.
            activation: "tanh" or "identity".
        """
        return ElmanConstants(
            inputs=units,
            hidden=units,
            classes=units,
            steps=steps,
            norm_u=self.beta,
            norm_w=NORM,
            norm_v=NORM,
            input_bound=NORM,
            cap=CAPS[activation],
        )


def _theorem_2(net: ElmanConstants, norm: float) -> float:
    return theorem_2(net.paper(), gamma=GAMMA, m=SEQUENCES, log_product=net.log_printed_product()).log_value


def _tied(net: ElmanConstants, norm: float, *, paper: bool) -> float:
    sums = {name: entry_sum(norm, rows) for name, (rows, _) in net.shapes.items()}
    return tied(net.paper() if paper else net.tight(), sums, gamma=GAMMA, m=SEQUENCES).log_value


def _unrolled(net: ElmanConstants, norm: float) -> float:
    return unrolled(net, cell_rows=2 * norm, head_rows=norm, gamma=GAMMA, m=SEQUENCES).log_value


def _pac_bayes(net: ElmanConstants, norm: float) -> float:
    return pac_bayes(net, 3 * norm**2, gamma=GAMMA, m=SEQUENCES, log_failures=_FAILURES).log_value


class Measured(NamedTuple):
    """A bound that is measured: what it is called, to which column of Table 1 it belongs, and its logarithm.

    The last is for matrices whose ``‖A‖_{2,1}``, or of (4) ``‖A‖_F``, is the second argument.
    """

    title: str
    column: str
    log_penalty: Callable[[ElmanConstants, float], float]


BOUNDS: Mapping[str, Measured] = {
    "thm2": Measured("Theorem 2", "thm2", _theorem_2),
    "tied_paper": Measured("(3a), the paper's constants", "bound3", partial(_tied, paper=True)),
    "tied": Measured("(3a)", "bound3", partial(_tied, paper=False)),
    "unrolled": Measured("(3b), unrolled", "bound3", _unrolled),
    "pac_bayes": Measured("(4)", "bound4", _pac_bayes),
}


class Table1(Study):
    """For each range of β and each bound the powers of t and d and the nats a step, beside the printed order."""

    name = "generalization-bounds/table1"
    title = "Orders of the bounds, printed and measured (Table 1)"
    rows = tuple(RANGES)
    usual_rows = rows
    sizes = ("elman",)
    seconds = 3.0

    def settings(self, line: Line, *, smoke: bool) -> Table1Settings:
        usual = Table1Settings(longest=100, widest=128) if smoke else Table1Settings()
        return replace(usual, beta=RANGES[line.row])

    def compute(self, case: StudyCase, data: Any) -> Computed:
        settings = case.settings
        return Computed(found={**crossings(settings), **{name: powers(settings, name) for name in BOUNDS}})

    def sheet(self, measured: Sequence[Studied], request: Request) -> Sheet:
        columns = ["range", "bound", "printed order", "t printed", "t (identity)", "t (tanh)"]
        columns += ["nats a step printed", "(identity)", "(tanh)", "d printed", "d (identity)", "d (tanh)"]
        rows = [_row(one, name) for one in measured for name in BOUNDS]
        return Sheet(columns, rows, 3)

    def notes(self, measured: Sequence[Studied]) -> list[str]:
        return [
            "Printed: the powers of t and d, and the growth ln β a step, of the orders of Table 1, all divided by √m "
            "γ. Measured: slopes of ln(penalty) of the bounds as they hold, with all logarithms; of t over the last "
            "decade up to 10,000 steps, after the nats a step, if it grows exponentially; of d over the last octave of "
            "dx = dh = dy, where t is so long that states have their greatest length. β is 0.9, 1 and 1.5, other norms "
            "1; of (3) ‖A‖_{2,1} and of (4) ‖A‖_F are fixed, so that d is what the size itself adds. With the identity "
            "nothing ends the growth of states; tanh ends it at √d, which Table 1 uses for Theorem 2 at β > 1, and for "
            "(4) from β = 1 on.",
            *verdicts(claims(measured)),
        ]


def powers(settings: Table1Settings, bound: str) -> dict[str, float]:
    """How a bound grows.

    Args:
        settings: which classes.
        bound: its name.
    """
    log_penalty = BOUNDS[bound].log_penalty
    found = {}
    for activation in CAPS:
        last, first = settings.longest, settings.longest // 10
        at = {t: log_penalty(settings.constants(t, settings.units, activation), NORM) for t in (first, last - 1, last)}
        grows = at[last] - at[last - 1]
        # A power of t adds its share of 1/t; an exponential adds the same with every step.
        nats = math.log(settings.beta) if settings.beta > 1 and grows > 0.9 * math.log(settings.beta) else 0.0
        found[f"nats_{activation}"] = grows if nats else 0.0
        found[f"t_{activation}"] = (at[last] - at[first] - nats * (last - first)) / math.log(last / first)
        narrow, wide = (
            log_penalty(settings.constants(last, units, activation), NORM)
            for units in (settings.widest // 2, settings.widest)
        )
        found[f"d_{activation}"] = (wide - narrow) / math.log(2)
    return found


def crossings(settings: Table1Settings) -> dict[str, Any]:
    """Below which ΣM bound (3a) is smaller than Theorem 2, and with which powers of d and t that number grows.

    The printed condition is ``t ΣM < d``: powers 1 and -1. The repaired one is ``√d t ΣM < d``: powers 1/2 and -1.

    Args:
        settings: which classes; the paper's Lipschitz constants are used for both bounds.
    """
    steps, units = settings.longest, settings.widest
    at = _crossing(settings.constants(steps, units, "identity"))
    narrow = _crossing(settings.constants(steps, units // 2, "identity"))
    brief = _crossing(settings.constants(steps // 2, units, "identity"))
    return {
        "crossing": math.exp(at),
        "crossing_d": (at - narrow) / math.log(2),
        "crossing_t": (at - brief) / math.log(2),
    }


def _crossing(net: ElmanConstants) -> float:
    """The logarithm of the sum of the three ``‖A‖_{2,1}`` at which both bounds are equal."""
    wanted, (low, high) = _theorem_2(net, NORM), (-80.0, 80.0)
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if _tied(net, math.exp(middle), paper=True) < wanted else (low, middle)
    return math.log(3) + low


def claims(measured: Sequence[Studied]) -> list[tuple[str, bool]]:
    """What the table claims, in numbers, and whether it is so; only of what was made, and not of a smoke run.

    Args:
        measured: finished cases.
    """
    found = {one.line.row: one.found for one in measured if not one.smoke}
    answers = []
    for row, numbers in found.items():
        answers += [_as_printed(row, name, numbers[name]) for name in ("thm2", "tied_paper", "pac_bayes")]
        power = numbers["tied_paper"]["d_tanh"]
        text = f"{SIGNS[row]}: what holds of (3) has √d more than printed (power of d {power:.3f}, logarithms included)"
        answers.append((text, abs(power - 0.5) < 0.1))
    if "equal" in found:
        power = found["equal"]["thm2"]["t_tanh"]
        text = (
            f"β = 1: with tanh, Theorem 2 no longer grows like t once states have their greatest length ({power:.3f})"
        )
        answers.append((text, power < 0.1))
    for row in ("below", "equal"):
        if row in found:
            power, steps = found[row]["crossing_d"], found[row]["crossing_t"]
            text = (
                f"{SIGNS[row]}: (3) is below Theorem 2 if ΣM < c √d / t, the repaired condition √d t ΣM < d; powers "
                f"of d and t of the crossing: {power:.2f} and {steps:.2f}, not 1 and -1 as printed"
            )
            answers.append((text, abs(power - 0.5) < 0.1 and abs(steps + 1) < 0.1))
    return answers


def _as_printed(row: str, name: str, numbers: Mapping[str, float]) -> tuple[str, bool]:
    # The order of Theorem 2 at β = 1 lets states grow with t; all others are those of bounded states, or need no bound.
    activation = "identity" if (row, name) == ("equal", "thm2") else "tanh"
    printed, ours = TABLE1[row][BOUNDS[name].column], numbers[f"t_{activation}"]
    nats, wanted = numbers[f"nats_{activation}"], math.log(RANGES[row]) if printed.grows else 0.0
    grown = f" and {nats:.4f} nats a step" if printed.grows else ""
    text = f"{SIGNS[row]}, {activation}: {BOUNDS[name].title} grows with t as printed, {printed.printed}"
    return f"{text} (power {ours:.3f}{grown})", abs(ours - printed.steps) < 0.1 and abs(nats - wanted) < 1e-3


def _row(one: Studied, name: str) -> list[str]:
    bound, found = BOUNDS[name], one.found[name]
    printed = TABLE1[one.line.row][bound.column]
    return [
        *(SIGNS[one.line.row], bound.title, printed.printed, f"{printed.steps:g}"),
        *(_power(found["t_identity"]), _power(found["t_tanh"]), _printed_nats(printed, one.line.row)),
        *(f"{found['nats_identity']:.4f}", f"{found['nats_tanh']:.4f}"),
        *(f"{printed.dimension:g}", _power(found["d_identity"]), _power(found["d_tanh"])),
    ]


def _power(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}"  # no negative zero


def _printed_nats(printed: Growth, row: str) -> str:
    return f"{math.log(RANGES[row]):.4f}" if printed.grows else "0"


RECIPES = (Table1(),)
