"""Mixing by the words and numbers that settings hold, the same for every kind of model."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from statewise.errors import ArgumentError
from statewise.mixup import Mixup
from statewise.mixup.lengths import POLICIES
from statewise.mixup.pairing import RULES
from statewise.train.settings import MIXUPS

#: The words that the settings of mixing may be.
CHOICES = {"mixup": tuple(MIXUPS), "pairing": tuple(RULES), "lengths": POLICIES}


@runtime_checkable
class Mixing(Protocol):
    """The settings of mixing."""

    @property
    def mixup(self) -> str:
        """What is mixed, a key of :data:`MIXUPS`."""

    @property
    def alpha(self) -> float:
        """The shape of the coefficients."""

    @property
    def rho(self) -> float:
        """How freely they move."""

    @property
    def pairing(self) -> str:
        """Who with whom."""

    @property
    def lengths(self) -> str:
        """What happens where one of two has ended."""

    @property
    def batch(self) -> int:
        """Examples of an update, or pairs of them."""


def make_mixer(settings: Mixing) -> Mixup | None:
    """What mixes the sequences of a batch; None if nothing does.

    Args:
        settings: of the training.

    >>> from statewise.train import ClassifierSettings
    >>> make_mixer(ClassifierSettings(mixup="through-time", alpha=0.2)).site
    'through_time'
    """
    kind = MIXUPS[settings.mixup]
    if kind is None:
        return None
    return kind(alpha=settings.alpha, rho=settings.rho, pairing=settings.pairing, lengths=settings.lengths)


def passes_of(settings: Mixing) -> int:
    """How often an epoch goes through the training set, so that it has as many updates with pairs as without.

    Args:
        settings: of the training.
    """
    return 2 if settings.mixup != "none" and settings.pairing.startswith("double") else 1


def check_mixing(settings: Mixing, *, called: str) -> None:
    """Refuse settings of mixing that are none.

    Args:
        settings: of the training.
        called: what an example is called.
    """
    where = type(settings).__name__
    for name, known in CHOICES.items():
        refuse_unknown(settings, name, known)
    try:
        make_mixer(settings)
    except ArgumentError as error:  # of the process or the pairing that it is made of
        raise error.told(where=f"{where}.{error.where.rpartition('.')[2]}") from None
    if settings.mixup != "none" and settings.batch * passes_of(settings) < 2:
        raise ArgumentError(
            where=f"{where}.batch",
            got=f"1 with mixup {settings.mixup}",
            wanted=f"at least 2: a {called} alone has no partner",
            remedy=f'Take larger batches; or pairing="double", which draws two {called}s for each pair.',
        )


def refuse_unknown(settings: Any, name: str, known: tuple[str, ...]) -> None:
    """Refuse a word that a setting does not know.

    Args:
        settings: of the training.
        name: of the setting.
        known: its words.
    """
    if getattr(settings, name) not in known:
        where = f"{type(settings).__name__}.{name}"
        raise ArgumentError(where=where, got=getattr(settings, name), wanted=f"one of {', '.join(known)}")
