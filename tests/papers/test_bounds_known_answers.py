"""Known answers of the bounds on recurrent networks (Chen, Li & Zhao 2019), computed by other code than the library's.

Also lemmas that the paper prints and that are false, each with its counterexample.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from contracts.bounds import NET_A, about
from statewise.bounds.catalogue import BOUNDS, bound_named
from statewise.bounds.elman_constants import ElmanConstants
from statewise.bounds.grid import nats, weight
from statewise.bounds.kl import kl_inverse
from statewise.bounds.logs import log_geometric, log_geometric_derivative, log_of
from statewise.bounds.margins import margin_risk, margins, ramp, ramp_risk
from statewise.bounds.occam import margin_scale, occam_hoeffding, occam_kl
from statewise.bounds.pac_bayes import log_tolerance, zhang_order
from statewise.bounds.penalties import massart, sample_confidence
from statewise.bounds.profile import Block
from statewise.bounds.subject import Subject
from statewise.bounds.two_one import entry_sum, maurey_nats, tied_log_k, unrolled_log_k

M, GAMMA, DELTA = 10**6, 0.5, 0.05
GROWTHS = (0.5, 1.0, 1.5)
LOG_FAILURES = math.log(1 / DELTA)


def exactly(value: Any) -> Any:
    return pytest.approx(value, rel=1e-9)


def net_a(growth: float, **changes: Any) -> ElmanConstants:
    return replace(NET_A, norm_u=growth, **changes)


class TestSumsOfPowers:
    @pytest.mark.parametrize(
        ("beta", "steps", "value"), [(0.5, 5, 1.9375), (1.1, 10, 15.937424601), (1.0, 7, 7.0), (0.0, 7, 1.0)]
    )
    def test_geometric(self, beta: float, steps: int, value: float) -> None:
        assert math.exp(log_geometric(log_of(beta), steps)) == exactly(value)

    def test_near_1(self) -> None:
        found = math.exp(log_geometric(math.log1p(1e-13), 1000))
        assert found == pytest.approx(1000.00000005, rel=1e-10)

    def test_no_overflow(self) -> None:
        assert log_geometric(math.log(2), 5000) == exactly(3465.735902799727)
        assert log_geometric(math.log(1.5), 784) == exactly(318.5777919373608)
        assert log_geometric(math.log(3), 5000) == exactly(5492.368296160)

    @pytest.mark.parametrize(("beta", "steps", "value"), [(2.0, 4, 17), (1.0, 10, 45), (0.5, 3, 2), (0.7, 1, 0)])
    def test_derivative(self, beta: float, steps: int, value: float) -> None:
        assert math.exp(log_geometric_derivative(math.log(beta), steps)) == exactly(value)


class TestTheElmanClass:
    SMALL = ElmanConstants(inputs=1, hidden=4, classes=2, steps=3, norm_u=0.5, norm_w=3.0, norm_v=2.0, input_bound=1.0)

    def lipschitz(self, elman: ElmanConstants, form: str = "tight") -> list[float]:
        return [math.exp(block.log_lipschitz) for block in getattr(elman, form)().blocks]

    def test_constants(self) -> None:
        free = replace(self.SMALL, cap=math.inf)
        assert self.lipschitz(self.SMALL, "paper") == exactly([31.5, 5.25, 3.5])
        assert self.lipschitz(free) == exactly([12, 5.25, 3.5])
        assert self.lipschitz(self.SMALL) == exactly([6, 2, 3.5])
        assert np.exp(free.hidden_bounds()).tolist() == exactly([0, 3, 4.5, 5.25])
        assert np.exp(self.SMALL.hidden_bounds()).tolist() == exactly([0, 2, 2, 2])

    def test_one_step_does_not_use_u(self) -> None:
        assert self.lipschitz(replace(self.SMALL, steps=1))[0] == 0

    def test_u_of_0_forgets(self) -> None:
        """Nothing depends on the number of steps but the paper's constant of U."""
        for cap in (1.0, math.inf):
            still = replace(self.SMALL, norm_u=0.0, cap=cap)
            two, many = replace(still, steps=2), replace(still, steps=50)
            assert self.lipschitz(two) == exactly(self.lipschitz(many))
            assert two.tight().log_hidden == many.tight().log_hidden
            one = self.lipschitz(replace(still, steps=1))
            assert one == exactly([0.0, *self.lipschitz(many)[1:]])
            assert self.lipschitz(many, "paper")[0] == exactly(25 * self.lipschitz(two, "paper")[0])

    def test_net_a(self) -> None:
        assert self.lipschitz(NET_A) == exactly([34, 2, 20])
        assert self.lipschitz(net_a(1.5)) == exactly([248.2890625, 2, 226.66015625])


