"""The constants of plain Elman networks are the same by formulas and by the walk that stacks need."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.passes import few_examples
from statewise.bounds import ElmanClass, ElmanConstants, NetworkClass

norms = st.floats(0.01, 4.0)


@few_examples
@given(u=norms, w=norms, v=norms, bound=norms, steps=st.integers(1, 60), bias=st.booleans(), head_bias=st.booleans())
def test_formulas_and_walk_agree(
    u: float, w: float, v: float, bound: float, steps: int, bias: bool, head_bias: bool
) -> None:
    layer = ElmanClass(hidden=4, features=2, norms={"U": u, "W": w}, bias=bias)
    walked = NetworkClass(
        layers=(layer,), head_norm=v, classes=3, steps=steps, input_bound=bound, head_bias=head_bias
    ).profile()
    told = ElmanConstants(
        inputs=2 + bias,
        hidden=4,
        classes=3,
        steps=steps,
        norm_u=u,
        norm_w=w,
        norm_v=v,
        input_bound=math.hypot(bound, 1.0) if bias else bound,
        head_bias=head_bias,
    ).tight()
    assert walked.log_hidden == pytest.approx(told.log_hidden, abs=1e-9)
    assert walked.log_output == pytest.approx(told.log_output, abs=1e-9)
    assert walked.log_growth == pytest.approx(told.log_growth, abs=1e-12)
    blocks = {block.name: block for block in told.blocks}
    for block in walked.blocks:
        other = blocks[block.name]
        assert (block.rows, block.columns, block.bound) == (other.rows, other.columns, other.bound)
        assert block.log_lipschitz == pytest.approx(other.log_lipschitz, abs=1e-9)
