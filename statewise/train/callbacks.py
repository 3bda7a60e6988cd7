"""What may act on the weights of a model while it is trained: stand-ins, terms of the loss, and corrections."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from statewise.errors import ArgumentError, DtypeError
from statewise.train.settings import as_json
from statewise.train.weights import lent_weights


@dataclass(frozen=True)
class Callback(ABC):
    """Something that acts on the weights while a model is trained; a frozen dataclass of numbers and words.

    A callback has no memory: what it does depends on its fields and on the model alone, so that a run that was killed
    ends with the same bits. The fields are kept in the folder of the run, and a run goes on with the same ones only.

    Attributes:
        kind: its name there.

    >>> @dataclass(frozen=True)
    ... class Smaller(Callback):
    ...     kind: ClassVar[str] = "smaller"
    ...     factor: float = 0.5
    ...
    ...     def after_update(self, model: nn.Module) -> None:
    ...         for parameter in model.parameters():
    ...             parameter.mul_(self.factor)
    >>> Smaller().describe()
    {'kind': 'smaller', 'factor': 0.5}
    """

    kind: ClassVar[str]

    def describe(self) -> dict[str, Any]:
        """What it is, as JSON can hold it."""
        return {"kind": self.kind, **as_json(self)}

    def check(self, model: nn.Module) -> None:
        """Refuse a model that it cannot act on, before anything is written.

        Args:
            model: that shall be trained.
        """

    def weights(self, model: nn.Module) -> Mapping[str, Tensor] | None:
        """What stands in for parameters, by their names: in the loss, in validations, and in the model that is kept.

        Args:
            model: whose parameters the optimiser moves; the stand-ins depend on them, so that gradients reach them.
        """
        return None

    def penalty(self, model: nn.Module) -> Tensor | None:
        """A number that is added to the loss of each batch.

        Args:
            model: with what stands in for its parameters in their places.
        """
        return None

    def after_update(self, model: nn.Module) -> None:
        """Change the parameters in place; without gradients, before the first update and after each.

        Args:
            model: whose parameters.
        """


@dataclass(frozen=True)
class Callbacks:
    """The callbacks of a run, as one.

    Args:
        given: in the order in which they act.

    >>> Callbacks().describe(), bool(Callbacks())
    ([], False)
    """

    given: tuple[Callback, ...] = ()

    @classmethod
    def of(cls, given: Sequence[Any]) -> Callbacks:
        """Those of a sequence, of which each is one.

        Args:
            given: maybe none.
        """
        for each in given:
            if not isinstance(each, Callback):
                got = each.__name__ if isinstance(each, type) else type(each).__name__
                raise DtypeError(where="callbacks", got=got, wanted="instances of statewise.train.Callback")
        return cls(tuple(given))

    def __bool__(self) -> bool:
        return bool(self.given)

    @property
    def penalise(self) -> bool:
        """Whether any of them adds to the loss."""
        return any(type(each).penalty is not Callback.penalty for each in self.given)

    def describe(self) -> list[dict[str, Any]]:
        """What they are, as JSON can hold it."""
        return [each.describe() for each in self.given]

    def check(self, model: nn.Module) -> None:
        """Refuse a model that one of them cannot act on, and two that stand in for the same parameter.

        Args:
            model: that shall be trained.
        """
        for each in self.given:
            each.check(model)
        self.weights(model)

    def weights(self, model: nn.Module) -> dict[str, Tensor]:
        """All stand-ins, by the names of their parameters.

        Args:
            model: whose parameters.
        """
        found: dict[str, Tensor] = {}
        for each in self.given:
            own = each.weights(model) or {}
            if twice := sorted(found.keys() & own.keys()):
                wanted = "one callback at most that stands in for a parameter"
                raise ArgumentError(where="callbacks", got=f"two for {twice[0]}", wanted=wanted)
            found |= own
        return found

    def forward(self, model: nn.Module, *inputs: Any, **options: Any) -> tuple[Any, Tensor]:
        """What the model gives with the stand-ins in their places, and the sum of the penalties.

        Args:
            model: is trained.
            *inputs: for the model.
            **options: for the model, by name.
        """
        standing = {f"model.{name}": weight for name, weight in self.weights(model).items()}
        return functional_call(_WithPenalty(model, self), standing, inputs, options)  # type: ignore[no-any-return]

    def penalty(self, model: nn.Module) -> Tensor:
        """The sum of the penalties.

        Args:
            model: with what stands in for its parameters in their places.
        """
        terms = [term for each in self.given if (term := each.penalty(model)) is not None]
        return torch.stack([term.reshape(()) for term in terms]).sum() if terms else torch.zeros(())

    @torch.no_grad()
    def after_update(self, model: nn.Module) -> None:
        """Let each change the parameters in place.

        Args:
            model: whose parameters.
        """
        for each in self.given:
            each.after_update(model)

    @contextmanager
    def kept(self, model: nn.Module) -> Iterator[None]:
        """A region in which the model has the weights that would be kept: stand-ins in the places of parameters.

        Args:
            model: afterwards as it was.
        """
        with torch.no_grad():
            standing = self.weights(model)
        if not standing:
            yield
            return
        with lent_weights(model, standing):
            yield


class _WithPenalty(nn.Module):
    """A model and the penalties on it, so that both see what stands in for its parameters."""

    def __init__(self, model: nn.Module, callbacks: Callbacks) -> None:
        super().__init__()
        self.model, self._callbacks = model, callbacks

    def forward(self, *inputs: Any, **options: Any) -> tuple[Any, Tensor]:
        answer = self.model(*inputs, **options)
        return answer, self._callbacks.penalty(self.model)
