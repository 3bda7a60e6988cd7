"""The layers of the library as the contracts see them: how each is made, and its slow, obvious truth.

A truth is the cell's formula for ONE sequence at ONE step, written with vectors and without the package.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import statewise
from contracts.passes import Case, Pass, differentiate
from statewise import CompoundingNoiseWarning, RecurrentLayer


class Weights(NamedTuple):
    """The parameters of one layer in one direction; absent biases are zero."""

    W: Tensor
    U: Tensor
    b: Tensor
    d: Tensor
    extra: Any


# The input, the old state (None where the first product is 1), the old memory if there is one, the parameters.
Truth = Callable[[Tensor, Any, Any, Weights], tuple[Tensor, Tensor | None]]


def rnn(activation: Callable[[Tensor], Tensor]) -> Truth:
    def step(x: Tensor, h: Any, c: Any, p: Weights) -> tuple[Tensor, None]:
        return activation(p.W @ x + p.b + p.U @ h + p.d), None

    return step


def modrelu(x: Tensor, h: Any, c: Any, p: Weights) -> tuple[Tensor, None]:
    z = p.W @ x + p.b + p.U @ h + p.d
    grown = z.abs() + p.extra
    return torch.where((grown > 0) & (z != 0), torch.where(z < 0, -grown, grown), torch.zeros_like(z)), None


def mgu(x: Tensor, h: Any, c: Any, p: Weights) -> tuple[Tensor, None]:
    (Wr, Wn), (Ur, Un), (br, bn), (dr, dn) = (tensor.chunk(2) for tensor in p[:4])
    r = torch.sigmoid(Wr @ x + br + Ur @ h + dr)
    n = torch.tanh(Wn @ x + bn + Un @ (r * h) + dn)
    return (1 - r) * h + r * n, None


def gru(x: Tensor, h: Any, c: Any, p: Weights) -> tuple[Tensor, None]:
    (Wr, Wz, Wn), (Ur, Uz, Un), (br, bz, bn), (dr, dz, dn) = (tensor.chunk(3) for tensor in p[:4])
    r = torch.sigmoid(Wr @ x + br + Ur @ h + dr)
    z = torch.sigmoid(Wz @ x + bz + Uz @ h + dz)
    n = torch.tanh(Wn @ x + bn + r * (Un @ h + dn))
    return (1 - z) * n + z * h, None


def gru_reset_before(x: Tensor, h: Any, c: Any, p: Weights) -> tuple[Tensor, None]:
    (Wr, Wz, Wn), (Ur, Uz, Un), (br, bz, bn), (dr, dz, dn) = (tensor.chunk(3) for tensor in p[:4])
    r = torch.sigmoid(Wr @ x + br + Ur @ h + dr)
    z = torch.sigmoid(Wz @ x + bz + Uz @ h + dz)
    n = torch.tanh(Wn @ x + bn + Un @ (r * h) + dn)
    return (1 - z) * n + z * h, None


def multiplicative(x: Tensor, h: Any, c: Any, p: Weights) -> tuple[Tensor, None]:
    (Wf, Wn), (Uf, Un), (bf, bn), (df, dn) = (tensor.chunk(2) for tensor in p[:4])
    moved = Un @ torch.diag(Wf @ x + bf)  # the input as a matrix
    return torch.tanh(Wn @ x + bn + moved @ (Uf @ h + df) + dn), None


def lstm(x: Tensor, h: Any, c: Any, p: Weights) -> tuple[Tensor, Tensor]:
    i, f, g, o = (p.W @ x + p.b + p.U @ h + p.d).chunk(4)
    new = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(new), new


def peephole_lstm(x: Tensor, h: Any, c: Any, p: Weights) -> tuple[Tensor, Tensor]:
    i, f, g, o = (p.W @ x + p.b + p.U @ h + p.d).chunk(4)
    new = torch.sigmoid(f + p.extra[1] * c) * c + torch.sigmoid(i + p.extra[0] * c) * torch.tanh(g)
    return torch.sigmoid(o + p.extra[2] * new) * torch.tanh(new), new


def rac(x: Tensor, h: Any, c: Any, p: Weights) -> tuple[Tensor, None]:
    product = torch.ones_like(p.d) if h is None else p.U @ h
    return (p.W @ x + p.b) * (product + p.d), None


@dataclass(frozen=True)
class Member:
    """A layer: its class and options, its single step, its truth, and torch's layer of the same name if there is one.

    Args:
        takes_bias: whether its constructor has ``bias``.
        start: what a sequence starts from when no state is given: "zeros", "ones" (the first product is 1), "pinv",
            "learned", or "random", which only a call can tell.
        compiled: whether the kernels, native and of the accelerator, have code for its cell.
    """

    layer: Callable[..., RecurrentLayer]
    single: Callable[..., nn.Module]
    truth: Truth
    options: Mapping[str, Any] = field(default_factory=dict)
    single_options: Mapping[str, Any] = field(default_factory=dict)
    torch_layer: type[nn.RNNBase] | None = None
    torch_cell: type[nn.RNNCellBase] | None = None
    takes_bias: bool = True
    start: str = "zeros"
    compiled: bool = True

    def arguments(self, case: Case) -> dict[str, Any]:
        """The constructor arguments that torch.nn has too."""
        bias = {"bias": case.bias} if self.takes_bias else {}
        sizes = {"input_size": case.inputs, "hidden_size": case.hidden, "num_layers": case.layers}
        form = {"batch_first": case.batch_first, "bidirectional": case.bidirectional, "dtype": case.dtype}
        return {**sizes, **bias, **form}

    def build(self, case: Case, *, transforms: Any = (), **options: Any) -> RecurrentLayer:
        """A layer with random weights; those that start at zero are random too, since zero hides mistakes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CompoundingNoiseWarning)
            chosen: dict[str, Any] = {**self.options, **options, "transforms": transforms}
            layer = self.layer(**self.arguments(case), **chosen, generator=case.generator("weights"))
        scramble(layer, case)
        return layer

    def build_single(self, case: Case) -> nn.Module:
        """The same cell as a module of one step, with the weights of :meth:`build`."""
        bias = {"bias": case.bias} if self.takes_bias else {}
        single = self.single(case.inputs, case.hidden, **bias, **self.single_options, dtype=case.dtype)
        held = self.build(case).state_dict()
        single.load_state_dict({name.replace("_l0", ""): value for name, value in held.items() if name != "state_0"})
        return single

    def by_hand(self, layer: RecurrentLayer, case: Case) -> Pass:
        """The pass of a plain layer by its truth: each sequence alone, layer after layer, step after step."""
        x, states = case.leaves(has_memory=layer.cell.has_memory)
        weights = [weights_of(layer, suffix) for suffix in suffixes(layer)]
        starts = [] if case.given_state else [self._start(layer, slot, p) for slot, p in enumerate(weights)]
        rows, ends = [], []
        for row, length in enumerate(case.true_lengths):
            sequence, ended = list(x[:length, row].unbind()), []
            for place in range(layer.num_layers):
                sides = []
                for direction in range(layer.num_directions):
                    slot = place * layer.num_directions + direction
                    start = [state[slot, row] for state in states] or starts[slot]
                    sides.append(self._walk(sequence, start, weights[slot], backwards=direction == 1))
                    ended.append(sides[-1][1])
                sequence = [torch.cat(parts) for parts in zip(*(side[0] for side in sides), strict=True)]
            output = torch.stack(sequence)
            rows.append(torch.cat((output, output.new_zeros(case.steps - length, output.shape[1]))))
            ends.append(ended)
        finals = [torch.stack([torch.stack([slot[part] for slot in row]) for row in ends], 1) for part in range(2)]
        given = tuple(finals[: 1 + layer.cell.has_memory])
        return differentiate(layer, case, x, states, torch.stack(rows, dim=1), given)

    def _start(self, layer: RecurrentLayer, slot: int, p: Weights) -> list[Tensor | None]:
        zeros = torch.zeros_like(p.U[0])
        match self.start:
            case "zeros":
                return [zeros, zeros]
            case "ones":
                return [None, None]
            case "pinv":
                return [torch.linalg.pinv(p.U) @ torch.ones_like(zeros), None]
        learnt: Any = layer.state_0
        return [learnt[slot, 0], None]

    def _walk(
        self, sequence: list[Tensor], start: list[Any], p: Weights, *, backwards: bool
    ) -> tuple[list[Tensor], tuple[Tensor, Tensor]]:
        h, c, seen = start[0], start[-1], []
        for x in reversed(sequence) if backwards else sequence:
            h, c = self.truth(x, h, c, p)
            seen.append(h)
        return seen[::-1] if backwards else seen, (h, h if c is None else c)


