"""The numbers of a run's epochs as curves for TensorBoard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from statewise.train.tensorboard import TensorBoard, summary_writer


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
    summary_writer()  # without the extra this fails, before anything is trained
    boards: list[TensorBoard] = []

    with ExitStack() as stack:

        def write(record: dict[str, Any]) -> None:
            # Not earlier: a run begins in an empty folder.
            if not boards:
                boards.append(stack.enter_context(TensorBoard(folder / "tensorboard", first=record["epoch"])))
            boards[0].write(record, step=record["epoch"])

        yield write
