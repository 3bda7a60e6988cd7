"""Named errors: each says where it happened, what was got, what was wanted, and what to do about it."""

from __future__ import annotations

from typing import Any

_LONGEST = 1000  # signs that a message quotes: a line of a file may have millions


class StatewiseError(Exception):
    """Base of every error the library raises on purpose.

    Args:
        where: the argument or place at fault, e.g. ``"Noise.gamma"``.
        got: what was found there.
        wanted: what would have been right.
        remedy: what the reader can do now.

    >>> print(ArgumentError(where="Noise.gamma", got=-1.0, wanted="a number >= 0", remedy="Use 0 for no noise."))
    Noise.gamma: got -1.0, wanted a number >= 0. Use 0 for no noise.
    """

    def __init__(self, *, where: str, got: Any, wanted: str, remedy: str = "") -> None:
        self.where, self.got, self.wanted, self.remedy = where, got, wanted, remedy
        text = f"{where}: got {_short(got if isinstance(got, str) else repr(got))}, wanted {_short(wanted)}."
        super().__init__(f"{text} {remedy}".rstrip())

    def told(self, *, where: str | None = None, remedy: str | None = None) -> StatewiseError:
        """The same error in other words: those of whoever asked.

        Args:
            where: as it is called there; None leaves it.
            remedy: what can be done there; None leaves it.

        >>> print(ArgumentError(where="Noise.gamma", got=-1.0, wanted="a number >= 0").told(where="--gamma"))
        --gamma: got -1.0, wanted a number >= 0.
        """
        where, remedy = self.where if where is None else where, self.remedy if remedy is None else remedy
        return _rebuild(type(self), where, self.got, self.wanted, remedy)

    def __reduce__(self) -> tuple[Any, ...]:
        # Keyword-only constructors need help to cross process borders.
        return _rebuild, (type(self), self.where, self.got, self.wanted, self.remedy)


def _short(text: str) -> str:
    """The beginning and the end of a text that nobody would read to the end.

    >>> len(_short("x" * 10**6))
    1000
    """
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 205]} ... {text[-200:]}"


def _rebuild(kind: type[StatewiseError], where: str, got: Any, wanted: str, remedy: str) -> StatewiseError:
    return kind(where=where, got=got, wanted=wanted, remedy=remedy)


class ArgumentError(StatewiseError, ValueError):
    """An argument has a value outside its domain."""


class ShapeError(ArgumentError):
    """A tensor has the wrong rank or size."""


class LengthError(ArgumentError, RuntimeError):
    """A sequence is empty, for which torch raises a RuntimeError, or paired sequences have unequal lengths."""


class DtypeError(StatewiseError, TypeError):
    """A tensor has the wrong dtype, or an argument the wrong type."""


class UnknownArgumentError(StatewiseError, TypeError):
    """A constructor was given an argument that it does not have."""


class UnknownSymbolError(ArgumentError):
    """A word holds a symbol that is not in the alphabet."""


class NotMemorylessError(StatewiseError, TypeError):
    """A network keeps more than its state from step to step, so that no finite table equals it."""


class AssumptionError(StatewiseError, ValueError):
    """An assumption of a bound does not hold, or nobody has said that it does; a number would not be a guarantee."""


class DeviceError(ArgumentError):
    """Tensors or generators that must share a device do not."""


class NonFiniteError(StatewiseError, ArithmeticError):
    """A tensor holds NaN or infinity where the opt-in check forbids it."""


class EngineError(StatewiseError, RuntimeError):
    """The requested engine cannot run this call."""


class SecondDerivativeError(EngineError):
    """A second derivative was asked of an engine that has only the first."""

    @classmethod
    def asked(cls, where: str, remedy: str) -> SecondDerivativeError:
        """The error for one that was asked.

        Args:
            where: of whom.
            remedy: who has it.
        """
        return cls(where=where, got="a request for a second derivative", wanted="first derivatives only", remedy=remedy)


class MissingExtraError(StatewiseError, ImportError):
    """An optional dependency is not installed."""

    @classmethod
    def of(cls, where: str, *, package: str, extra: str) -> MissingExtraError:
        """The error for a package that belongs to an extra.

        Args:
            where: what was asked for.
            package: what it needs.
            extra: that brings the package.

        >>> print(MissingExtraError.of("plot", package="matplotlib", extra="report"))
        plot: got no matplotlib, wanted the extra 'report'. Install it: pip install 'statewise[report]'; then try again.
        """
        remedy = f"Install it: pip install 'statewise[{extra}]'; then try again."
        return cls(where=where, got=f"no {package}", wanted=f"the extra {extra!r}", remedy=remedy)


class DataError(StatewiseError, ValueError):
    """A file of the user's is missing or malformed; ``where`` names the file and the line."""


class RunFolderError(StatewiseError, RuntimeError):
    """The folder of a run is not what it should be: another run's, damaged, or of other settings."""


class RunInUseError(RunFolderError):
    """Another process writes into the folder of a run."""


class TensorFileError(StatewiseError, ValueError):
    """A file of tensors is damaged, cut off, or of another kind."""


class ModelFolderError(StatewiseError, RuntimeError):
    """The folder of a saved model is not what it should be: damaged, changed, or no such folder."""


class NewerFormatError(ModelFolderError):
    """A model was saved in a format that only a newer statewise reads."""


class ExportError(StatewiseError, RuntimeError):
    """A model cannot be written in the form that was asked for, or what was written does not compute the same."""


class DivergedError(NonFiniteError):
    """A training run came to nothing: its loss is NaN or infinite, or stays worse than at the start.

    Args:
        where: the run's place in training, in words.
        got: what was found.
        wanted: what would have been right.
        remedy: what the reader can do now.
        step: the first step, counted from 1, at which it was seen.
        culprit: the name of the first tensor that is not finite; empty if all are.
        fraction: how much of that tensor is not finite.
        checkpoint: the last resume point, all of whose tensors are finite; None if there is none.
    """

    def __init__(
        self,
        *,
        where: str,
        got: Any,
        wanted: str,
        remedy: str = "",
        step: int = 0,
        culprit: str = "",
        fraction: float = 0.0,
        checkpoint: str | None = None,
    ) -> None:
        super().__init__(where=where, got=got, wanted=wanted, remedy=remedy)
        self.step, self.culprit, self.fraction, self.checkpoint = step, culprit, fraction, checkpoint

    def __reduce__(self) -> tuple[Any, ...]:
        return (*super().__reduce__(), vars(self))
