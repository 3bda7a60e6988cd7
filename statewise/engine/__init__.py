"""How a layer is unrolled: the reference loop, which is the truth, and faster engines that equal it."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.engine.dealing import Member, deal, project
    from statewise.engine.layout import Layout
    from statewise.engine.plan import ENGINES, Plan, choose, unroll_all
    from statewise.engine.recurrence import Drawn, GateMask, Mixed, Recurrence, Step, Unrolled

__all__ = [
    "ENGINES",
    "Drawn",
    "GateMask",
    "Layout",
    "Member",
    "Mixed",
    "Plan",
    "Recurrence",
    "Step",
    "Unrolled",
    "choose",
    "deal",
    "project",
    "unroll_all",
]

lazy_imports(__name__)
