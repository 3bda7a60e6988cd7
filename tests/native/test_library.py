"""The library of the CPU kernel: what it says where it cannot run; every build of it gives the same numbers."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from statewise import LSTM, Noise
from statewise.native import NativeStatus, instruction_sets, load_native
from statewise.native.build import FOLDER, LIBRARY, NOT_BUILT, BuildError, build, check_target, fingerprint
from statewise.native.library import load, native
from support import needs_kernel


class TestLoading:
    def test_a_library_that_was_not_built_is_named_with_the_remedy(self, tmp_path: Path) -> None:
        status, library = load(tmp_path / LIBRARY, {})
        assert not status
        assert library is None
        assert "was not built" in status.reason
        assert "compiler" in status.reason
        assert "the plain loop serves" in status.reason

    def test_a_library_of_another_architecture_is_no_crash(self, tmp_path: Path) -> None:
        # The first bytes of a library for a machine that nobody has (e_machine 0xffff).
        header = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\xff\xff" + bytes(44)
        (tmp_path / LIBRARY).write_bytes(header)
        status, library = load(tmp_path / LIBRARY, {})
        assert library is None
        assert "cannot be loaded on this" in status.reason
        assert "install statewise from its source again" in status.reason

    @needs_kernel
    @pytest.mark.parametrize("other", ["VERSION", "_STRUCTURES"])
    def test_a_library_of_another_version_is_not_called(self, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
        module = sys.modules[load.__module__]
        monkeypatch.setattr(module, other, {"VERSION": 0, "_STRUCTURES": module._STRUCTURES[::-1]}[other])
        status, library = load(FOLDER / LIBRARY, {})
        assert library is None
        assert "another version of statewise" in status.reason
        assert "install statewise from its source again" in status.reason

    @pytest.mark.parametrize("library", ["garbage", "", None], ids=["damaged", "empty", "missing"])
    def test_a_package_with_such_a_library_works_and_says_why(self, library: str | None, tmp_path: Path) -> None:
        left_out = shutil.ignore_patterns("__pycache__", LIBRARY, NOT_BUILT)
        shutil.copytree(FOLDER.parent, tmp_path / "statewise", ignore=left_out)
        native = tmp_path / "statewise" / "native"
        if library is None:
            (native / NOT_BUILT).write_text("The compiler ended with 1:\n$ c++\nerror\n", encoding="utf-8")
        else:
            (native / LIBRARY).write_text(library, encoding="utf-8")
        script = "import torch, statewise; x = torch.zeros(2, 1, 3); print((m := statewise.LSTM(3, 4)).plan(x)); m(x)"
        command = [sys.executable, "-c", script]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert "the plain loop serves instead" in ran.stdout
        assert "pip install --no-deps --force-reinstall ." in ran.stdout
        expected = (
            "(The compiler ended with 1; more in " if library is None else "it is damaged, or for another processor"
        )
        assert expected in ran.stdout

    @needs_kernel
    def test_a_library_of_other_sources_is_not_called(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As after `git pull`, before the next installation."""
        monkeypatch.setattr(sys.modules[load.__module__], "fingerprint", lambda: "other")
        status, library = load(FOLDER / LIBRARY, {})
        assert library is None
        assert "made of other sources than those beside it" in status.reason
        assert "install statewise from its source again" in status.reason

    def test_it_can_be_switched_off(self) -> None:
        status, _ = load(FOLDER / LIBRARY, {"STATEWISE_NATIVE": "0"})
        assert "STATEWISE_NATIVE=0" in status.reason

    def test_a_status_is_true_when_the_kernel_is_there(self) -> None:
        assert NativeStatus(available=True)
        assert not NativeStatus(available=False, reason="gone")

    def test_without_it_the_plain_loop_runs_and_the_plan_says_why(self) -> None:
        script = "import torch, statewise; print(statewise.LSTM(3, 4).plan(torch.zeros(2, 1, 3)))"
        environ = os.environ | {"STATEWISE_NATIVE": "0"}
        ran = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True)
        assert ran.stdout.startswith("reference (loop); not faster because: cpu: switched off by STATEWISE_NATIVE=0")


