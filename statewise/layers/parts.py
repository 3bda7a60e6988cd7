"""What a layer is made of: its cell, its transforms, and its parameters with torch.nn's names."""

from __future__ import annotations

import difflib
import math
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any, TypedDict

import torch
from torch import Tensor, nn

from statewise.cells import Cell
from statewise.engine import ENGINES
from statewise.errors import ArgumentError, DtypeError, UnknownArgumentError
from statewise.transforms import Noise, OutputDropout, Place, RecurrentDropout, ThroughTimeMix, Transform
from statewise.transforms.base import probability
from statewise.weights import WeightDrop


class CompoundingNoiseWarning(UserWarning):
    """Noise is fed back along a path that does not squash the state, so it grows with every step."""


class LayerOptions(TypedDict, total=False):
    """What every layer takes beyond torch.nn's arguments."""

    transforms: Transform | Iterable[Transform] | None
    engine: str
    check_finite: bool
    generator: torch.Generator | None


def unknown_argument(where: str, name: str, known: Iterable[str]) -> UnknownArgumentError:
    """The error for an argument that does not exist, with the one that was probably meant."""
    close = difflib.get_close_matches(name, known, n=1)
    remedy = f"Did you mean {close[0]}?" if close else ""
    wanted = f"torch.nn's arguments and {', '.join(known)}"
    return UnknownArgumentError(where=where, got=f"an argument {name!r}", wanted=wanted, remedy=remedy)


