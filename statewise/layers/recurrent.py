"""The layers by name, with the constructor arguments of torch.nn."""

from __future__ import annotations

import warnings
from typing import Unpack

import torch
from torch import Tensor, nn

from statewise.cells import (
    Cell,
    GRUCell,
    LSTMCell,
    MGUCell,
    MultiplicativeRNNCell,
    PeepholeLSTMCell,
    RACCell,
    ResetBeforeGRUCell,
    RNNCell,
)
from statewise.errors import ArgumentError
from statewise.kernels import traced, transformed
from statewise.layers.base import RecurrentLayer, State
from statewise.layers.batch import Batch
from statewise.layers.draws import Draws
from statewise.layers.parts import LayerOptions


def _refuse_projection(name: str, proj_size: int) -> None:
    if proj_size != 0:
        raise ArgumentError(
            where=f"statewise.{name}.proj_size",
            got=proj_size,
            wanted="0",
            remedy="Put a torch.nn.Linear after the layer, or keep torch.nn.LSTM for projected states.",
        )


class RNN(RecurrentLayer):
    """An Elman network, drop-in for ``torch.nn.RNN``.

    ``h_t = act(W x_t + b + U h_{t-1} + b')`` (Elman 1990).

    Args:
        input_size, hidden_size, num_layers, nonlinearity, bias, batch_first, dropout, bidirectional, device, dtype: as
            in torch.nn.RNN; ``nonlinearity`` also takes "sigmoid", "identity" and "modrelu".
        **options: ``transforms``, ``engine``, ``check_finite`` and ``generator``, as for every layer here.

    >>> output, state = RNN(4, 8)(torch.zeros(5, 2, 4))
    >>> output.shape, state.shape
    (torch.Size([5, 2, 8]), torch.Size([1, 2, 8]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        sizes = (input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype)
        super().__init__(RNNCell(nonlinearity), *sizes, **options)
        self.nonlinearity = nonlinearity

    def extra_repr(self) -> str:
        shown = super().extra_repr()
        return shown if self.nonlinearity == "tanh" else f"{shown}, nonlinearity={self.nonlinearity!r}"


class _Gated(RecurrentLayer):
    """A layer whose constructor has the arguments of torch.nn.GRU."""

    _cell: Cell

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        sizes = (input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype)
        super().__init__(self._cell, *sizes, **options)


class MGU(_Gated):
    """A network of minimal gated units, with the interface of ``torch.nn.GRU``.

    ``r = sigmoid(W_r x + U_r h)``, ``n = tanh(W_n x + U_n (r h))``, ``h_t = (1 - r) h_{t-1} + r n`` (Zhou et al. 2016).

    >>> MGU(4, 8).weight_hh_l0.shape
    torch.Size([16, 8])
    """

    _cell = MGUCell()


class GRU(_Gated):
    """A network of gated recurrent units, drop-in for ``torch.nn.GRU``.

    ``r, z = sigmoid(W x + b + U h + b')``, ``n = tanh(W_n x + b_n + r (U_n h + b'_n))``,
    ``h_t = (1 - z) n + z h_{t-1}`` (Cho et al. 2014; Chung et al. 2014).

    Args:
        reset_before: multiply the state by the reset gate before the product, as the original paper does:
            ``n = tanh(W_n x + b_n + U_n (r h) + b'_n)``.
        **options: all other arguments as in torch.nn.GRU, then ``transforms``, ``engine``, ``check_finite`` and
            ``generator``.

    >>> GRU(4, 8, bidirectional=True)(torch.zeros(5, 4))[0].shape
    torch.Size([5, 16])
    """

    _cell: Cell = GRUCell()

    def __init__(
        self,
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
        reset_before: bool = False,
        **options: Unpack[LayerOptions],
    ) -> None:
        if reset_before:
            self._cell = ResetBeforeGRUCell()
        sizes = (input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype)
        super().__init__(*sizes, **options)


class MultiplicativeRNN(_Gated):
    """A network in which each input acts on the state as a matrix of its own, with the interface of ``torch.nn.GRU``.

    ``f = (W_f x + b_f) (U_f h + b'_f)``, elementwise, ``h_t = tanh(W_n x + b_n + U_n f + b'_n)``: the state is
    multiplied by ``U_n diag(W_f x + b_f) U_f`` (Sutskever et al. 2011). Weights start as in torch.nn; ``b_f`` starts at
    1 and ``b'_f`` at 0, so that the network starts near a plain one whose recurrent matrix is ``U_n U_f``. With
    ``bias=False``, as in the paper, a small input nearly stops the state.

    >>> layer = MultiplicativeRNN(4, 8)
    >>> layer.weight_hh_l0.shape, layer.bias_ih_l0[:2].tolist()
    (torch.Size([16, 8]), [1.0, 1.0])
    """

    _cell = MultiplicativeRNNCell()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw weights and biases as torch.nn does, but the factor's: 1 for the input's, 0 for the state's."""
        super().reset_parameters(generator)
        self._reset_factor()

    def zero_biases(self) -> None:
        """Set all biases to 0, but the factor's of the input to 1: the state would not be carried on otherwise."""
        super().zero_biases()
        self._reset_factor()

    def _reset_factor(self) -> None:
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                weight = self._raw_name(name)
                if weight.startswith(("bias_ih", "bias_hh")):
                    parameter[: self.hidden_size].fill_(weight.startswith("bias_ih"))


class _Memory(RecurrentLayer):
    """A layer whose constructor has the arguments of torch.nn.LSTM."""

    _cell: Cell

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        _refuse_projection(type(self).__name__, proj_size)
        self.proj_size: int
        sizes = (input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype)
        super().__init__(self._cell, *sizes, **options)
        self.proj_size = proj_size


class LSTM(_Memory):
    """A long short-term memory, drop-in for ``torch.nn.LSTM``.

    ``i, f, o = sigmoid(W x + b + U h + b')``, ``g = tanh(...)``, ``c_t = f c_{t-1} + i g``, ``h_t = o tanh(c_t)``
    (Hochreiter & Schmidhuber 1997).

    Args:
        **options: all arguments as in torch.nn.LSTM (``proj_size`` is refused), then ``transforms``, ``engine``,
            ``check_finite`` and ``generator``.

    >>> from statewise.transforms import Noise
    >>> layer = LSTM(4, 8, num_layers=2, transforms=Noise("gaussian", 0.5))
    >>> output, (h, c) = layer(torch.zeros(5, 2, 4))
    >>> output.shape, c.shape
    (torch.Size([5, 2, 8]), torch.Size([2, 2, 8]))
    """

    _cell = LSTMCell()


class PeepholeLSTM(_Memory):
    """An LSTM whose gates see the memory, with the interface of ``torch.nn.LSTM``; the output gate sees the new one.

    ``i, f = sigmoid(z + p c_{t-1})``, ``o = sigmoid(z_o + p_o c_t)`` (Gers & Schmidhuber 2000; Wang & Niepert 2019,
    eqs. 7-9). The peepholes ``weight_ph_l0`` (rows input, forget, output) start at zero: then it is the plain LSTM.

    >>> PeepholeLSTM(4, 8).weight_ph_l0.shape
    torch.Size([3, 8])
    """

    _cell = PeepholeLSTMCell()


class SingularStartWarning(UserWarning):
    """No state has the product 1 with a singular recurrent matrix, which ``initial_state="pinv"`` solves for."""


class RAC(RecurrentLayer):
    """A recurrent arithmetic circuit, which multiplies where others add.

    ``h_t = (W x_t) * (U h_{t-1})`` (Levine et al. 2017; Ziv 2019, section 2.1). With ``bias=True`` it is multiplicative
    integration (Wu et al. 2016). Weights start as N(0, 1 / columns).

    Args:
        bias: off by default, since the theory has none.
        initial_state: what a sequence starts from when ``hx`` is not given: "ones" makes the first product
            ``U h_0`` exactly 1, for every U; "pinv" solves for ``h_0`` (its product is 1 only if U is regular);
            "learned" trains ``h_0``, from ones.
        **options: all other arguments as in torch.nn.GRU, then ``transforms``, ``engine``, ``check_finite`` and
            ``generator``.

    >>> layer = RAC(2, 2)
    >>> x = torch.ones(1, 1, 2)
    >>> bool(torch.allclose(layer(x)[0], x @ layer.weight_ih_l0.T))
    True
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = False,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        initial_state: str = "ones",
        **options: Unpack[LayerOptions],
    ) -> None:
        if initial_state not in ("ones", "pinv", "learned"):
            raise ArgumentError(
                where="statewise.RAC.initial_state",
                got=initial_state,
                wanted="one of ones, pinv, learned",
                remedy="A fixed state goes into forward as hx; zero would make the whole circuit zero.",
            )
        self.initial_state = initial_state
        sizes = (input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype)
        super().__init__(RACCell(), *sizes, **options)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw weights from N(0, 1 / columns); biases start at zero."""
        super().reset_parameters(generator)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                weight = self._raw_name(name)
                if weight.startswith("weight_"):
                    parameter.normal_(0, parameter.shape[1] ** -0.5, generator=generator)
                elif weight.startswith("bias_"):
                    parameter.zero_()
        if self.initial_state == "learned":
            like: Tensor = self.weight_hh_l0
            self.state_0 = nn.Parameter(like.new_ones(self.num_layers * self.num_directions, 1, self.hidden_size))

    def _default_state(self, shape: tuple[int, int, int], batch: Batch, draws: Draws) -> tuple[Tensor, bool]:
        if self.initial_state == "ones":
            return batch.rows.new_zeros(shape), True
        if self.initial_state == "learned":
            return self.state_0.expand(shape), False
        suffixes = [suffix for layer in range(self.num_layers) for suffix in self._suffixes(layer)]
        wide = torch.promote_types(self.weight_hh_l0.dtype, torch.float32)  # torch solves nothing in half precision
        ones = batch.rows.new_ones(self.hidden_size, dtype=wide)
        recurrent = [getattr(self, "weight_hh" + suffix).to(wide) for suffix in suffixes]
        solved = [torch.linalg.pinv(weight) @ ones for weight in recurrent]
        if _can_be_looked_at(ones):
            self._warn_of_singular(recurrent, solved)
        return torch.stack(solved).unsqueeze(1).expand(shape), False

    def _warn_of_singular(self, recurrent: list[Tensor], solved: list[Tensor]) -> None:
        """Where a matrix is singular no state has the product 1: what is found has its projection."""
        for weight, state in zip(recurrent, solved, strict=True):
            missed = float((weight @ state - 1).detach().abs().max())
            if missed > 1e-3:
                warnings.warn(
                    f"{self._name}: a recurrent matrix is singular, so that initial_state='pinv' makes the first "
                    f"product miss 1 by {missed:.2g}. initial_state='ones' makes it exactly 1 for every matrix.",
                    SingularStartWarning,
                    stacklevel=2,
                )

    def _initial(self, hx: State | None, batch: Batch, draws: Draws) -> tuple[Tensor, Tensor | None, bool]:
        found = super()._initial(hx, batch, draws)
        if hx is not None and not self.bias and _can_be_looked_at(found[0]) and not bool(found[0].any()):
            raise ArgumentError(
                where=f"{self._name} hx",
                got="a state of zeros",
                wanted="one that is not zero everywhere: products with zero make the whole circuit zero",
                remedy="Leave hx out to begin (initial_state says how). A state that vanished over many steps is too "
                "small for its dtype: statewise.memory.scaled_scores keeps logarithms.",
            )
        return found


def _can_be_looked_at(numbers: Tensor) -> bool:
    """Whether numbers are there at no cost: an accelerator would have to be waited for, vmap and a graph have none."""
    return numbers.device.type == "cpu" and not transformed() and not traced()
