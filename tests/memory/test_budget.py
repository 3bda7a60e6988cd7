"""Parameters of orthogonal networks, and widths within a budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from statewise import OrthogonalRNN
from statewise.errors import ArgumentError
from statewise.memory.budget import COUNTS, orthogonal_parameters, width_within

SIZES = st.integers(1, 60)


@given(
    budget=st.integers(200, 10**7), inputs=SIZES, classes=SIZES, depth=st.integers(1, 6), count=st.sampled_from(COUNTS)
)
def test_the_width_is_the_largest_within_the_budget(
    budget: int, inputs: int, classes: int, depth: int, count: str
) -> None:
    sizes = {"inputs": inputs, "classes": classes, "depth": depth}
    if orthogonal_parameters(**sizes, width=1, count=count) > budget:
        with pytest.raises(ArgumentError, match="Allow more parameters"):
            width_within(budget=budget, **sizes, count=count)
        return
    width = width_within(budget=budget, **sizes, count=count)
    assert orthogonal_parameters(**sizes, width=width, count=count) <= budget
    assert orthogonal_parameters(**sizes, width=width + 1, count=count) > budget


@pytest.mark.parametrize(("depth", "width"), [(1, 7), (2, 6), (3, 5)])
def test_the_true_count_is_that_of_the_layer(depth: int, width: int) -> None:
    """Of A only the entries above its diagonal are free."""
    layer = OrthogonalRNN(4, width, num_layers=depth)
    whole = nn.ModuleList([layer, nn.Linear(width, 3)])
    stored = sum(parameter.numel() for parameter in whole.parameters())
    held = {name: parameter.numel() for name, parameter in layer.named_parameters() if "weight_hh" in name}
    free = stored - sum(held.values()) + depth * width * (width - 1) // 2
    assert orthogonal_parameters(inputs=4, classes=3, depth=depth, width=width) == free


def test_both_counts_agree_for_one_layer() -> None:
    for width in (1, 10, 100):
        assert len({orthogonal_parameters(inputs=3, classes=2, depth=1, width=width, count=c) for c in COUNTS}) == 1


@pytest.mark.parametrize("wrong", [{"count": "rough"}, {"budget": 0}, {"inputs": 0}, {"classes": 0}, {"depth": 0}])
def test_what_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        width_within(**{"budget": 1000, "inputs": 3, "classes": 2, "depth": 2, **wrong})  # type: ignore[arg-type]
