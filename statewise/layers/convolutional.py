"""The convolutional recurrent network, whose weights are orthogonal filter banks, and the head that belongs to it."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from statewise.errors import ShapeError
from statewise.layers.parts import LayerOptions, unknown_argument
from statewise.layers.recurrent import RNN
from statewise.weights.filters import filters_of, haar_filters_, orthogonal_filters, require_sizes


class ConvRNN(RNN):
    """A recurrent network that convolves its state and its input with a few filters.

    ``h_s = tanh(U∘h_{s-1} + W∘x_s)``. ``I∘x`` is the average of the k convolutions of x with the filters of a bank I,
    k filters of length k, orthogonal and of length ``1/sqrt(k)``: ``I^T I = 1/k`` (Chen, Li & Zhao 2019, Theorem 6).
    No biases. Only the ``size - k + 1`` places where a whole filter fits have a value; they stand in the middle, so
    that the first ``(k - 1) // 2`` and the last ``k // 2`` entries of every state are 0.

    Averaging makes one filter of each bank, its mean, of length 1/k: the network is a contraction of its state by
    ``1/sqrt(k)`` a step, which is why it generalizes, and why it forgets. ``weight_ih_l0`` and ``weight_hh_l0`` are the
    Toeplitz matrices of the mean filters, functions of the banks' free parameters, so that every engine runs the layer
    and every optimiser keeps the filters orthogonal.

    Args:
        size: entries of a state, and of an input.
        filter_size: k, from 1 to ``size``.
        num_layers, batch_first, dropout, bidirectional, device, dtype: as in torch.nn.RNN. A layer above a
            bidirectional one has a bank for each of the two directions below it.
        generator: source of the initial filters, which are drawn uniformly.
        **options: ``transforms``, ``engine`` and ``check_finite``, as for every layer here.

    >>> layer = ConvRNN(16, 3)
    >>> output, state = layer(torch.zeros(5, 2, 16))
    >>> output.shape, sum(parameter.numel() for parameter in layer.parameters())
    (torch.Size([5, 2, 16]), 6)
    >>> bank = layer.filters("weight_hh_l0")[0]
    >>> bool(torch.allclose(3 * bank.T @ bank, torch.eye(3), atol=1e-6))
    True
    """

    def __init__(
        self,
        size: int,
        filter_size: int,
        num_layers: int = 1,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        generator: torch.Generator | None = None,
        **options: Any,
    ) -> None:
        for name in ("bias", "nonlinearity", "input_size", "hidden_size"):
            if name in options:
                raise unknown_argument("statewise.ConvRNN", name, LayerOptions.__annotations__)
        require_sizes("statewise.ConvRNN", size, filter_size)
        self.size, self.filter_size = size, filter_size
        sizes = (size, size, num_layers, "tanh", False, batch_first, dropout, bidirectional)
        super().__init__(*sizes, device, dtype, generator=generator, **options)

    def filters(self, name: str) -> Float[Tensor, "banks taps channels"]:
        """The filter banks that a weight such as ``"weight_hh_l0"`` is made of: one, or one for each direction below.

        Args:
            name: of the weight.
        """
        return filters_of(self, name)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all filter banks uniformly."""
        super().reset_parameters(generator)
        for name in self._convolutions():
            haar_filters_(self, name, generator=generator)

    def extra_repr(self) -> str:
        """The arguments that differ from their defaults, and the length of the filters."""
        return f"{super().extra_repr()}, filter_size={self.filter_size}"

    def _make_parameters(self, kind: dict[str, Any]) -> None:
        super()._make_parameters(kind)
        for name in self._convolutions():
            orthogonal_filters(self, name, size=self.size, filter_size=self.filter_size)

    def _convolutions(self) -> list[str]:
        suffixes = [suffix for layer in range(self.num_layers) for suffix in self._suffixes(layer)]
        return [weight + suffix for suffix in suffixes for weight in ("weight_ih", "weight_hh")]


class ConvReadout(nn.Module):
    """The head of a convolutional network: a convolution with averaged channels, pooled to one number a class.

    ``y = pool(V∘h)``, V an orthogonal filter bank as in :class:`ConvRNN` (Chen, Li & Zhao 2019, Theorem 6). The
    ``size - filter_size + 1`` values of the convolution are averaged in adjacent blocks, as equal as can be, that do
    not overlap, so that ``‖y‖_2 <= ‖h‖_2 / sqrt(filter_size)``. No bias, and logits: nothing comes after it.

    Args:
        size: entries of a state.
        filter_size: length and number of the filters.
        classes: how many numbers to give, at most ``size - filter_size + 1``.
        device, dtype: of the parameters.
        generator: source of the initial filters, which are drawn uniformly.

    >>> head = ConvReadout(16, 3, 10)
    >>> head(torch.zeros(5, 2, 16)).shape, head.weight.shape
    (torch.Size([5, 2, 10]), torch.Size([10, 16]))
    """

    weight: Tensor

    def __init__(
        self,
        size: int,
        filter_size: int,
        classes: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        require_sizes("statewise.ConvReadout", size, filter_size, classes, called="classes")
        self.size, self.filter_size, self.classes = size, filter_size, classes
        self.weight = nn.Parameter(torch.empty(classes, size, device=device, dtype=dtype))
        orthogonal_filters(self, "weight", size=size, filter_size=filter_size, outputs=classes)
        self.reset_parameters(generator)

    def forward(self, states: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows classes"]:
        """The logits of states.

        Args:
            states: of any number of sequences and steps, entries last.
        """
        if states.shape[-1] != self.size:
            raise ShapeError(
                where="statewise.ConvReadout states", got=tuple(states.shape), wanted=f"(..., {self.size})"
            )
        return F.linear(states, self.weight)

    def filters(self) -> Float[Tensor, "banks taps channels"]:
        """The filter bank, filters as columns of the one matrix."""
        return filters_of(self, "weight")

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the filter bank uniformly.

        Args:
            generator: source of the numbers; None means torch's global one.
        """
        haar_filters_(self, "weight", generator=generator)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"{self.size}, {self.filter_size}, {self.classes}"
