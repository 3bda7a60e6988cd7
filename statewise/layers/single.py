"""One step at a time: the cells as modules, with the interface of torch.nn's."""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from statewise import cells
from statewise.cells import Cell
from statewise.errors import ArgumentError, DtypeError, ShapeError
from statewise.layers.batch import autocast_is_on, check_kind
from statewise.layers.parts import unknown_argument
from statewise.layers.plain import StepWeights, apply_once
from statewise.weights import scaled_cayley


class SingleStep(nn.Module):
    """A cell as a module: one step of the recurrence, for loops of the user's own.

    ``u_t, c_t = cell(W x_t + b, U h_{t-1} + b', c_{t-1})``; parameters as in torch.nn (``weight_ih``, ``weight_hh``,
    ``bias_ih``, ``bias_hh``), the cell's own after them.

    Args:
        cell: the transition function.
        input_size, hidden_size, bias, device, dtype: as in torch.nn.
        generator: source of the initial weights.
    """

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor
    bias_hh: Tensor

    def __init__(
        self,
        cell: Cell,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        generator: torch.Generator | None = None,
        **unknown: Any,
    ) -> None:
        super().__init__()
        if unknown:
            raise unknown_argument(self._name, next(iter(unknown)), ("generator",))
        for name, value in (("input_size", input_size), ("hidden_size", hidden_size)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ArgumentError(where=f"{self._name}.{name}", got=value, wanted="a whole number >= 1")
        self.cell, self.input_size, self.hidden_size, self.bias = cell, input_size, hidden_size, bias
        rows, bound = len(cell.blocks) * hidden_size, 1 / math.sqrt(hidden_size)
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size)}
        if bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        for name, shape in shapes.items():
            start = torch.empty(shape, device=device, dtype=dtype).uniform_(-bound, bound, generator=generator)
            setattr(self, name, nn.Parameter(start))
        for name, count in cell.extra_parameters:
            shape = (count, hidden_size) if count else (hidden_size,)
            setattr(self, name, nn.Parameter(torch.zeros(shape, device=device, dtype=dtype)))

    @property
    def _name(self) -> str:
        return type(self).__name__.removeprefix("Parametrized")  # torch renames what it parametrizes

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")

    def forward(self, input: Float[Tensor, "*batch input"], hx: Any = None) -> Any:
        """One step.

        Args:
            input: (batch, input) or (input).
            hx: the state, (batch, hidden) or (hidden); for the LSTM family a pair (h, c). None means zeros.

        Returns:
            The new state, or the pair (h, c).
        """
        if not isinstance(input, Tensor):
            raise DtypeError(where=f"{self._name} input", got=type(input).__name__, wanted="a tensor")
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise ShapeError(
                where=f"{self._name} input",
                got=tuple(input.shape),
                wanted=f"(batch, {self.input_size}) or ({self.input_size},)",
            )
        autocast = autocast_is_on(input.device)
        input = check_kind(input, where=f"{self._name} input", like=self.weight_ih, convert=autocast)
        rows = input if input.ndim == 2 else input.unsqueeze(0)
        state, memory = self._read(hx, rows, batched=input.ndim == 2)
        ones = hx is None and isinstance(self.cell, cells.RACCell)
        extra = tuple(getattr(self, name) for name, _ in self.cell.extra_parameters)
        bias_ih, bias_hh = (self.bias_ih, self.bias_hh) if self.bias else (None, None)
        weights = StepWeights(self.weight_ih, bias_ih, self.weight_hh, bias_hh, extra)
        moved = apply_once(self.cell, rows, state, memory, weights, ones=ones)
        given = [part if input.ndim == 2 else part.squeeze(0) for part in moved if part is not None]
        return tuple(given) if self.cell.has_memory else given[0]

    def _read(self, hx: Any, rows: Tensor, *, batched: bool) -> tuple[Tensor, Tensor | None]:
        shape = (len(rows), self.hidden_size)
        if hx is None:
            zeros = rows.new_zeros(shape)
            return zeros, zeros if self.cell.has_memory else None
        where, parts = f"{self._name} hx", tuple(hx) if isinstance(hx, tuple | list) else (hx,)
        wanted = shape if batched else shape[1:]
        if not all(isinstance(part, Tensor) for part in parts):
            raise DtypeError(where=where, got=[type(part).__name__ for part in parts], wanted="tensors")
        if len(parts) != 1 + self.cell.has_memory or any(tuple(part.shape) != wanted for part in parts):
            raise ShapeError(
                where=where,
                got=[tuple(part.shape) for part in parts],
                wanted=f"{1 + self.cell.has_memory} of shape {wanted}",
            )
        parts = tuple(check_kind(part, where=where, like=rows, convert=autocast_is_on(rows.device)) for part in parts)
        state, *memory = (part if batched else part.unsqueeze(0) for part in parts)
        return state, memory[0] if memory else None


