"""Carrying a tensor network out: the sums over its joined edges, and its einsum text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from statewise.errors import ArgumentError, ShapeError
from statewise.layers import RAC
from statewise.memory.other_networks import check_layer
from statewise.memory.tensor_network import Node, TensorNetwork

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#: What torch.einsum takes at most in one call.
MOST_LETTERS = len(_LETTERS)


def contract(network: TensorNetwork, tensors: Mapping[str, Tensor]) -> Shaped[Tensor, "..."]:
    """What a network stands for, node by node; the axes of the answer are the open edges in their order.

    Nodes are taken in their order, and each is joined with all it shares an edge with: of a circuit, nothing larger
    than the weights ever arises. Works on integers too, and gradients pass.

    Args:
        network: any.
        tensors: by the name of the nodes; ``delta`` needs none.

    >>> from statewise.memory.tensor_network_build import matrix_vector_network
    >>> matrix, vector = torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 10])
    >>> contract(matrix_vector_network(2, 2), {"A": matrix, "v": vector})
    tensor([21, 43])
    """
    some = next(iter(tensors.values()), torch.zeros(()))
    held: dict[int, tuple[Tensor, tuple[int, ...]]] = {}  # by the number of their last node
    owner: dict[int, int] = {}  # of each edge that waits for its other end
    for number, node in enumerate(network.nodes):
        tensor, edges = _tensor_of(network, node, tensors, some), node.edges
        for other in dict.fromkeys(owner[edge] for edge in node.edges if edge in owner):
            tensor, edges = _joined(tensor, edges, *held.pop(other))
        held[number] = tensor, edges
        owner.update(dict.fromkeys(edges, number))
    (tensor, edges), *rest = held.values()
    for other_tensor, others in rest:
        tensor, edges = _joined(tensor, edges, other_tensor, others)
    return tensor.permute(*(edges.index(edge) for edge in network.open_edges))


def einsum_text(network: TensorNetwork) -> str:
    """The network as the text that einsum functions take, with the operands in the order of the nodes.

    Up to 52 edges have letters, which ``torch.einsum`` and ``numpy.einsum`` know; of larger ones the rest has signs as
    opt_einsum gives them.

    Args:
        network: any.

    >>> from statewise.memory.tensor_network_build import cell_network
    >>> einsum_text(cell_network(inputs=3, width=2))
    'a,ba,c,dc,dbe->e'
    """
    signs = [_LETTERS[edge] if edge < MOST_LETTERS else _sign(edge) for edge in range(len(network.bonds))]
    operands = ",".join("".join(signs[edge] for edge in node.edges) for node in network.nodes)
    return f"{operands}->{''.join(signs[edge] for edge in network.open_edges)}"


def _sign(edge: int) -> str:
    code = edge + 140
    return chr(code if code < 0xD800 else code + 0x800)  # between them are no signs, but halves of signs


def operands(network: TensorNetwork, tensors: Mapping[str, Tensor]) -> list[Tensor]:
    """The tensors of the nodes in their order, for :func:`einsum_text`.

    Args:
        network: any.
        tensors: by the name of the nodes; ``delta`` needs none.
    """
    some = next(iter(tensors.values()), torch.zeros(()))
    return [_tensor_of(network, node, tensors, some) for node in network.nodes]


def circuit_tensors(
    layer: RAC, features: Float[Tensor, "steps inputs"], readout: Float[Tensor, "classes width"]
) -> dict[str, Tensor]:
    """The tensors of a circuit by the names that its network uses.

    Args:
        layer: the circuit, without biases, which begins with ``WH h_0 = 1``.
        features: what it reads, ``f(x_1) .. f(x_T)``.
        readout: WO.

    >>> sorted(circuit_tensors(RAC(3, 2), torch.ones(2, 3), torch.ones(1, 2)))
    ['WH[1]', 'WI[1]', 'WO', 'x[1]', 'x[2]']
    """
    check_layer(layer, where="circuit_tensors")
    if layer.bias or layer.bidirectional or layer.initial_state != "ones":
        got = "biases, two directions, or another start than 'ones'"
        raise ArgumentError(where="circuit_tensors.layer", got=got, wanted="a plain circuit of one direction")
    found = {f"x[{step}]": row for step, row in enumerate(features, 1)}
    for index in range(layer.num_layers):
        found[f"WI[{index + 1}]"] = layer.get_parameter(f"weight_ih_l{index}")
        found[f"WH[{index + 1}]"] = layer.get_parameter(f"weight_hh_l{index}")
    return {**found, "WO": readout}


def not_cloned(phi: Float[Tensor, "n n n"]) -> Float[Tensor, " n"]:
    """A vector v with ``sum_i phi_ijk v_i != v_j v_k``: no tensor copies vectors (Ziv 2019, Claim 3).

    Basis vectors force ``phi = delta``, which fails at ``v = 1``, of which it makes a diagonal. (With n = 1 it fails at
    ``v = 2``.)

    Args:
        phi: what is said to copy.

    >>> not_cloned(torch.eye(2)[:, :, None] * torch.eye(2))
    tensor([1., 1.])
    """
    size = phi.shape[0] if phi.dim() else 0
    if tuple(phi.shape) != (size,) * 3 or not size:
        raise ShapeError(where="not_cloned.phi", got=tuple(phi.shape), wanted="(n, n, n)")
    ones = torch.ones(size, dtype=phi.dtype)
    vectors: list[Tensor] = [*torch.eye(size, dtype=phi.dtype).unbind(), ones, 2 * ones]
    for vector in vectors:
        if not torch.equal(torch.einsum("ijk,i->jk", phi, vector), torch.outer(vector, vector)):
            return vector
    raise AssertionError("a tensor copies vectors")  # Claim 3 says that nothing comes here


def _tensor_of(network: TensorNetwork, node: Node, tensors: Mapping[str, Tensor], like: Tensor) -> Tensor:
    wanted = tuple(network.bonds[edge].dimension for edge in node.edges)
    if node.kind == "delta":
        return _delta(wanted[0], node.order, like)
    if node.name not in tensors:
        raise ArgumentError(where="tensors", got=f"none called {node.name}", wanted="one for each name of a node")
    tensor = tensors[node.name]
    if tuple(tensor.shape) != wanted:
        raise ShapeError(where=f"tensors[{node.name!r}]", got=tuple(tensor.shape), wanted=f"the shape {wanted}")
    return tensor


def _delta(size: int, order: int, like: Tensor) -> Tensor:
    tensor = torch.zeros((size,) * order, dtype=like.dtype, device=like.device)
    index = torch.arange(size, device=like.device)
    tensor[(index,) * order] = 1
    return tensor


def _joined(
    first: Tensor, edges: tuple[int, ...], second: Tensor, others: tuple[int, ...]
) -> tuple[Tensor, tuple[int, ...]]:
    """Two tensors as one: the sum over the edges that they share."""
    number: dict[int, int] = {edge: place for place, edge in enumerate(dict.fromkeys((*edges, *others)))}
    left = tuple(edge for edge in number if (edge in edges) != (edge in others))
    places: Any = ([number[edge] for edge in group] for group in (edges, others, left))
    one, two, out = places
    return torch.einsum(first, one, second, two, out), left
