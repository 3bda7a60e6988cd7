"""The sets of a task: what to train on, what to choose by, and what to report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from statewise.data.examples import Sequences
from statewise.data.images import Images

Set = TypeVar("Set", Sequences, Images)


@dataclass(frozen=True)
class TaskSets(Generic[Set]):
    """The sets of a task.

    Args:
        train: what a model is trained on.
        valid: what its settings are chosen by; None where there is none.
        tests: what is reported, by name.
    """

    train: Set
    valid: Set | None
    tests: Mapping[str, Set]
