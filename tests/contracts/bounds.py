"""What every bound of the catalogue must do."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import pytest

from statewise.bounds.catalogue import bound_named
from statewise.bounds.elman_constants import ElmanConstants
from statewise.bounds.family import Bound
from statewise.bounds.subject import Subject
from statewise.errors import ArgumentError, AssumptionError

#: Net A of the known answers.
NET_A = ElmanConstants(inputs=2, hidden=4, classes=2, steps=10, norm_u=1.0, norm_w=1.0, norm_v=2.0, input_bound=1.0)
ROUNDING = 1e-12


def about(elman: ElmanConstants, *, scale: float = 1.0, **changes: Any) -> Subject:
    """A subject of Elman networks with all that any bound needs; ``scale`` is that of V."""
    norms = {"U": elman.norm_u, "V": elman.norm_v, "W": elman.norm_w}
    given: dict[str, Any] = {
        "entry_sums": {"U": 4.0, "V": 4.0 * scale, "W": 3.0},
        "cell_rows": 4.0,
        "head_rows": 4.0 * scale,
        "squared_norm": 6.0,
        "singular_values": {name: [norms[name]] * min(shape) for name, shape in elman.shapes.items()},
    }
    return Subject.of_elman(elman, **(given | changes))


def changed(**changes: Any) -> ElmanConstants:
    """Net A with other constants, by name."""
    return replace(NET_A, **changes)


class BoundContract:
    """Inherit, and name the bound."""

    name: ClassVar[str]
    scale_free: ClassVar[bool]  # whether V and the margin may be scaled together

    @property
    def bound(self) -> Bound:
        return bound_named(self.name)

    def log_penalty(self, elman: ElmanConstants = NET_A, *, gamma: float = 0.5, m: int = 10**6) -> float:
        return self.bound.log_penalty(about(elman), gamma=gamma, m=m)

    def assert_rising(self, values: list[float]) -> None:
        assert all(math.isfinite(value) for value in values)
        assert all(one <= other + ROUNDING * abs(one) for one, other in pairwise(values)), values
        assert len(set(values)) > 1, "the bound does not depend on it"

    def test_it_says_what_it_is(self) -> None:
        assert self.bound.name == self.name
        assert self.bound.title
        assert self.bound.guarantee is (self.bound.tag in {"repaired", "new"})

    @pytest.mark.parametrize("growth", [0.5, 1.0, 1.5])
    def test_more_steps_never_help(self, growth: float) -> None:
        lengths = [1, 2, 3, 5, 10, 40, 200]
        self.assert_rising([self.log_penalty(replace(NET_A, norm_u=growth, steps=each)) for each in lengths])

    @pytest.mark.parametrize("constant", ["norm_u", "norm_v", "norm_w"])
    def test_larger_matrices_never_help(self, constant: str) -> None:
        nets = [changed(**{constant: each}) for each in (0.3, 0.9, 1.0, 1.1, 2.0, 7.0)]
        self.assert_rising([self.log_penalty(net) for net in nets])

    def test_longer_inputs_never_help(self) -> None:
        self.assert_rising([self.log_penalty(replace(NET_A, input_bound=each)) for each in (0.1, 1.0, 3.0)])

    @pytest.mark.parametrize("size", ["inputs", "hidden", "classes"])
    def test_more_parameters_never_help(self, size: str) -> None:
        self.assert_rising([self.log_penalty(changed(**{size: each})) for each in (2, 3, 5, 9, 40)])

    def test_a_smaller_margin_never_helps(self) -> None:
        self.assert_rising([self.log_penalty(gamma=each) for each in (5.0, 1.0, 0.5, 0.1, 0.001)])

    def test_more_sequences_never_hurt(self) -> None:
        self.assert_rising([self.log_penalty(m=each) for each in (10**9, 10**6, 10**4, 100)])

    def test_no_value_is_above_1_or_below_the_risk(self) -> None:
        if not self.bound.guarantee:
            with pytest.raises(AssumptionError, match=self.name):
                self.bound.value(about(NET_A), gamma=0.5, risk=0.0, m=10**6)
            return
        for m in (2, 100, 10**6, 10**12, 10**18):
            values = [self.bound.value(about(NET_A), gamma=0.5, risk=each, m=m) for each in (0.0, 0.2, 0.9, 1.0)]
            assert all(risk <= value <= 1 for risk, value in zip((0.0, 0.2, 0.9, 1.0), values, strict=True))
            assert values == sorted(values)
        assert values[1] < 0.21, "with enough sequences it says something"

    def test_certainty_and_choices_cost(self) -> None:
        if not self.bound.guarantee:
            return
        subject, m = about(NET_A), 10**12
        sure, usual = (self.bound.value(subject, gamma=0.5, risk=0.1, m=m, delta=each) for each in (1e-9, 0.05))
        paid = self.bound.value(subject, gamma=0.5, risk=0.1, m=m, delta=0.05, paid=math.log(0.05 / 1e-9))
        assert usual < sure
        assert paid == pytest.approx(sure, rel=1e-12)

    def test_astronomical_growth_is_a_number(self) -> None:
        long = replace(NET_A, norm_u=3.0, steps=5000)
        assert math.isfinite(self.log_penalty(long))
        assert math.isfinite(self.log_penalty(replace(long, cap=math.inf)))
        if self.bound.guarantee:
            assert self.bound.value(about(long), gamma=0.5, risk=0.0, m=100) == 1

    def test_nothing_jumps_where_growth_begins(self) -> None:
        below, at, above = (self.log_penalty(replace(NET_A, norm_u=each)) for each in (1 - 1e-9, 1.0, 1 + 1e-9))
        assert below <= at <= above
        assert above - below < 1e-6

    @pytest.mark.parametrize("nothing", ["norm_u", "norm_v", "norm_w"])
    def test_a_matrix_of_zeros_is_a_class_too(self, nothing: str) -> None:
        for steps in (1, 5):
            value = self.log_penalty(changed(steps=steps, **{nothing: 0.0}))
            assert value < math.inf

    def test_head_and_margin_scaled_together(self) -> None:
        usual = self.bound.log_penalty(about(NET_A), gamma=0.5, m=10**6)
        scaled = about(replace(NET_A, norm_v=6.0), scale=3.0, squared_norm=6.0 + 4.0 * 8)
        same = self.bound.log_penalty(scaled, gamma=1.5, m=10**6) == pytest.approx(usual, rel=1e-12)
        assert same is self.scale_free

    @pytest.mark.parametrize(
        ("argument", "wrong"),
        [
            *(("gamma", each) for each in (0.0, -1.0, math.nan, math.inf)),
            *(("delta", each) for each in (0.0, 1.0, -0.1, math.nan)),
            *(("m", each) for each in (0, 1, -5)),
            *(("paid", each) for each in (-1.0, math.nan, math.inf)),
        ],
    )
    def test_bad_arguments_are_refused_by_name(self, argument: str, wrong: float) -> None:
        given: dict[str, Any] = {"gamma": 0.5, "m": 100, "delta": 0.05, "paid": 0.0}
        with pytest.raises(ArgumentError, match=f"^{argument}: got"):
            self.bound.log_penalty(about(NET_A), **(given | {argument: wrong}))
        with pytest.raises(ArgumentError, match=f"^{argument}: got"):
            self.bound.value(about(NET_A), risk=0.1, **(given | {argument: wrong}))

    def test_a_risk_is_a_share(self) -> None:
        with pytest.raises(ArgumentError, match=r"^risk: got"):
            self.bound.value(about(NET_A), gamma=0.5, risk=1.5, m=100)

    def test_what_it_needs_is_asked_for_by_name(self) -> None:
        bare = Subject(profile=NET_A.tight())
        assert self.bound.missing(bare) == self.bound.needs
        assert self.bound.missing(about(NET_A)) == ()
        if self.bound.needs:
            with pytest.raises(AssumptionError, match=f"{self.name}: got no {self.bound.needs[0]}"):
                self.bound.log_penalty(bare, gamma=0.5, m=100)

    def test_a_bound_on_the_training_inputs_alone(self) -> None:
        """Enough where only the sample is looked at, with a larger term for luck; refused where it is not."""
        loose = about(NET_A, all_inputs=False)
        if not self.bound.guarantee:
            return
        if self.bound.risk == "margin":
            with pytest.raises(AssumptionError, match=f"{self.name}: got a bound on the training inputs"):
                self.bound.value(loose, gamma=0.5, risk=0.1, m=10**12)
            return
        strict = self.bound.value(about(NET_A), gamma=0.5, risk=0.1, m=10**12)
        assert self.bound.value(loose, gamma=0.5, risk=0.1, m=10**12) > strict
