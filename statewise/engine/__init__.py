"""How a layer is unrolled: the reference loop, which is the truth, and faster engines that equal it."""

from statewise.engine.layout import Layout
from statewise.engine.plan import ENGINES, Plan, choose, unroll_all
from statewise.engine.recurrence import Drawn, GateMask, Mixed, Recurrence, Step, Unrolled

__all__ = [
    "ENGINES",
    "Drawn",
    "GateMask",
    "Layout",
    "Mixed",
    "Plan",
    "Recurrence",
    "Step",
    "Unrolled",
    "choose",
    "unroll_all",
]
