"""The orders that Chen, Li & Zhao 2019 print: Table 1 and the complexity of the introduction. None is a guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from statewise.bounds.elman_constants import ElmanConstants
from statewise.bounds.logs import log_geometric, log_of
from statewise.bounds.penalties import check_gamma, check_sequences
from statewise.errors import ArgumentError

#: The columns of Table 1.
COLUMNS = ("theorem 2", "bound 3", "bound 4")


@dataclass(frozen=True)
class Order:
    """How a printed bound grows, with every constant 1 and every logarithm left out.

    Args:
        name: of the bound.
        log_value: ln of the order.
    """

    name: str
    log_value: float
    guarantee: ClassVar[bool] = False


def table_1(
    column: str,
    *,
    log_growth: float,
    dimension: float,
    steps: int,
    two_one: float,
    squared_frobenius: float,
    gamma: float,
    m: int,
) -> Order:
    """An entry of Table 1, divided by ``√m γ``.

    ======  =========  ==============  ===================
    range   theorem 2  bound 3         bound 4
    ======  =========  ==============  ===================
    β < 1   d          t ΣM            √(d ΣF²)
    β = 1   d t        t² ΣM           d t √ΣF²
    β > 1   √(d³ t)    t β^t ΣM        d β^t √ΣF²
    ======  =========  ==============  ===================

    The column of bound 3 rests on a false lemma; what holds needs ``√d`` more.

    Args:
        column: one of ``COLUMNS``.
        log_growth: ln β.
        dimension: d, the root of the number of parameters.
        steps: t.
        two_one: ΣM, the sum of ``‖A‖_{2,1}`` of U, V and W.
        squared_frobenius: ΣF², that of ``‖A‖²_F``.
        gamma: γ.
        m: independent sequences.

    >>> order = table_1(
    ...     "theorem 2", log_growth=0.0, dimension=8.0, steps=10, two_one=1.0, squared_frobenius=1.0, gamma=1.0, m=100
    ... )
    >>> round(math.exp(order.log_value), 9), order.guarantee
    (8.0, False)
    """
    if column not in COLUMNS:
        raise ArgumentError(where="column", got=column, wanted=f"one of {COLUMNS}")
    d, t, regime = math.log(dimension), math.log(steps), (log_growth > 0) - (log_growth < 0)
    grown = steps * log_growth if regime > 0 else 0.0
    norms = {"theorem 2": 0.0, "bound 3": log_of(two_one), "bound 4": 0.5 * log_of(squared_frobenius)}
    sizes = {
        "theorem 2": {-1: d, 0: d + t, 1: 0.5 * (3 * d + t)},
        "bound 3": {-1: t, 0: 2 * t, 1: t + grown},
        "bound 4": {-1: 0.5 * d, 0: d + t, 1: d + grown},
    }
    log_value = sizes[column][regime] + norms[column]
    return Order(f"Table 1, {column}", log_value - 0.5 * check_sequences(m) - check_gamma(gamma))


def printed_complexity(elman: ElmanConstants) -> Order:
    """The complexity of the introduction, ``d min{√d, ‖W‖ S_t(‖U‖)} ‖V‖ √ln(t √d S_t(‖U‖))``, ``d = √P``.

    The paper divides it by ``√m γ``.

    Args:
        elman: the class; its norms, sizes and steps are used.

    >>> net = ElmanConstants(
    ...     inputs=2, hidden=4, classes=2, steps=10, norm_u=1.0, norm_w=1.0, norm_v=2.0, input_bound=1.0
    ... )
    >>> round(math.exp(printed_complexity(net).log_value), 6)
    62.943344
    """
    d = 0.5 * math.log(elman.parameters)
    grown = log_geometric(log_of(elman.norm_u), elman.steps)
    inside = math.log(elman.steps) + 0.5 * d + grown
    length = min(0.5 * d, log_of(elman.norm_w) + grown)
    return Order("complexity", d + length + log_of(elman.norm_v) + 0.5 * log_of(max(0.0, inside)))
