"""The Triton kernels of the accelerator's engine, one file each; only what is named here may be imported early."""

from statewise.kernels.status import TritonStatus, load_triton, transformed

__all__ = ["TritonStatus", "load_triton", "transformed"]
