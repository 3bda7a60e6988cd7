"""Known answers for arithmetic circuits and orthogonal layers (Ziv 2019, "Depth Enables Long-Term Memory")."""

from __future__ import annotations

import itertools
import math
from contextlib import nullcontext
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from statewise import RAC, RNN, OrthogonalRNN, SingularStartWarning
from statewise.cells import modrelu
from support import CPU_ENGINES, fill, tolerance

DOUBLE = torch.float64
SEEDS = st.integers(0, 2**32 - 1)

# The integer circuit: input and recurrent weights of three layers, and the readout.
WI = ([[1, 2], [3, -1]], [[1, -1], [2, 1]], [[1, 1], [1, -2]])
WH = ([[1, 1], [0, 1]], [[1, 0], [1, 1]], [[2, 1], [1, 1]])
WO = torch.tensor([1.0, 2.0], dtype=DOUBLE)


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


def integer_circuit(depth: int, engine: str = "auto", **options: Any) -> RAC:
    layer = RAC(2, 2, num_layers=depth, dtype=DOUBLE, engine=engine, **options)
    for index in range(depth):
        fill(layer, **{f"weight_ih_l{index}": torch.tensor(WI[index]), f"weight_hh_l{index}": torch.tensor(WH[index])})
    return layer


def words(symbols: int, steps: int) -> Tensor:
    """All words over one-hot symbols, the first step most significant, shape (steps, words, symbols)."""
    table = torch.tensor(list(itertools.product(range(symbols), repeat=steps)))
    return nn.functional.one_hot(table.T, symbols).to(DOUBLE)


def start_end_table(layer: RAC, steps: int, readout: Tensor = WO, **options: Any) -> Tensor:
    """The score after the last step for every first half (rows) and second half (columns)."""
    with torch.no_grad():
        output, _ = layer(words(layer.input_size, steps), **options)
    half = layer.input_size ** (steps // 2)
    table: Tensor = (output[-1] @ readout).reshape(half, half)
    return table


def exact_rank(table: Tensor) -> int:
    """The rank by fractions, of a table whose entries are whole numbers that float64 holds exactly."""
    assert table.abs().max() < 2**53
    assert torch.equal(table, table.round())
    rows, rank = [[Fraction(int(value)) for value in row] for row in table.tolist()], 0
    for column in range(len(rows[0])):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


@pytest.mark.parametrize("engine", CPU_ENGINES)
@pytest.mark.parametrize(
    ("depth", "table"),
    [(1, [[22, 2], [-5, 4]]), (2, [[112, 56], [0, 63]]), (3, [[1290, 1698], [198, -45]])],
)
def test_tables_of_the_integer_circuit_over_two_steps(depth: int, table: list[list[int]], engine: str) -> None:
    assert start_end_table(integer_circuit(depth, engine), 2).tolist() == table


@pytest.mark.parametrize("engine", CPU_ENGINES)
def test_tables_of_the_integer_circuit_over_four_steps(engine: str) -> None:
    shallow, deep, deeper = (start_end_table(integer_circuit(depth, engine), 4) for depth in (1, 2, 3))
    assert shallow.tolist() == [[202, 26, -37, 52], [-58, 10, 31, 20], [-65, -4, 17, -8], [24, 6, -1, 12]]
    assert deep[0].tolist() == [1001686, 807758, 57022, 466592]
    assert deeper[0, 0].item() == 4217937213420
    assert math.log(deeper[0, 0].item()) == pytest.approx(29.070367, abs=5e-7)
    assert [exact_rank(table) for table in (shallow, deep, deeper)] == [2, 4, 4]


@pytest.mark.parametrize(("depth", "steps", "rank"), [(1, 6, 2), (1, 8, 2), (2, 6, 7)])
def test_ranks_of_longer_tables_that_float64_still_holds(depth: int, steps: int, rank: int) -> None:
    """One layer stays at the width; two already reach 7 of 8 at six steps."""
    assert exact_rank(start_end_table(integer_circuit(depth), steps)) == rank


@pytest.mark.parametrize("engine", CPU_ENGINES)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_every_way_to_start_with_a_product_of_one_gives_the_same_table(depth: int, engine: str) -> None:
    """``U h_0 = 1`` by convention, by the pseudo-inverse, and by h_0 = (0, 1), (1, 0), (0, 1) itself."""
    expected = start_end_table(integer_circuit(depth, engine), 4)
    solved = start_end_table(integer_circuit(depth, engine, initial_state="pinv"), 4)
    torch.testing.assert_close(solved, expected, rtol=1e-11, atol=0)
    given_state = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]], dtype=DOUBLE)[:depth, None].repeat(1, 16, 1)
    assert torch.equal(start_end_table(integer_circuit(depth, engine), 4, hx=given_state), expected)


