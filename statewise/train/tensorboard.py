"""Metrics for TensorBoard, which is an extra."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from statewise.errors import MissingExtraError


class TensorBoard:
    """Writes the numbers of a record as curves.

    Args:
        folder: where TensorBoard looks, e.g. the folder of a run.
        first: the first step that is still to come: what a killed run has drawn from it on is hidden, so that no step
            appears twice; None hides nothing.
        writer: what writes; by default torch's ``SummaryWriter``, which needs the extra ``track``.

    >>> class Writer:
    ...     def add_scalar(self, name, value, step):
    ...         print(name, value, step)
    ...
    ...     def close(self): ...
    >>> with TensorBoard(Path("run"), writer=Writer()) as board:
    ...     board.write({"loss": 4.5, "note": "warm"}, step=10)
    loss 4.5 10
    """

    def __init__(self, folder: Path | str, *, first: int | None = None, writer: Any = None) -> None:
        if writer is None:
            writer = summary_writer()(log_dir=str(folder), purge_step=first)
        self.writer = writer

    def write(self, record: Mapping[str, Any], *, step: int) -> None:
        """Add a point to the curve of each finite number in a record.

        Args:
            record: as it goes into ``metrics.jsonl``; what is no number is left out.
            step: where the points are.
        """
        for name, value in record.items():
            if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
                self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write out what is still in memory."""
        self.writer.close()

    def __enter__(self) -> TensorBoard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def summary_writer() -> Any:
    """The class of torch's writer.

    Raises:
        MissingExtraError: the extra 'track' is not there.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtraError.of("TensorBoard", package="tensorboard", extra="track") from error
    return SummaryWriter