class TestParts:
    def test_covers_of_a_matrix(self) -> None:
        spectral = Block(name="A", rows=2, columns=3, bound=1.0, log_lipschitz=0.0)
        frobenius = replace(spectral, bound=spectral.radius)
        assert spectral.cover_nats(math.log(0.5)) == exactly(9.656627475)
        assert frobenius.cover_nats(math.log(0.5)) == exactly(11.373882228)

    @pytest.mark.parametrize(
        ("rate", "budget", "value"),
        [
            (0.0, 0.1, 0.09516258196),
            (0.05, 0.1, 0.2064014078),
            (0.05, 0.5, 0.5029724050),
            (0.3, 0.02, 0.3960877264),
            (0.0, 5.0, 0.9932620530),
        ],
    )
    def test_inverse_of_kl(self, rate: float, budget: float, value: float) -> None:
        assert kl_inverse(rate, budget) == exactly(value)

    def test_inverse_of_kl_rises_in_both(self) -> None:
        rates, budgets = np.linspace(0, 1, 11).tolist(), [0.0, 1e-6, 0.01, 0.3, 3.0, 40.0]
        table = np.array([[kl_inverse(rate, budget) for budget in budgets] for rate in rates])
        assert (np.diff(table, axis=0) >= -1e-15).all()
        assert (np.diff(table, axis=1) >= 0).all()
        assert table.max() <= 1

    def test_weights_of_the_grid(self) -> None:
        assert (weight(0), weight(5)) == exactly((1 / 3, 1 / 63))
        assert nats(5) == exactly(4.143134726)
        tail = 2 * (2 / 3) / 1001  # of both sides beyond 999, by telescoping
        assert sum(map(weight, range(-999, 1000))) + tail == exactly(1)

    def test_ramp(self) -> None:
        points = torch.tensor([-1.0, 0.0, 0.25, 1.0, 2.0])
        assert ramp(points, 1.0).tolist() == [1, 1, 0.75, 0, 0]

    def test_risks_rise_with_the_margin(self, generator: torch.Generator) -> None:
        drawn = torch.randn(500, generator=generator, dtype=torch.float64)
        levels = [0.01, 0.1, 0.5, 1.0, 2.0, 10.0]
        ramps, hards = ([each(drawn, level) for level in levels] for each in (ramp_risk, margin_risk))
        errors = float((drawn <= 0).double().mean())
        assert ramps == sorted(ramps)
        assert hards == sorted(hards)
        assert all(errors <= soft <= hard for soft, hard in zip(ramps, hards, strict=True))