class TestBuilding:
    @pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="needs a compiler")
    def test_where_there_is_a_compiler_the_kernel_is_loaded_and_of_these_sources(self) -> None:
        """Else all tests that compare it with the reference would be left out, or compare an older one."""
        if sys.platform == "win32":
            pytest.skip("there is no kernel for Windows")
        status = load_native()
        assert status or status.reason.startswith(("this processor", "switched off")), status.reason

    @needs_kernel
    def test_a_library_of_older_sources_does_not_stay_when_the_new_ones_cannot_be_built(self, tmp_path: Path) -> None:
        sources = shutil.copytree(FOLDER, tmp_path / "native", ignore=shutil.ignore_patterns("__pycache__"))
        assert build(sources, {"PATH": str(tmp_path)}) == sources / LIBRARY, "they are the same"
        with (sources / "gemm.h").open("a", encoding="utf-8") as header:
            header.write("// changed\n")
        assert fingerprint(sources) != fingerprint()
        with pytest.raises(BuildError, match=r"No C\+\+ compiler"):
            build(sources, {"PATH": str(tmp_path)})
        assert not (sources / LIBRARY).exists()

    def test_a_library_that_cannot_be_loaded_does_not_stay_either(self, tmp_path: Path) -> None:
        (tmp_path / LIBRARY).write_bytes(b"garbage")
        with pytest.raises(BuildError, match=r"No C\+\+ compiler"):
            build(FOLDER, {"PATH": str(tmp_path)}, into=tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_without_a_compiler_the_error_names_those_it_looked_for(self, tmp_path: Path) -> None:
        with pytest.raises(BuildError, match=r"No C\+\+ compiler was found .*\$CXX, c\+\+, g\+\+, clang\+\+"):
            build(FOLDER, {"PATH": str(tmp_path)}, into=tmp_path)

    @pytest.mark.skipif(shutil.which("false") is None, reason="needs a command that fails")
    def test_a_compiler_that_fails_is_shown_with_its_command(self, tmp_path: Path) -> None:
        with pytest.raises(BuildError, match=r"ended with 1:\n\$ .*false"):
            build(FOLDER, {"PATH": os.environ["PATH"], "CXX": "false"}, into=tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_a_compiler_whose_name_cannot_be_read_is_shown(self, tmp_path: Path) -> None:
        with pytest.raises(BuildError, match=r"Got CXX=.*, wanted a command: No closing quotation"):
            build(FOLDER, {"PATH": str(tmp_path), "CXX": 'g++ "'}, into=tmp_path)

    def test_a_compiler_for_another_processor_makes_no_wheel(self, tmp_path: Path) -> None:
        (tmp_path / "cross").write_text("#!/bin/sh\necho aarch64-linux-gnu\n", encoding="utf-8")
        (tmp_path / "cross").chmod(0o755)
        environ = {"PATH": os.environ["PATH"], "CXX": str(tmp_path / "cross")}
        for fine in ("linux-aarch64", "macosx-14.0-arm64", "macosx-10.13-universal2"):
            check_target(fine, environ)
        with pytest.raises(BuildError, match=r"makes code for aarch64, wanted one for linux-x86_64\. Set \$CXX"):
            check_target("linux-x86_64", environ)


@needs_kernel
class TestInstructionSets:
    BEST_FIRST = ("avx512", "avx2", "neon", "baseline")

    @pytest.fixture(params=BEST_FIRST)
    def instruction_set(self, request: pytest.FixtureRequest):  # type: ignore[no-untyped-def]
        if request.param not in instruction_sets():
            pytest.skip(f"this processor or build has no {request.param}")
        assert native().sw_use(request.param.encode()) == 0
        yield request.param
        native().sw_use(instruction_sets()[0].encode())

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_each_equals_the_reference(self, instruction_set: str, dtype: torch.dtype) -> None:
        assert ctypes.string_at(native().sw_instruction_set()).decode() == instruction_set
        layer = LSTM(34, 35, 2, bidirectional=True, transforms=Noise("gaussian", 0.3), dtype=dtype)
        x = torch.randn(6, 5, 34, dtype=dtype)
        draws = layer.draw(x)
        found = []
        for engine in ("cpu", "reference"):
            layer.engine = engine
            output = layer(x, draws=draws)[0]
            found.append([output, *torch.autograd.grad(output.square().sum(), list(layer.parameters()))])
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other)

    def test_draws_have_the_same_bits(self, instruction_set: str) -> None:
        layer = LSTM(3, 9, transforms=Noise("gamma", 0.5))
        x = torch.zeros(4, 3, 3)
        mine = layer.draw(x, generator=torch.Generator().manual_seed(1)).tensors[0, 0, 0][0]
        native().sw_use(instruction_sets()[0].encode())
        best = layer.draw(x, generator=torch.Generator().manual_seed(1)).tensors[0, 0, 0][0]
        assert torch.equal(mine, best)

    def test_the_best_serves(self) -> None:
        assert instruction_sets() == [name for name in self.BEST_FIRST if name in instruction_sets()]
        assert ctypes.string_at(native().sw_instruction_set()).decode() == instruction_sets()[0]

    def test_one_that_is_not_there_is_refused(self) -> None:
        assert native().sw_use(b"avx9000") == 1


#: Compiler, emulator, and the line that the program prints of the instruction set that it found there.
MACHINES = {
    "here": ("", [], ": 0 wrong"),
    "ARM": ("aarch64-linux-gnu-", ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"], "neon: 0 wrong"),
    "x86 with AVX2 alone": ("", ["qemu-x86_64", "-cpu", "Haswell"], "avx2: 0 wrong"),
    "x86 without AVX2": ("", ["qemu-x86_64", "-cpu", "Nehalem"], "none"),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The library as a compiler makes it, once for all emulators that run it."""
    return functools.cache(
        lambda target: build(
            FOLDER, {**os.environ, "CXX": f"{target}g++"}, into=tmp_path_factory.mktemp(target or "here")
        )
    )


@needs_kernel
def test_a_child_of_fork_does_not_wait_for_threads_that_it_has_not() -> None:
    """As a worker of torch's DataLoader has it, when a model runs there."""
    script = """if True:
        import os, torch, statewise
        torch.set_num_threads(2)
        layer, x = statewise.LSTM(32, 64), torch.randn(5, 9, 32)
        with torch.no_grad():
            expected = layer(x)[0]
            child = os.fork()
            if not child:
                os._exit(0 if torch.equal(layer(x)[0], expected) else 1)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", script], timeout=120, check=False)
    assert ran.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_the_c_interface_is_right_in_plain_c(tmp_path: Path, machine: str, built: Callable[[str], Path]) -> None:
    """For other processors by a cross compiler and an emulator (Debian: g++-aarch64-linux-gnu, qemu-user)."""
    target, runner, expected = MACHINES[machine]
    if machine.startswith("x86") and platform.machine() != "x86_64":
        pytest.skip("this is no x86")
    for program in (f"{target}g++", f"{target}gcc", *runner[:1]):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    library = built(target)
    check = Path(__file__).parent / "interface_check.c"
    command = [f"{target}gcc", f"-I{FOLDER}", str(check), str(library), "-lm", f"-Wl,-rpath,{library.parent}"]
    subprocess.run([*command, "-o", str(tmp_path / "check")], check=True)
    ran = subprocess.run([*runner, str(tmp_path / "check")], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert any(line.endswith(expected) for line in ran.stdout.splitlines()), ran.stdout
    if machine == "here" and (nm := shutil.which("nm")):
        weak = subprocess.run([nm, "-C", str(library)], capture_output=True, text=True, check=True).stdout
        shared = [line for line in weak.splitlines() if " W " in line and " std::" in line and "statewise_" not in line]
        assert all("deque" in line or "_Deque" in line or "mutex" in line for line in shared), shared
