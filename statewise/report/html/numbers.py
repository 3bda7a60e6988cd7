"""Numbers as people read them."""

from __future__ import annotations

import math


def shown(value: float, *, digits: int = 4) -> str:
    """A number with so many digits that count: thousands are set apart, very large and very small ones get a power.

    Args:
        value: any, whole or not.
        digits: that count; whole numbers below a million are shown in full.

    >>> [shown(value) for value in (3, 0.123456, 12345, 1234.5678, 1e-7, 2.5e9, float("nan"), -0.5)]
    ['3', '0.1235', '12,345', '1,235', '1e-07', '2.5e+09', 'not a number', '−0.5']
    """
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if value == 0:
        return "0"
    if float(value).is_integer() and size < 1e6:
        written = f"{int(value):,}"
    elif size >= 1e6 or size < 1e-4:
        written = f"{value:.{digits - 1}e}"
        head, power = written.split("e")
        written = f"{head.rstrip('0').rstrip('.') if '.' in head else head}e{power}"
    else:
        behind = max(0, digits - 1 - math.floor(math.log10(size)))
        written = f"{value:,.{behind}f}"
        written = written.rstrip("0").rstrip(".") if "." in written else written
    return written.replace("-", "−", 1) if value < 0 else written
