"""Whether Triton is there, and whether it runs on a device or is interpreted on the CPU."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass

import torch


@dataclass(frozen=True, kw_only=True)
class TritonStatus:
    """Whether the Triton kernels can run and, when not, why and what to do about it.

    Args:
        available: whether they can be launched.
        reason: a sentence for the user; empty when available.
        interpreted: whether they run in Triton's interpreter, on CPU tensors: slow, and for tests only.

    >>> TritonStatus(available=False, reason="Triton is not installed").interpreted
    False
    """

    available: bool
    reason: str = ""
    interpreted: bool = False

    @property
    def device(self) -> str:
        """The kind of device whose tensors the kernels take."""
        return "cpu" if self.interpreted else "cuda"


def transformed() -> bool:
    """Whether this runs inside a transform of torch.func, which cannot see into a kernel.

    >>> transformed()
    False
    """
    return bool(torch._C._are_functorch_transforms_active())


def batched(*tensors: torch.Tensor) -> bool:
    """Whether a tensor stands for many, as a gradient does under ``torch.vmap`` or ``is_grads_batched=True``.

    >>> batched(torch.ones(2))
    False
    """
    return transformed() or any(map(torch._C._functorch.is_legacy_batchedtensor, tensors))


def traced() -> bool:
    """Whether torch records operators instead of running them: its compiler, or a mode such as ``FakeTensorMode``.

    >>> traced()
    False
    """
    return torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0


@functools.cache
def load_triton() -> TritonStatus:
    """Import Triton once and say what it can do here; nothing is raised.

    >>> load_triton() is load_triton()
    True
    """
    if os.environ.get("STATEWISE_TRITON") == "0":
        return TritonStatus(available=False, reason="STATEWISE_TRITON=0 turns it off")
    try:
        import triton
    except ImportError:
        return TritonStatus(available=False, reason="Triton is not installed; torch's CUDA builds bring it along")
    if triton.knobs.runtime.interpret:
        if tuple(map(int, triton.__version__.split(".")[:2])) < (3, 7):  # numpy 2.4 refuses what it does with arrays
            reason = f"the interpreter of Triton {triton.__version__} cannot run the kernels, that of 3.7.1 can"
            return TritonStatus(available=False, reason=reason)
        return TritonStatus(available=True, interpreted=True)
    if not torch.cuda.is_available():
        return TritonStatus(available=False, reason="torch sees no CUDA device")
    return TritonStatus(available=True)
