"""Compiles the CPU kernel: one shared library with a plain C interface, for every version of Python and torch.

This runs when a wheel is built or the project is installed from source (``hatch_build.py``), and as ``python
statewise/native/build.py`` after a change of its sources. It imports nothing but the standard library. The kernel is
compiled once for each instruction set of the compiler's target; when the library is loaded, it chooses among them.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent
NOT_BUILT = "not_built.txt"  # why there is no library, where that is so
LIBRARY = "libstatewise.dylib" if sys.platform == "darwin" else "libstatewise.so"

# Best first. Processors of other kinds get what their compiler gives by default.
_INSTRUCTION_SETS: dict[str, dict[str, list[str]]] = {
    "x86_64": {
        "avx512": ["-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mavx2", "-mfma"],
        "avx2": ["-mavx2", "-mfma"],
    },
    "aarch64": {"neon": []},
}
_INSTRUCTION_SETS |= {"amd64": _INSTRUCTION_SETS["x86_64"], "arm64": _INSTRUCTION_SETS["aarch64"]}
# No -ffast-math: NaN and infinity must propagate.
_FLAGS = ["-O3", "-std=c++20", "-fPIC", "-fvisibility=hidden", "-ffp-contract=fast", "-fno-math-errno", "-w"]


class BuildError(RuntimeError):
    """The kernel could not be compiled; the text says why, and what to do."""


def build(
    folder: Path = FOLDER, environ: Mapping[str, str] = os.environ, *, into: Path | None = None, platform: str = ""
) -> Path:
    """Compile the kernel, unless a library is there that loads and was made of these sources, and return the library.

    Args:
        folder: where the sources are.
        environ: where the compiler is looked up: ``$CXX``, then the usual names on ``$PATH``; ``$CXXFLAGS`` and
            ``$LDFLAGS`` are passed on.
        into: the folder of the library; None for that of the sources.
        platform: of the wheel that it is for, as ``sysconfig.get_platform()`` says it; empty for any.

    Raises:
        BuildError: if there is no compiler, it is for another processor than the platform's, or it failed.
    """
    library, why_not = (into or folder) / LIBRARY, (into or folder) / NOT_BUILT
    if library.exists():
        try:
            made_of = sources_of(ctypes.CDLL(str(library)))
        except OSError:  # damaged, or of another machine that shares this folder
            made_of = ""
        if made_of == fingerprint(folder):
            why_not.unlink(missing_ok=True)
            return library
    library.unlink(missing_ok=True)  # one of other sources must not serve when this fails
    if platform:
        check_target(platform, environ)
    compiler = _find_compiler(environ)
    compile_flags, link_flags = (shlex.split(environ.get(name, "")) for name in ("CXXFLAGS", "LDFLAGS"))
    sets = _INSTRUCTION_SETS.get(_machine(compiler), {"baseline": []})
    with tempfile.TemporaryDirectory(dir=into or folder) as scratch:
        builds = " ".join(f"SW_BUILD({name})" for name in sets)
        known = [f"-DSW_BUILDS={builds}", f'-DSW_SOURCES="{fingerprint(folder)}"']
        commands = {"dispatch": [*known, str(folder / "dispatch.cpp")]}
        commands |= {name: [*flags, str(folder / "kernel.cpp")] for name, flags in sets.items()}
        objects = [f"{scratch}/{name}.o" for name in commands]
        _run_all(
            [
                [*compiler, *compile_flags, *_FLAGS, *rest, "-c", "-o", to]
                for rest, to in zip(commands.values(), objects, strict=True)
            ]
        )
        made = Path(scratch) / LIBRARY
        _run_all([[*compiler, *compile_flags, "-shared", *objects, *link_flags, "-o", str(made), "-pthread"]])
        made.replace(library)
    why_not.unlink(missing_ok=True)
    return library


def fingerprint(folder: Path = FOLDER) -> str:
    """What the sources are, and how they are compiled, in one word; empty where there are none."""
    sources = sorted([*folder.glob("*.cpp"), *folder.glob("*.h")])
    if not sources:
        return ""
    contents = [source.name.encode() + b"\n" + source.read_bytes() for source in [*sources, Path(__file__)]]
    return hashlib.sha256(b"\n".join(contents)).hexdigest()


def sources_of(library: ctypes.CDLL) -> str:
    """The fingerprint of the sources that a library was made of; empty if it does not say."""
    try:
        sources = library.sw_sources
    except AttributeError:
        return ""
    sources.restype = ctypes.c_char_p
    return bytes(sources()).decode()


def _find_compiler(environ: Mapping[str, str]) -> list[str]:
    # $CXX may carry arguments ("ccache g++"); when it is set to something absent, the usual names still help.
    for candidate in (environ.get("CXX", ""), "c++", "g++", "clang++"):
        if found := shutil.which(candidate, path=environ.get("PATH")):
            return [found]
        try:
            words = shlex.split(candidate)
        except ValueError as error:
            raise BuildError(f"Got CXX={candidate!r}, wanted a command: {error}. Unset it, or mend it.") from error
        if words and (found := shutil.which(words[0], path=environ.get("PATH"))):
            return [found, *words[1:]]
    raise BuildError(
        "No C++ compiler was found (looked for $CXX, c++, g++, clang++): install GCC 11 or Clang 14, or newer."
    )


def check_target(platform: str, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse a compiler that makes code for another processor than a wheel of this platform would be for.

    Args:
        platform: as ``sysconfig.get_platform()`` says it.
        environ: where the compiler is looked up.

    Raises:
        BuildError: if there is no compiler, or it is for another processor.
    """
    compiler, wanted = _find_compiler(environ), platform.rpartition("-")[2]
    made = _machine(compiler)
    sets = _INSTRUCTION_SETS.get(made), _INSTRUCTION_SETS.get(wanted)
    if None not in sets and sets[0] is not sets[1]:
        raise BuildError(
            f"{shlex.join(compiler)} makes code for {made}, wanted one for {platform}. Set $CXX to another."
        )


def _machine(compiler: list[str]) -> str:
    """The processor for which a compiler makes code, by the name that it has for it."""
    ran = subprocess.run([*compiler, "-dumpmachine"], capture_output=True, text=True, check=False)
    return ran.stdout.split("-")[0].strip().lower()


def _run_all(commands: list[list[str]]) -> None:
    """Run commands side by side, and wait for all."""
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for command in commands]
    results = [(process.communicate()[0], process.returncode) for process in running]
    for command, (output, code) in zip(commands, results, strict=True):
        if code != 0:
            text = output.decode(errors="replace")
            raise BuildError(f"The compiler ended with {code}:\n$ {shlex.join(command)}\n{text}")


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{build()}\n")
    except (BuildError, OSError) as error:
        sys.exit(f"The CPU kernel was not built. {error}")
