"""How a classifier of sequences is trained, as numbers and words that a file or a command line can hold."""

from __future__ import annotations

from dataclasses import dataclass

from statewise.errors import ArgumentError
from statewise.mixup import Mixup
from statewise.train.mixups import check_mixing, make_mixer, passes_of, refuse_unknown
from statewise.train.settings import OPTIMIZERS, PRECISIONS, check_number, check_seed

SCHEDULES = ("constant", "cosine", "plateau")
_WHOLE = ("epochs", "batch", "curriculum_step", "bucket", "evaluation_batch")
_ABOVE_ZERO = ("lr", "divide", "solved")
_OR_ZERO = ("weight_decay", "noise_ramp", "noise_max")


@dataclass(frozen=True, kw_only=True)
class ClassifierSettings:
    """Everything that training a classifier depends on, but the model, the data and the machine.

    The defaults suit a file of a person's own on a small machine; where they differ, "rmsprop" with the rate 0.01 is
    the recipe of Wang & Niepert 2019.

    Args:
        epochs: passes over the training examples.
        batch: examples of an update.
        optimizer: "adam", "rmsprop" (decay 0.9, no momentum), "rmsprop-tf" (in TensorFlow's convention) or "sgd".
        lr: the learning rate.
        schedule: of the learning rate: "constant", "cosine" (to 0 at the last epoch), or "plateau" (divided when the
            validation loss is no new best).
        divide: what "plateau" divides the learning rate by.
        weight_decay: the factor of the coupled L2 penalty.
        clip: the largest norm of the whole gradient; None for none.
        patience: end the run after so many epochs without a new best, counted from the end of the curriculum; None for
            never.
        curriculum_start: the longest sequence of the first epoch; None trains on all from the beginning.
        curriculum_step: by how much the longest may grow at once.
        curriculum_every: let it grow after so many epochs at the latest; None waits until the loss is below ``solved``.
        solved: the training loss of an epoch below which the longest grows, and the noise; with ``mixup`` that of
            examples as they are, since the loss of mixed labels has a floor.
        temperature_end: the temperature of the centroids in the last epoch, to which it goes in equal ratios; None
            leaves it.
        noise_ramp: how much the noise of the "noisy" transition grows for each update of an epoch that is solved.
        noise_max: where it stops.
        bucket: sequences of so many batches are sorted by length among themselves, so that little is padded.
        mixup: what of two sequences is mixed, and their labels with it: "none", "input" (embeddings, or features),
            "pre-output" (what the head reads) or "through-time" (states inside the recurrence). The label of a pair is
            weighed by the mean of its coefficients.
        alpha: the shape of the coefficients' Beta(alpha, alpha): small values mix little.
        rho: how freely a coefficient moves from step to step: 0 keeps it, 1 draws each anew.
        pairing: "sorted" pairs the sequences of a batch that have like lengths, "permute" any of them, "derange" none
            with itself; "double" draws twice as many, each for one pair, and goes through the training set twice an
            epoch, "double_sorted" the same by like lengths.
        lengths: what happens where one of two sequences has ended: "handover" leaves the step to the other, "zero"
            mixes with nothing, "truncate" ends both.
        evaluation_batch: examples that are evaluated at once.
        precision: "single", "tf32" (products in TF32) or "bf16" (the same, and autocast to bfloat16).
        seed: of weights, noise, mixing and the order of examples.

    >>> ClassifierSettings(epochs=3).optimizer
    'adam'
    """

    epochs: int = 40
    batch: int = 32
    optimizer: str = "adam"
    lr: float = 0.005
    schedule: str = "constant"
    divide: float = 2.0
    weight_decay: float = 0.0
    clip: float | None = 1.0
    patience: int | None = 10
    curriculum_start: int | None = None
    curriculum_step: int = 1
    curriculum_every: int | None = None
    solved: float = 0.1
    temperature_end: float | None = None
    noise_ramp: float = 0.01
    noise_max: float = 1.0
    bucket: int = 50
    mixup: str = "none"
    alpha: float = 0.5
    rho: float = 0.0
    pairing: str = "sorted"
    lengths: str = "handover"
    evaluation_batch: int = 512
    precision: str = "single"
    seed: int = 0

    @property
    def plans_ahead(self) -> bool:
        """Whether the last epoch must be known in the first: a cosine ends with it, and a temperature arrives."""
        return self.schedule == "cosine" or self.temperature_end is not None

    def __post_init__(self) -> None:
        for name in _WHOLE:
            check_number(f"ClassifierSettings.{name}", getattr(self, name), whole=True)
        for name in (*_ABOVE_ZERO, *_OR_ZERO):
            check_number(f"ClassifierSettings.{name}", getattr(self, name), zero=name in _OR_ZERO)
        for name in ("patience", "curriculum_every", "curriculum_start", "clip", "temperature_end"):
            value, whole = getattr(self, name), name not in ("clip", "temperature_end")
            if value is not None:
                check_number(f"ClassifierSettings.{name}", value, whole=whole, zero=name == "curriculum_start")
        check_seed("ClassifierSettings.seed", self.seed)
        if self.divide <= 1:
            raise ArgumentError(where="ClassifierSettings.divide", got=self.divide, wanted="a number > 1")
        for name, known in (("optimizer", OPTIMIZERS), ("schedule", SCHEDULES), ("precision", PRECISIONS)):
            refuse_unknown(self, name, known)
        check_mixing(self, called="sequence")

    @property
    def passes(self) -> int:
        """How often an epoch goes through the training set, so that it has as many updates with pairs as without."""
        return passes_of(self)

    def mixer(self) -> Mixup | None:
        """What mixes the sequences of a batch; None if nothing does."""
        return make_mixer(self)
