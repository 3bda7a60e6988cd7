"""Start-End similarity: how alike are a word in the first half of a sequence and one in the second?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from statewise.data.memory_task import MemoryTask
from statewise.data.uniform import require_numbers, whole
from statewise.errors import ArgumentError


@dataclass(frozen=True, kw_only=True)
class StartEndSimilarity(MemoryTask):
    """A word in the first half, another T / 2 steps later; the answer is how much they agree.

    Start-End similarity (Ziv 2019, section 3.3). The class k = 0, 1, 2 is uniform. At ``round(k m / 2)`` places, drawn
    without replacement, the words agree; at all others the second has one of the n - 1 other symbols. The rest of the
    sequence is blank, symbol n. The first word begins at a uniform place among the first ``T / 2 - m``. With
    ``m = T / 2`` the words fill the sequence and there is no blank symbol. (The thesis asks for m < T / 2 and evaluates
    m = 30 at T = 60; that is this case.)

    Args:
        length: T, even.
        m: length of the words, at most T / 2. Half of an odd m is rounded to the even neighbour.
        n: how many symbols there are, from 2.
        inclusive: whether the word may also begin at the last place where it fits, which the thesis leaves out.

    >>> task = StartEndSimilarity(length=8, m=2, n=3, inclusive=True)
    >>> numbers = torch.tensor([0.5, 0.4, *(0.0, 0.9), *(0.3, 0.2), *(0.0, 0.0)])
    >>> [row.tolist() for row in task.examples(numbers)]  # one of two agrees: class 1
    [[3, 0, 2, 3, 3, 1, 2, 3], 1]
    """

    kind: ClassVar[str] = "start-end-similarity"
    every_step: ClassVar[bool] = False
    scale: ClassVar[str] = "length"

    length: int
    m: int
    n: int
    inclusive: bool = False

    def __post_init__(self) -> None:
        if self.length < 2 or self.length % 2:
            raise ArgumentError(where="StartEndSimilarity.length", got=self.length, wanted="an even integer >= 2")
        if not 1 <= self.m <= self.length // 2:
            raise ArgumentError(
                where="StartEndSimilarity.m", got=self.m, wanted=f"1 to {self.length // 2}, half of the length"
            )
        if self.n < 2:
            raise ArgumentError(
                where="StartEndSimilarity.n",
                got=self.n,
                wanted="an integer >= 2",
                remedy="With one symbol no two words differ.",
            )

    @property
    def inputs(self) -> int:
        """The symbols, and blank if there is room for one."""
        return self.n + (self.m < self.length // 2)

    @property
    def classes(self) -> int:
        """Not, half, and fully similar."""
        return 3

    @property
    def steps(self) -> int:
        """The length."""
        return self.length

    @property
    def needs(self) -> int:
        """The class, the place, the first word, where it is kept, and what is put elsewhere."""
        return 3 * self.m + 2

    @property
    def hardness(self) -> int:
        """The length."""
        return self.length

    @property
    def baseline(self) -> float:
        """The entropy of the classes, ln 3."""
        return math.log(3)

    @property
    def chance(self) -> float:
        """1 / 3."""
        return 1 / 3

    @property
    def min_delta(self) -> float:
        """1e-3: every answer counts in the loss."""
        return 1e-3

    def harder(self, value: int) -> StartEndSimilarity:
        """The same task at another length.

        >>> StartEndSimilarity(length=60, m=30, n=32).harder(90).inputs
        33
        """
        return replace(self, length=value)

    def examples(
        self, numbers: Float[Tensor, "*rows needs"]
    ) -> tuple[Int64[Tensor, "*rows length"], Int64[Tensor, "*rows"]]:
        """Sequences and their classes.

        Args:
            numbers: (..., 3 m + 2), uniform in [0, 1).
        """
        require_numbers(numbers, needs=self.needs, where="StartEndSimilarity")
        k = whole(numbers[..., 0], 3)
        first, chosen, other = numbers[..., 2:].unflatten(-1, (3, self.m)).unbind(-2)
        word = whole(first, self.n)
        # The order of uniform numbers is a uniform permutation: its entries below q are at q uniform places. A table
        # of the three q would have to be sent to the device; this is computed there.
        agreeing = (k == 1) * round(self.m / 2) + (k == 2) * self.m
        kept = chosen.argsort(-1) < agreeing.unsqueeze(-1)
        changed = (word + 1 + whole(other, self.n - 1)) % self.n
        halves = (self._placed(each, numbers[..., 1]) for each in (word, torch.where(kept, word, changed)))
        return torch.cat(tuple(halves), -1), k

    def right(self, logits: Float[Tensor, "*rows classes"], answers: Int64[Tensor, "*rows"]) -> Float[Tensor, "*rows"]:
        """1 where the class is right.

        Args:
            logits: (..., 3), at the last step.
            answers: the classes.
        """
        return (logits.argmax(-1) == answers).float()

    def _placed(self, word: Int64[Tensor, "*rows m"], number: Float[Tensor, "*rows"]) -> Int64[Tensor, "*rows half"]:
        """Half of a sequence with this word in it."""
        room = self.length // 2 - self.m
        if not room:
            return word
        start = whole(number, room + self.inclusive).unsqueeze(-1)
        within = torch.arange(self.length // 2, device=word.device) - start
        outside = (within < 0) | (within >= self.m)
        return word.gather(-1, within.clamp(0, self.m - 1)).masked_fill(outside, self.n)
