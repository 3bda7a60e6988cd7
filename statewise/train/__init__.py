"""Training: a whole step behind one call, and whole runs that can be killed and go on."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.train.adapting import dynamic_perplexity, language_statistics
    from statewise.train.averaging import Averaging, NonMonotone
    from statewise.train.callback_kinds import callbacks_of, promises
    from statewise.train.callbacks import Callback
    from statewise.train.choose_optimizer import build_optimizer
    from statewise.train.classify import train_classifier, train_steps
    from statewise.train.classify_folder import load_classifier, load_steps
    from statewise.train.classify_run import ClassifierResult, Judged, save_classifier
    from statewise.train.classify_settings import ClassifierSettings
    from statewise.train.cover import CoverPenalty
    from statewise.train.curriculum import Curriculum, NoiseRamp, temperature_at
    from statewise.train.driver import Checkpoints
    from statewise.train.dynamic import dynamic_evaluation, gradient_statistics
    from statewise.train.dynamic_steps import GradientStatistics
    from statewise.train.evaluation import evaluate_stream, evaluate_with_noise
    from statewise.train.fit import TrainingResult, train_language_model
    from statewise.train.forecast import train_forecaster
    from statewise.train.forecast_folder import load_forecaster
    from statewise.train.forecast_measure import FeatureErrors, ForecastMeasured, measure_forecasts
    from statewise.train.forecast_run import ForecastResult
    from statewise.train.harden import AUTOMATON, Hardening, LearntAutomaton, learn_automaton
    from statewise.train.language import LanguageTraining, Update
    from statewise.train.language_folder import load_language_model
    from statewise.train.plan import CaptureError, CaptureWarning, StepPlan
    from statewise.train.precision import precisely
    from statewise.train.progress import Progress
    from statewise.train.projection import SpectralProjection
    from statewise.train.rmsprop_tf import RMSpropTF, rmsprop_tf_
    from statewise.train.rounding import RoundedWeights
    from statewise.train.run import RunFolder
    from statewise.train.schedules import Divide, EarlyStopping
    from statewise.train.settings import TrainingSettings
    from statewise.train.step import TrainingStep
    from statewise.train.tag import TaggerResult, train_tagger
    from statewise.train.tag_data import TagMeasured
    from statewise.train.tag_folder import load_tagger
    from statewise.train.tag_settings import TaggerSettings
    from statewise.train.tasks import Measured
    from statewise.train.tensorboard import TensorBoard
    from statewise.train.two_phase import TwoPhase
    from statewise.train.watch import Watch

__all__ = [
    "AUTOMATON",
    "Averaging",
    "Callback",
    "CaptureError",
    "CaptureWarning",
    "Checkpoints",
    "ClassifierResult",
    "ClassifierSettings",
    "CoverPenalty",
    "Curriculum",
    "Divide",
    "EarlyStopping",
    "FeatureErrors",
    "ForecastMeasured",
    "ForecastResult",
    "GradientStatistics",
    "Hardening",
    "Judged",
    "LanguageTraining",
    "LearntAutomaton",
    "Measured",
    "NoiseRamp",
    "NonMonotone",
    "Progress",
    "RMSpropTF",
    "RoundedWeights",
    "RunFolder",
    "SpectralProjection",
    "StepPlan",
    "TagMeasured",
    "TaggerResult",
    "TaggerSettings",
    "TensorBoard",
    "TrainingResult",
    "TrainingSettings",
    "TrainingStep",
    "TwoPhase",
    "Update",
    "Watch",
    "build_optimizer",
    "callbacks_of",
    "dynamic_evaluation",
    "dynamic_perplexity",
    "evaluate_stream",
    "evaluate_with_noise",
    "gradient_statistics",
    "language_statistics",
    "learn_automaton",
    "load_classifier",
    "load_forecaster",
    "load_language_model",
    "load_steps",
    "load_tagger",
    "measure_forecasts",
    "precisely",
    "promises",
    "rmsprop_tf_",
    "save_classifier",
    "temperature_at",
    "train_classifier",
    "train_forecaster",
    "train_language_model",
    "train_steps",
    "train_tagger",
]

lazy_imports(__name__)
