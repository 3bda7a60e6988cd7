"""A signal to stop, heard between two updates."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """A region in which Ctrl-C and SIGTERM only ask; the loop answers where nothing is half done.

    A second signal of the same kind acts at once, as it would have without the region. Only the main thread hears
    signals; elsewhere the region does nothing.

    >>> with Interruption() as interruption:
    ...     os.kill(os.getpid(), signal.SIGINT)
    ...     interruption.asked
    <Signals.SIGINT: 2>
    """

    def __init__(self) -> None:
        self.asked: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def obey(self) -> None:
        """Do what the signal would have done; without one, nothing."""
        if self.asked is None:
            return
        asked = self.asked
        self._restore()
        if asked is signal.SIGINT:
            raise KeyboardInterrupt
        os.kill(os.getpid(), asked)

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._before = {each: signal.signal(each, self._ask) for each in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        again = self.asked is not None
        self.asked = signal.Signals(number)
        if again:
            self.obey()

    def _restore(self) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)
        self._before = {}