class TestNetA:
    """dx 2, dh 4, dy 2, norms of W 1 and of V 2, 10 steps of tanh; a million sequences, margin 1/2, δ = 5 %."""

    @pytest.mark.parametrize(
        ("growth", "theorem", "dudley", "log_cover", "certificate"),
        [
            (0.5, 10.073608395, 0.308682603, 155.342467784, 1.583256652e-4),
            (1.0, 10.453467265, 0.349731902, 202.455220621, 2.054298493e-4),
            (1.5, 11.074458904, 0.394371202, 260.149209006, 2.631103217e-4),
        ],
    )
    def test_theorem_2_dudley_and_the_certificate(
        self, growth: float, theorem: float, dudley: float, log_cover: float, certificate: float
    ) -> None:
        subject = about(net_a(growth))
        found = {name: bound_named(name).penalty(subject, gamma=GAMMA, m=M) for name in ("thm2", "dudley", "kl_occam")}
        assert found["thm2"].value == exactly(theorem)
        assert found["dudley"].value == pytest.approx(dudley, abs=5.1e-10)
        assert found["kl_occam"].nats == exactly(log_cover)
        value = bound_named("kl_occam").value(subject, gamma=GAMMA, risk=0.0, m=M, delta=DELTA)
        assert value == exactly(certificate)

    def test_other_forms(self) -> None:
        log_cover = NET_A.tight().cover_nats(margin_scale(GAMMA))
        given: dict[str, Any] = {"m": M, "log_failures": LOG_FAILURES}
        assert sample_confidence(M, LOG_FAILURES) == exactly(0.004074304547)
        assert occam_kl(0.02, log_cover, **given) == pytest.approx(0.022970576, abs=5.1e-10)
        assert occam_hoeffding(0.02, log_cover, **given) == pytest.approx(0.030135358, abs=5.1e-10)

    def test_massart(self) -> None:
        found = [massart(net_a(growth).tight(), gamma=GAMMA, m=M).value for growth in GROWTHS]
        assert found == pytest.approx([0.0552, 0.0586, 0.0626], rel=1e-3)

    def test_pac_bayes(self) -> None:
        found = [
            bound_named("pac_bayes").penalty(about(net_a(growth)), gamma=GAMMA, m=M, delta=DELTA).value
            for growth in GROWTHS
        ]
        assert found == exactly([4.303278746, 17.274343001, 147.117065694])
        sizes = [math.exp(log_tolerance(net_a(growth), GAMMA)) for growth in GROWTHS]
        assert sizes == pytest.approx([0.0089596842, 0.0022319649, 2.620750271e-4], rel=2e-8)

    def test_zhang(self) -> None:
        stand_in = bound_named("zhang").penalty(about(net_a(1.5)), gamma=GAMMA, m=M, delta=DELTA)
        assert stand_in.value == pytest.approx(439.464587, abs=5.1e-7)
        assert math.exp(zhang_order(net_a(1.5), gamma=GAMMA, m=M).log_value) == pytest.approx(130.481089, abs=5.1e-7)

    def test_bound_3(self) -> None:
        entries = {"U": 4.0, "V": 4.0, "W": 3.0}
        both = [
            (
                tied_log_k(net_a(growth).tight(), entries, gamma=GAMMA),
                unrolled_log_k(net_a(growth), cell_rows=4.0, head_rows=4.0, gamma=GAMMA),
            )
            for growth in GROWTHS
        ]
        assert [one for one, _ in both] == exactly([6.737499575, 8.043743651, 10.101856456])
        assert [other for _, other in both] == exactly([6.328516637, 8.031084334, 10.071763587])
        for growth in GROWTHS:
            for name in ("thm3_l1", "bartlett_unrolled"):
                penalty = bound_named(name).penalty(about(net_a(growth)), gamma=GAMMA, m=M)
                assert penalty.value > 2, "above twice the range, to which a value clips it"
                assert bound_named(name).value(about(net_a(growth)), gamma=GAMMA, risk=0.0, m=M) == 1

    def test_growth_near_1(self) -> None:
        found = [net_a(1 + each).tight().cover_nats(margin_scale(GAMMA)) for each in (-1e-9, 1e-9)]
        assert found == pytest.approx([202.455220508, 202.455220733], abs=2e-9)

    def test_overflow(self) -> None:
        found = bound_named("thm2").penalty(about(net_a(3.0, steps=5000)), gamma=GAMMA, m=M)
        assert found.value == exactly(161.39754662)

    def test_scaling_head_and_margin(self) -> None:
        """The repaired Theorem 2 changes with the scale, since its integral ends at 1/(mγ)."""
        scaled = about(replace(NET_A, norm_v=6.0), scale=3.0)
        found = bound_named("thm2").penalty(scaled, gamma=1.5, m=M).value
        assert found == pytest.approx(10.6985, abs=5.1e-5)


class TestHowTheyScale:
    """dx = dh = 64, dy = 10, other norms 1: the exponents of the number of steps."""

    NET = ElmanConstants(inputs=64, hidden=64, classes=10, steps=2, norm_u=1.0, norm_w=1.0, norm_v=1.0, input_bound=1.0)

    def log_penalty(self, name: str, **changes: Any) -> float:
        return bound_named(name).log_penalty(about(replace(self.NET, **changes)), gamma=1.0, m=M)

    @pytest.mark.parametrize(
        ("growth", "cap", "slope"), [(0.9, 1.0, 0.017), (1.0, 1.0, 0.028), (1.0, math.inf, 1.028), (1.5, 1.0, 0.487)]
    )
    def test_slopes_of_theorem_2(self, growth: float, cap: float, slope: float) -> None:
        one, other = (self.log_penalty("thm2", norm_u=growth, cap=cap, steps=steps) for steps in (1000, 10000))
        assert (other - one) / math.log(10) == pytest.approx(slope, abs=5.1e-4)

    def test_linear_until_states_are_as_long_as_they_can_be(self) -> None:
        found = [math.exp(self.log_penalty("thm2", steps=steps)) for steps in (2, 4, 8, 16)]
        assert found == pytest.approx([40.9992, 84.7059, 174.6591, 179.7532], abs=5.1e-5)

    @pytest.mark.parametrize("name", ["thm3_l1", "bartlett_unrolled", "pac_bayes"])
    def test_bounds_3_and_4_grow_with_every_step(self, name: str) -> None:
        one, other = (self.log_penalty(name, norm_u=1.5, steps=steps) for steps in (150, 160))
        assert (other - one) / 10 == pytest.approx(math.log(1.5), abs=1e-6)


