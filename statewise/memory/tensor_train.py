"""The circuit of one layer as a tensor train: a chain of small cores, one for each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from statewise.errors import ArgumentError, ShapeError
from statewise.memory.circuit import Circuit, check_circuit
from statewise.memory.whole import exceeds, whole

#: Tensors of more entries are not written down: half a gigabyte.
MOST = 1 << 26


@dataclass(frozen=True, kw_only=True, eq=False)
class TensorTrain:
    """``A[d_1, ..., d_T] = G_1(d_1) G_2(d_2) ... G_T(d_T)`` (Oseledets 2011; Ziv 2019, section 2.2).

    Args:
        cores: one for each step, (rank before, features, rank after); the chain begins and ends with rank 1.
    """

    cores: tuple[NDArray[Any], ...]

    def __post_init__(self) -> None:
        shapes = [core.shape for core in self.cores]
        chained = all(len(shape) == 3 for shape in shapes) and bool(shapes)
        if not chained or [1, *(s[2] for s in shapes)] != [*(s[0] for s in shapes), 1]:
            raise ShapeError(
                where="TensorTrain.cores", got=shapes, wanted="(rank before, features, rank after) in a chain"
            )

    @property
    def ranks(self) -> tuple[int, ...]:
        """The sizes of the bonds between neighbours: no separation rank at a split exceeds that of its bond."""
        return tuple(core.shape[2] for core in self.cores[:-1])

    @property
    def storage(self) -> int:
        """How many numbers all cores have, O(T M R^2), where the tensor has ``M^T``."""
        return sum(core.size for core in self.cores)

    @property
    def distinct_storage(self) -> int:
        """How many numbers are to be stored when equal cores are kept once."""
        return sum({(core.shape, core.tobytes()): core.size for core in self.cores}.values())

    def entry(self, word: tuple[int, ...] | list[int]) -> Any:
        """One entry of the tensor.

        Args:
            word: an index for each step.
        """
        if len(word) != len(self.cores):
            raise ShapeError(
                where="TensorTrain.entry", got=f"{len(word)} indices", wanted=f"{len(self.cores)}, one a step"
            )
        for symbol, core in zip(word, self.cores, strict=True):
            if not 0 <= symbol < core.shape[1]:
                wanted = f"indices from 0 to {core.shape[1] - 1}"
                raise ArgumentError(where="TensorTrain.entry", got=symbol, wanted=wanted)
        row = self.cores[0][:, word[0]]
        for core, symbol in zip(self.cores[1:], word[1:], strict=True):
            row = row @ core[:, symbol]
        return row[0, 0]

    def full(self) -> NDArray[Any]:
        """The whole tensor, ``M^T`` numbers."""
        symbols, steps = self.cores[0].shape[1], len(self.cores)
        if exceeds(symbols, steps, MOST):
            raise ArgumentError(
                where="TensorTrain.full",
                got=f"{symbols}^{steps} entries",
                wanted=f"at most {MOST}",
                remedy="entry(word) and evaluate(features) need no whole tensor.",
            )
        found = self.cores[0]
        for core in self.cores[1:]:
            found = np.tensordot(found, core, axes=1)
        return found[0, ..., 0]

    def evaluate(self, features: Float[np.ndarray, "steps batch features"]) -> Float[np.ndarray, " batch"]:
        """``y = sum over d of A[d] prod f_{d_t}(x_t)`` in O(T M R^2) for each sequence.

        Args:
            features: ``f(x_t)`` of every step.
        """
        if len(features) != len(self.cores):
            raise ShapeError(where="TensorTrain.evaluate", got=f"{len(features)} steps", wanted=f"{len(self.cores)}")
        rows = np.ones((features.shape[1], 1))
        for core, inputs in zip(self.cores, features, strict=True):
            rows = np.einsum("bi,idj,bd->bj", rows, core, inputs, optimize=True)
        return rows[:, 0]


def tensor_train(circuit: Circuit, *, steps: int) -> TensorTrain:
    """The weights tensor of a circuit of one layer: cores ``G_t(d) = diag(w_d) WH^T``, the same at every step.

    The first is preceded by the row ``(WH h_0)^T`` and the last is ``diag(w_d) WO^T`` (Ziv 2019, section 2.2; "the same
    core at every mode" is right up to these two).

    Args:
        circuit: of one layer.
        steps: T.

    >>> circuit = Circuit(inputs=([[1, 2], [3, -1]],), recurrent=([[1, 1], [0, 1]],), readout=[1, 2])
    >>> tensor_train(circuit, steps=2).full().tolist()
    [[22.0, 2.0], [-5.0, 4.0]]
    """
    check_circuit(circuit, where="tensor_train")
    if circuit.depth != 1:
        raise ArgumentError(
            where="tensor_train.circuit",
            got=f"{circuit.depth} layers",
            wanted="one layer",
            remedy="Deeper circuits repeat their inputs and are no chain; see tensor_network.",
        )
    steps = whole(steps, where="tensor_train.steps")
    terms, recurrent = circuit.inputs[0].astype(np.float64), circuit.recurrent[0].astype(np.float64)
    inner = np.einsum("rd,kr->rdk", terms, recurrent)
    cores = [inner] * (steps - 1) + [np.einsum("rd,r->rd", terms, circuit.readout.astype(np.float64))[:, :, None]]
    cores[0] = np.tensordot(circuit.first_products()[:1], cores[0], axes=1)
    return TensorTrain(cores=tuple(cores))


def building_block(circuit: Circuit) -> Float[np.ndarray, "before features after"]:
    """The block of the matrix product state, ``B[k, d, k'] = WI[k', d] WH[k', k]`` (Ziv 2019, Figure A.2).

    Args:
        circuit: of one layer.

    >>> circuit = Circuit(inputs=([[1, 2], [3, -1]],), recurrent=([[1, 1], [0, 1]],), readout=[1, 2])
    >>> building_block(circuit)[1, 0].tolist()
    [1.0, 3.0]
    """
    terms, recurrent = circuit.inputs[0].astype(np.float64), circuit.recurrent[0].astype(np.float64)
    block: Float[np.ndarray, "before features after"] = np.einsum("rd,rk->kdr", terms, recurrent)
    return block
