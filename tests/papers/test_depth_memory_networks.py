"""Known answers for tensor networks and sizes (Ziv 2019, Appendix A, Figure 2.1 and Table C.1)."""

from __future__ import annotations

import math

import pytest
import torch

from statewise.layers import RAC
from statewise.memory.budget import orthogonal_parameters, width_within
from statewise.memory.counts import interactions
from statewise.memory.drawing_figures import FIGURES
from statewise.memory.tensor_network_build import circuit_network, state_network
from statewise.memory.tensor_network_contract import contract, not_cloned
from statewise.memory.tensor_network_counts import count_network, network_counts, product_form, unit_powers

DOUBLE = torch.float64
# The integer circuit: input and recurrent weights of three layers, and the readout.
WI = ([[1, 2], [3, -1]], [[1, -1], [2, 1]], [[1, 1], [1, -2]])
WH = ([[1, 1], [0, 1]], [[1, 0], [1, 1]], [[2, 1], [1, 1]])
WO = [[1, 2]]


@pytest.mark.parametrize(
    ("steps", "depth", "input_weights", "recurrent_weights"),
    [(4, 2, (10, 4), (6, 3)), (3, 3, (10, 6, 3), (4, 3, 2)), (6, 3, (56, 21, 6), (35, 15, 5))],
)
def test_copies_of_weights_in_the_figures(
    steps: int, depth: int, input_weights: tuple[int, ...], recurrent_weights: tuple[int, ...]
) -> None:
    for counts in (
        network_counts(steps=steps, depth=depth),
        count_network(circuit_network(inputs=2, width=2, steps=steps, depth=depth)),
    ):
        assert counts.input_weights == input_weights
        assert counts.recurrent_weights == recurrent_weights
        assert counts.readouts == 1


@pytest.mark.parametrize(("steps", "depth", "copies"), [(6, 3, (21, 15, 10, 6, 3, 1)), (5, 4, (35, 20, 10, 4, 1))])
def test_an_input_has_as_many_copies_as_the_output_has_degree_in_it(
    steps: int, depth: int, copies: tuple[int, ...]
) -> None:
    counts = network_counts(steps=steps, depth=depth)
    assert counts.inputs == copies
    assert sum(copies) == counts.input_weights[0] == math.comb(steps + depth - 1, depth)


def test_the_degree_in_all_weights_of_three_layers_and_six_steps() -> None:
    assert network_counts(steps=6, depth=3).weights == 139


@pytest.mark.parametrize(
    ("depth", "table"),
    [(1, [[22, 2], [-5, 4]]), (2, [[112, 56], [0, 63]]), (3, [[1290, 1698], [198, -45]])],
)
def test_the_networks_of_the_integer_circuit_give_its_tables(depth: int, table: list[list[int]]) -> None:
    network = circuit_network(inputs=2, width=2, steps=2, depth=depth)
    weights = {"WO": torch.tensor(WO)}
    for layer in range(depth):
        weights |= {f"WI[{layer + 1}]": torch.tensor(WI[layer]), f"WH[{layer + 1}]": torch.tensor(WH[layer])}
    symbols = torch.eye(2, dtype=torch.int64)
    found = [
        [int(contract(network, {**weights, "x[1]": first, "x[2]": second})) for second in symbols] for first in symbols
    ]
    assert found == table


def test_one_number_of_three_layers_and_four_steps() -> None:
    weights = {"WO": torch.tensor(WO)}
    for layer in range(3):
        weights |= {f"WI[{layer + 1}]": torch.tensor(WI[layer]), f"WH[{layer + 1}]": torch.tensor(WH[layer])}
    inputs = {f"x[{step}]": torch.tensor([1, 0]) for step in range(1, 5)}
    assert contract(circuit_network(inputs=2, width=2, steps=4, depth=3), {**weights, **inputs}).item() == 4217937213420


def test_equation_a4(generator: torch.Generator) -> None:
    """``h[2,2] = (WH2 WI2 h[1,1]) * (WI2 ((WH1 h[1,1]) * (WI1 f(x_2))))``."""
    shapes = {"x[1]": (3,), "x[2]": (3,), "WI[1]": (4, 3), "WH[1]": (4, 4), "WI[2]": (4, 4), "WH[2]": (4, 4)}
    one = {name: torch.randn(shape, generator=generator, dtype=DOUBLE) for name, shape in shapes.items()}
    first = one["WI[1]"] @ one["x[1]"]
    second = (one["WH[1]"] @ first) * (one["WI[1]"] @ one["x[2]"])
    expected = (one["WH[2]"] @ one["WI[2]"] @ first) * (one["WI[2]"] @ second)
    found = contract(state_network(inputs=3, width=4, step=2, layer=2), one)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)