class Row(NamedTuple):
    """A network of the table, and what is printed of it: digits, or a power of ten."""

    sizes: tuple[int, int, int, int]
    sample: tuple[int, float, float]
    growth: float
    theorem: float
    dudley: float
    tied: str
    unrolled: str
    pac_bayes: str
    zhang: str
    nats: float
    kl: tuple[float, float]


TOY, ROWS, WIDE = (1, 4, 2, 20), (28, 16, 10, 28), (28, 128, 10, 28)
PIXELS, SPEECH = (1, 128, 10, 784), (40, 256, 12, 100)
TOY_DATA, ROW_DATA = (10**5, 0.5, 1.0), (60_000, 1.0, math.sqrt(28))
PIXEL_DATA, SPEECH_DATA = (60_000, 1.0, 1.0), (85_000, 1.0, math.sqrt(40))
#: "How vacuous": penalties at δ = 0.05 of Gaussian-shaped matrices, and certificates at margin risks 0 and 0.05.
VACUOUS = [
    Row(TOY, TOY_DATA, 0.9, 61.3, 1.08, "323", "460", "156", "107", 6.9, (0.0020, 0.0649)),
    Row(TOY, TOY_DATA, 1.0, 62.4, 1.13, "720", "1.1e3", "346", "107", 7.6, (0.0021, 0.0656)),
    Row(TOY, TOY_DATA, 1.5, 70.2, 1.39, "2.3e5", "2.4e5", "9.6e4", "3.6e5", 11.7, (0.0033, 0.0698)),
    Row(ROWS, ROW_DATA, 0.9, 348, 8.17, "1.9e4", "9.7e3", "1.2e3", "847", 7.7, (0.106, 0.218)),
    # 3.2e4 is printed for the bound of Bartlett et al., but all its neighbours agree with the formula.
    Row(ROWS, ROW_DATA, 1.0, 355, 8.62, "5.6e4", "3.1e4", "3.5e3", "847", 8.7, (0.117, 0.231)),
    Row(ROWS, ROW_DATA, 1.5, 412, 11.5, "10^8.5", "10^8.0", "10^7.3", "10^7.9", 15.8, (0.203, 0.322)),
    Row(WIDE, ROW_DATA, 0.9, 4.95e3, 41.2, "3.1e5", "1.0e5", "7.7e3", "4.2e3", 8.0, (0.941, 0.959)),
    Row(WIDE, ROW_DATA, 1.5, 5.84e3, 59.9, "10^9.8", "10^9.0", "10^8.1", "10^8.6", 17.3, (0.998, 0.999)),
    Row(PIXELS, PIXEL_DATA, 1.0, 5.03e3, 45.3, "10^7.2", "10^7.4", "3.2e5", "10^6.5", 11.7, (0.969, 0.979)),
    Row(PIXELS, PIXEL_DATA, 1.5, 1.65e4, 227, "10^142.4", "10^141.7", "10^140.7", "10^144.5", 300.9, (1, 1)),
    Row(SPEECH, SPEECH_DATA, 1.0, 1.23e4, 76.3, "10^7.0", "10^6.7", "1.6e5", "8.7e4", 10.6, (1, 1)),
]


def gaussian_shaped(elman: ElmanConstants) -> Subject:
    """What Gaussian matrices of such norms have on average: entries of deviation ``B / (√rows + √columns)``."""
    norms = {"U": elman.norm_u, "V": elman.norm_v, "W": elman.norm_w}
    deviation = {name: norms[name] / sum(map(math.sqrt, shape)) for name, shape in elman.shapes.items()}
    sizes = {name: math.prod(shape) for name, shape in elman.shapes.items()}
    row = math.sqrt(elman.hidden * deviation["U"] ** 2 + elman.inputs * deviation["W"] ** 2)
    return Subject.of_elman(
        elman,
        entry_sums={name: size * deviation[name] * math.sqrt(2 / math.pi) for name, size in sizes.items()},
        cell_rows=elman.hidden * row,
        head_rows=elman.classes * math.sqrt(elman.hidden) * deviation["V"],
        squared_norm=math.fsum(size * deviation[name] ** 2 for name, size in sizes.items()),
    )


