"""Orthogonal networks of one shape side by side: one batched product where each would make its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.func import functional_call, grad_and_value, vmap

from statewise.engine.device.backward import pieces_of
from statewise.heads.readout_loss import readout_loss
from statewise.layers import RNN
from statewise.models.orthogonal_network import OrthogonalNetwork
from statewise.sweep.trial import Shape
from statewise.weights import orthogonality_error
from statewise.weights.gradient_limit import limit_entries
from statewise.weights.signs import signs_of_rho
from statewise.weights.skew import identity_plus_inverse, skew_matrix

_READOUT = ("readout.weight", "readout.bias")

State = dict[str, Tensor]


class Networks:
    """The weights of orthogonal networks that differ in nothing else, each stacked into one tensor.

    The names are those of :class:`~statewise.models.OrthogonalNetwork`, whose state each slot holds. Inside, recurrent
    matrices are weights like others: ``W = (I + A)^-1 (I - A) D`` is made once for an iteration of all networks, in
    double precision, and its derivative is written out.

    Args:
        shape: of every network.
        slots: how many there are.
        device: where they are.
    """

    def __init__(self, shape: Shape, slots: int, device: torch.device) -> None:
        self.shape, self.slots, self.device = shape, slots, device
        inputs, width = shape.task.inputs, shape.width
        # Its own weights are never used; a generator of its own leaves torch's alone.
        idle: Any = {"device": device, "generator": torch.Generator(device).manual_seed(0)}
        self._layer = RNN(inputs, width, shape.depth, nonlinearity="modrelu", bias=False, **idle)
        self._layer.requires_grad_(requires_grad=False)
        template = fresh_state(shape, seed=0)
        self.parameters: State = {
            name: torch.zeros(slots, *tensor.shape, device=device) for name, tensor in template.items()
        }
        self.signs = signs_of_rho(width).to(device)
        self._upper = torch.triu_indices(width, width, offset=1, device=device)

    def put(self, slot: int, state: Mapping[str, Tensor]) -> None:
        """Give a slot the weights of a network.

        Args:
            slot: which.
            state: as :meth:`take` gives it.
        """
        for name, stacked in self.parameters.items():
            stacked[slot].copy_(state[name])

    def take(self, slot: int) -> State:
        """The weights of a slot, on the CPU.

        Args:
            slot: which.
        """
        return {name: stacked[slot].detach().cpu().clone() for name, stacked in self.parameters.items()}

    def inverses(self) -> Float[Tensor, "layers slots width width"] | None:
        """``(I + A)^-1`` of every recurrent matrix in double precision; None where the matrices are plain weights."""
        if self.shape.update != "cayley":
            return None
        theta = torch.stack([self.parameters[free_name(layer)] for layer in range(self.shape.depth)])
        return identity_plus_inverse(skew_matrix(theta.double(), size=self.shape.width))

    def recurrent(self, inverses: Tensor | None) -> Float[Tensor, "layers slots width width"]:
        """The recurrent matrices: ``(I + A)^-1 (I - A) D = (2 (I + A)^-1 - I) D``.

        Args:
            inverses: see :meth:`inverses`.
        """
        if inverses is None:
            return torch.stack([self.parameters[free_name(layer)] for layer in range(self.shape.depth)])
        eye = torch.eye(self.shape.width, dtype=torch.float64, device=self.device)
        return ((2 * inverses - eye) * self.signs).float()

    def gradients(
        self, recurrent: Tensor, inputs: Tensor, answers: Tensor, starts: Tensor
    ) -> tuple[Float[Tensor, " slots"], State]:
        """The mean cross-entropy of every network, and its gradients, those of recurrent matrices by their own names.

        Args:
            recurrent: see :meth:`recurrent`.
            inputs: (slots, steps, batch, width).
            answers: (slots, steps, batch), or (slots, batch) at the last step only.
            starts: (slots, layers, batch, width).
        """
        grads, losses = vmap(grad_and_value(self._loss))(self._weights(recurrent), inputs, answers, starts)
        return losses, grads

    def logits(self, recurrent: Tensor, inputs: Tensor, starts: Tensor) -> Tensor:
        """What every network answers to the same or to its own inputs.

        Args:
            recurrent: see :meth:`recurrent`.
            inputs: (slots, steps, batch, width), or (1, steps, batch, width) for all.
            starts: (slots, layers, batch, width), or with 1 for all.
        """
        shared = tuple(0 if tensor.shape[0] > 1 or self.slots == 1 else None for tensor in (inputs, starts))
        inputs, starts = (each if dim == 0 else each[0] for each, dim in zip((inputs, starts), shared, strict=True))
        found: Tensor = vmap(self._answers, in_dims=(0, *shared))(self._weights(recurrent), inputs, starts)
        return found

    def chained(self, inverses: Tensor | None, recurrent: Tensor, grads: State) -> State:
        """The gradients of all parameters, where those of the recurrent matrices are bounded and passed on to A.

        ``V = (I + A)^-T G (D + W^T)``, ``dLoss/dA = V^T - V`` (Helfrich et al. 2018), above the diagonal.

        Args:
            inverses: see :meth:`inverses`.
            recurrent: see :meth:`recurrent`.
            grads: see :meth:`gradients`.
        """
        found = {name: grad for name, grad in grads.items() if not _is_plain(name)}
        each = torch.stack([grads[plain_name(layer)] for layer in range(self.shape.depth)])
        clipped = limit_entries(each, apart=2)
        if inverses is None:
            return {**found, **{free_name(layer): clipped[layer] for layer in range(self.shape.depth)}}
        turned = torch.diag(self.signs).double() + recurrent.double().mT
        v = inverses.mT @ clipped.double() @ turned
        rows, columns = self._upper
        theta = (v.mT - v)[..., rows, columns].float()
        return {**found, **{free_name(layer): theta[layer] for layer in range(self.shape.depth)}}

    @torch.no_grad()
    def orthogonality(self) -> Float[Tensor, " slots"]:
        """The largest ``||W W^T - I||_F`` of any layer, of each network."""
        return orthogonality_error(self.recurrent(self.inverses())).amax(0)

    def largest_entries(self) -> Float[Tensor, " slots"]:
        """The largest entry of any A, of each network; 0 where there is none."""
        if self.shape.update != "cayley":
            return torch.zeros(self.slots)
        names = [free_name(layer) for layer in range(self.shape.depth)]
        zero = torch.zeros(self.slots, 1, device=self.device)  # a network of one channel has no entries
        return torch.cat([zero, *(self.parameters[name].abs() for name in names)], dim=1).amax(1)

    def _weights(self, recurrent: Tensor) -> State:
        kept = {name: tensor for name, tensor in self.parameters.items() if not _is_recurrent(name)}
        return {**kept, **{plain_name(layer): recurrent[layer] for layer in range(self.shape.depth)}}

    def _states(self, weights: State, inputs: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
        """The states of the top layer at every step, and the last state of every layer."""
        layer = {name.removeprefix("rnn."): weight for name, weight in weights.items() if name not in _READOUT}
        states, last = functional_call(self._layer, layer, (inputs, start))
        return states, last

    def _answers(self, weights: State, inputs: Tensor, start: Tensor) -> Tensor:
        states, last = self._states(weights, inputs, start)
        weight, bias = (weights[name] for name in _READOUT)
        if not self.shape.task.every_step:
            return F.linear(last[-1], weight, bias)
        if self.device.type == "cpu":
            return F.linear(states, weight, bias)
        # In pieces, so that a device makes the sums of the weight's gradient over all steps side by side.
        pieces = pieces_of(states.shape[0] * states.shape[1])
        rows = states.reshape(pieces, -1, weight.shape[1])
        scores: Tensor = torch.bmm(rows, weight.mT.expand(pieces, -1, -1)) + bias
        return scores.view(*states.shape[:2], -1)

    def _loss(self, weights: State, inputs: Tensor, answers: Tensor, start: Tensor) -> Tensor:
        if self.shape.task.every_step and self.device.type == "cpu":
            weight, bias = (weights[name] for name in _READOUT)
            return readout_loss(self._states(weights, inputs, start)[0], weight, bias, answers)
        return F.cross_entropy(self._answers(weights, inputs, start).flatten(0, -2), answers.flatten())


def fresh_state(shape: Shape, *, seed: int) -> State:
    """The state of an untrained network, as scoRNN begins.

    Args:
        shape: of the network.
        seed: of its weights.
    """
    network = _network(shape, torch.Generator().manual_seed(seed))
    return {name: parameter.detach().clone() for name, parameter in network.named_parameters()}


def network_of(shape: Shape, state: Mapping[str, Tensor]) -> OrthogonalNetwork:
    """A network of its own with the weights of a slot.

    Args:
        shape: of the network.
        state: its weights.
    """
    network = _network(shape, torch.Generator().manual_seed(0))
    network.load_state_dict({**network.state_dict(), **state})
    return network


def _network(shape: Shape, generator: torch.Generator) -> OrthogonalNetwork:
    task = shape.task
    return OrthogonalNetwork(
        task.inputs,
        task.classes,
        shape.width,
        shape.depth,
        every_step=task.every_step,
        update=shape.update,
        generator=generator,
    )


def free_name(layer: int) -> str:
    """What a layer's recurrent matrix is made of: the entries of A above the diagonal, or all of its own.

    Args:
        layer: counted from 0.
    """
    return f"rnn.parametrizations.weight_hh_l{layer}.original"


def plain_name(layer: int) -> str:
    """A layer's recurrent matrix.

    Args:
        layer: counted from 0.
    """
    return f"rnn.weight_hh_l{layer}"


def _is_plain(name: str) -> bool:
    return name.startswith("rnn.weight_hh")


def _is_recurrent(name: str) -> bool:
    return _is_plain(name) or name.startswith("rnn.parametrizations")
