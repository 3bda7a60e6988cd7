"""A signal to stop, heard between two updates."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """A region in which Ctrl-C and SIGTERM only ask; the loop answers where nothing is half done.

    A second signal acts at once, as it would have without the region; one that is ignored outside of it stays ignored.
    Only the main thread hears signals; elsewhere the region does nothing.

    >>> with Interruption() as interruption:
    ...     signal.raise_signal(signal.SIGINT)
    ...     interruption.asked
    <Signals.SIGINT: 2>
    """

    def __init__(self) -> None:
        self.asked: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def obey(self) -> None:
        """Do what the signal would have done, once; without one, nothing."""
        if self.asked is None:
            return
        asked, self.asked = self.asked, None
        # From here on signals act at once: whoever handles this one may go on, and has been told.
        self._restore()
        signal.raise_signal(asked)

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            # A handler of None is not Python's, and could not be put back.
            heard = [each for each in SIGNALS if signal.getsignal(each) not in (signal.SIG_IGN, None)]
            self._before = {each: signal.signal(each, self._ask) for each in heard}
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