def shown(log_value: float, like: str) -> str:
    """A value with as many digits as another is printed with."""
    if like.startswith("10^"):
        return f"10^{log_value / math.log(10):.1f}"
    value = math.exp(log_value)
    return f"{value:.1e}".replace("e+0", "e") if "e" in like else f"{value:.0f}"


class TestHowVacuous:
    @pytest.mark.parametrize("row", VACUOUS, ids=lambda row: f"{row.sizes} {row.growth}")
    def test_a_row(self, row: Row) -> None:
        (inputs, hidden, classes, steps), (m, gamma, input_bound) = row.sizes, row.sample
        head, cell = (4.0, 2.0) if row.sizes == TOY else (3.0, 3.0)
        elman = ElmanConstants(
            inputs=inputs,
            hidden=hidden,
            classes=classes,
            steps=steps,
            norm_u=row.growth,
            norm_w=cell,
            norm_v=head,
            input_bound=input_bound,
        )
        subject = gaussian_shaped(elman)
        found = {
            name: bound.log_penalty(subject, gamma=gamma, m=m, delta=DELTA)
            for name, bound in BOUNDS.items()
            if not bound.missing(subject)
        }
        assert f"{math.exp(found['thm2']):.3g}" == f"{row.theorem:.3g}"
        assert f"{math.exp(found['dudley']):.3g}" == f"{row.dudley:.3g}"
        names = {"thm3_l1": "tied", "bartlett_unrolled": "unrolled", "pac_bayes": "pac_bayes", "zhang_order": "zhang"}
        for name, column in names.items():
            assert shown(found[name], getattr(row, column)) == getattr(row, column), name
        certificate = bound_named("kl_occam")
        penalty = certificate.penalty(subject, gamma=gamma, m=m)
        assert penalty.nats / elman.parameters == pytest.approx(row.nats, abs=0.051)
        values = [certificate.value(subject, gamma=gamma, risk=risk, m=m, delta=DELTA) for risk in (0.0, 0.05)]
        assert values == pytest.approx(row.kl, abs=5.1e-4)

    def test_every_printed_form_is_vacuous_and_the_certificate_is_not(self) -> None:
        assert min(row.theorem for row in VACUOUS) > 60
        assert min(row.kl[0] for row in VACUOUS) < 0.01


class TestPrintedAndFalse:
    def test_lemma_10_covers_too_few(self) -> None:
        """``{‖A‖_{2,1} <= λ}`` holds the ball of one column: at λ/2 in R^100 volumes need 100 ln 2 nats."""
        rows, radius, distance = 100, 1.0, 0.5
        needed = rows * math.log(radius / distance)
        printed = (radius / distance) ** 2 * math.log(2 * rows * 1)
        assert needed == pytest.approx(69.3, abs=0.05)
        assert printed == pytest.approx(21.2, abs=0.05)
        assert maurey_nats(entry_sum(radius, rows), distance, rows) > needed > printed

    def test_margins_are_less_steep_than_printed(self, generator: torch.Generator) -> None:
        """√2, not 2: two logits move by one each where their vector moves by √2; random pairs come near, none above."""
        one, other = (torch.randn(100_000, 3, generator=generator, dtype=torch.float64) for _ in range(2))
        labels = torch.randint(3, (100_000,), generator=generator)
        moved = (margins(one, labels) - margins(other, labels)).abs()
        steepness = float((moved / (one - other).norm(dim=1)).max())
        assert 1.41 < steepness <= math.sqrt(2) * (1 + 1e-12)
        ends = torch.tensor([[1.0, 0.0, -9.0], [0.0, 1.0, -9.0]], dtype=torch.float64)
        first, second = margins(ends, torch.tensor([0, 0])).tolist()
        assert (first - second) / math.sqrt(2) == pytest.approx(math.sqrt(2))

    def test_the_printed_rate_of_bound_3_is_impossible(self) -> None:
        """A penalty of order 1/m, as the proof of bound (3) ends with, is below what one free sign must cost.

        Two functions ±1 have a complexity of ``E|mean of m signs|``, about ``√(2/(πm))``.
        """
        m = 10**6
        complexity = math.sqrt(2 / (math.pi * m))
        assert 432 / m < 2 * complexity < 432 / math.sqrt(m)
