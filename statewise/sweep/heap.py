"""Memory that is freed and wanted again at every iteration: let the process keep it."""

from __future__ import annotations

import ctypes
import sys

# The parameters of glibc's mallopt.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4


def keep_freed_memory() -> bool:
    """Tell the C library to keep what is freed instead of giving it back to the system; says whether it was told.

    The tensors of many replicas are large, and by default glibc takes each anew from the system and gives it back, so
    that every page of it is cleared and mapped again at every iteration: on a CPU that takes as long as the arithmetic.
    It is a setting of the whole process and cannot be undone, so it is for programs to make, not for a library: the
    commands and the workers of a sweep do, and a script of yours may. The process then stays as large as it once was.

    >>> keep_freed_memory() in (True, False)
    True
    """
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    return bool(library.mallopt(_MMAP_MAX, 0)) and bool(library.mallopt(_TRIM_THRESHOLD, 2**31 - 1))
