from __future__ import annotations
from statewise.engine.recurrence import Recurrence, Unrolled
def why_not(call: Recurrence) -> str | None:
    return "not yet"
def unroll(call: Recurrence) -> Unrolled:
    raise AssertionError
