"""What a stranger installs: the pins resolve from the plain index, and a pin that torch contradicts is noticed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
STAMP = ".venv/.installed-tools"


def check_install(constraints: Path) -> subprocess.CompletedProcess[str]:
    """``make check-install`` with other constraints, and with what is installed, whatever its age."""
    command = ["make", "--old-file", STAMP, "check-install", f"CONSTRAINTS={constraints}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if re.search(r"(?i)error sending request|dns error|failed to fetch|connect(ion)? error", done.stderr):
        pytest.skip("the public index cannot be reached")
    return done


@pytest.mark.slow  # it asks the index, which may be away
@pytest.mark.skipif(
    shutil.which("make") is None or not (ROOT / STAMP).exists() or not (ROOT / ".venv/bin/uv").exists(),
    reason="needs what make test installs",
)
def test_a_pin_of_what_torch_pins_itself_fails_the_check(tmp_path: Path) -> None:
    """The fault that stopped the first stranger: a Triton beside torch that torch's CUDA build does not take."""
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    (tmp_path / "constraints.txt").write_text(pins + "triton==3.9.0\n", encoding="utf-8")
    done = check_install(tmp_path / "constraints.txt")
    assert done.returncode != 0
    assert re.search(r"torch==\S+ depends on triton", done.stderr.replace("\n", " ")), done.stderr
    assert "nothing fits" in done.stdout
    assert "Run make constraints" in done.stdout


def test_nothing_is_pinned_that_torch_pins_itself() -> None:
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert re.findall(r"(?m)^(?:triton|nvidia-|cuda-)\S*", pins) == []
