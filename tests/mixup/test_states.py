"""States of any structure are mixed part by part."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from statewise.errors import DtypeError, ShapeError
from statewise.mixup import mix_state
from statewise.mixup.states import detached, select_state


class Memory(NamedTuple):
    state: Tensor
    cell: Tensor | None


def tree(generator: torch.Generator) -> dict[str, Any]:
    a, b, c = torch.randn(3, 2, 4, 5, generator=generator)
    return {"lstm": Memory(a, None), "stack": [b, (c,)], "count": torch.tensor([3])}


def test_every_part_of_a_nested_state_is_mixed(generator: torch.Generator) -> None:
    one, other, share = tree(generator), tree(generator), torch.rand(4, generator=generator)
    found = mix_state(one, other, share)
    assert isinstance(found["lstm"], Memory)
    assert found["lstm"].cell is None
    weight = share[:, None]
    torch.testing.assert_close(found["stack"][1][0], weight * one["stack"][1][0] + (1 - weight) * other["stack"][1][0])
    assert found["count"].tolist() == [3]
    torch.testing.assert_close(mix_state(one, other, 1.0)["lstm"].state, one["lstm"].state)


def test_the_batch_may_be_another_dimension() -> None:
    found = mix_state(torch.ones(2, 3, 4), torch.zeros(2, 3, 4), torch.tensor([0.25, 0.75]), dim=0)
    assert found[:, 0, 0].tolist() == [0.25, 0.75]


def test_rows_are_selected_and_histories_dropped_in_every_part(generator: torch.Generator) -> None:
    state = tree(generator)
    state["stack"][0].requires_grad_()
    chosen = select_state({name: state[name] for name in ("lstm", "stack")}, torch.tensor([3, 3]))
    torch.testing.assert_close(chosen["lstm"].state, state["lstm"].state[:, [3, 3]])
    assert chosen["stack"][0].requires_grad
    assert not detached(state)["stack"][0].requires_grad


@pytest.mark.parametrize(
    ("one", "other"), [(torch.ones(1), None), ((torch.ones(1),), (torch.ones(1),) * 2), ({"a": None}, {"b": None})]
)
def test_states_of_different_structure_are_refused(one: Any, other: Any) -> None:
    with pytest.raises(DtypeError, match="the same structure"):
        mix_state(one, other, 0.5)


def test_other_shapes_and_other_whole_numbers_are_refused() -> None:
    with pytest.raises(ShapeError, match="one shape"):
        mix_state(torch.ones(1, 2), torch.ones(1, 3), 0.5)
    with pytest.raises(DtypeError, match="real numbers"):
        mix_state(torch.tensor([1]), torch.tensor([2]), 0.5)
