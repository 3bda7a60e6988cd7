"""Where replicas get their examples from: made on the device, of numbers that depend on a seed and a place alone."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from statewise.data.memory_task import MemoryTask, SequenceTask
from statewise.transforms.counter import joined, mixed, pairs_of_uniforms, words_at

#: What numbers are for; each purpose has a sequence of its own.
BATCHES, STARTS, ORDERS = range(3)
#: The seeds of held-out examples, which are the same for all runs: no run's seed is negative.
HELD_OUT = {"valid": -1, "test": -2}
#: Inputs (replicas, steps, batch, width) and answers (replicas, steps, batch), or (replicas, batch) at the end only.
Examples = tuple[Tensor, Tensor]


def uniforms(
    roots: Int64[Tensor, " replicas"], places: Int64[Tensor, " replicas"], purpose: int, count: int
) -> Float[Tensor, "replicas count"]:
    """Uniform numbers in [0, 1) of each replica: a function of its root, a place such as an iteration, and a purpose.

    Nothing waits for the device, and neither other replicas nor what ran before have a say.

    >>> one = uniforms(torch.tensor([7, 8]), torch.tensor([0, 5]), BATCHES, 3)
    >>> torch.equal(one[1:], uniforms(torch.tensor([8]), torch.tensor([5]), BATCHES, 3))
    True
    """
    # The root is scrambled before the purpose comes in: else root 1 for one thing would be root 2 for another.
    seeds = words_at(mixed(roots, (0, purpose)), places).unsqueeze(1)
    half = -(-count // 2)
    return joined(pairs_of_uniforms(words_at(seeds, torch.arange(half, device=roots.device))), count)


class Source(ABC):
    """Examples for replicas.

    Args:
        task: what the examples are of.
        batch: sequences of an iteration.
        device: where they are wanted.
    """

    def __init__(self, task: SequenceTask, batch: int, device: torch.device) -> None:
        self.task, self.batch, self.device = task, batch, device

    @abstractmethod
    def fresh(self, roots: Int64[Tensor, " replicas"], iterations: Int64[Tensor, " replicas"]) -> Examples:
        """The batch of every replica for its next iteration.

        Args:
            roots: of the replicas.
            iterations: how many each has behind it.
        """

    @abstractmethod
    def held_out(self, part: str, first: int, last: int) -> Examples:
        """Some of the fixed examples that nobody is trained on; a leading dimension of 1 stands for all replicas.

        Args:
            part: "valid" or "test".
            first: the first of them.
            last: the one after the last.
        """

    def size(self, part: str, wanted: int) -> int:
        """How many held-out examples there are of those wanted.

        Args:
            part: "valid" or "test".
            wanted: at most.
        """
        return wanted

    def prepare(self, roots: Tensor, iterations: list[int]) -> int | None:
        """Make ready for the next iterations; how many can follow until this must be called again, None for all.

        Args:
            roots: of the replicas.
            iterations: how many each has behind it.
        """
        return None


class FreshExamples(Source):
    """Examples of a task that is a function of numbers: every batch is new.

    >>> from statewise.data.copying_memory import CopyingMemory
    >>> source = FreshExamples(CopyingMemory(m=2, n=3, delay=1), 4, torch.device("cpu"))
    >>> inputs, answers = source.fresh(torch.tensor([0, 1]), torch.tensor([0, 0]))
    >>> inputs.shape, answers.shape
    (torch.Size([2, 5, 4, 5]), torch.Size([2, 5, 4]))
    """

    task: MemoryTask

    def fresh(self, roots: Tensor, iterations: Tensor) -> Examples:
        numbers = uniforms(roots, iterations, BATCHES, self.batch * self.task.needs)
        return self._examples(numbers.unflatten(1, (self.batch, self.task.needs)))

    def held_out(self, part: str, first: int, last: int) -> Examples:
        roots = torch.full((last - first,), HELD_OUT[part], device=self.device)
        places = torch.arange(first, last, device=self.device)
        return self._examples(uniforms(roots, places, BATCHES, self.task.needs).unsqueeze(0))

    def _examples(self, numbers: Float[Tensor, "replicas batch needs"]) -> Examples:
        symbols, answers = self.task.examples(numbers)
        inputs = symbols.mT.unsqueeze(3) == torch.arange(self.task.inputs, device=numbers.device)
        return inputs.float(), answers.mT if self.task.every_step else answers


def states_at_start(roots: Tensor, places: Tensor, like: tuple[int, int, int]) -> Float[Tensor, "replicas *shape"]:
    """Initial states, uniform with an expected squared length of 1 (the code published with Ziv 2019).

    Args:
        roots: of the replicas.
        places: what they are for, such as the iteration of each.
        like: layers, sequences and channels.
    """
    bound = (3 / like[-1]) ** 0.5
    numbers = uniforms(roots, places, STARTS, like[0] * like[1] * like[2])
    states: Tensor = (numbers * (2 * bound) - bound).unflatten(1, like)
    return states
