"""The wheel as a user installs it: small, whole, and of use in a new environment without any extra."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import statewise
from statewise.native import load_native
from statewise.native.build import LIBRARY

ROOT = Path(__file__).resolve().parents[1]
MOST = 2_000_000  # bytes, of the kernel, and of all else

pytestmark = pytest.mark.slow


def call(*words: str | Path, **options: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program whose environment knows nothing of this clone."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done: subprocess.CompletedProcess[str] = subprocess.run(
        list(map(str, words)), env={**known, "COLUMNS": "80"}, capture_output=True, text=True, check=False, **options
    )  # type: ignore[call-overload]
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    done = call(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    if "hatchling" in done.stderr and done.returncode:
        pytest.skip("the builder cannot be had here")
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment with the wheel and its core dependencies."""
    place = tmp_path_factory.mktemp("environment") / "venv"
    assert call(sys.executable, "-m", "venv", place).returncode == 0
    done = call(place / "bin" / "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel)
    assert done.returncode == 0, done.stderr
    return place / "bin"


def test_the_wheel_is_small_and_has_all_that_is_no_module(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        sizes = {entry.filename: entry.compress_size for entry in archive.infolist()}
    names, library = set(sizes), sizes.get(f"statewise/native/{LIBRARY}", 0)
    assert wheel.stat().st_size - library < MOST
    assert library < MOST
    wanted = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "statewise").rglob("*")
        if path.is_file() and path.suffix in (".py", ".h", ".cpp", ".css", ".js", ".html", ".svg", ".bib", ".txt")
    }
    assert wanted <= names
    # With a compiler there is the kernel, too, and then one wheel serves every Python of a platform.
    built = load_native().available
    assert (f"statewise/native/{LIBRARY}" in names) == built
    assert "-py3-none-" in wheel.name
    assert wheel.name.endswith("-any.whl") != built
    assert not {name for name in names if name.startswith(("tests/", "docs/"))}


def test_it_works_without_any_extra(installed: Path, tmp_path: Path) -> None:
    version = call(installed / "statewise", "--version", cwd=tmp_path)
    assert version.stdout.strip() == f"statewise {statewise.__version__}"
    found = call(installed / "statewise", "doctor", "--json", cwd=tmp_path)
    facts = json.loads(found.stdout)
    assert facts["PyTorch"], found.stderr
    assert facts["CPU kernel"].startswith("ready") == load_native().available
    shown = call(installed / "statewise", "demo", "--steps", "2", "--epochs", "1", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert (tmp_path / "report.html").exists()
    words = ["train", "classify", "--data", "sample", "--automaton", "--quiet", "--out", "words"]
    assert call(installed / "statewise", *words, cwd=tmp_path).returncode == 0
    assert call(installed / "statewise", "report", "words", "--quick", cwd=tmp_path).returncode == 0


def test_what_needs_an_extra_names_it(installed: Path, tmp_path: Path) -> None:
    words = ["train", "classify", "--data", "sample", "--automaton", "--quiet", "--out", "words"]
    assert call(installed / "statewise", *words, cwd=tmp_path).returncode == 0
    for command, extra in ((["explore", "words"], "explore"), (["export", "words", "--format", "onnx"], "onnx")):
        place = ["--out", "words.onnx"] if extra == "onnx" else []
        said = call(installed / "statewise", *command, *place, cwd=tmp_path)
        assert said.returncode == 2
        assert f"pip install 'statewise[{extra}]'" in said.stderr
        assert "Traceback" not in said.stderr
