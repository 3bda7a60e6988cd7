"""The accelerator's engine: recurrences by Triton kernels, several of them together."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.engine.device.form import Form, Machine
    from statewise.engine.device.forms import candidates, choose_form, chunk_of, form_of, why_not
    from statewise.engine.device.together import unroll_together
    from statewise.engine.device.tuning import remember, trying
    from statewise.engine.operands import facts_of

__all__ = [
    "Form",
    "Machine",
    "candidates",
    "choose_form",
    "chunk_of",
    "facts_of",
    "form_of",
    "remember",
    "trying",
    "unroll_together",
    "why_not",
]

lazy_imports(__name__)
