"""The CPU kernel: compiled when the package is built, and absent without harm."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.native.library import NativeStatus, instruction_sets, load_native

__all__ = ["NativeStatus", "instruction_sets", "load_native"]

lazy_imports(__name__)