def test_claim_3_at_the_vectors_of_the_proof() -> None:
    """Basis vectors force delta, and delta fails at (1, 1)."""
    identity = torch.eye(2, dtype=DOUBLE)
    delta = identity[:, :, None] * identity
    assert not_cloned(delta).tolist() == [1, 1]
    for i, j, k in ((0, 0, 1), (1, 0, 0), (0, 1, 1)):
        other = delta.clone()
        other[i, j, k] += 1
        assert not_cloned(other).sum() == 1  # already a basis vector shows it


def test_figure_a4_is_a_product_of_powers() -> None:
    assert product_form(steps=6, depth=3) == "(unit 1..4)^3 (unit 1..5)^2 (unit 1..6)^1"


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize("steps", [2, 6, 10])
def test_claim_4_counts_the_units_that_join_start_and_end(steps: int, depth: int) -> None:
    assert sum(unit_powers(steps=steps, depth=depth, joining=True).values()) == interactions(steps, depth)


def test_all_figures_are_there() -> None:
    assert list(FIGURES) == ["A.1", "A.2a", "A.2b", "A.2c", "A.3a", "A.3b", "A.3c", "2.1", "A.4"]


@pytest.mark.parametrize(
    ("depth", "width", "true", "thesis"),
    [
        (2, 128, 34_314, 26_058),
        (1, 256, 35_722, 35_722),
        (1, 360, 68_950, 68_950),
        (1, 512, 136_970, 136_970),
        (3, 256, 232_586, 166_794),
        (1, 600, 186_910, 186_910),
    ],
)
def test_sizes_of_table_c1(depth: int, width: int, true: int, thesis: int) -> None:
    for count, wanted in (("true", true), ("thesis", thesis)):
        assert orthogonal_parameters(inputs=1, classes=10, depth=depth, width=width, count=count) == wanted


@pytest.mark.parametrize(
    ("inputs", "classes", "power", "true", "thesis"),
    [
        (34, 34, 13, [76, 48, 39], [76, 54, 45]),
        (34, 34, 14, [124, 74, 59], [124, 84, 68]),
        (34, 34, 15, [196, 111, 87], [196, 126, 101]),
        (34, 34, 16, [299, 164, 127], [299, 187, 148]),
        (33, 3, 14, [148, 81, 63], [148, 93, 73]),
        (33, 3, 15, [222, 119, 91], [222, 136, 107]),
        (33, 3, 16, [327, 172, 131], [327, 197, 154]),
        (33, 3, 17, [476, 246, 188], [476, 283, 221]),
    ],
)
def test_widths_within_the_budgets(inputs: int, classes: int, power: int, true: list[int], thesis: list[int]) -> None:
    for count, wanted in (("true", true), ("thesis", thesis)):
        found = [
            width_within(budget=2**power, inputs=inputs, classes=classes, depth=depth, count=count)
            for depth in (1, 2, 3)
        ]
        assert found == wanted


def test_the_network_of_a_layer_of_the_library_is_its_forward_pass(generator: torch.Generator) -> None:
    layer = RAC(2, 2, num_layers=3, dtype=DOUBLE, generator=generator)
    features = torch.randn(3, 2, generator=generator, dtype=DOUBLE)
    tensors = {f"x[{step}]": row for step, row in enumerate(features, 1)} | {"WO": torch.eye(2, dtype=DOUBLE)}
    for index in range(3):
        tensors[f"WI[{index + 1}]"] = layer.get_parameter(f"weight_ih_l{index}")
        tensors[f"WH[{index + 1}]"] = layer.get_parameter(f"weight_hh_l{index}")
    with torch.no_grad():
        found = contract(circuit_network(inputs=2, width=2, steps=3, depth=3, classes=2), tensors)
        torch.testing.assert_close(found, layer(features[:, None])[0][-1, 0], rtol=1e-10, atol=0)
