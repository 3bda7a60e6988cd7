from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from statewise.native import NativeStatus, build, cache_roots, load_native

SOURCE = 'extern "C" int answer() { return 42; }\n'
NO_COMPILER = not any((Path(place) / "c++").exists() for place in os.get_exec_path())
pytestmark = pytest.mark.skipif(NO_COMPILER or sys.platform == "win32", reason="needs a C++ compiler called c++")


class Workshop:
    """A source, a cache, and a compiler that writes down each time it is asked to compile."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache, self.calls = folder, folder / "cache", folder / "calls"
        self.source = folder / "kernel.cpp"
        self.source.write_text(SOURCE)
        self.environ = {"PATH": os.environ["PATH"], "STATEWISE_CACHE": str(self.cache)}
        self.use_compiler('case "$*" in *--version*) ;; *) echo call >> "$calls"; sleep 0.5 ;; esac\nexec c++ "$@"')

    def use_compiler(self, script: str) -> None:
        compiler = self.folder / "compiler"
        compiler.write_text(f"#!/bin/sh\ncalls={self.calls}\n{script}\n")
        compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
        self.environ["CXX"] = str(compiler)

    def build(self) -> NativeStatus:
        return build(self.source, self.environ)

    @property
    def compilations(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def test_a_source_compiles_into_the_cache_and_says_so_on_stderr(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    status = workshop.build()
    assert status.available
    assert status.compiled
    assert status.binary is not None
    assert status.binary.is_relative_to(workshop.cache)
    assert "compiling the CPU kernel" in capsys.readouterr().err


def test_a_second_build_takes_the_cached_library_without_compiling(workshop: Workshop) -> None:
    first, second = workshop.build(), workshop.build()
    assert second.available
    assert not second.compiled
    assert second.binary == first.binary
    assert workshop.compilations == 1


def test_a_changed_header_compiles_anew(workshop: Workshop) -> None:
    first = workshop.build()
    (workshop.folder / "part.h").write_text("// new\n")
    second = workshop.build()
    assert second.compiled
    assert second.binary != first.binary


def test_two_processes_at_once_compile_once(workshop: Workshop) -> None:
    program = (
        "import pathlib, sys; from statewise.native import load_native;"
        "s = load_native(pathlib.Path(sys.argv[1])); print(s.available, s.compiled, s.reason)"
    )
    command = [sys.executable, "-c", program, str(workshop.source)]
    both = [
        subprocess.Popen(command, env=os.environ | workshop.environ, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = sorted(process.communicate(timeout=120)[0].split()[:2] for process in both)
    assert said == [["True", "False"], ["True", "True"]]
    assert workshop.compilations == 1


def test_loading_is_done_once_per_process(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in workshop.environ.items():
        monkeypatch.setenv(name, value)
    first = load_native(workshop.source)
    assert first.available, first.reason
    workshop.source.unlink()
    assert load_native(workshop.source) is first


def test_a_library_that_cannot_be_loaded_is_a_reason_not_an_error(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = workshop.build().binary
    assert library is not None
    library.write_bytes(b"not a library")
    for name, value in workshop.environ.items():
        monkeypatch.setenv(name, value)
    status = load_native(workshop.source)
    assert not status.available
    assert "could not be loaded" in status.reason
    assert str(library.parent) in status.reason


def test_a_missing_compiler_is_named_with_the_remedy(workshop: Workshop) -> None:
    workshop.environ |= {"PATH": str(workshop.folder / "nothing"), "CXX": "no-such-compiler"}
    status = workshop.build()
    assert not status.available
    assert "$CXX, c++, g++, clang++" in status.reason
    assert "install one" in status.reason


def test_a_broken_source_gives_a_reason_that_names_the_compiler_log(workshop: Workshop) -> None:
    workshop.source.write_text("this is not C++\n")
    status = workshop.build()
    assert not status.available
    assert status.log is not None
    assert str(status.log) in status.reason
    assert "this is not C++" in status.log.read_text()


def test_a_broken_source_is_not_compiled_at_every_start(workshop: Workshop) -> None:
    workshop.source.write_text("this is not C++\n")
    first, second = workshop.build(), workshop.build()
    assert (first.compiled, second.compiled) == (True, False)
    assert second.reason == first.reason
    assert workshop.compilations == 1


def test_a_compiler_without_openmp_is_asked_again_without_it(workshop: Workshop) -> None:
    workshop.use_compiler(
        'case "$*" in *-fopenmp*) echo "cannot find -lgomp" >&2; exit 1 ;; esac\n'
        'case "$*" in *--version*) ;; *) echo call >> "$calls" ;; esac\nexec c++ "$@"'
    )
    assert workshop.build().available
    assert workshop.compilations == 1


def test_a_compiler_stopped_by_a_signal_is_tried_again(workshop: Workshop) -> None:
    workshop.use_compiler(
        'case "$*" in *--version*) exit 0 ;; esac\nif [ -e "$calls" ]; then exec c++ "$@"; fi\n'
        'echo call >> "$calls"; kill -KILL $$'
    )
    status = workshop.build()
    assert not status.available
    assert "signal 9" in status.reason
    assert workshop.build().available


def test_a_cache_that_cannot_be_written_falls_back_to_a_private_temporary_directory(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.cache.write_text("a file where a directory should be")
    temporary = workshop.folder / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    status = workshop.build()
    assert status.available
    assert status.binary is not None
    private = cache_roots(workshop.environ)[1]
    assert status.binary.is_relative_to(private)
    assert stat.S_IMODE(private.stat().st_mode) == 0o700


def test_a_temporary_directory_that_others_can_write_is_refused_with_a_remedy(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.cache.write_text("a file where a directory should be")
    monkeypatch.setattr(tempfile, "tempdir", str(workshop.folder))
    private = cache_roots(workshop.environ)[1]
    private.mkdir()
    private.chmod(0o777)
    status = workshop.build()
    assert not status.available
    assert "STATEWISE_CACHE" in status.reason


def test_a_missing_source_is_a_reason_not_an_error(workshop: Workshop) -> None:
    workshop.source.unlink()
    status = workshop.build()
    assert not status.available
    assert "kernel.cpp" in status.reason


def test_the_kernel_can_be_switched_off(workshop: Workshop) -> None:
    status = build(workshop.source, workshop.environ | {"STATEWISE_NATIVE": "0"})
    assert not status.available
    assert "STATEWISE_NATIVE" in status.reason
    assert workshop.compilations == 0


def test_the_cache_follows_the_settings_in_order() -> None:
    assert cache_roots({"STATEWISE_CACHE": "/a", "XDG_CACHE_HOME": "/b"})[0] == Path("/a")
    assert cache_roots({"XDG_CACHE_HOME": "/b"})[0] == Path("/b/statewise")
    assert cache_roots({})[0] == Path.home() / ".cache" / "statewise"
