"""What every task of long-term memory must do."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from statewise.data.memory_task import MemoryTask
from statewise.data.memory_tasks import memory_task
from statewise.errors import ArgumentError, DtypeError, ShapeError
from support import forbidden_to_wait


def numbers_for(task: MemoryTask, *rows: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.rand(*rows, task.needs, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def certain(answers: Tensor, classes: int) -> Tensor:
    """Logits of somebody who knows."""
    return torch.nn.functional.one_hot(answers, classes).double()


class MemoryTaskContract:
    """Inherit it, and give some tasks, and for each the next harder value."""

    tasks: ClassVar[tuple[tuple[MemoryTask, int], ...]]

    # --- the value

    def test_it_is_an_immutable_value(self) -> None:
        for task, _ in self.tasks:
            for twin in (copy.deepcopy(task), pickle.loads(pickle.dumps(task)), dataclasses.replace(task)):
                assert twin == task
                assert hash(twin) == hash(task)
            with pytest.raises(dataclasses.FrozenInstanceError):
                task.m = 1  # type: ignore[attr-defined]

    def test_its_description_goes_through_json_and_back(self) -> None:
        for task, _ in self.tasks:
            assert memory_task(json.loads(json.dumps(task.describe(), allow_nan=False))) == task

    def test_a_wrong_description_is_refused(self) -> None:
        document = self.tasks[0][0].describe()
        with pytest.raises(ArgumentError, match=r"a field 'size', wanted among .*m, n"):
            memory_task({**document, "size": 3})
        with pytest.raises(ArgumentError, match="nothing for m"):
            memory_task({name: value for name, value in document.items() if name != "m"})
        with pytest.raises(ArgumentError, match=r"(?s)'m': '3'.*wanted whole numbers and names"):
            memory_task({**document, "m": "3"})
        with pytest.raises(ArgumentError, match="kind: got None, wanted one of copying-memory, start-end-similarity"):
            memory_task({})
        with pytest.raises(ArgumentError, match=r"\.n: got 1"):
            memory_task({**document, "n": 1})

    def test_it_can_be_made_harder_and_is_itself_at_its_own_hardness(self) -> None:
        for task, harder in self.tasks:
            assert task.harder(task.hardness) == task
            made = task.harder(harder)
            assert made.hardness == harder > task.hardness
            assert made.harder(task.hardness) == task
            assert made.steps > task.steps

    def test_its_numbers_make_sense(self) -> None:
        for task, _ in self.tasks:
            assert 0 < task.chance < 1
            assert 0 < task.min_delta < task.baseline <= math.log(task.classes)

    # --- examples

    def test_examples_have_the_shapes_and_the_range_that_it_says(self) -> None:
        for task, _ in self.tasks:
            for rows in ((), (7,), (2, 3, 5)):
                sequences, answers = task.examples(numbers_for(task, *rows))
                assert sequences.shape == (*rows, task.steps)
                assert answers.shape == (*rows, *((task.steps,) if task.every_step else ()))
                assert sequences.dtype == answers.dtype == torch.long
            sequences, answers = task.examples(numbers_for(task, 500))
            assert sequences.unique().tolist() == list(range(task.inputs)), "every symbol occurs, and no other"
            assert answers.min() >= 0
            assert answers.max() < task.classes

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
    def test_the_ends_of_the_unit_interval_are_no_trap(self, dtype: torch.dtype) -> None:
        below_one = 1 - torch.finfo(dtype).eps / 2
        for task, _ in self.tasks:
            for value in (0.0, below_one):
                sequences, answers = task.examples(torch.full((task.needs,), value, dtype=dtype))
                assert 0 <= sequences.min() <= sequences.max() < task.inputs
                assert 0 <= answers.min() <= answers.max() < task.classes

    def test_an_example_depends_on_its_own_numbers_alone(self) -> None:
        for task, _ in self.tasks:
            numbers = numbers_for(task, 3, 4)
            together, before = task.examples(numbers), torch.random.get_rng_state()
            mapped = torch.func.vmap(torch.func.vmap(task.examples))(numbers)
            alone = [task.examples(row) for row in numbers.flatten(0, 1)]
            for place, part in enumerate(together):
                assert torch.equal(part, mapped[place])
                assert torch.equal(part.flatten(0, 1), torch.stack([one[place] for one in alone]))
            assert torch.equal(torch.random.get_rng_state(), before)

    @pytest.mark.usefixtures("as_users_have_it")
    def test_other_numbers_are_refused(self) -> None:
        for task, _ in self.tasks:
            with pytest.raises(ShapeError, match=rf"wanted \(\.\.\., {task.needs}\)"):
                task.examples(torch.rand(2, task.needs + 1))
            with pytest.raises(ShapeError):
                task.examples(torch.tensor(0.5))
            with pytest.raises(DtypeError, match="got int64, wanted a floating dtype"):
                task.examples(torch.zeros(2, task.needs, dtype=torch.long))

    # --- answers

    def test_who_knows_is_right_and_who_answers_anything_else_is_not(self) -> None:
        for task, _ in self.tasks:
            _, answers = task.examples(numbers_for(task, 2, 30))
            known = certain(answers, task.classes)
            assert torch.equal(task.right(known, answers), torch.ones(2, 30))
            assert torch.equal(
                task.right(certain((answers + 1) % task.classes, task.classes), answers), torch.zeros(2, 30)
            )
            assert torch.equal(torch.func.vmap(task.right)(known, answers), torch.ones(2, 30))

    # --- devices

    @pytest.mark.gpu
    def test_a_device_makes_the_same_examples_without_a_wait_also_in_a_graph(self) -> None:
        for task, _ in self.tasks:
            numbers = numbers_for(task, 4, 64).cuda()
            expected = [part.cuda() for part in task.examples(numbers.cpu())]

            def run(numbers: Tensor, task: MemoryTask = task) -> Any:
                sequences, answers = task.examples(numbers)
                return sequences, answers, task.right(torch.eye(task.classes, device="cuda")[answers], answers)

            with forbidden_to_wait():
                found = run(numbers)
            graph, source = torch.cuda.CUDAGraph(), torch.zeros_like(numbers)
            with torch.cuda.graph(graph):
                replayed = run(source)
            source.copy_(numbers)
            graph.replay()
            for one in (found, replayed):
                assert torch.equal(one[0], expected[0])
                assert torch.equal(one[1], expected[1])
                assert torch.equal(one[2], torch.ones(4, 64, device="cuda"))
