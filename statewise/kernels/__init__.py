"""The Triton kernels of the accelerator's engine, one file each; only what is named here may be imported early."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.kernels.status import TritonStatus, batched, load_triton, traced, transformed

__all__ = ["TritonStatus", "batched", "load_triton", "traced", "transformed"]

lazy_imports(__name__)
