"""The Triton kernels of the accelerator's engine, one file each; only :func:`load_triton` may be imported early."""

from statewise.kernels.status import TritonStatus, load_triton

__all__ = ["TritonStatus", "load_triton"]
