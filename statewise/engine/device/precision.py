"""Whether products of float32 may be made in TF32, as torch is told."""

from __future__ import annotations

import torch


def tf32_allowed() -> bool:
    """Whether torch's setting, by its old or its new interface, lets matrix products be rounded to TF32.

    >>> tf32_allowed()
    False
    """
    try:
        return torch.get_float32_matmul_precision() != "highest"
    except RuntimeError:  # torch refuses to say when a program has used its new interface
        return bool(torch.backends.cuda.matmul.fp32_precision == "tf32")
