"""How a language model is trained, as numbers and words that a file or a command line can hold."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from statewise.errors import ArgumentError
from statewise.mixup import InputMixup, Mixup, PreOutputMixup, ThroughTimeMixup

OPTIMIZERS = ("sgd", "adam", "rmsprop", "rmsprop-tf")
AVERAGING = ("never", "always", "non-monotone")
PRECISIONS = ("single", "tf32", "bf16")

MIXUPS: dict[str, type[Mixup] | None] = {
    "none": None,
    "input": InputMixup,
    "pre-output": PreOutputMixup,
    "through-time": ThroughTimeMixup,
}


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Everything that training a language model depends on, but the model, the data and the machine.

    The defaults are the recipe of Dieng et al. 2018, section 5, for Penn Treebank.

    Args:
        epochs: passes over the training text.
        batch: parallel columns into which the text is cut.
        bptt: tokens of a segment, through which gradients flow.
        random_bptt: draw the lengths of segments around ``bptt``, and scale the learning rate with them (Merity et al.
            2018).
        optimizer: "sgd", "adam", "rmsprop", or "rmsprop-tf" in TensorFlow's convention.
        lr: the learning rate.
        weight_decay: the factor of the coupled L2 penalty.
        clip: the largest norm of the whole gradient; None for none.
        divide: what the learning rate is divided by when the validation loss is no new best; None for never.
        averaging: average the iterates "never", "always", or from when the validation loss stops falling on
            ("non-monotone", NT-ASGD).
        non_monotone: how many validation losses that test lets off.
        patience: end the run after so many epochs without a new best; None for never.
        stop_non_monotone: end the run when the non-monotone test fires, as fine-tuning does.
        mixup: what of two columns of the text is mixed, and the words that follow with it: "none", "input"
            (embeddings), "pre-output" (what the head reads) or "through-time" (states inside the bottom layer).
        mixup_alpha: the shape of the coefficients' Beta(alpha, alpha): small values mix little.
        mixup_rho: how freely a coefficient moves from step to step: 0 keeps it, 1 draws each anew.
        samples: how many draws of noise a token is trained on at once (the K-sample objective).
        precision: "single", "tf32" (products in TF32) or "bf16" (the same, and autocast to bfloat16; on a CPU outside
            the recurrence).
        seed: of weights, noise, mixing and lengths.
        valid_batch: columns in which the validation text is read, if it is long enough.
        test_batch: columns in which the test text is read, likewise.

    >>> TrainingSettings(epochs=3).lr
    30.0
    """

    epochs: int = 200
    batch: int = 80
    bptt: int = 35
    random_bptt: bool = False
    optimizer: str = "sgd"
    lr: float = 30.0
    weight_decay: float = 0.0
    clip: float | None = 0.25
    divide: float | None = 1.2
    averaging: str = "non-monotone"
    non_monotone: int = 5
    patience: int | None = None
    stop_non_monotone: bool = False
    mixup: str = "none"
    mixup_alpha: float = 0.5
    mixup_rho: float = 0.0
    samples: int = 1
    precision: str = "single"
    seed: int = 1111
    valid_batch: int = 10
    test_batch: int = 1

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "bptt", "non_monotone", "samples", "valid_batch", "test_batch"):
            check_number(f"TrainingSettings.{name}", getattr(self, name), whole=True)
        for name in ("patience", "clip", "divide"):
            if getattr(self, name) is not None:
                check_number(f"TrainingSettings.{name}", getattr(self, name), whole=name == "patience")
        check_number("TrainingSettings.lr", self.lr)
        check_seed("TrainingSettings.seed", self.seed)
        if self.divide is not None and self.divide <= 1:
            raise ArgumentError(
                where="TrainingSettings.divide", got=self.divide, wanted="a number > 1, or None for no such rule"
            )
        check_number("TrainingSettings.weight_decay", self.weight_decay, zero=True)
        for name, known in (("optimizer", OPTIMIZERS), ("averaging", AVERAGING), ("precision", PRECISIONS)):
            if getattr(self, name) not in known:
                raise ArgumentError(
                    where=f"TrainingSettings.{name}", got=getattr(self, name), wanted=f"one of {', '.join(known)}"
                )
        if self.mixup not in MIXUPS:
            raise ArgumentError(where="TrainingSettings.mixup", got=self.mixup, wanted=f"one of {', '.join(MIXUPS)}")
        try:
            self.mixer()
        except ArgumentError as error:  # of the process that it is made of
            raise error.told(where=f"TrainingSettings.mixup_{error.where.rpartition('.')[2]}") from None
        if self.mixup != "none" and self.batch < 2:
            wanted = "at least 2: a column alone has no partner"
            raise ArgumentError(where="TrainingSettings.batch", got=f"1 with mixup {self.mixup}", wanted=wanted)

    def mixer(self) -> Mixup | None:
        """What mixes the columns of the text, each with another; None if nothing does."""
        kind = MIXUPS[self.mixup]
        return None if kind is None else kind(alpha=self.mixup_alpha, rho=self.mixup_rho, pairing="derange")


def as_json(config: Any) -> dict[str, Any]:
    """The fields of a dataclass as JSON holds them.

    >>> as_json(TrainingSettings(epochs=3))["epochs"]
    3
    """
    values = {entry.name: getattr(config, entry.name) for entry in fields(config)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def defaults_of(config: Any, settings: Any) -> dict[str, dict[str, Any]]:
    """What fields of a run's config mean that a file does not have, since it was written before they existed.

    Args:
        config: of the model.
        settings: of the training.

    >>> from statewise.models import LanguageModelConfig
    >>> defaults_of(LanguageModelConfig(hidden=(8,)), TrainingSettings(epochs=3))["model"]["hidden"]
    [200, 200]
    """
    return {"model": as_json(type(config)()), "training": as_json(type(settings)())}


def check_number(where: str, value: object, *, whole: bool = False, zero: bool = False) -> None:
    """Refuse what is not a finite number above 0.

    Args:
        where: the setting.
        value: what it was given.
        whole: whether it must be a whole number.
        zero: whether it may be 0.
    """
    kind = int if whole else int | float
    good = not isinstance(value, bool) and isinstance(value, kind) and 0 <= value < math.inf
    if not good or (value == 0 and not zero):
        wanted = f"a whole number >= {0 if zero else 1}" if whole else f"a finite number {'>=' if zero else '>'} 0"
        raise ArgumentError(where=where, got=value, wanted=wanted)


def check_seed(where: str, seed: object) -> None:
    """Refuse what torch's generators cannot be seeded with.

    Args:
        where: the setting.
        seed: what it was given.
    """
    if type(seed) is not int or not 0 <= seed < 2**31:
        raise ArgumentError(where=where, got=seed, wanted=f"a whole number from 0 to {2**31 - 1}")
