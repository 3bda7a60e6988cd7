"""The numbers of a run's epochs as curves for TensorBoard."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from statewise.train.tensorboard import TensorBoard


@contextmanager
def curves(folder: Path, *, wanted: bool) -> Iterator[Callable[[dict[str, Any]], None] | None]:
    """What writes the record of an epoch, or None if nobody wants it; closed afterwards.

    Args:
        folder: of the run.
        wanted: whether curves were asked for.

    Raises:
        MissingExtraError: they were, and the extra 'track' is not there.
    """
    if not wanted:
        yield None
        return
    with tempfile.TemporaryDirectory() as place:
        TensorBoard(place).close()  # without the extra this fails, before anything is trained
    boards: list[TensorBoard] = []

    with ExitStack() as stack:

        def write(record: dict[str, Any]) -> None:
            # Not earlier: a run begins in an empty folder.
            if not boards:
                boards.append(stack.enter_context(_board(folder / "tensorboard", first=record["epoch"])))
            boards[0].write(record, step=record["epoch"])

        yield write


def _board(folder: Path, *, first: int) -> TensorBoard:
    from torch.utils.tensorboard import SummaryWriter

    # What a killed run has drawn from this epoch on is hidden, so that no epoch appears twice.
    writer = SummaryWriter(log_dir=str(folder), purge_step=first)  # type: ignore[no-untyped-call, unused-ignore]
    return TensorBoard(folder, writer=writer)