class RNNCell(SingleStep):
    """One step of :class:`~statewise.RNN`, drop-in for ``torch.nn.RNNCell``.

    >>> RNNCell(4, 8)(torch.zeros(2, 4)).shape
    torch.Size([2, 8])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        super().__init__(cells.RNNCell(nonlinearity), input_size, hidden_size, bias, device, dtype, **options)


class _Named(SingleStep):
    """A cell whose constructor has the arguments of torch.nn.GRUCell."""

    _cell: Cell

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        super().__init__(self._cell, input_size, hidden_size, bias, device, dtype, **options)


class MGUCell(_Named):
    """One step of :class:`~statewise.MGU`.

    >>> MGUCell(4, 8)(torch.zeros(4)).shape
    torch.Size([8])
    """

    _cell = cells.MGUCell()


class GRUCell(_Named):
    """One step of :class:`~statewise.GRU`, drop-in for ``torch.nn.GRUCell``.

    >>> GRUCell(4, 8)(torch.zeros(2, 4)).shape
    torch.Size([2, 8])
    """

    _cell: Cell = cells.GRUCell()

    def __init__(self, *arguments: Any, reset_before: bool = False, **options: Any) -> None:
        if reset_before:
            self._cell = cells.ResetBeforeGRUCell()
        super().__init__(*arguments, **options)


class MultiplicativeRNNCell(_Named):
    """One step of :class:`~statewise.MultiplicativeRNN`; the factor's biases start at 1 (input) and 0 (state).

    >>> MultiplicativeRNNCell(4, 8)(torch.zeros(2, 4)).shape
    torch.Size([2, 8])
    """

    _cell = cells.MultiplicativeRNNCell()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if self.bias:
            with torch.no_grad():
                self.bias_ih[: self.hidden_size].fill_(1)
                self.bias_hh[: self.hidden_size].zero_()


class LSTMCell(_Named):
    """One step of :class:`~statewise.LSTM`, drop-in for ``torch.nn.LSTMCell``.

    >>> h, c = LSTMCell(4, 8)(torch.zeros(2, 4))
    >>> c.shape
    torch.Size([2, 8])
    """

    _cell = cells.LSTMCell()


class PeepholeLSTMCell(_Named):
    """One step of :class:`~statewise.PeepholeLSTM`; the peepholes start at zero.

    >>> h, c = PeepholeLSTMCell(4, 8)(torch.zeros(2, 4))
    >>> h.shape
    torch.Size([2, 8])
    """

    _cell = cells.PeepholeLSTMCell()


class RACCell(SingleStep):
    """One step of :class:`~statewise.RAC`; without a state the product ``U h`` is 1, as at the start of a sequence.

    >>> RACCell(4, 8)(torch.zeros(2, 4)).shape
    torch.Size([2, 8])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        super().__init__(cells.RACCell(), input_size, hidden_size, bias, device, dtype, **options)


class OrthogonalRNNCell(SingleStep):
    """One step of :class:`~statewise.OrthogonalRNN`: modReLU and an orthogonal recurrent matrix.

    Wrap a loop over it in ``torch.nn.utils.parametrize.cached()``, so that the matrix is built once.

    >>> OrthogonalRNNCell(4, 8)(torch.zeros(2, 4)).shape
    torch.Size([2, 8])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        rho: int | None = None,
        generator: torch.Generator | None = None,
        **options: Any,
    ) -> None:
        super().__init__(cells.RNNCell("modrelu"), input_size, hidden_size, bias=False, generator=generator, **options)
        with torch.no_grad():
            self.weight_ih.uniform_(-0.01, 0.01, generator=generator)
        scaled_cayley(self, "weight_hh", rho=rho, generator=generator)
