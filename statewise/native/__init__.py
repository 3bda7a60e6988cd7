"""The C++ kernel: built at its first use, kept for the next time, and never required."""

from statewise.native.build import NativeStatus, build, cache_roots, load_native

__all__ = ["NativeStatus", "build", "cache_roots", "load_native"]
