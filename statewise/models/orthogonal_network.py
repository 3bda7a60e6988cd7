"""Orthogonal recurrent networks of any depth with a linear readout: those of the experiments on long-term memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn.utils import parametrize

from statewise.errors import ArgumentError
from statewise.layers import OrthogonalRNN
from statewise.models.saved import Saved
from statewise.weights.gradient_limit import GradientLimit
from statewise.weights.orthogonality import orthogonality_error

UPDATES = ("cayley", "full-capacity")


def usual_recurrent_rate(lr: float) -> float:
    """The rate of the recurrent matrices where none is given: ``min(1e-4, lr / 10)``.

    >>> usual_recurrent_rate(5e-4)
    5e-05
    """
    return min(1e-4, lr / 10)


@dataclass(frozen=True, kw_only=True)
class OrthogonalConfig:
    """Everything that makes an orthogonal network but its weights; the network checks it.

    Args:
        inputs: symbols, or the width of a step.
        classes: outputs.
        hidden: channels of each layer.
        depth: layers.
        every_step: whether there are scores at every step, or at the last one only.
        update: how the recurrent matrices are trained: "cayley" or "full-capacity".
        rho: number of -1 entries of D; None for half of them.
        initial_state: "uniform", "zeros" or "learned".
        limit: what an entry of dLoss/dW may be; None for no limit.

    >>> OrthogonalConfig(inputs=4, classes=2, hidden=8, depth=2).build().depth
    2
    """

    inputs: int
    classes: int
    hidden: int
    depth: int = 1
    every_step: bool = True
    update: str = "cayley"
    rho: int | None = None
    initial_state: str = "uniform"
    limit: float | None = 10.0

    def build(self, *, generator: torch.Generator | None = None) -> OrthogonalNetwork:
        """The network with fresh weights.

        Args:
            generator: source of the weights; None means torch's global one.
        """
        return OrthogonalNetwork(
            self.inputs,
            self.classes,
            self.hidden,
            self.depth,
            every_step=self.every_step,
            update=self.update,
            rho=self.rho,
            initial_state=self.initial_state,
            limit=self.limit,
            generator=generator,
        )


class OrthogonalNetwork(Saved):
    """A stack of orthogonal recurrent layers and what reads it: ``y_t = V h[t, L] + c`` (Ziv 2019, chapter 3).

    ``h[t, l] = modrelu(W_l h[t-1, l] + U_l h[t, l-1])``, W_l orthogonal. With ``update="cayley"`` (scoRNN) W_l is a
    function of free entries, which any optimiser may move; with "full-capacity" it is a parameter that only
    :class:`~statewise.weights.StiefelSGD` keeps orthogonal. Matrices U_l, also between layers, start as
    U(-0.01, 0.01), the readout Glorot-uniform, all biases at zero.

    Args:
        inputs: symbols, or the width of a step.
        classes: outputs.
        hidden: channels of each layer.
        depth: layers.
        every_step: whether there are scores at every step, or at the last one only.
        update: how the recurrent matrices are trained.
        rho: number of -1 entries of D, by default half of them.
        initial_state: "uniform" (drawn for each call, in eval mode too), "zeros" or "learned".
        limit: what an entry of dLoss/dW may be; a larger gradient is scaled, see
            :func:`~statewise.weights.gradient_limit.limit_entries`. None for no limit.
        engine: as for every layer here.
        generator: source of the weights.
        device, dtype: of the weights.

    >>> network = OrthogonalNetwork(10, 10, 28, generator=torch.Generator().manual_seed(0))
    >>> network.size, network(torch.zeros(5, 2, dtype=torch.long)).shape
    (976, torch.Size([5, 2, 10]))
    """

    config: OrthogonalConfig

    def __init__(
        self,
        inputs: int,
        classes: int,
        hidden: int,
        depth: int = 1,
        *,
        every_step: bool = True,
        update: str = "cayley",
        rho: int | None = None,
        initial_state: str = "uniform",
        limit: float | None = 10.0,
        engine: str = "auto",
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if update not in UPDATES:
            raise ArgumentError(where="OrthogonalNetwork.update", got=update, wanted=f"one of {', '.join(UPDATES)}")
        if classes < 1:
            raise ArgumentError(where="OrthogonalNetwork.classes", got=classes, wanted="an integer >= 1")
        self.every_step, self.update = every_step, update
        self.config = OrthogonalConfig(
            inputs=inputs,
            classes=classes,
            hidden=hidden,
            depth=depth,
            every_step=every_step,
            update=update,
            rho=rho,
            initial_state=initial_state,
            limit=limit,
        )
        options: dict[str, Any] = {"engine": engine, "generator": generator, "device": device, "dtype": dtype}
        self.rnn = OrthogonalRNN(inputs, hidden, depth, rho=rho, initial_state=initial_state, **options)
        # Without the values that torch would draw from its global generator.
        where = self.rnn.weight_ih_l0.device
        self.readout = nn.Linear(hidden, classes, device="meta", dtype=dtype).to_empty(device=where)
        nn.init.xavier_uniform_(self.readout.weight, generator=generator)
        nn.init.zeros_(self.readout.bias)
        for name in self._recurrent_names:
            if update == "full-capacity":
                parametrize.remove_parametrizations(self.rnn, name)
            if limit is not None:
                parametrize.register_parametrization(self.rnn, name, GradientLimit(limit))

    @property
    def depth(self) -> int:
        """How many layers there are."""
        return self.rnn.num_layers

    @property
    def size(self) -> int:
        """How many numbers are trained; for the full-capacity update all entries of its matrices are counted."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)

    def forward(
        self,
        sequences: Float[Tensor, "steps batch inputs"] | Int64[Tensor, "steps batch"],
        hx: Float[Tensor, "depth batch hidden"] | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "*rows classes"]:
        """Scores of the classes: (steps, batch, classes), or (batch, classes) if only the last step is read.

        Args:
            sequences: vectors, or the numbers of symbols, which are read as one-hot vectors.
            hx: the initial state; None for the network's own.
            generator: source of an initial state that is drawn.
        """
        states, final = self.rnn(self._vectors(sequences), hx, generator=generator)
        scores: Tensor = self.readout(states if self.every_step else final[-1])
        return scores

    def parameter_groups(self, lr: float, lr_recurrent: float | None = None) -> list[dict[str, Any]]:
        """Two groups for an optimiser with two rates: everything else, then what makes the recurrent matrices.

        Args:
            lr: of everything else.
            lr_recurrent: of the recurrent matrices; None for ``min(1e-4, lr / 10)``.

        >>> network = OrthogonalNetwork(4, 2, 8, depth=2)
        >>> [(len(group["params"]), group["lr"]) for group in network.parameter_groups(5e-4)]
        [(6, 0.0005), (2, 5e-05)]
        """
        recurrent = self.recurrent_parameters
        known = {id(parameter) for parameter in recurrent}
        others = [parameter for parameter in self.parameters() if id(parameter) not in known]
        rate = usual_recurrent_rate(lr) if lr_recurrent is None else lr_recurrent
        return [{"params": others, "lr": lr}, {"params": recurrent, "lr": rate}]

    @property
    def recurrent_parameters(self) -> list[nn.Parameter]:
        """Of each layer, the free entries of A, or W itself for the full-capacity update."""
        ends = {f"parametrizations.{name}.original" for name in self._recurrent_names} | set(self._recurrent_names)
        return [parameter for name, parameter in self.rnn.named_parameters() if name in ends]

    @torch.no_grad()
    def orthogonality(self) -> float:
        """The largest ``||W W^T - I||_F`` of any layer, in float64 (Figure 1.2 follows it during training)."""
        return max(float(orthogonality_error(getattr(self.rnn, name))) for name in self._recurrent_names)

    @torch.no_grad()
    def largest_entry(self) -> float:
        """The largest entry of any A: as it grows, ``I + A`` becomes ill-conditioned, and another rho may help.

        Zero for the full-capacity update, which has no A.
        """
        if self.update != "cayley":
            return 0.0
        return max((float(free.abs().max()) for free in self.recurrent_parameters if free.numel()), default=0.0)

    @property
    def _recurrent_names(self) -> list[str]:
        return [f"weight_hh_l{layer}" for layer in range(self.depth)]

    def _vectors(self, sequences: Tensor) -> Tensor:
        """Symbols as one-hot vectors; vectors as they are."""
        if sequences.is_floating_point():
            return sequences
        like = self.readout.weight
        eye = torch.eye(self.rnn.input_size, device=like.device, dtype=like.dtype)
        try:
            return nn.functional.embedding(sequences, eye)
        except IndexError as error:
            raise ArgumentError(
                where="OrthogonalNetwork sequences",
                got=f"symbols {int(sequences.min())} to {int(sequences.max())}",
                wanted=f"0 to {self.rnn.input_size - 1}",
            ) from error
