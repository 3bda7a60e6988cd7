"""One arithmetic circuit with the weights that it has, apart from how they are computed with."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from statewise.errors import ArgumentError, DtypeError, ShapeError
from statewise.layers.recurrent import RAC
from statewise.memory.drawn import check_shape
from statewise.memory.elimination import rank
from statewise.memory.field import Arithmetic, Field, Table, exact_numbers
from statewise.memory.grid import Weights
from statewise.memory.other_networks import check_layer, other_network
from statewise.memory.primes import PRIMES
from statewise.memory.whole import whole

Numbers = NDArray[Any]


class SingularStartWarning(UserWarning):
    """The pseudo-inverse of a singular matrix does not start a circuit at a product of one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Circuit:
    """A deep recurrent arithmetic circuit and its readout: whole numbers, or floats as the exact numbers that they are.

    ``h[t, l] = (WH[l] h[t-1, l]) * (WI[l] h[t, l-1])``, ``y = WO h[T, L]`` (Ziv 2019, eqs. 2.2-2.4).

    Args:
        inputs: ``WI``, a matrix for each layer: arrays, tensors or lists; kept as arrays.
        recurrent: ``WH``, a square matrix for each layer.
        readout: ``WO``, a number for each channel of the last layer.
        start: "ones" makes every first product ``WH h_0`` exactly 1; "pinv" takes ``h_0 = pinv(WH) 1``, which comes to
            the same unless WH is singular, and then makes it the projection of 1, rounded to float64; an array
            (layers, channels) is ``h_0`` itself.

    >>> circuit = Circuit(inputs=([[1, 2], [3, -1]],), recurrent=([[1, 1], [0, 1]],), readout=[1, 2])
    >>> circuit.features, circuit.width, circuit.depth
    (2, 2, 1)
    """

    inputs: tuple[Any, ...]
    recurrent: tuple[Any, ...]
    readout: Any
    start: Any = "ones"

    def __post_init__(self) -> None:
        for name in ("inputs", "recurrent"):
            object.__setattr__(self, name, tuple(_numbers(each, f"Circuit.{name}") for each in getattr(self, name)))
        object.__setattr__(self, "readout", _numbers(self.readout, "Circuit.readout"))
        if not isinstance(self.start, str):
            object.__setattr__(self, "start", _numbers(self.start, "Circuit.start"))
        self._check_shapes()
        self._check_start()

    @property
    def features(self) -> int:
        """M, of the input."""
        return int(self.inputs[0].shape[1])

    @property
    def width(self) -> int:
        """R, channels of each layer."""
        return len(self.readout)

    @property
    def depth(self) -> int:
        """L, layers."""
        return len(self.inputs)

    @classmethod
    def of(cls, layer: RAC, readout: Tensor | nn.Linear, *, output: int = 0) -> Circuit:
        """The circuit that a layer and a readout are.

        Args:
            layer: without bias, in one direction, without transforms.
            readout: a vector, a matrix (outputs, channels), or a linear layer without bias.
            output: which row of a matrix.

        >>> Circuit.of(RAC(3, 4, num_layers=2), torch.ones(4)).depth
        2
        """
        check_layer(layer, where="Circuit.of")
        weight = readout.weight if isinstance(readout, nn.Linear) else readout
        if not isinstance(weight, Tensor):
            got, wanted = type(readout).__name__, "a tensor or a linear layer"
            raise DtypeError(where="Circuit.of.readout", got=got, wanted=wanted)
        outputs = {1: 1, 2: len(weight)}.get(weight.dim(), 0)
        if weight.shape[-1:] != (layer.hidden_size,) or not 0 <= output < outputs:
            wanted = f"(more than {output}, {layer.hidden_size}), or ({layer.hidden_size},) for output 0"
            raise ShapeError(where="Circuit.of.readout", got=tuple(weight.shape), wanted=wanted)
        bias = readout.bias if isinstance(readout, nn.Linear) else None
        biased = layer.bias or (bias is not None and bool((bias != 0).any()))
        for fault, there in (("a bias", biased), ("two directions", layer.bidirectional)):
            if there:
                raise ArgumentError(where="Circuit.of", got=fault, wanted="an arithmetic circuit, which has none")
        if len(layer.transforms):
            raise ArgumentError(where="Circuit.of", got="a layer with transforms", wanted="a plain circuit")
        row = weight[output] if weight.dim() == 2 else weight
        levels = range(layer.num_layers)
        start: Any = layer.initial_state
        if start == "learned":
            start = layer.state_0[:, 0]
        return cls(
            inputs=tuple(getattr(layer, f"weight_ih_l{level}") for level in levels),
            recurrent=tuple(getattr(layer, f"weight_hh_l{level}") for level in levels),
            readout=row,
            start=start,
        )

    def layer(self, *, dtype: torch.dtype = torch.float64) -> RAC:
        """The same circuit without its readout as a layer, in float64 where nothing else is said.

        Args:
            dtype: of the weights, to which they are rounded.
        """
        named = isinstance(self.start, str)
        state: Any = self.start if named else "learned"
        layer = RAC(self.features, self.width, num_layers=self.depth, dtype=dtype, initial_state=state)
        with torch.no_grad():
            for level, (entering, recurrent) in enumerate(zip(self.inputs, self.recurrent, strict=True)):
                getattr(layer, f"weight_ih_l{level}").copy_(torch.from_numpy(entering.astype(np.float64)))
                getattr(layer, f"weight_hh_l{level}").copy_(torch.from_numpy(recurrent.astype(np.float64)))
            if not isinstance(self.start, str):
                layer.state_0.copy_(torch.from_numpy(self.start.astype(np.float64))[:, None])
        return layer

    def over(self, arithmetic: Arithmetic) -> Weights:
        """The weights in the form of an arithmetic.

        Args:
            arithmetic: whole numbers, or a field.
        """
        recurrent = tuple(map(arithmetic.of, self.recurrent))
        return Weights(
            arithmetic=arithmetic,
            inputs=tuple(map(arithmetic.of, self.inputs)),
            recurrent=recurrent,
            readout=arithmetic.of(self.readout[None]),
            first=tuple(self._first(arithmetic, level, weight) for level, weight in enumerate(recurrent)),
        )

    def first_products(self) -> NDArray[np.float64]:
        """``WH h_0`` in float64, (layers, channels)."""
        rows = [self._product(level) for level in range(self.depth)]
        return np.stack([np.ones(self.width) if row is None else row for row in rows])

    def _first(self, arithmetic: Arithmetic, level: int, weight: Table) -> Table:
        if not isinstance(self.start, str):
            return arithmetic.matmul(weight, arithmetic.of(self.start[level][:, None]))
        product = self._product(level)
        return arithmetic.ones(self.width, 1) if product is None else arithmetic.of(product[:, None])

    def _product(self, level: int) -> NDArray[np.float64] | None:
        """``WH h_0`` of a layer in float64; None where it is 1 exactly."""
        weight = self.recurrent[level].astype(np.float64)
        if not isinstance(self.start, str):
            product: NDArray[np.float64] = weight @ self.start[level].astype(np.float64)
            return product
        if self.start == "ones" or self._regular(level):
            return None
        warnings.warn(
            f"The recurrent matrix of layer {level + 1} is singular: with start='pinv' the first product is only the "
            "projection of 1. Use start='ones' for 1 itself.",
            SingularStartWarning,
            stacklevel=4,
        )
        projection: NDArray[np.float64] = weight @ (np.linalg.pinv(weight) @ np.ones(self.width))
        return projection

    def _regular(self, level: int) -> bool:
        """Whether a recurrent matrix has an inverse, exactly: a determinant that is not 0 modulo a prime is not 0."""
        return any(rank(field.of(self.recurrent[level]), field) == self.width for field in map(Field, PRIMES[:2]))

    def _check_shapes(self) -> None:
        if not self.inputs or len(self.inputs) != len(self.recurrent):
            got = f"{len(self.inputs)} input and {len(self.recurrent)} recurrent matrices"
            raise ShapeError(where="Circuit", got=got, wanted="one of each for every layer, and at least one layer")
        width, features = self.readout.size, self.inputs[0].shape[-1] if self.inputs[0].ndim else 0
        wanted: list[tuple[str, Numbers, tuple[int, ...]]] = [("readout", self.readout, (width,))]
        for level, (entering, recurrent) in enumerate(zip(self.inputs, self.recurrent, strict=True)):
            wanted.append((f"inputs[{level}]", entering, (width, width if level else features)))
            wanted.append((f"recurrent[{level}]", recurrent, (width, width)))
        if not isinstance(self.start, str):
            wanted.append(("start", self.start, (self.depth, width)))
        for name, array, shape in wanted:
            if array.shape != shape or not array.size:
                raise ShapeError(where=f"Circuit.{name}", got=array.shape, wanted=f"the shape {shape}, not empty")

    def _check_start(self) -> None:
        if isinstance(self.start, str):
            if self.start not in ("ones", "pinv"):
                raise ArgumentError(where="Circuit.start", got=self.start, wanted="'ones', 'pinv' or an array")
        elif not (self.start != 0).any(axis=1).all():
            raise ArgumentError(
                where="Circuit.start",
                got="a layer that starts at zero",
                wanted="a start that is not zero",
                remedy="A product with zero stays zero: the whole circuit would be 0. Use start='ones'.",
            )


