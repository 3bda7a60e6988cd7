"""Puts the compiled CPU kernel into the wheel, which then serves every Python and torch of one platform."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
import tempfile
from pathlib import Path
from platform import machine
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelHook(BuildHookInterface):
    """Compiles the kernel: for a wheel from its sources anew, for an editable install in place, where it is kept."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects the files of a wheel; ``version`` is "standard" or "editable"."""
        source = Path(self.root) / "statewise" / "native" / "build.py"
        spec = importlib.util.spec_from_file_location("statewise_native_build", source)
        assert spec is not None
        assert spec.loader is not None
        builder = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(builder)
        if sys.platform == "win32":
            self.app.display_warning("The CPU kernel is not built on Windows; the plain loop serves there.")
            return
        self.scratch = tempfile.TemporaryDirectory()
        into, platform = source.parent if version == "editable" else Path(self.scratch.name), sysconfig.get_platform()
        why_not = into / builder.NOT_BUILT
        try:
            made = builder.build(source.parent, into=into, platform=platform)
            build_data["pure_python"] = False
            # A Python for both kinds of Macs makes a library for the one it runs on.
            platform = platform.replace("universal2", machine())
            build_data["tag"] = f"py3-none-{platform.replace('-', '_').replace('.', '_')}"
        except (builder.BuildError, OSError) as error:  # no compiler, or a source tree that may not be written
            self.app.display_warning(f"The CPU kernel was not built, so the plain loop will serve. {error}")
            made = why_not
            if os.access(into, os.W_OK):
                made.write_text(f"{error}\n", encoding="utf-8")
        if version != "editable":
            build_data["force_include"][str(made)] = f"statewise/native/{made.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called by hatchling when the wheel is there."""
        if sys.platform != "win32":
            self.scratch.cleanup()
