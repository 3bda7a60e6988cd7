"""Whether a training step runs as a graph, and why not."""

from __future__ import annotations

from dataclasses import dataclass

from statewise.errors import EngineError


class CaptureWarning(UserWarning):
    """A training step on an accelerator runs eagerly, since it cannot be captured in a graph."""


class CaptureError(EngineError):
    """A training step was to be captured in a graph, and cannot be."""


@dataclass(frozen=True, kw_only=True)
class StepPlan:
    """Whether the latest call of a step replayed a graph and, when not, why.

    Args:
        captured: whether the call replayed a captured graph.
        why_not: the reason, when it did not; else empty.

    >>> print(StepPlan(captured=False, why_not="the model is on cpu"))
    eager; not captured because the model is on cpu
    """

    captured: bool
    why_not: str = ""

    def __str__(self) -> str:
        return "captured" if self.captured else f"eager; not captured because {self.why_not}"


@dataclass(frozen=True)
class Refusal:
    r"""Why a step cannot be captured, and what can be done about it.

    Args:
        reason: continues "not captured because".
        remedy: a sentence.
        expected: nothing to warn of, since nobody could expect a graph here.

    >>> Refusal.of(RuntimeError("operation not permitted\n at line 3")).reason
    'the capture failed (RuntimeError: operation not permitted)'
    """

    reason: str
    remedy: str
    expected: bool = False

    @classmethod
    def of(cls, error: Exception) -> Refusal:
        """The refusal that an error in the capture amounts to."""
        told = str(error).strip().partition("\n")[0]
        return cls(
            f"the capture failed ({type(error).__name__}: {told})",
            "Keep the step free of .item(), .cpu(), copies from the host and branches on the values of tensors, or "
            "give graph=False.",
        )

    def warning(self) -> CaptureWarning:
        """What to tell the user once."""
        return CaptureWarning(f"The training step runs eagerly, because {self.reason}. {self.remedy}")

    def error(self) -> CaptureError:
        """What to raise where a graph was insisted on."""
        return CaptureError(
            where="TrainingStep(graph=True)",
            got=f"a step that cannot be captured: {self.reason}",
            wanted="one that can be",
            remedy=f'{self.remedy} With graph="auto" it runs eagerly.',
        )
