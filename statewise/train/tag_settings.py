"""How a tagger is trained, as numbers and words that a file or a command line can hold."""

from __future__ import annotations

from dataclasses import dataclass

from statewise.errors import ArgumentError
from statewise.mixup import Mixup
from statewise.mixup.crf_loss import MODES
from statewise.train.mixups import check_mixing, make_mixer, passes_of, refuse_unknown
from statewise.train.settings import OPTIMIZERS, PRECISIONS, check_number, check_seed

SCHEDULES = ("constant", "steps", "plateau", "cosine")
KEEPS = ("best", "last")
_CHOICES = {
    "optimizer": OPTIMIZERS,
    "schedule": SCHEDULES,
    "crf_mode": MODES,
    "keep": KEEPS,
    "precision": PRECISIONS,
}


@dataclass(frozen=True, kw_only=True)
class TaggerSettings:
    """Everything that training a tagger depends on, but the model, the data and the machine.

    The loss is the negative log-likelihood summed over a sentence (or pair) and averaged over the batch, to which the
    learning rate belongs. ``TaggerSettings(schedule="steps", pairing="double", lengths="zero", crf_mode="prefix",
    keep="last")`` is the recipe of Karamzade et al. 2020, sections 4.1 to 4.3, with
    ``schedule="plateau", step_every=6, epochs=250`` that of their Table 2.

    Args:
        epochs: passes over the training sentences.
        batch: sentences, or pairs of them, of an update.
        optimizer: "sgd", "adam", "rmsprop", or "rmsprop-tf" in TensorFlow's convention.
        lr: the learning rate.
        schedule: of the learning rate: "constant", "steps" (divided every ``step_every`` epochs), "plateau" (divided
            after ``step_every`` epochs without a new smallest training loss) or "cosine" (to 0 at the last epoch).
        divide: what the learning rate is divided by.
        step_every: in how many epochs.
        least_lr: a run whose rate has fallen below it ends.
        weight_decay: the factor of the coupled L2 penalty.
        clip: the largest norm of the whole gradient; None for none.
        patience: end the run after so many epochs without a new best on the validation set; None for never.
        bucket: sentences of so many batches are sorted by length among themselves; 1 leaves them at random.
        mixup: what is mixed: "none", "input" (features), "pre-output" (states before the head) or "through-time"
            (states inside the recurrence).
        alpha: the shape of the coefficients' Beta(alpha, alpha): small values mix little.
        rho: how freely a coefficient moves from step to step: 0 keeps it, 1 draws each anew.
        pairing: "sorted" pairs the sentences of a batch that have like lengths, so that nearly all steps are mixed and
            pairs are hardly longer than sentences; "permute" any of them, "derange" none with itself; "double" draws
            twice as many, each for one pair, and goes through the training set twice an epoch, "double_sorted" the same
            by like lengths.
        lengths: what happens where one of two sentences has ended: "handover" leaves the step to the other, "zero"
            mixes with nothing, "truncate" ends both.
        crf_mode: how the targets of a CRF are mixed: "coupled", which is defined for every rho and all lengths,
            "prefix" or "paper".
        keep: which model the run gives: the "best" on the validation set, or the "last".
        evaluation_batch: sentences that are evaluated at once.
        precision: "single", "tf32" (products in TF32) or "bf16" (the same, and autocast to bfloat16).
        seed: of weights, dropout, mixing and the order of sentences.

    >>> TaggerSettings(mixup="input", alpha=0.1).mixer().site
    'input'
    """

    epochs: int = 50
    batch: int = 32
    optimizer: str = "sgd"
    lr: float = 0.1
    schedule: str = "constant"
    divide: float = 2.0
    step_every: int = 10
    least_lr: float = 1e-4
    weight_decay: float = 0.0
    clip: float | None = 5.0
    patience: int | None = None
    bucket: int = 1
    mixup: str = "none"
    alpha: float = 0.5
    rho: float = 0.0
    pairing: str = "sorted"
    lengths: str = "handover"
    crf_mode: str = "coupled"
    keep: str = "best"
    evaluation_batch: int = 256
    precision: str = "single"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "step_every", "bucket", "evaluation_batch"):
            check_number(f"TaggerSettings.{name}", getattr(self, name), whole=True)
        for name in ("lr", "divide"):
            check_number(f"TaggerSettings.{name}", getattr(self, name))
        for name in ("weight_decay", "least_lr"):
            check_number(f"TaggerSettings.{name}", getattr(self, name), zero=True)
        for name in ("patience", "clip"):
            if getattr(self, name) is not None:
                check_number(f"TaggerSettings.{name}", getattr(self, name), whole=name == "patience")
        check_seed("TaggerSettings.seed", self.seed)
        if self.divide <= 1:
            raise ArgumentError(where="TaggerSettings.divide", got=self.divide, wanted="a number > 1")
        if self.schedule == "plateau" and self.lr < self.least_lr:
            raise ArgumentError(
                where="TaggerSettings.lr", got=self.lr, wanted=f"at least {self.least_lr:g}, below which a run ends"
            )
        for name, known in _CHOICES.items():
            refuse_unknown(self, name, known)
        check_mixing(self, called="sentence")

    @property
    def plans_ahead(self) -> bool:
        """Whether the last epoch must be known in the first."""
        return self.schedule == "cosine"

    @property
    def passes(self) -> int:
        """How often an epoch goes through the training set, so that it has as many updates with pairs as without."""
        return passes_of(self)

    def mixer(self) -> Mixup | None:
        """What mixes the sentences of a batch; None if nothing does."""
        return make_mixer(self)