def drawn_circuit(*, inputs: int, width: int, depth: int, seed: int = 0) -> Circuit:
    """A circuit with normal weights as :class:`statewise.RAC` draws them: N(0, 1 / columns).

    Args:
        inputs: M.
        width: R.
        depth: L.
        seed: of the draw.

    >>> drawn_circuit(inputs=3, width=4, depth=2).inputs[1].shape
    (4, 4)
    """
    inputs, width, depth = check_shape("drawn_circuit", inputs=inputs, width=width, depth=depth)
    generator = np.random.default_rng(whole(seed, where="drawn_circuit.seed", least=0))
    columns = [inputs] + [width] * (depth - 1)
    return Circuit(
        inputs=tuple(generator.normal(0, size**-0.5, (width, size)) for size in columns),
        recurrent=tuple(generator.normal(0, width**-0.5, (width, width)) for _ in range(depth)),
        readout=generator.normal(0, width**-0.5, width),
    )


def check_circuit(circuit: Circuit, *, where: str) -> None:
    """Refuse a network where a circuit is asked, and say what there is for it.

    Args:
        circuit: what was given.
        where: what was asked, for errors.
    """
    if isinstance(circuit, Circuit):
        return
    if isinstance(circuit, RAC):
        got, remedy = "a RAC layer without a readout", "Give the readout too: Circuit.of(layer, readout)."
        raise DtypeError(where=f"{where}.circuit", got=got, wanted="a Circuit", remedy=remedy)
    raise other_network(circuit, where=f"{where}.circuit")


def _numbers(value: Any, where: str) -> Numbers:
    """A copy of its own: float64, int64, or Python's numbers where those are too small."""
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        value = (value.double() if value.is_floating_point() else value).numpy()
    return exact_numbers(value, where=where).copy()
