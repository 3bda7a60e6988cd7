"""Builds the CPU kernel at its first use, keeps it for the next time, and says why when it cannot.

The kernel is C++ that torch loads as a library of operators, compiled by the machine's own compiler for its own
processor. The result is kept under ``$STATEWISE_CACHE``, else ``$XDG_CACHE_HOME/statewise``, else
``~/.cache/statewise``; a user whose home cannot be written gets a private directory among the temporary files.
Nothing here raises: without a kernel the Python form of the engine serves, only slower. ``STATEWISE_NATIVE=0`` turns
the kernel off.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

KERNEL_SOURCE = Path(__file__).parent / "kernel.cpp"

_COMPILERS = ("c++", "g++", "clang++")
_COMPILE_LIMIT_SECONDS = 600
_INSTEAD = "the Python form of the engine serves meanwhile"
_logger = logging.getLogger("statewise")


@dataclass(frozen=True, kw_only=True)
class NativeStatus:
    """Whether the CPU kernel is loaded and, when not, why and what to do about it.

    Args:
        available: whether its operators can be called.
        reason: a sentence for the user; empty when available.
        binary: the compiled library.
        log: what the compiler said, and how it was called.
        compiled: whether this very call ran the compiler.

    >>> bool(NativeStatus(available=False, reason="no C++ compiler was found"))
    False
    """

    available: bool
    reason: str = ""
    binary: Path | None = None
    log: Path | None = None
    compiled: bool = False

    def __bool__(self) -> bool:
        return self.available


@functools.cache
def load_native(source: Path = KERNEL_SOURCE) -> NativeStatus:
    """Compile the kernel unless that was done before, and load it; later calls return the same answer.

    Args:
        source: the C++ file. Headers beside it count as part of it.
    """
    status = build(source)
    if not status.available:
        _logger.info("CPU kernel not available: %s", status.reason)
        return status
    try:
        torch.ops.load_library(str(status.binary))
    except (OSError, RuntimeError) as error:
        assert status.binary is not None
        reason = f"the compiled CPU kernel could not be loaded ({_first_line(error)}): delete {status.binary.parent}"
        return NativeStatus(available=False, reason=f"{reason} to build it again; {_INSTEAD}", log=status.log)
    return status


def build(source: Path = KERNEL_SOURCE, environ: Mapping[str, str] = os.environ) -> NativeStatus:
    """Compile the kernel unless that was done before, without loading it.

    Args:
        source: the C++ file. Headers beside it count as part of it.
        environ: where the settings are looked up.
    """
    try:
        return _build(source, environ)
    except (OSError, subprocess.SubprocessError) as error:
        reason = f"the CPU kernel could not be built ({_first_line(error)}): see to that, or ignore it; {_INSTEAD}"
        return NativeStatus(available=False, reason=reason)


def cache_roots(environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Where compiled kernels may be kept, the preferred place first.

    >>> cache_roots({"STATEWISE_CACHE": "/data/kernels"})[0].as_posix()
    '/data/kernels'
    """
    if environ.get("STATEWISE_CACHE"):
        preferred = Path(environ["STATEWISE_CACHE"])
    elif environ.get("XDG_CACHE_HOME"):
        preferred = Path(environ["XDG_CACHE_HOME"]) / "statewise"
    else:
        preferred = Path("~/.cache/statewise").expanduser()
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return [preferred, Path(tempfile.gettempdir()) / f"statewise-{user}"]


def _build(source: Path, environ: Mapping[str, str]) -> NativeStatus:
    if environ.get("STATEWISE_NATIVE") == "0":
        reason = f"switched off by STATEWISE_NATIVE=0: unset it to use the CPU kernel; {_INSTEAD}"
        return NativeStatus(available=False, reason=reason)
    if sys.platform == "win32":
        return NativeStatus(available=False, reason=f"the CPU kernel is not built on Windows; {_INSTEAD}")
    compiler = _find_compiler(environ)
    if compiler is None:
        looked = ", ".join(("$CXX", *_COMPILERS))
        reason = f"no C++ compiler was found (looked for {looked}): install one, or ignore this: {_INSTEAD}"
        return NativeStatus(available=False, reason=reason)
    command = [*compiler, *_flags()]
    name = f"{source.stem}-{_fingerprint(source, command)}"
    roots = cache_roots(environ)
    for root in roots:
        # A finished kernel is good even where nothing can be written any more.
        if _is_trusted(root) and (root / name / "kernel.so").exists():
            return NativeStatus(available=True, binary=root / name / "kernel.so", log=root / name / "compile.log")
    entry = _make_entry(roots, name)
    if entry is None:
        places = " nor ".join(map(str, roots))
        reason = f"neither {places} can be written: set STATEWISE_CACHE to a directory of yours; {_INSTEAD}"
        return NativeStatus(available=False, reason=reason)
    with _locked(entry / "lock"):
        return _compile_into(entry, source, command)


