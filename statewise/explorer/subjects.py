"""A trained network as a person meets it: texts go in; states, gates and answers come out, step by step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from statewise.errors import LengthError
from statewise.explorer.disturbance import Setting
from statewise.layers import RecurrentLayer
from statewise.models import Trace
from statewise.transforms import Centroids

Row = tuple[str, ...]
EVERYTHING = ("states", "cells", "gates", "probabilities")
#: Multiplications and additions that one request may cost: about half a second of one core.
WORK = 2_000_000_000
#: Probabilities of outcomes that are kept at once: as doubles, a quarter of a gigabyte. A vocabulary may be large.
ROOM = 1 << 25


@dataclass(frozen=True, kw_only=True)
class Example:
    """An input from the data of a run.

    Args:
        tokens: what the network reads.
        answer: what would be right: one class, a tag for each word, or nothing where the text itself is the answer.
        part: "train" or "valid".
    """

    tokens: Row
    answer: Row
    part: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Followed:
    """What happened while some sequences were read.

    Args:
        trace: the inside, at every step.
        shares: how probable each outcome is at every step.
        best: the outcome that is given at every step.
    """

    trace: Trace
    shares: Float[Tensor, "batch steps outcomes"]
    best: Int[Tensor, "batch steps"]

    @property
    def top(self) -> Float[Tensor, "batch steps width"]:
        """The states of the top layer."""
        return self.trace.states[-1]

    @property
    def last(self) -> Int[Tensor, " batch"]:
        """The last step of each sequence."""
        return self.trace.lengths - 1

    def at_the_end(self, values: Float[Tensor, "batch steps width"]) -> Float[Tensor, "batch width"]:
        """What stands at the last step of each sequence.

        Args:
            values: at all steps.
        """
        return values[torch.arange(len(values)), self.last]


class Subject(ABC):
    """A network that can be explored.

    Args:
        name: what to call the run.
        model: the network, in eval mode.
        outcomes: the names of what it predicts.
        alphabet: the tokens that it may be asked, for edits.
        most_tokens: that an input may have.
    """

    kind: ClassVar[str]
    start: str | None = None
    glue: str = " "

    def __init__(self, name: str, model: nn.Module, *, outcomes: Row, alphabet: Row, most_tokens: int = 256) -> None:
        self.name, self.outcomes, self.alphabet, self.most_tokens = name, outcomes, alphabet, most_tokens
        self._module = model

    def weights(self) -> Iterator[Tensor]:
        """All weights of the network."""
        yield from self._module.parameters()

    @property
    @abstractmethod
    def layers(self) -> tuple[RecurrentLayer, ...]:
        """The recurrent layers, from the bottom."""

    @abstractmethod
    def split(self, text: str) -> Row:
        """The tokens of a text; refuses what the network cannot read.

        Args:
            text: as it was typed.
        """

    @abstractmethod
    def known(self, token: str) -> bool:
        """Whether the network tells a token from all others that it does not know.

        Args:
            token: of a text.
        """

    @abstractmethod
    def follow(self, rows: Sequence[Row], setting: Setting, *, noisy: bool = False) -> Followed:
        """Let the network read.

        Args:
            rows: sequences of tokens.
            setting: temperature and noise.
            noisy: whether the noise of the setting is drawn, for each sequence anew.
        """

    def read(self, text: str) -> Row:
        """The tokens of a text that is short enough.

        Args:
            text: as it was typed.
        """
        tokens = self.split(text)
        if len(tokens) > self.most_tokens:
            raise LengthError(
                where="text",
                got=f"{len(tokens):,} tokens",
                wanted=f"at most {self.most_tokens}",
                remedy="Explore a part of it.",
            )
        if not tokens and self.start is None:
            raise LengthError(where="text", got="no tokens", wanted="at least one", remedy="Type something.")
        return tokens

    def summary(self, followed: Followed) -> Float[Tensor, "batch width"]:
        """One vector a sequence, by which inputs are near or far: the top state after the last step.

        Args:
            followed: what happened.
        """
        return followed.at_the_end(followed.top)

    def answers(self, followed: Followed) -> list[Row]:
        """What is predicted for each sequence: the likeliest outcome after its last step.

        Args:
            followed: what happened.
        """
        ends = followed.best[torch.arange(len(followed.best)), followed.last]
        return [(self.outcomes[best],) for best in ends.tolist()]

    @abstractmethod
    def quality(self, followed: Followed, examples: Sequence[Example]) -> Float[Tensor, " batch"]:
        """How probable the network holds what is right.

        Args:
            followed: what happened.
            examples: that were read, with their answers.
        """

    @cached_property
    def cost(self) -> int:
        """Weights that a step of a sequence is multiplied with."""
        return max(1, sum(weight.numel() for layer in self.layers for weight in layer.parameters()))

    def affordable(self, steps: int) -> int:
        """How many sequences one request may run.

        Args:
            steps: of each.
        """
        return max(1, min(WORK // (2 * self.cost * max(1, steps)), self.fitting(steps)))

    def fitting(self, steps: int) -> int:
        """How many sequences may be followed at once, by the memory that their outcomes take.

        Args:
            steps: of each.
        """
        return max(1, ROOM // (max(1, steps) * max(1, len(self.outcomes))))

    @property
    def temperature(self) -> float | None:
        """That of the centroids, as trained; None where there are none."""
        found = (each for layer in self.layers for each in layer.transforms if isinstance(each, Centroids))
        return next((each.temperature for each in found), None)

    def text(self, tokens: Sequence[str]) -> str:
        """Tokens as they are typed.

        Args:
            tokens: of an input.
        """
        return self.glue.join(tokens)

    def steps(self, tokens: Row) -> Row:
        """The names of the steps: what each of them reads.

        Args:
            tokens: of an input.
        """
        return tokens if self.start is None else (self.start, *tokens)


def padded(rows: Sequence[Sequence[int]], *, fill: int = 0) -> tuple[Int[Tensor, "batch steps"], Int[Tensor, " batch"]]:
    """Numbers side by side, and how many each row has.

    Args:
        rows: of any lengths.
        fill: what stands beyond their ends.

    >>> padded([[1, 2], [3]])[0].tolist()
    [[1, 2], [3, 0]]
    """
    longest = max(map(len, rows))
    table = np.array([[*row, *[fill] * (longest - len(row))] for row in rows], dtype=np.int64)
    return torch.from_numpy(table.reshape(len(rows), longest)), torch.tensor([len(row) for row in rows])


def inside(lengths: Int[Tensor, " batch"], steps: int) -> Bool[Tensor, "batch steps"]:
    """Which steps belong to their sequence.

    Args:
        lengths: of the sequences.
        steps: of the longest.

    >>> inside(torch.tensor([1]), 2).tolist()
    [[True, False]]
    """
    return torch.arange(steps) < lengths.unsqueeze(1)
