"""What can be measured on any trained network: where its states lie, and how far its probabilities can be believed."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.analysis.calibration import Calibration, CalibrationTally, calibration
    from statewise.analysis.leakage import Leakage, head_leakage
    from statewise.analysis.ranks import effective_rank, participation_ratio, stable_rank
    from statewise.analysis.spectrum import SingularValues, Spectrum, every_spectrum, spectrum
    from statewise.analysis.temperature import FittedTemperature, fit_temperature

__all__ = [
    "Calibration",
    "CalibrationTally",
    "FittedTemperature",
    "Leakage",
    "SingularValues",
    "Spectrum",
    "calibration",
    "effective_rank",
    "every_spectrum",
    "fit_temperature",
    "head_leakage",
    "participation_ratio",
    "spectrum",
    "stable_rank",
]

lazy_imports(__name__)