class LayerParts(nn.Module):
    """The parts of a recurrent layer, checked; :class:`RecurrentLayer` puts them to work.

    Args:
        cell: the transition function.
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype: as in torch.nn.
        transforms: what happens to the states, inputs and outputs.
        engine: "auto", "cpu" or "reference"; :meth:`plan` tells what "auto" chooses.
        check_finite: refuse inputs that hold NaN or infinity.
        generator: source of the initial weights; None means torch's global one.
    """

    redraws_weight_drop = True  # so that weight_drop need not

    weight_ih_l0: Tensor
    weight_hh_l0: Tensor

    def __init__(
        self,
        cell: Cell,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        transforms: Transform | Iterable[Transform] | None = None,
        engine: str = "auto",
        check_finite: bool = False,
        generator: torch.Generator | None = None,
        **unknown: Any,
    ) -> None:
        super().__init__()
        if unknown:
            raise unknown_argument(self._name, next(iter(unknown)), LayerOptions.__annotations__)
        if not isinstance(cell, Cell):
            raise DtypeError(
                where=f"{self._name}.cell",
                got=cell.__name__ if isinstance(cell, type) else type(cell).__name__,
                wanted="a cell of statewise.cells, such as statewise.cells.LSTMCell()",
            )
        for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ArgumentError(where=f"{self._name}.{name}", got=value, wanted="a whole number of at least 1")
        if dtype is not None and not dtype.is_floating_point:
            raise DtypeError(where=f"{self._name}.dtype", got=dtype, wanted="a floating point dtype")
        self.cell, self.input_size, self.hidden_size, self.num_layers = cell, input_size, hidden_size, num_layers
        self.bias, self.batch_first = bias, batch_first
        self.dropout = probability(f"{self._name}.dropout", dropout)
        self.bidirectional, self.engine, self.check_finite = bidirectional, engine, check_finite
        self._warn_of_idle_dropout()
        self._transforms = self._check_transforms(transforms)
        self._make_parameters({"device": device, "dtype": dtype})
        self.reset_parameters(generator)

    @property
    def _name(self) -> str:
        return f"statewise.{type(self).__name__.removeprefix('Parametrized')}"  # torch renames what it parametrizes

    @property
    def engine(self) -> str:
        """The engine asked for: "auto", "cpu" or "reference"."""
        return self._engine

    @engine.setter
    def engine(self, engine: str) -> None:
        if engine not in ENGINES:
            raise ArgumentError(where=f"{self._name}.engine", got=engine, wanted=f"one of {', '.join(ENGINES)}")
        self._engine = engine

    @property
    def num_directions(self) -> int:
        """1, or 2 for a bidirectional layer."""
        return 2 if self.bidirectional else 1

    @property
    def transforms(self) -> tuple[Transform, ...]:
        """What happens to the states, inputs and outputs; :meth:`retune` changes their settings."""
        return self._transforms

    @property
    def _drawing(self) -> tuple[Transform, ...]:
        """All that may draw: the transforms, and torch.nn's dropout between layers."""
        return (*self._transforms, *self._between)

    @property
    def _between(self) -> tuple[Transform, ...]:
        # Read at every call, since code written for torch.nn may set ``dropout`` after construction.
        if self.dropout == 0.0:
            return ()
        return (OutputDropout(self.dropout, layers=tuple(range(self.num_layers - 1))),)

    def _warn_of_idle_dropout(self) -> None:
        if self.dropout > 0.0 and self.num_layers == 1:
            warnings.warn(
                f"{self._name}: dropout={self.dropout} acts between layers, and there is only one; "
                "use transforms=OutputDropout(p) to drop the output.",
                stacklevel=_level_of_the_caller(),
            )

    def _check_transforms(self, transforms: Transform | Iterable[Transform] | None) -> tuple[Transform, ...]:
        checked: list[Transform] = []
        given = () if transforms is None else transforms
        for transform in given if isinstance(given, Iterable) and not isinstance(given, str) else (given,):
            if not isinstance(transform, Transform):
                raise ArgumentError(
                    where=f"{self._name}.transforms",
                    got=repr(transform),
                    wanted="transforms of statewise",
                    remedy="Give an instance, or a flat list of them, such as Noise('gaussian', 0.5).",
                )
            if transform.layers is not None and any(layer >= self.num_layers for layer in transform.layers):
                raise ArgumentError(
                    where=f"{type(transform).__name__}.layers",
                    got=transform.layers,
                    wanted=f"layers from 0 to {self.num_layers - 1}",
                )
            if isinstance(transform, Noise):
                self._warn_of_compounding(transform)
                transform = transform.placed_for(linear_path=self.cell.linear_path)
            checked.append(transform)
        self._check_order(checked)
        return tuple(checked)

    def _warn_of_compounding(self, noise: Noise) -> None:
        if noise.placement == "recurrent" and self.cell.linear_path and noise.std > 0:
            warnings.warn(
                f"{self._name}: {self.cell.name} passes its state on linearly, so noise fed back grows with every step "
                "(its variance by (1 + v)^t - 1). Use placement='outputs', or keep the noise small.",
                CompoundingNoiseWarning,
                stacklevel=_level_of_the_caller(),
            )

    def _check_order(self, transforms: Sequence[Transform]) -> None:
        for kind in (ThroughTimeMix, RecurrentDropout):
            if sum(isinstance(transform, kind) for transform in transforms) > 1:
                raise ArgumentError(where=f"{self._name}.transforms", got=f"{kind.__name__} twice", wanted="one")
        places = [transform.place for transform in transforms]
        if Place.TRANSITION in places and Place.STATE in places[: places.index(Place.TRANSITION)]:
            raise ArgumentError(
                where=f"{self._name}.transforms",
                got="ThroughTimeMix after a transform of the state",
                wanted="ThroughTimeMix before all transforms of the state",
                remedy="It mixes what the cell gives to two sequences, so nothing of the state can come before it.",
            )

    def _make_parameters(self, kind: dict[str, Any]) -> None:
        blocks, hidden = len(self.cell.blocks), self.hidden_size
        for layer in range(self.num_layers):
            width = self._input_width(layer)
            for suffix in self._suffixes(layer):
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (blocks * hidden, width),
                    "weight_hh": (blocks * hidden, hidden),
                }
                if self.bias:
                    shapes |= {"bias_ih": (blocks * hidden,), "bias_hh": (blocks * hidden,)}
                for name, shape in shapes.items():
                    setattr(self, name + suffix, nn.Parameter(torch.empty(shape, **kind)))
        # The cell's and the transforms' own come last: then torch.nn draws the same initial weights from a seed.
        for layer in range(self.num_layers):
            for suffix in self._suffixes(layer):
                for name, rows in self.cell.extra_parameters:
                    shape = (rows, hidden) if rows else (hidden,)
                    setattr(self, name + suffix, nn.Parameter(torch.empty(shape, **kind)))
                for index, transform in enumerate(self._transforms):
                    for name, shape in self._learnt(index, transform, layer).items():
                        setattr(self, name + suffix, nn.Parameter(torch.empty(shape, **kind)))

    def _input_width(self, layer: int) -> int:
        return self.input_size if layer == 0 else self.hidden_size * self.num_directions

    def _suffixes(self, layer: int) -> tuple[str, ...]:
        return (f"_l{layer}", f"_l{layer}_reverse")[: self.num_directions]

    def _learnt(self, index: int, transform: Transform, layer: int) -> dict[str, tuple[int, ...]]:
        """Names and shapes of a transform's parameters in a layer; a second transform of a kind gets a number."""
        if not transform.acts_on(layer, self.num_layers):
            return {}
        earlier = sum(type(other) is type(transform) for other in self._transforms[:index])
        number = f"{earlier + 1}" if earlier else ""
        return {name + number: shape for name, shape in transform.parameter_shapes(self.hidden_size).items()}

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw weights and biases from U(-1/sqrt(hidden), 1/sqrt(hidden)), as torch.nn does; zero a cell's own."""
        bound = 1 / math.sqrt(self.hidden_size)
        own = {name for name, _ in self.cell.extra_parameters}
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                base = self._raw_name(name).rsplit("_l", 1)[0]
                if base in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                    parameter.uniform_(-bound, bound, generator=generator)
                elif base in own:
                    parameter.zero_()
        self.reset_transforms(generator)

    def _raw_name(self, name: str) -> str:
        """The name of a weight, also if it is a raw matrix from which entries are dropped."""
        # Other parametrizations keep several tensors, such as original0 and original1, or parameters of their own.
        match name.split("."):
            case ["parametrizations", weight, "original"]:
                on_it = self.get_submodule(f"parametrizations.{weight}").children()
            case _:
                return name
        return weight if all(isinstance(each, WeightDrop) for each in on_it) else name

    def zero_biases(self) -> None:
        """Set all biases to 0, but those that a cell needs otherwise at the start."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if self._raw_name(name).startswith(("bias_ih", "bias_hh")):
                    parameter.zero_()

    def reset_transforms(self, generator: torch.Generator | None = None) -> None:
        """Draw what the transforms learn anew, such as centroids."""
        for layer in range(self.num_layers):
            for suffix in self._suffixes(layer):
                for index, transform in enumerate(self._transforms):
                    for name in self._learnt(index, transform, layer):
                        transform.initialise(name, getattr(self, name + suffix), generator)

    def retune(self, kind: type[Transform], **settings: Any) -> None:
        """Change settings of the layer's transforms of one kind, e.g. ``layer.retune(Centroids, temperature=0.5)``.

        Learnt tensors stay as they are, so settings that would change their shape are refused.
        """
        meant = [transform for transform in self._transforms if isinstance(kind, type) and isinstance(transform, kind)]
        if not meant:
            raise ArgumentError(
                where=f"{self._name}.retune",
                got=getattr(kind, "__name__", kind),
                wanted=f"one of {[type(transform).__name__ for transform in self._transforms]}",
            )
        known = set.intersection(*({field.name for field in fields(transform)} for transform in meant))
        if unknown := sorted(settings.keys() - known):
            raise ArgumentError(
                where=f"{self._name}.retune", got=f"settings {unknown}", wanted=f"some of {', '.join(sorted(known))}"
            )
        changed = [replace(t, **settings) if isinstance(t, kind) else t for t in self._transforms]
        for old, new in zip(self._transforms, changed, strict=True):
            if old.parameter_shapes(self.hidden_size) != new.parameter_shapes(self.hidden_size) or (
                old.layers != new.layers and new.parameter_shapes(self.hidden_size)
            ):
                raise ArgumentError(
                    where=f"{self._name}.retune",
                    got=settings,
                    wanted="settings that keep the shape of what is learnt",
                    remedy="Build a new layer instead.",
                )
        self._transforms = self._check_transforms(changed)

    def add_first(self, transform: Transform) -> None:
        """Let one more transform act before the others; one that learns something is refused, for want of parameters.

        Args:
            transform: of inputs, states or outputs.
        """
        if transform.parameter_shapes(self.hidden_size):
            raise ArgumentError(
                where=f"{self._name}.add_first",
                got=f"{type(transform).__name__}, which is learnt",
                wanted="a transform that learns nothing",
                remedy="Build a new layer with it.",
            )
        self._transforms = self._check_transforms((transform, *self._transforms))

    def flatten_parameters(self) -> None:
        """Do nothing: torch.nn's layers have this method, and code written for them calls it."""

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """For each layer and direction the weights and biases, as in torch.nn."""
        names = ("weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if self.bias else ()))
        return [
            [getattr(self, name + suffix) for name in names]
            for layer in range(self.num_layers)
            for suffix in self._suffixes(layer)
        ]

    def extra_repr(self) -> str:
        """The arguments that differ from their defaults."""
        parts = [f"{self.input_size}, {self.hidden_size}"]
        defaults = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        parts += [f"{name}={getattr(self, name)}" for name, value in defaults.items() if getattr(self, name) != value]
        parts += [f"transforms={list(self._transforms)}"] if self._transforms else []
        return ", ".join(parts + ([f"engine={self.engine!r}"] if self.engine != "auto" else []))


def _level_of_the_caller() -> int:
    """How far up the stack the code that uses the library is: a warning should point there."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith("statewise."):
        level, frame = level + 1, frame.f_back
    return level
