"""One process that forks runs which can be killed, for all files of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from train.forks import Forks
from train.killed import killable


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    with killable() as runs:
        yield runs
