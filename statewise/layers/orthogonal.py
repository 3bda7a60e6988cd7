"""The orthogonal recurrent network: a state that keeps its length."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from statewise.errors import ArgumentError
from statewise.layers.batch import Batch
from statewise.layers.draws import Draws
from statewise.layers.parts import LayerOptions, unknown_argument
from statewise.layers.recurrent import RNN
from statewise.transforms import Stream
from statewise.weights import scaled_cayley

START = ("uniform", "zeros", "learned")


class OrthogonalRNN(RNN):
    """A recurrent network whose recurrent matrix is exactly orthogonal: scoRNN.

    ``h_t = modrelu(W h_{t-1} + U x_t)``, ``W = (I + A)^-1 (I - A) D`` (Helfrich et al. 2018; Ziv 2019, section 1.3).
    ``weight_hh_l0`` is a function of the strictly upper entries of A, so every optimiser keeps it orthogonal. Input
    weights start as U(-0.01, 0.01), so the untrained network is linear and keeps the length of its state.

    Args:
        input_size, hidden_size, num_layers, batch_first, dropout, bidirectional, device, dtype: as in torch.nn.RNN.
        rho: number of -1 entries of D, by default half of them.
        initial_state: what a sequence starts from when ``hx`` is not given: "uniform" draws it anew for each call, with
            expected length 1, also in eval mode (give a generator to repeat it); "zeros"; "learned".
        **options: ``transforms``, ``engine``, ``check_finite`` and ``generator``, as for every layer here.

    >>> layer = OrthogonalRNN(4, 8)
    >>> bool(torch.allclose(layer.weight_hh_l0 @ layer.weight_hh_l0.T, torch.eye(8), atol=1e-6))
    True
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        rho: int | None = None,
        initial_state: str = "uniform",
        generator: torch.Generator | None = None,
        **options: Any,
    ) -> None:
        for name in ("bias", "nonlinearity"):
            if name in options:
                raise unknown_argument("statewise.OrthogonalRNN", name, LayerOptions.__annotations__)
        if initial_state not in START:
            raise ArgumentError(
                where="statewise.OrthogonalRNN.initial_state", got=initial_state, wanted=f"one of {', '.join(START)}"
            )
        self.initial_state = initial_state
        sizes = (input_size, hidden_size, num_layers, "modrelu", False, batch_first, dropout, bidirectional)
        super().__init__(*sizes, device, dtype, generator=generator, **options)
        for layer in range(num_layers):
            for suffix in self._suffixes(layer):
                scaled_cayley(self, f"weight_hh{suffix}", rho=rho, generator=generator)
        if initial_state == "learned":
            shape = (num_layers * self.num_directions, 1, hidden_size)
            bound = (3 / hidden_size) ** 0.5
            start = torch.empty(shape, device=device, dtype=dtype).uniform_(-bound, bound, generator=generator)
            self.state_0 = nn.Parameter(start)

    def extra_repr(self) -> str:
        """The arguments that differ from their defaults, and where sequences start."""
        return f"{super().extra_repr()}, initial_state={self.initial_state!r}"

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Input weights from U(-0.01, 0.01), biases of modReLU zero; the orthogonal matrices keep their own start."""
        super().reset_parameters(generator)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if self._raw_name(name).startswith("weight_ih"):
                    parameter.uniform_(-0.01, 0.01, generator=generator)

    def _draw_start(self, batch: Batch, stream: Stream) -> Tensor | None:
        if self.initial_state != "uniform":
            return None
        shape = (self.num_layers * self.num_directions, batch.layout.batch, self.hidden_size)
        bound = (3 / self.hidden_size) ** 0.5
        return stream.uniform(batch.rows.new_empty(shape)).mul_(2 * bound).sub_(bound)

    def _default_state(self, shape: tuple[int, int, int], batch: Batch, draws: Draws) -> tuple[Tensor, bool]:
        if self.initial_state == "learned":
            return self.state_0.expand(shape), False
        if draws.start is None:
            return batch.rows.new_zeros(shape), False
        return batch.sort(draws.start[:, : batch.layout.batch], dim=1), False
