"""Numbers as a page can read them: few digits, nothing that JSON has no word for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from torch import Tensor

DIGITS = 4


def plain(values: Tensor) -> Any:
    """Nested lists of rounded numbers; None for those that are not finite.

    Args:
        values: of any shape.

    >>> import torch
    >>> plain(torch.tensor([[0.123456, float("nan")]]))
    [[0.1235, None]]
    """
    wide = values.detach().double().cpu().numpy()
    rounded = np.round(wide, DIGITS) + 0.0
    if np.isfinite(rounded).all():
        return rounded.tolist()
    told = rounded.astype(object)
    told[~np.isfinite(rounded)] = None
    return told.tolist()


def number(value: float) -> float | None:
    """A rounded number; None if it is not finite.

    Args:
        value: any.

    >>> number(1 / 3), number(float("inf"))
    (0.3333, None)
    """
    return round(float(value), DIGITS) if math.isfinite(value) else None