def _compile_into(entry: Path, source: Path, command: list[str]) -> NativeStatus:
    library, log = entry / "kernel.so", entry / "compile.log"
    if library.exists():  # another process was faster
        return NativeStatus(available=True, binary=library, log=log)
    if log.exists():
        # The same compiler would say the same of the same source: do not make every start wait for it.
        return _compile_failed(log, compiled=False)
    message = "compiling the CPU kernel (once per torch version, about half a minute) ..."
    _logger.info(message)
    sys.stderr.write(f"statewise: {message}\n")
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=entry) as scratch:
        made = Path(scratch) / "kernel.so"
        code, text = _run_compiler(command, source, made)
        if code < 0:
            reason = f"the compiler was stopped by signal {-code}: the next start tries again; {_INSTEAD}"
            return NativeStatus(available=False, reason=reason, compiled=True)
        said = Path(scratch) / "compile.log"
        said.write_text(text)
        # The library first: a log without a library means that the compiler refused.
        if code == 0:
            made.replace(library)
        said.replace(log)
    if code != 0:
        return _compile_failed(log, compiled=True)
    _logger.info("compiled the CPU kernel in %.1f s: %s", time.perf_counter() - started, library)
    return NativeStatus(available=True, binary=library, log=log, compiled=True)


def _compile_failed(log: Path, *, compiled: bool) -> NativeStatus:
    reason = f"the CPU kernel did not compile, see {log} (delete it to try again); {_INSTEAD}"
    return NativeStatus(available=False, reason=reason, log=log, compiled=compiled)


def _run_compiler(command: list[str], source: Path, made: Path) -> tuple[int, str]:
    """Return the exit code and the log; a compiler without OpenMP is asked again for a single-threaded kernel."""
    text = ""
    for attempt in (command, [flag for flag in command if flag != "-fopenmp"]):
        # The libraries come after the source, because linkers resolve from left to right.
        full = [*attempt, str(source), "-o", str(made), *_libraries()]
        done = subprocess.run(
            full,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_COMPILE_LIMIT_SECONDS,
            check=False,
        )
        said = done.stdout.decode(errors="replace")
        text += f"$ {shlex.join(full)}\n{said}\nexit code {done.returncode}\n"
        if done.returncode == 0 or "omp" not in said.lower():
            break
    return done.returncode, text


def _find_compiler(environ: Mapping[str, str]) -> list[str] | None:
    # $CXX may carry arguments ("ccache g++"); when it is set to something absent, the usual names still help.
    for candidate in (environ.get("CXX", ""), *_COMPILERS):
        words = shlex.split(candidate)
        if words and shutil.which(words[0], path=environ.get("PATH")):
            return [str(shutil.which(words[0], path=environ.get("PATH"))), *words[1:]]
    return None


def _flags() -> list[str]:
    # Imported late: it pulls in setuptools, which only a build needs. No -ffast-math: NaN and infinity must propagate.
    from torch.utils.cpp_extension import include_paths

    tuning = "-march=native" if platform.machine().lower() in {"x86_64", "amd64", "i686"} else "-mcpu=native"
    flags = ["-O3", tuning, "-ffp-contract=fast", "-fno-math-errno", "-fopenmp", "-std=c++20", "-shared", "-fPIC"]
    if sys.platform == "darwin":
        flags += ["-undefined", "dynamic_lookup"]
    flags.append(f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}")
    for path in include_paths():
        flags += ["-isystem", path]
    return flags


def _libraries() -> list[str]:
    from torch.utils.cpp_extension import library_paths

    return [*(f"-L{path}" for path in library_paths()), "-ltorch_cpu", "-lc10"]


def _fingerprint(source: Path, command: list[str]) -> str:
    """Name everything a compiled kernel depends on: source, torch, Python, compiler and processor."""
    digest = hashlib.sha256()
    for part in (
        torch.__version__,
        str(sysconfig.get_config_var("SOABI")),
        shlex.join(command),
        subprocess.run([*command[:1], "--version"], capture_output=True, check=False).stdout.decode(errors="replace"),
        _processor(),
    ):
        digest.update(part.encode() + b"\0")
    for file in sorted({source, *source.parent.glob("*.h")}):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def _processor() -> str:
    # A home directory may be shared by machines with unlike processors: a kernel for the wrong one would crash.
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        kept = {line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))}
        return "\n".join([platform.machine(), *sorted(kept)])
    return f"{platform.machine()} {platform.processor()}"


def _make_entry(roots: list[Path], name: str) -> Path | None:
    for root in roots:
        with contextlib.suppress(OSError):
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            (root / name).mkdir(mode=0o700, exist_ok=True)
            if _is_trusted(root) and os.access(root / name, os.W_OK | os.X_OK):
                return root / name
    return None


def _is_trusted(root: Path) -> bool:
    """Whether no other user can have put a library there: all may write among the temporary files."""
    if root.parent != Path(tempfile.gettempdir()):
        return True  # a place of the user's own choice
    try:
        found = root.lstat()
    except OSError:
        return False
    shared = bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not shared


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    # The system drops the lock when its process ends in whatever way, so a crash cannot block the next one.
    import fcntl

    with path.open("w") as handle:
        # Some network file systems have no locks: then two may compile, and the rename still keeps both whole.
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