def suffixes(layer: RecurrentLayer) -> list[str]:
    """What the names of parameters end in, layer by layer, direction by direction."""
    ends = ("", "_reverse")[: layer.num_directions]
    return [f"_l{place}{end}" for place in range(layer.num_layers) for end in ends]


def weights_of(module: Any, suffix: str = "") -> Weights:
    """The parameters of one layer in one direction, or of a single step."""
    W, U = getattr(module, "weight_ih" + suffix), getattr(module, "weight_hh" + suffix)
    zero = W.new_zeros(len(W))
    b, d = (getattr(module, name + suffix) if module.bias else zero for name in ("bias_ih", "bias_hh"))
    extra = [getattr(module, name + suffix) for name, _ in module.cell.extra_parameters]
    return Weights(W, U, b, d, extra[0] if extra else None)


def scramble(module: nn.Module, case: Case) -> None:
    """Give random values to all parameters whose start is zero or tiny."""
    source = case.generator("scramble")
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.startswith(("weight_ph", "bias_", "state_0")) or "parametrizations" in name:
                parameter.uniform_(-0.5, 0.5, generator=source)
            elif isinstance(module, statewise.OrthogonalRNN) and name.startswith("weight_ih"):
                parameter.uniform_(-0.7, 0.7, generator=source)
            elif getattr(module, "initial_state", "") == "pinv" and name.startswith("weight_hh"):
                # Far from singular: else the gradient of the pseudo-inverse is all rounding errors.
                nn.init.orthogonal_(parameter, generator=source).add_(parameter.square(), alpha=0.2)


