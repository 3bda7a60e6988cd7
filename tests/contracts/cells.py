"""What every cell promises: its formula, and the module of one step made from it."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import given
from torch import Tensor, nn

from contracts.members import MEMBERS, Member, Weights
from contracts.passes import (
    Case,
    FreshInputs,
    Pass,
    as_argument,
    assert_close,
    assert_same,
    cases,
    differentiate,
    run,
    some_examples,
)
from statewise.cells import Cell, Transition
from statewise.layers.single import SingleStep

LAST_WORD = re.compile(r"((?:weight|bias)_\w+)")


class PlainProduct:
    """``U v + b``; b has a value for each unit, or for each unit of each row."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self.weight, self.bias, self.hidden = weight, bias, weight.shape[1]

    def __call__(self, value: Tensor, first: int, last: int) -> Tensor:
        blocks = slice(first * self.hidden, last * self.hidden)
        return value @ self.weight[blocks].T + self.bias[..., blocks]


class Step:
    """One step of a cell on random tensors, all of them leaves."""

    def __init__(self, cell: Cell, case: Case) -> None:
        rows, hidden, blocks = case.batch, case.hidden, len(cell.blocks)
        shapes: dict[str, tuple[int, ...]] = {"input term": (rows, blocks * hidden), "state": (rows, hidden)}
        shapes |= {"memory": (rows, hidden)} if cell.has_memory else {}
        shapes |= {"weight": (blocks * hidden, hidden), "bias": (blocks * hidden,)}
        shapes |= {name: (count, hidden) if count else (hidden,) for name, count in cell.extra_parameters}
        self.cell = cell
        self.leaves = {name: case.tensor(name, *shape).requires_grad_() for name, shape in shapes.items()}

    def forward(self, **others: Tensor) -> Transition:
        """One step, with other tensors in place of the leaves that are named."""
        named = self.leaves | others
        product = PlainProduct(named["weight"], named["bias"])
        extra = tuple(named[name] for name, _ in self.cell.extra_parameters)
        return self.cell.forward(named["input term"], named["state"], named.get("memory"), product, extra)


ONE_STEP = cases(packed=False, steps=1, layers=1, bidirectional=False, batch_first=False)


class SingleStepContract(FreshInputs):
    """What the module of one step promises: inherit it, and name the member of the layers that it is a step of."""

    name: ClassVar[str]

    @property
    def member(self) -> Member:
        return MEMBERS[self.name]

    @some_examples
    @given(case=ONE_STEP)
    def test_it_is_one_step_of_the_layer(self, case: Case) -> None:
        """Values and all gradients, also where no state is given."""
        case = dataclasses.replace(case, given_state=case.given_state or self.member.start == "random")
        assert_same(one_step(self.member.build_single(case), case), run(self.member.build(case), case, form="loop"))

    @some_examples
    @given(case=ONE_STEP)
    def test_it_takes_one_sequence_without_a_batch(self, case: Case) -> None:
        single = self.member.build_single(case)
        x, states = case.leaves(has_memory=isinstance(single.cell, Cell) and single.cell.has_memory)
        together = _parts(single(x[0], as_argument(tuple(state[0] for state in states))))
        alone = _parts(single(x[0, 0], as_argument(tuple(state[0, 0] for state in states))))
        for left, right in zip(alone, together, strict=True):
            assert left.shape == (case.hidden,)
            assert_close(left, right[0], "state")


def one_step(single: nn.Module, case: Case) -> Pass:
    """The pass of a module of one step, with the names that a layer's parameters have."""
    has_memory = isinstance(single, nn.LSTMCell) or (isinstance(single, SingleStep) and single.cell.has_memory)
    x, states = case.leaves(has_memory=has_memory)
    finals = tuple(part.unsqueeze(0) for part in _parts(single(x[0], as_argument(tuple(s[0] for s in states)))))
    done = differentiate(single, case, x, states, finals[0], finals)
    renamed = {
        name if name in ("inputs", "initial state", "initial memory") else LAST_WORD.sub(r"\1_l0", name): grad
        for name, grad in done.gradients.items()
    }
    return Pass(done.values, renamed)


