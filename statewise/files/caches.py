"""Where what can be made again is kept."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def cache_roots(environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Where caches may be kept, the preferred place first; the second is a private one among the temporary files.

    The first is ``$STATEWISE_CACHE``, else ``$XDG_CACHE_HOME/statewise``, else ``~/.cache/statewise``.

    >>> cache_roots({"STATEWISE_CACHE": "/a", "XDG_CACHE_HOME": "/b"})[0].as_posix()
    '/a'
    >>> cache_roots({"XDG_CACHE_HOME": "/b"})[0].as_posix()
    '/b/statewise'
    >>> cache_roots({})[0].relative_to(Path.home()).as_posix()
    '.cache/statewise'
    """
    if environ.get("STATEWISE_CACHE"):
        preferred = Path(environ["STATEWISE_CACHE"])
    elif environ.get("XDG_CACHE_HOME"):
        preferred = Path(environ["XDG_CACHE_HOME"]) / "statewise"
    else:
        preferred = Path("~/.cache/statewise").expanduser()
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return [preferred, Path(tempfile.gettempdir()) / f"statewise-{user}"]
