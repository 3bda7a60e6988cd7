"""Runs operators_unchecked.py in a process of its own, where annotations are not checked: torch's compiler cannot look
through the checks, and users do not have them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support import needs_kernel


@needs_kernel
def test_compiled_exported_and_checked_operators_and_memory() -> None:
    script = Path(__file__).with_name("operators_unchecked.py")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--noconftest",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        str(script),
    ]
    # Not a worker of this run, which plugins would take it for.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=1200)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    assert " passed" in ran.stdout
