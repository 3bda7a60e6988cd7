"""Tensor networks: what is built, counted, contracted and written."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from torch import Tensor

from statewise.errors import ArgumentError, ShapeError
from statewise.layers import RAC
from statewise.memory.tensor_network import Bond, Node, TensorNetwork
from statewise.memory.tensor_network_build import (
    cell_network,
    circuit_network,
    matrix_vector_network,
    plain_network,
    product_network,
    state_network,
    train_network,
    unit_network,
)
from statewise.memory.tensor_network_contract import (
    MOST_LETTERS,
    circuit_tensors,
    contract,
    einsum_text,
    not_cloned,
    operands,
)
from statewise.memory.tensor_network_counts import count_network, network_counts, product_form, unit_powers
from statewise.memory.tensor_network_dot import network_dot

DOUBLE = torch.float64


def drawn(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=DOUBLE)


def circuit(generator: torch.Generator, depth: int, steps: int) -> tuple[RAC, Tensor, Tensor]:
    """A circuit with M = 3, R = 2, inputs, and a readout of two classes."""
    layer = RAC(3, 2, num_layers=depth, dtype=DOUBLE, generator=generator)
    return layer, drawn(generator, steps, 3), drawn(generator, 2, 2)


class TestGraph:
    def test_a_network_says_its_orders_dimensions_and_open_edges(self) -> None:
        network = circuit_network(inputs=5, width=3, steps=3, depth=2, classes=7)
        orders = {node.kind: node.order for node in network.nodes}
        assert orders == {"input": 1, "WI": 2, "WH": 2, "delta": 3, "WO": 2}
        for node in network.nodes:
            sizes = [network.bonds[edge].dimension for edge in node.edges]
            first_layer = node.kind == "WI" and node.layer == 1
            wanted = {"input": [5], "delta": [3, 3, 3], "WO": [7, 3]}.get(node.kind, [3, 5 if first_layer else 3])
            assert sizes == wanted
        assert network.shape == (7,)
        assert len(network.edges) == len(network.nodes)  # a tree, and one open edge
        assert sum(not there for _, there, _ in network.edges) == 1

    def test_edges_name_copies_apart(self) -> None:
        ends = Counter(name for edge in circuit_network(inputs=2, width=2, steps=3, depth=1).edges for name in edge[:2])
        assert ends["WI[1]#1"] == 2
        assert {name for name in ends if name.startswith("x[1]")} == {"x[1]#0"}

    @pytest.mark.parametrize(
        ("node", "told"),
        [
            ({"kind": "WX", "edges": (0,)}, "Node.kind"),
            ({"kind": "tensor", "edges": (0,)}, "Node.label"),
            ({"kind": "WO", "edges": (0, 0)}, "Node.edges"),
        ],
    )
    def test_a_node_that_means_nothing_is_refused(self, node: dict[str, object], told: str) -> None:
        with pytest.raises(ArgumentError, match=told):
            Node(**node)  # type: ignore[arg-type]

    @pytest.mark.parametrize("edges", [[(0,), (0,), (0,)], [(0,), (2,)], [(0,)]])
    def test_edges_have_one_end_or_two(self, edges: list[tuple[int, ...]]) -> None:
        nodes = tuple(Node(kind="tensor", edges=own, label="A") for own in edges)
        with pytest.raises(ArgumentError, match="one end or two"):
            TensorNetwork(nodes=nodes, bonds=(Bond("n", 2), Bond("n", 2)))

    def test_dimensions_are_positive(self) -> None:
        with pytest.raises(ArgumentError, match="at least 1"):
            TensorNetwork(nodes=(Node(kind="tensor", edges=(0,), label="A"),), bonds=(Bond("n", 0),))

    def test_a_network_too_large_to_be_built_is_only_counted(self) -> None:
        with pytest.raises(ArgumentError, match="network_counts"):
            circuit_network(inputs=2, width=2, steps=200, depth=4)
        assert network_counts(steps=200, depth=4).inputs[0] == 1_353_400

    @pytest.mark.parametrize("sizes", [{"steps": 0}, {"depth": 0}, {"inputs": -1}, {"width": 0}, {"classes": 0}])
    def test_sizes_of_nothing_are_refused(self, sizes: dict[str, int]) -> None:
        with pytest.raises(ArgumentError, match=next(iter(sizes))):
            circuit_network(**{"inputs": 2, "width": 2, "steps": 2, "depth": 2, **sizes})


class TestCounts:
    @pytest.mark.parametrize("depth", [1, 2, 3, 4])
    @pytest.mark.parametrize("steps", [1, 2, 3, 6])
    def test_closed_forms_count_what_is_built(self, steps: int, depth: int) -> None:
        network = circuit_network(inputs=2, width=2, steps=steps, depth=depth)
        counted = count_network(network)
        assert counted == network_counts(steps=steps, depth=depth)
        assert counted.nodes == len(network.nodes)
        deltas = Counter(node.layer for node in network.nodes if node.kind == "delta")
        assert tuple(deltas[layer] for layer in range(1, depth + 1)) == counted.recurrent_weights

    @pytest.mark.parametrize(("steps", "depth"), [(4, 2), (6, 3), (4, 4)])
    def test_a_matrix_of_rank_one_leaves_units_as_often_as_their_powers_say(self, steps: int, depth: int) -> None:
        network = product_network(inputs=2, width=2, steps=steps, depth=depth)
        units = [part for part in network.parts() if any(network.nodes[number].name == "v" for number in part)]
        lengths = Counter(sum(network.nodes[number].kind == "input" for number in part) for part in units)
        assert dict(lengths) == unit_powers(steps=steps, depth=depth)
        assert len(network.parts()) == len(units) + 1  # all that reads u hangs together
        shapes = {tuple(sorted(network.nodes[number].name for number in part)) for part in units}
        assert shapes == {
            tuple(sorted(node.name for node in unit_network(inputs=2, width=2, steps=step).nodes))
            for step in range(1, steps + 1)
        }

    def test_the_product_of_a_matrix_of_rank_one_is_the_forward_pass(self, generator: torch.Generator) -> None:
        layer, features, readout = circuit(generator, 2, 3)
        u, v = drawn(generator, 2), drawn(generator, 2)
        with torch.no_grad():
            layer.get_parameter("weight_ih_l1").copy_(torch.outer(u, v))
            expected = layer(features[:, None])[0][-1, 0] @ readout.T
            tensors = {**circuit_tensors(layer, features, readout), "u": u, "v": v}
            whole = contract(product_network(inputs=3, width=2, steps=3, depth=2, classes=2), tensors)
        torch.testing.assert_close(whole, expected, rtol=1e-12, atol=0)

    def test_units_need_two_layers(self) -> None:
        for ask in (unit_powers, product_form):
            with pytest.raises(ArgumentError, match="at least 2 layers"):
                ask(steps=4, depth=1)
        with pytest.raises(ArgumentError, match="at least 2 layers"):
            product_network(inputs=2, width=2, steps=4, depth=1)


class TestContraction:
    @pytest.mark.parametrize(("steps", "depth"), [(1, 1), (5, 1), (4, 2), (3, 3), (6, 3), (4, 4)])
    def test_the_network_is_the_forward_pass(self, steps: int, depth: int, generator: torch.Generator) -> None:
        layer, features, readout = circuit(generator, depth, steps)
        network = circuit_network(inputs=3, width=2, steps=steps, depth=depth, classes=2)
        tensors = circuit_tensors(layer, features, readout)
        with torch.no_grad():
            expected = layer(features[:, None])[0][-1, 0] @ readout.T
            torch.testing.assert_close(contract(network, tensors), expected, rtol=1e-10, atol=0)
            if len(network.bonds) <= MOST_LETTERS:
                text, parts = einsum_text(network), operands(network, tensors)
                torch.testing.assert_close(torch.einsum(text, *parts), expected, rtol=1e-10, atol=0)
                by_numpy = np.einsum(text, *(part.numpy() for part in parts), optimize="greedy")
                np.testing.assert_allclose(by_numpy, expected.numpy(), rtol=1e-10)

    def test_a_state_is_that_of_the_layer(self, generator: torch.Generator) -> None:
        layer, features, readout = circuit(generator, 2, 3)
        tensors = circuit_tensors(layer, features, readout)
        with torch.no_grad():
            _, states = layer(features[:, None])
            for index in (0, 1):
                found = contract(state_network(inputs=3, width=2, step=3, layer=index + 1), tensors)
                torch.testing.assert_close(found, states[index, 0], rtol=1e-12, atol=0)

    def test_one_step(self, generator: torch.Generator) -> None:
        names = {"x[1]": (3,), "WI[1]": (2, 3), "h[t-1]": (2,), "WH[1]": (2, 2)}
        tensors = {name: drawn(generator, *shape) for name, shape in names.items()}
        found = contract(cell_network(inputs=3, width=2), tensors)
        expected = (tensors["WH[1]"] @ tensors["h[t-1]"]) * (tensors["WI[1]"] @ tensors["x[1]"])
        torch.testing.assert_close(found, expected)

    def test_the_train_is_the_tensor_of_all_words(self, generator: torch.Generator) -> None:
        layer, _, readout = circuit(generator, 1, 4)
        with torch.no_grad():
            weights = [layer.get_parameter(f"weight_{name}_l0") for name in ("ih", "hh")]
            tensors = {"A": weights[0].T, "B": torch.einsum("kd,kj->jdk", *weights), "WO": readout}
            train = contract(train_network(inputs=3, width=2, steps=4, classes=2), tensors)
            word = (2, 0, 1, 2)
            expected = layer(torch.eye(3, dtype=DOUBLE)[list(word)][:, None])[0][-1, 0] @ readout.T
        assert train.shape == (3, 3, 3, 3, 2)
        torch.testing.assert_close(train[word], expected, rtol=1e-12, atol=0)

    def test_integers_stay_integers_and_gradients_pass(self) -> None:
        network = matrix_vector_network(2, 3)
        matrix, vector = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([1, 10, 100])
        assert contract(network, {"A": matrix, "v": vector}).tolist() == [321, 654]
        weights = matrix.to(DOUBLE).requires_grad_()
        contract(network, {"A": weights, "v": vector.to(DOUBLE)}).sum().backward()
        assert weights.grad is not None
        assert weights.grad.tolist() == [[1, 10, 100]] * 2

    def test_a_plain_tensor_is_itself(self, generator: torch.Generator) -> None:
        tensor = drawn(generator, 2, 3, 4)
        assert torch.equal(contract(plain_network(2, 3, 4), {"A": tensor}), tensor)

    def test_signs_go_on_after_the_letters(self) -> None:
        text = einsum_text(circuit_network(inputs=2, width=2, steps=6, depth=3))
        assert len(set(text) - set(",->")) == 250

    def test_a_missing_or_misshapen_tensor_is_named(self, generator: torch.Generator) -> None:
        network = matrix_vector_network(2, 3)
        with pytest.raises(ArgumentError, match="none called v"):
            contract(network, {"A": drawn(generator, 2, 3)})
        with pytest.raises(ShapeError, match=r"tensors\['A'\]"):
            contract(network, {"A": drawn(generator, 3, 2), "v": drawn(generator, 3)})

    def test_circuits_that_no_network_stands_for_are_refused(self, generator: torch.Generator) -> None:
        for layer in (RAC(3, 2, bias=True), RAC(3, 2, bidirectional=True), RAC(3, 2, initial_state="pinv")):
            with pytest.raises(ArgumentError, match="plain circuit"):
                circuit_tensors(layer, torch.ones(2, 3), torch.ones(1, 2))


@pytest.mark.parametrize("size", [1, 2, 5])
def test_nothing_copies_vectors(size: int, generator: torch.Generator) -> None:
    identity = torch.eye(size, dtype=DOUBLE)
    delta = identity[:, :, None] * identity
    for phi in (delta, torch.zeros(size, size, size, dtype=DOUBLE), drawn(generator, size, size, size)):
        vector = not_cloned(phi)
        assert not torch.equal(torch.einsum("ijk,i->jk", phi, vector), torch.outer(vector, vector))
    for basis in identity:  # delta copies these
        assert torch.equal(torch.einsum("ijk,i->jk", delta, basis), torch.outer(basis, basis))


def test_dot_has_all_nodes_and_edges() -> None:
    network = circuit_network(inputs=2, width=3, steps=3, depth=2)
    text = network_dot(network)
    assert text.count(" -- ") == len(network.bonds)
    assert text.count("shape=triangle") == sum(network_counts(steps=3, depth=2).recurrent_weights)
    assert text.count('label="M=2"') == network_counts(steps=3, depth=2).input_weights[0]
    assert text.startswith("graph network {")
    assert text.endswith("}\n")