@pytest.mark.parametrize("engine", CPU_ENGINES)
def test_with_a_singular_matrix_only_the_convention_starts_at_one(engine: str) -> None:
    """The pseudo-inverse then reaches the projection of 1, here (1, 0) of a matrix diag(1, 0)."""
    x = torch.tensor([[[1.0, -2.0]]], dtype=DOUBLE)
    for initial_state, product in (("ones", [1.0, 1.0]), ("pinv", [1.0, 0.0])):
        layer = RAC(2, 2, dtype=DOUBLE, engine=engine, initial_state=initial_state)
        fill(layer, weight_hh_l0=torch.diag(torch.tensor([1.0, 0.0])))
        expected = (x @ layer.get_parameter("weight_ih_l0").T) * torch.tensor(product, dtype=DOUBLE)
        with pytest.warns(SingularStartWarning) if initial_state == "pinv" else nullcontext():
            found = layer(x)[0]
        torch.testing.assert_close(found, expected, **tolerance(DOUBLE))


@pytest.mark.parametrize("engine", CPU_ENGINES)
@pytest.mark.parametrize(("depth", "steps", "degrees"), [(3, 6, (21, 15, 10, 6, 3, 1)), (4, 5, (35, 20, 10, 4, 1))])
def test_the_output_is_homogeneous_in_every_input(
    depth: int, steps: int, degrees: tuple[int, ...], engine: str, generator: torch.Generator
) -> None:
    """Doubling ``f(x_j)`` multiplies the output by 2 to the degree, exactly, as doubling costs no digits."""
    assert degrees == tuple(math.comb(steps - j + depth - 1, depth - 1) for j in range(1, steps + 1))
    layer = RAC(3, 4, num_layers=depth, dtype=DOUBLE, engine=engine, generator=generator)
    x = torch.randn(steps, 1, 3, generator=generator, dtype=DOUBLE)
    for j, degree in enumerate(degrees):
        scaled = x.clone()
        scaled[j] *= 2
        assert torch.equal(layer(scaled)[0][-1], layer(x)[0][-1] * 2.0**degree)


@pytest.mark.parametrize("engine", CPU_ENGINES)
def test_the_output_is_homogeneous_in_every_intermediate_state(engine: str, generator: torch.Generator) -> None:
    """The degree in the state of layer l, n steps before the end, is the multiset coefficient ms(n, L - l)."""
    depth, left = 3, 4
    layer = RAC(3, 4, num_layers=depth, dtype=DOUBLE, engine=engine, generator=generator)
    x = torch.randn(left, 1, 3, generator=generator, dtype=DOUBLE)
    state = torch.randn(depth, 1, 4, generator=generator, dtype=DOUBLE)
    plain = layer(x, state)[0][-1]
    for level in range(1, depth + 1):
        scaled = state.clone()
        scaled[level - 1] *= 2
        degree = math.comb(left + depth - level - 1, depth - level)
        assert torch.equal(layer(x, scaled)[0][-1], plain * 2.0**degree)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("steps", [2, 4])