def _rnn(nonlinearity: str, truth: Truth, **known: Any) -> Member:
    word = {"nonlinearity": nonlinearity}
    return Member(statewise.RNN, statewise.RNNCell, truth, options=word, single_options=word, **known)


def _rac(start: str) -> Member:
    return Member(statewise.RAC, statewise.RACCell, rac, options={"initial_state": start}, start=start)


def _orthogonal(initial_state: str, start: str) -> Member:
    options = {"initial_state": initial_state}
    return Member(
        statewise.OrthogonalRNN, statewise.OrthogonalRNNCell, modrelu, options=options, takes_bias=False, start=start
    )


_ELMAN = {"torch_layer": nn.RNN, "torch_cell": nn.RNNCell}
_BEFORE = {"reset_before": True}

MEMBERS: dict[str, Member] = {
    "tanh": _rnn("tanh", rnn(torch.tanh), **_ELMAN),
    "relu": _rnn("relu", rnn(torch.relu), **_ELMAN),
    "sigmoid": _rnn("sigmoid", rnn(torch.sigmoid)),
    "identity": _rnn("identity", rnn(lambda z: z)),
    "modrelu": _rnn("modrelu", modrelu),
    "MGU": Member(statewise.MGU, statewise.MGUCell, mgu),
    "GRU": Member(statewise.GRU, statewise.GRUCell, gru, torch_layer=nn.GRU, torch_cell=nn.GRUCell),
    "GRU reset before": Member(
        statewise.GRU, statewise.GRUCell, gru_reset_before, options=_BEFORE, single_options=_BEFORE
    ),
    "MultiplicativeRNN": Member(
        statewise.MultiplicativeRNN, statewise.MultiplicativeRNNCell, multiplicative, compiled=False
    ),
    "LSTM": Member(statewise.LSTM, statewise.LSTMCell, lstm, torch_layer=nn.LSTM, torch_cell=nn.LSTMCell),
    "PeepholeLSTM": Member(statewise.PeepholeLSTM, statewise.PeepholeLSTMCell, peephole_lstm),
    "RAC": _rac("ones"),
    "RAC pinv": _rac("pinv"),
    "RAC learned": _rac("learned"),
    "OrthogonalRNN": _orthogonal("uniform", "random"),
    "OrthogonalRNN zeros": _orthogonal("zeros", "zeros"),
    "OrthogonalRNN learned": _orthogonal("learned", "learned"),
}

# One member for each cell; the rest differ from these in how weights are made and where sequences start.
EVERY_CELL = tuple(MEMBERS)[:12]
COMPILED_CELLS = tuple(name for name in EVERY_CELL if MEMBERS[name].compiled)
