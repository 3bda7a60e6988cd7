"""Runs in processes of their own, which can be killed and joined, without a start of Python for each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

TESTS = Path(__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])}
LIMIT = 600  # seconds after which the system ends a run that hangs; far more than one takes on a busy machine


class Forks:
    """A process that has imported all that a run needs, and forks one whenever it is asked to.

    Args:
        command: of a Python program that ends in :func:`serve`.
    """

    def __init__(self, *command: str) -> None:
        self._server = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=TESTS.parent,
            env=ENVIRONMENT,
        )

    def start(self, *arguments: str) -> int:
        """Fork a run; its process id. It ends after a while, whatever it does."""
        return self._ask("start", *arguments)

    def wait(self, child: int) -> int:
        """How a run ended: its exit code, or minus the signal that killed it."""
        return self._ask("wait", str(child))

    def run(self, *arguments: str) -> int:
        return self.wait(self.start(*arguments))

    def close(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait(LIMIT)
        self._server.stdout.close()

    def _ask(self, *words: str) -> int:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(words) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())


def serve(run: Callable[[list[str]], object]) -> None:
    """Do what :class:`Forks` asks for, until it closes. Nothing may have been computed before: threads do not fork.

    Args:
        run: what a fork does with its arguments.
    """
    for line in sys.stdin:
        order, *arguments = json.loads(line)
        if order == "wait":
            answer = os.waitstatus_to_exitcode(os.waitpid(int(arguments[0]), 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                signal.alarm(LIMIT)
                _do(run, arguments)
        print(answer, flush=True)  # noqa: T201


def _do(run: Callable[[list[str]], object], arguments: list[str]) -> None:
    """Run, and end this process without what the server would do at its own end."""
    code = 1
    try:
        run(arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