def _parts(result: Any) -> tuple[Tensor, ...]:
    return result if isinstance(result, tuple) else (result,)


class CellContract(SingleStepContract):
    """Inherit it, and name the cell and the member of the layers that is made from it."""

    cell: ClassVar[Cell]

    @some_examples
    @given(case=cases(packed=False))
    def test_the_step_is_the_formula_of_the_paper(self, case: Case) -> None:
        step = Step(self.cell, case)
        leaves = {name: leaf.detach() for name, leaf in step.leaves.items()}
        moved = step.forward(**leaves)
        # The input term is all that the truth sees of the inputs, as if W were the identity.
        extra = [leaves[name] for name, _ in self.cell.extra_parameters]
        eye = torch.eye(leaves["input term"].shape[1], dtype=case.dtype)
        p = Weights(
            eye, leaves["weight"], torch.zeros_like(leaves["bias"]), leaves["bias"], extra[0] if extra else None
        )
        for row in range(case.batch):
            memory = leaves["memory"][row] if self.cell.has_memory else None
            h, c = self.member.truth(leaves["input term"][row], leaves["state"][row], memory, p)
            assert_close(moved.state[row], h, "state")
            assert (c is None) == (moved.memory is None)
            if moved.memory is not None and c is not None:
                assert_close(moved.memory[row], c, "memory")

    def test_an_additive_cell_is_one_whose_two_terms_have_the_same_gradient(self, seed: int) -> None:
        step = Step(self.cell, Case(seed=seed))
        term = step.leaves["input term"]
        # A bias of its own for every row: its gradient is that of the product.
        bias = step.leaves["bias"].detach().expand_as(term).clone().requires_grad_()
        moved = step.forward(bias=bias)
        total = moved.state.sum() + (0 if moved.memory is None else moved.memory.sum())
        assert torch.equal(*torch.autograd.grad(total, (term, bias))) == self.cell.additive

    def test_the_gates_are_those_that_can_be_observed(self, seed: int) -> None:
        case = Case(seed=seed)
        gates = Step(self.cell, case).forward().gates
        assert len(gates) == len(self.cell.observed)
        assert set(self.cell.observed) <= set(self.cell.blocks)
        assert all(gate.shape == (case.batch, case.hidden) for gate in gates)

    def test_a_cell_is_an_immutable_value(self) -> None:
        assert self.cell == type(self.cell)(*dataclasses.astuple(self.cell))
        assert hash(self.cell) == hash(copy.deepcopy(self.cell))
        assert pickle.loads(pickle.dumps(self.cell)) == self.cell
        with pytest.raises(dataclasses.FrozenInstanceError):
            self.cell.anything = 1  # type: ignore[attr-defined]


class TorchCellContract(CellContract):
    """The contract of a cell that torch.nn has too."""

    @some_examples
    @given(case=ONE_STEP)
    def test_the_single_step_is_torchs_cell(self, case: Case) -> None:
        """Same parameters in the same order, same values, same gradients."""
        assert self.member.torch_cell is not None
        single, options = self.member.build_single(case), {**self.member.single_options, "dtype": case.dtype}
        theirs = self.member.torch_cell(case.inputs, case.hidden, case.bias, **options)
        assert [*single.state_dict()] == [*theirs.state_dict()]
        theirs.load_state_dict(single.state_dict())
        assert_same(one_step(single, case), one_step(theirs, case))

    def test_the_same_seed_gives_torchs_initial_weights(self, seed: int) -> None:
        assert self.member.torch_cell is not None
        torch.manual_seed(seed)
        theirs = self.member.torch_cell(3, 5, **self.member.single_options).state_dict()
        torch.manual_seed(seed)
        ours = self.member.single(3, 5, **self.member.single_options).state_dict()
        assert all(torch.equal(ours[name], value) for name, value in theirs.items())
