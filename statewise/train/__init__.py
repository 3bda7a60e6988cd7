"""Training: a whole step behind one call, as a CUDA graph where that is possible."""

from statewise.train.plan import CaptureError, CaptureWarning, StepPlan
from statewise.train.step import TrainingStep

__all__ = ["CaptureError", "CaptureWarning", "StepPlan", "TrainingStep"]
