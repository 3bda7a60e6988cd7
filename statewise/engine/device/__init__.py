"""The accelerator's engine: recurrences by Triton kernels, several of them together."""

from statewise.engine.device.forms import Form, Machine, choose_form, chunk_of, form_of
from statewise.engine.device.operands import split, why_not
from statewise.engine.device.together import unroll_together

__all__ = ["Form", "Machine", "choose_form", "chunk_of", "form_of", "split", "unroll_together", "why_not"]
