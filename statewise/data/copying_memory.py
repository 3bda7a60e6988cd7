"""Copying memory: symbols are shown, a delay follows, and at a trigger they are to be repeated."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn.functional import pad

from statewise.data.memory_task import MemoryTask
from statewise.data.uniform import require_numbers, whole
from statewise.errors import ArgumentError

SCALES = ("delay", "bits")


@dataclass(frozen=True, kw_only=True)
class CopyingMemory(MemoryTask):
    """The copying memory task in the form whose first answer is due at the trigger itself (Ziv 2019, section 3.2).

    Symbols 0 to n - 1 are data, n is blank, n + 1 the trigger. An input is m data, B blanks, the trigger, m - 1 blanks;
    its answers are m + B blanks and the m data, so a sequence has T = B + 2 m steps. (The example printed in the
    thesis has strings of wrong lengths.) :class:`~statewise.data.Copying` is the older form, over ten fixed symbols.

    The score is the data-accuracy: the share of the last m answers that are right, among all n + 2 outputs. Over all
    steps "always blank" would be right at 0.97 of them at B = 1000, m = 30.

    Args:
        m: how many data symbols are shown, from 1.
        n: how many kinds of them there are, from 2.
        delay: B, the steps between the last of them and the trigger.
        trigger_lead: how many steps before the first answer the trigger is shown; 1 in older papers, where m blanks
            follow it.
        scale: what a search makes larger: "delay", or "bits" (m at a fixed delay).

    >>> task = CopyingMemory(m=3, n=2, delay=5)
    >>> inputs, answers = task.examples(torch.tensor([0.1, 0.9, 0.2]))
    >>> "".join("AB_:"[symbol] for symbol in inputs), "".join("AB_:"[symbol] for symbol in answers)
    ('ABA_____:__', '________ABA')
    """

    kind: ClassVar[str] = "copying-memory"
    every_step: ClassVar[bool] = True

    m: int
    n: int
    delay: int
    trigger_lead: int = 0
    scale: str = "delay"

    def __post_init__(self) -> None:
        for name, least in (("m", 1), ("n", 2), ("delay", 0), ("trigger_lead", 0)):
            value = getattr(self, name)
            if value < least:
                raise ArgumentError(where=f"CopyingMemory.{name}", got=value, wanted=f"an integer >= {least}")
        if self.trigger_lead > self.delay:
            raise ArgumentError(
                where="CopyingMemory.trigger_lead",
                got=self.trigger_lead,
                wanted=f"at most the delay, {self.delay}",
                remedy="The trigger would stand among the data.",
            )
        if self.scale not in SCALES:
            raise ArgumentError(where="CopyingMemory.scale", got=self.scale, wanted=f"one of {', '.join(SCALES)}")
        if self.scale == "bits" and self.n & (self.n - 1):
            raise ArgumentError(
                where="CopyingMemory.n",
                got=self.n,
                wanted="a power of two with scale='bits'",
                remedy="Else a symbol is not a whole number of bits.",
            )

    @property
    def inputs(self) -> int:
        """Data, blank and trigger."""
        return self.n + 2

    @property
    def classes(self) -> int:
        """The same: every symbol may be answered."""
        return self.n + 2

    @property
    def steps(self) -> int:
        """T = B + 2 m."""
        return self.delay + 2 * self.m

    @property
    def needs(self) -> int:
        """One number for each data symbol."""
        return self.m

    @property
    def bits(self) -> float:
        """How much is to be remembered: m log2 n.

        >>> CopyingMemory(m=30, n=32, delay=0).bits
        150.0
        """
        return self.m * math.log2(self.n)

    @property
    def hardness(self) -> int:
        """The delay, or the number of bits, as ``scale`` says."""
        return self.delay if self.scale == "delay" else round(self.bits)

    @property
    def baseline(self) -> float:
        """Blank where blank is due, and any of the n symbols elsewhere: m ln n / T.

        >>> round(CopyingMemory(m=30, n=32, delay=1000).baseline, 5)
        0.09809
        """
        return self.m * math.log(self.n) / self.steps

    @property
    def chance(self) -> float:
        """1 / n."""
        return 1 / self.n

    @property
    def min_delta(self) -> float:
        """1e-3 m / T: blanks dilute the mean loss, so a fixed step would end a run with a long delay too early."""
        return 1e-3 * self.m / self.steps

    def harder(self, value: int) -> CopyingMemory:
        """The same task with another delay, or another number of bits.

        >>> CopyingMemory(m=30, n=32, delay=0, scale="bits").harder(1000).m
        200
        """
        if self.scale == "delay":
            return replace(self, delay=value)
        each = round(math.log2(self.n))
        if value < 1 or value % each:
            raise ArgumentError(
                where="CopyingMemory.harder",
                got=f"{value} bits",
                wanted=f"a multiple of {each}, the bits of one of {self.n} symbols",
            )
        return replace(self, m=value // each)

    def examples(
        self, numbers: Float[Tensor, "*rows m"]
    ) -> tuple[Int64[Tensor, "*rows steps"], Int64[Tensor, "*rows steps"]]:
        """Inputs and the answer of every step.

        Args:
            numbers: (..., m), uniform in [0, 1).
        """
        require_numbers(numbers, needs=self.needs, where="CopyingMemory")
        data, rest = whole(numbers, self.n), self.steps - self.m
        at_trigger = torch.arange(self.steps, device=numbers.device) == rest - self.trigger_lead
        inputs = pad(data, (0, rest), value=self.n).masked_fill(at_trigger, self.n + 1)
        return inputs, pad(data, (rest, 0), value=self.n)

    def right(
        self, logits: Float[Tensor, "*rows steps classes"], answers: Int64[Tensor, "*rows steps"]
    ) -> Float[Tensor, "*rows"]:
        """The data-accuracy of each sequence: over its last m steps.

        Args:
            logits: (..., T, n + 2).
            answers: (..., T).
        """
        recalled = logits[..., -self.m :, :].argmax(-1)
        return (recalled == answers[..., -self.m :]).float().mean(-1)