@pytest.mark.parametrize(("features", "channels"), [(1, 3), (3, 1), (1, 1)])
def test_one_feature_or_one_channel_has_rank_one_at_every_depth(
    features: int, channels: int, steps: int, depth: int, generator: torch.Generator
) -> None:
    """The table over three templates is an outer product: its halves do not interact."""
    layer = RAC(features, channels, num_layers=depth, dtype=DOUBLE, generator=generator)
    templates = torch.randn(3, features, generator=generator, dtype=DOUBLE)
    with torch.no_grad():
        output, _ = layer(words(3, steps) @ templates)
    table = (output[-1] @ torch.randn(channels, generator=generator, dtype=DOUBLE)).reshape((3 ** (steps // 2),) * 2)
    peak = int(table.abs().argmax())
    row, column = divmod(peak, table.shape[1])
    outer = torch.outer(table[:, column], table[row]) / table[row, column]
    torch.testing.assert_close(table, outer, rtol=1e-10, atol=1e-12 * table.abs().max().item())


Z = torch.tensor([-2.0, -0.3, 0.0, 0.3, 2.0], dtype=DOUBLE)


@pytest.mark.parametrize("engine", CPU_ENGINES)
@pytest.mark.parametrize(
    ("bias", "values", "open_gates"),
    [
        (-0.5, (-1.5, 0.0, 0.0, 0.0, 1.5), (1, 0, 0, 0, 1)),
        (0.0, (-2.0, -0.3, 0.0, 0.3, 2.0), (1, 1, 0, 1, 1)),
        (0.5, (-2.5, -0.8, 0.0, 0.8, 2.5), (1, 1, 0, 1, 1)),
    ],
)
def test_modrelu_in_a_layer_has_the_printed_values_and_slopes(
    bias: float, values: tuple[float, ...], open_gates: tuple[int, ...], engine: str
) -> None:
    """Slope 1 where ``|z| + b > 0`` and z is not 0, and ``d/db = sign(z)`` there."""
    layer = RNN(1, 1, nonlinearity="modrelu", bias=False, dtype=DOUBLE, engine=engine)
    fill(layer, weight_ih_l0=1.0, weight_hh_l0=0.0, bias_mod_l0=bias)
    z = Z.reshape(1, 5, 1).clone().requires_grad_()
    output, _ = layer(z)
    assert output.flatten().tolist() == pytest.approx(values, abs=1e-15)
    torch.testing.assert_close(output.flatten(), modrelu(Z, torch.tensor(bias, dtype=DOUBLE)), **tolerance(DOUBLE))
    gates = torch.tensor(open_gates, dtype=DOUBLE)
    slopes = torch.tensor([1.0, 2.0, 4.0, 8.0, 16.0], dtype=DOUBLE)  # a sum of powers shows which terms it holds
    (output.flatten() * slopes).sum().backward()
    assert z.grad is not None
    assert torch.equal(z.grad.flatten(), slopes * gates)
    of_bias = layer.get_parameter("bias_mod_l0").grad
    assert of_bias is not None
    assert of_bias.item() == (slopes * gates * Z.sign()).sum().item()


@pytest.mark.parametrize("size", [7, 32])
def test_an_untrained_orthogonal_layer_keeps_the_norm_of_its_state_for_1000_steps(
    size: int, generator: torch.Generator
) -> None:
    """b = 0 and x = 0: ``|h_1000| = |h_0|`` to 1e-12."""
    layer = OrthogonalRNN(3, size, dtype=DOUBLE, generator=generator)
    start = torch.randn(1, 4, size, generator=generator, dtype=DOUBLE)
    with torch.no_grad():
        output, end = layer(torch.zeros(1000, 4, 3, dtype=DOUBLE), start)
    torch.testing.assert_close(end.norm(dim=2), start.norm(dim=2), rtol=1e-12, atol=0)
    assert (output[0] - start[0]).abs().max() > 0.01


@pytest.mark.parametrize("engine", CPU_ENGINES)
@given(size=st.integers(1, 8), steps=st.integers(2, 8), seed=SEEDS)
def test_the_gradient_norm_never_grows_on_its_way_back_through_an_orthogonal_layer(
    engine: str, size: int, steps: int, seed: int
) -> None:
    """A loss on h_T alone: ``|dLoss/dh_t|`` is non-decreasing in t for any A, input and bias."""
    generator = torch.Generator().manual_seed(seed)
    layer = OrthogonalRNN(2, size, dtype=DOUBLE, engine=engine, generator=generator)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(generator=generator)
        x = torch.randn(steps, 1, 2, generator=generator, dtype=DOUBLE)
        start = torch.randn(1, 1, size, generator=generator, dtype=DOUBLE)
        states = torch.cat((start, layer(x, start)[0]))
    norms = []
    for t in range(steps):
        state = states[t].unsqueeze(0).requires_grad_()
        _, end = layer(x[t:], state)
        (grad,) = torch.autograd.grad((end**3).sum(), state)
        norms.append(grad.norm())
    norms.append((3 * states[-1] ** 2).norm())
    backwards = torch.stack(norms)
    assert (backwards[:-1] <= backwards[1:] * (1 + 1e-10) + 1e-12).all()


@pytest.mark.parametrize("training", [True, False])
def test_an_orthogonal_layer_starts_from_states_of_mean_squared_norm_one(
    training: bool, generator: torch.Generator
) -> None:
    """Seen after one step without input, which keeps the norm; uniform entries have ``Var |h_0|^2 = 4 / (5 R)``."""
    size, rows = 20, 40_000
    layer = OrthogonalRNN(3, size, num_layers=2, dtype=DOUBLE, generator=generator).train(training)
    fill(layer, weight_ih_l1=0.0)
    with torch.no_grad():
        zeros = torch.zeros(1, rows, 3, dtype=DOUBLE)
        states, again = (layer(zeros, generator=generator)[1] for _ in range(2))
    squared = states.square().sum(2)
    assert ((squared.mean(1) - 1).abs() < 5 * math.sqrt(0.8 / size / rows)).all()
    assert ((squared.var(1) / (0.8 / size) - 1).abs() < 0.1).all()
    assert not torch.equal(states, again)
    assert not torch.equal(states[0], states[1])
    repeated = [layer(zeros, generator=torch.Generator().manual_seed(3))[1] for _ in range(2)]
    assert torch.equal(*repeated)


def test_the_start_is_part_of_what_is_drawn_so_that_draws_repeat_a_pass(generator: torch.Generator) -> None:
    layer = OrthogonalRNN(3, 5, dtype=DOUBLE, generator=generator)
    x = torch.randn(4, 2, 3, generator=generator, dtype=DOUBLE)
    draws = layer.draw(x, generator=generator)
    assert torch.equal(layer(x, draws=draws)[0], layer(x, draws=draws)[0])


@pytest.mark.parametrize(
    ("width", "classes", "depth", "channels", "printed"),
    [
        (1, 10, 2, 128, 34_314),
        (1, 10, 1, 256, 35_722),
        (1, 10, 1, 360, 68_950),
        (1, 10, 1, 512, 136_970),
        (1, 10, 3, 256, 232_586),
        (1, 10, 1, 600, 186_910),
        (10, 10, 1, 28, 976),
        (10, 10, 2, 17, 945),
        (10, 10, 3, 14, 997),
    ],
)
def test_an_orthogonal_network_has_the_printed_number_of_free_parameters(
    width: int, classes: int, depth: int, channels: int, printed: int
) -> None:
    """Skew entries, inputs, inter-layer matrices, modReLU biases; then the readout: the true sizes of Table C.1."""
    layer = OrthogonalRNN(width, channels, num_layers=depth)
    recurrent = sum(parameter.numel() for parameter in layer.parameters())
    skew, between = depth * channels * (channels - 1) // 2, (depth - 1) * channels**2
    assert recurrent == skew + channels * width + between + depth * channels
    assert recurrent + sum(p.numel() for p in nn.Linear(channels, classes).parameters()) == printed


def test_a_fresh_orthogonal_layer_is_linear_with_small_inputs(generator: torch.Generator) -> None:
    """Input matrices in U(-0.01, 0.01), between layers too, and biases of modReLU zero."""
    layer = OrthogonalRNN(3, 16, num_layers=2, dtype=DOUBLE, initial_state="zeros", generator=generator)
    for index in (0, 1):
        weight = layer.get_parameter(f"weight_ih_l{index}")
        assert 0.005 < weight.abs().max() <= 0.01
        assert (layer.get_parameter(f"bias_mod_l{index}") == 0).all()
    x, y = torch.randn(2, 5, 2, 3, generator=generator, dtype=DOUBLE)
    torch.testing.assert_close(layer(2 * x - 3 * y)[0], 2 * layer(x)[0] - 3 * layer(y)[0], **tolerance(DOUBLE))
