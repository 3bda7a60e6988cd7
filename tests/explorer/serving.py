"""A server in a process of its own, as a person starts it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

COMMAND = (sys.executable, "-m", "statewise", "explore")


@dataclass(frozen=True)
class Served:
    """A server that listens."""

    process: subprocess.Popen[str]
    url: str
    port: int

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        return self.url.partition("#")[2]

    def interrupted(self) -> tuple[int, str]:
        """Ctrl-C: the exit code, and all that was said of it."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out + err


@contextmanager
def served(folders: Sequence[Path], *options: str) -> Iterator[Served]:
    """Start the command, wait until it listens, and end it in whatever way it ends."""
    command = [*COMMAND, *map(str, folders), *options, "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        told = json.loads(line)
        yield Served(process, told["url"], told["port"])
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
