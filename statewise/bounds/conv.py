"""Convolutional recurrent networks with orthogonal filters: how much each filter bank moves the output."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from torch.nn.utils import parametrize

from statewise.bounds.logs import Floats, log_geometric, log_of, log_sum
from statewise.bounds.profile import Block, Profile
from statewise.errors import ArgumentError, AssumptionError
from statewise.layers.convolutional import ConvReadout, ConvRNN
from statewise.weights.filters import OrthogonalFilters, require_sizes


@dataclass(frozen=True, kw_only=True)
class ConvClass:
    """All networks ``h_s = tanh(U∘h_{s-1} + W∘x_s)``, ``y_t = pool(V∘h_t)`` with orthogonal filter banks U, V and W.

    They are a :class:`~statewise.ConvRNN` of one layer and a :class:`~statewise.ConvReadout`. Nothing about the class
    is looked up in a trained network, so nothing is to be paid for having looked.

    Args:
        size: d, entries of a state and of an input.
        filter_size: k, the length and the number of the filters of a bank.
        classes: how many logits.
        steps: t, the most steps of a sequence.
        input_bound: B_x, the most length of an input, which must hold for every sequence that will ever be judged.

    >>> net = ConvClass(size=16, filter_size=3, classes=2, steps=10, input_bound=1.0)
    >>> net.paper().parameters, net.tight().parameters
    (27, 9)
    >>> round(net.tight().cover_nats(math.log(0.5 / (2 * math.sqrt(2)))), 6)
    30.696213
    """

    size: int
    filter_size: int
    classes: int
    steps: int
    input_bound: float

    def __post_init__(self) -> None:
        require_sizes("ConvClass", self.size, self.filter_size, self.classes, called="classes")
        if self.classes < 2:
            raise ArgumentError(where="ConvClass.classes", got=self.classes, wanted="at least 2")
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise ArgumentError(where="ConvClass.steps", got=self.steps, wanted="a whole number of at least 1")
        if not 0 < self.input_bound < math.inf:
            raise ArgumentError(where="ConvClass.input_bound", got=self.input_bound, wanted="a finite number > 0")

    @classmethod
    def of(cls, layer: ConvRNN, readout: ConvReadout, *, steps: int, input_bound: float) -> ConvClass:
        """The class that a network is a member of; an AssumptionError where it is none of those described above.

        Args:
            layer: the recurrent layer.
            readout: what reads its last state.
            steps: t, the most steps of a sequence.
            input_bound: B_x.

        >>> ConvClass.of(ConvRNN(16, 3), ConvReadout(16, 3, 2), steps=10, input_bound=1.0).classes
        2
        """
        _require_plain(layer, readout)
        sizes = {"size": layer.size, "filter_size": layer.filter_size, "classes": readout.classes}
        return cls(**sizes, steps=steps, input_bound=input_bound)

    def paper(self) -> Profile:
        """The constants of Chen, Li & Zhao 2019, Theorem 6; distances are Frobenius norms of filter banks.

        ``L_U = d t``, ``L_V = d``, ``L_W = B_x sqrt(d) t``, ``η_t = min(sqrt(d), B_x t)``, ``‖I‖_F = 1``; 3k² numbers
        describe a network.
        """
        width, log_steps = math.log(self.size), math.log(self.steps)
        log_hidden = min(width / 2, log_of(self.input_bound) + log_steps)
        log_lipschitz = {
            "U": width + log_steps,
            "V": width,
            "W": log_of(self.input_bound) + width / 2 + log_steps,
        }
        side = self.filter_size
        blocks = [
            Block(name=name, rows=side, columns=side, bound=1.0, log_lipschitz=value, frobenius=1.0)
            for name, value in log_lipschitz.items()
        ]
        return self._profile(blocks, log_hidden=log_hidden, log_output=log_hidden, log_growth=0.0)

    def tight(self) -> Profile:
        """Smaller constants (new): averaging the channels leaves only the mean filter of a bank, of length 1/k.

        ``β = 1/sqrt(k)``, ``η_t = min(sqrt(d), B_x β S_t(β))``, ``L_U = β sum_{j=1}^{t-1} β^(t-1-j) η_j``,
        ``L_V = η_t``, ``L_W = β B_x S_t(β)``. Distances are sums of absolute differences of mean filters; these lie in
        a ball of that norm, ``‖ī‖_1 <= sqrt(k) ‖ī‖_2 = 1/sqrt(k)``, and 3k numbers describe a network. β < 1 for k > 1,
        so that the bound does not grow with the steps.
        """
        log_beta, log_hidden = -0.5 * math.log(self.filter_size), self._log_hidden()
        earlier = log_hidden[:-1]  # η_1 to η_{t-1}
        ages = np.arange(len(earlier), dtype=np.float64)[::-1]  # t-1-j
        last = float(log_hidden[-1])
        log_lipschitz = {
            "U": log_beta + log_sum(ages * log_beta + earlier),
            "V": last,
            "W": log_beta + log_of(self.input_bound) + log_geometric(log_beta, self.steps),
        }
        side, bound = self.filter_size, 1 / math.sqrt(self.filter_size)
        blocks = [
            Block(name=name, rows=side, columns=1, bound=bound, log_lipschitz=value, frobenius=1 / side)
            for name, value in log_lipschitz.items()
        ]
        return self._profile(blocks, log_hidden=last, log_output=log_beta + last, log_growth=log_beta)

    def _log_hidden(self) -> Floats:
        """``ln η_1`` to ``ln η_t`` of the tight constants."""
        log_beta = -0.5 * math.log(self.filter_size)
        sums = np.array([log_geometric(log_beta, step) for step in range(1, self.steps + 1)])
        return np.minimum(0.5 * math.log(self.size), log_beta + log_of(self.input_bound) + sums)

    def _profile(self, blocks: list[Block], *, log_hidden: float, log_output: float, log_growth: float) -> Profile:
        return Profile(
            architecture="convolutional",
            blocks=tuple(blocks),
            steps=self.steps,
            log_hidden=log_hidden,
            log_output=log_output,
            log_growth=log_growth,
        )


def _require_plain(layer: ConvRNN, readout: ConvReadout) -> None:
    """Raise an AssumptionError unless the bound's network is what these two compute."""
    sizes, read = (layer.size, layer.filter_size), (readout.size, readout.filter_size)
    problems = {
        f"{layer.num_layers} layers": layer.num_layers > 1,
        "a bidirectional layer": layer.bidirectional,
        "transforms": bool(layer.transforms),
        f"a readout of size and filters {read} on a layer of {sizes}": sizes != read,
        "weights that are more than filters": not all(
            _is_filters(module, name)
            for module, name in ((layer, "weight_ih_l0"), (layer, "weight_hh_l0"), (readout, "weight"))
        ),
    }
    for got, holds in problems.items():
        if holds:
            raise AssumptionError(
                where="the bound of a convolutional network",
                got=got,
                wanted="a ConvRNN of one layer and one direction, and a ConvReadout with filters of the same size",
            )


def _is_filters(module: ConvRNN | ConvReadout, name: str) -> bool:
    if not parametrize.is_parametrized(module, name):
        return False
    chain = list(module.get_submodule(f"parametrizations.{name}").children())
    return len(chain) == 1 and isinstance(chain[0], OrthogonalFilters)
