"""The callbacks that a folder or a command line can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from statewise.errors import RunFolderError
from statewise.train.callbacks import Callback
from statewise.train.cover import CoverPenalty
from statewise.train.projection import SpectralProjection
from statewise.train.rounding import RoundedWeights

KINDS: Mapping[str, type[Callback]] = {each.kind: each for each in (SpectralProjection, CoverPenalty, RoundedWeights)}


def callbacks_of(told: Mapping[str, Any]) -> tuple[Callback, ...]:
    """The callbacks of a run.

    Args:
        told: what the run was told, such as :func:`load_classifier` gives.

    >>> callbacks_of({"callbacks": [SpectralProjection(head=2.0).describe()]})
    (SpectralProjection(recurrent=1.0, input=3.0, head=2.0, biases=True),)
    """
    found = []
    for described in told.get("callbacks", ()):
        fields = {name: value for name, value in described.items() if name != "kind"}
        if described.get("kind") not in KINDS:
            raise RunFolderError(
                where="callbacks",
                got=f"the kind {described.get('kind')!r}",
                wanted=f"one of {', '.join(KINDS)}",
                remedy="Give the callbacks of the run themselves, as it was begun with them.",
            )
        found.append(KINDS[described["kind"]](**fields))
    return tuple(found)


def promises(callbacks: Sequence[Callback], model: nn.Module) -> dict[str, float]:
    """The norms that a run promised before it saw its data, by the names that bounds give to matrices.

    Where weights are rounded nothing is: the promise is one on the free weights, not on those that are kept.

    Args:
        callbacks: of the run.
        model: that it trained.

    >>> from statewise.models import ClassifierConfig
    >>> model = ClassifierConfig(cell="mgu", hidden=4, readout="h").build(features=3, classes=2)
    >>> promises((SpectralProjection(input=None),), model)
    {'U forget': 1.0, 'U candidate': 1.0, 'V': 3.0}
    """
    if any(isinstance(each, RoundedWeights) for each in callbacks):
        return {}
    found: dict[str, float] = {}
    for each in callbacks:
        if isinstance(each, SpectralProjection):
            found |= each.promises(model)
    return found
