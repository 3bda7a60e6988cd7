"""Known answers for centroids and peepholes in whole layers (Wang & Niepert 2019, "State-Regularized RNNs")."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence

from statewise import GRU, LSTM, MGU, RAC, RNN, Centroids, PeepholeLSTM, PeepholeLSTMCell, RecurrentLayer
from support import CPU_ENGINES, fill, tolerance

SIMILARITIES = ("dot", "euclidean", "sqeuclidean")
DOUBLE = torch.float64
SEEDS = st.integers(0, 2**32 - 1)
START, END = 2, 3


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def component(centroids: Tensor, *, engine: str = "reference", **settings: Any) -> RNN:
    """The stochastic component alone: a layer whose cell hands its input on, ``u_t = x_t``."""
    k, width = centroids.shape
    transforms = Centroids(k, **settings)
    layer = RNN(width, width, nonlinearity="identity", bias=False, dtype=DOUBLE, engine=engine, transforms=transforms)
    fill(layer, weight_ih_l0=torch.eye(width, dtype=DOUBLE), weight_hh_l0=0.0, centroids_l0=centroids)
    return layer


def moved(layer: RecurrentLayer, u: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
    """States and transition probabilities for rows of u, each a sequence of one step."""
    output, _, seen = layer(u.unsqueeze(0), collect=("probabilities",), **options)
    return output[0], seen.probabilities[0][0]


U = torch.tensor([[1.0, 2.0]], dtype=DOUBLE)
S = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]], dtype=DOUBLE)


@pytest.mark.parametrize("engine", CPU_ENGINES)
@pytest.mark.parametrize(
    ("similarity", "temperature", "alpha", "state"),
    [
        ("dot", 1.0, (0.211942, 0.576117, 0.211942), (0.0, 0.788058)),
        ("dot", 0.5, (0.106507, 0.786986, 0.106507), None),
        ("dot", 0.1, (None, 0.999909, None), None),
        ("euclidean", 1.0, (0.278852, 0.500931, 0.220217), (0.058635, 0.721148)),
        ("euclidean", 0.1, (None, 0.996883, None), None),
        ("sqeuclidean", 1.0, (0.114195, 0.843795, 0.042010), None),
    ],
)
def test_transition_probabilities_and_states_of_the_printed_example(
    engine: str,
    similarity: str,
    temperature: float,
    alpha: tuple[float | None, ...],
    state: tuple[float, ...] | None,
) -> None:
    layer = component(S, engine=engine, similarity=similarity, temperature=temperature)
    h, found = moved(layer, U)
    for ours, printed in zip(found[0].tolist(), alpha, strict=True):
        assert printed is None or ours == pytest.approx(printed, abs=5.1e-7)
    if state is not None:
        assert h[0].tolist() == pytest.approx(state, abs=5.1e-7)
    torch.testing.assert_close(h, found @ S, **tolerance(DOUBLE))


@pytest.mark.parametrize("engine", CPU_ENGINES)
@pytest.mark.parametrize("similarity", SIMILARITIES)
@given(k=st.integers(1, 6), width=st.integers(1, 5), temperature=st.floats(0.2, 5), seed=SEEDS)
def test_the_jacobian_is_a_covariance_over_the_temperature(
    similarity: str, engine: str, k: int, width: int, temperature: float, seed: int
) -> None:
    """dot: ``Cov(s) / tau``; euclidean: ``-Cov(s, n) / tau`` with n the unit vectors from the centroids, to 1e-10."""
    generator = seeded(seed)
    centroids = torch.randn(k, width, generator=generator, dtype=DOUBLE)
    u = torch.randn(1, width, generator=generator, dtype=DOUBLE, requires_grad=True)
    layer = component(centroids, engine=engine, similarity=similarity, temperature=temperature)
    h, alpha = moved(layer, u)
    found = torch.stack([torch.autograd.grad(h[0, i], u, retain_graph=True)[0][0] for i in range(width)])
    difference = u.detach() - centroids
    slopes = {
        "dot": centroids,
        "euclidean": -difference / difference.norm(dim=1, keepdim=True),
        "sqeuclidean": -2 * difference,
    }[similarity]
    covariance = centroids.T @ (alpha.T * slopes) - torch.outer(h.detach()[0], (alpha @ slopes)[0])
    torch.testing.assert_close(found, covariance / temperature, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("engine", CPU_ENGINES)
@given(k=st.integers(1, 6), width=st.integers(1, 5), seed=SEEDS)
def test_shifting_the_centroids_moves_the_state_and_not_the_probabilities(
    engine: str, k: int, width: int, seed: int
) -> None:
    """dot: v added to all centroids; euclidean: v added to u too; to 1e-12."""
    generator = seeded(seed)
    centroids = torch.randn(k, width, generator=generator, dtype=DOUBLE)
    u, v = torch.randn(2, 1, width, generator=generator, dtype=DOUBLE)
    for similarity in SIMILARITIES:
        h, alpha = moved(component(centroids, engine=engine, similarity=similarity), u)
        shifted_u = u if similarity == "dot" else u + v
        h_shifted, alpha_shifted = moved(component(centroids + v, engine=engine, similarity=similarity), shifted_u)
        torch.testing.assert_close(alpha_shifted, alpha, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(h_shifted, h + v, rtol=1e-12, atol=1e-12)


def test_squared_distance_to_centroids_of_one_norm_is_the_dot_product_at_half_the_temperature() -> None:
    centroids = nn.functional.normalize(torch.randn(5, 3, dtype=DOUBLE), dim=1)
    u = torch.randn(4, 3, dtype=DOUBLE)
    _, squared = moved(component(centroids, similarity="sqeuclidean", temperature=0.6), u)
    _, dot = moved(component(centroids, similarity="dot", temperature=0.3), u)
    torch.testing.assert_close(squared, dot, **tolerance(DOUBLE))


@pytest.mark.parametrize("engine", CPU_ENGINES)
@pytest.mark.parametrize("transition", ["mixture", "sample", "argmax", "noisy"])
@pytest.mark.parametrize("kind", [RNN, GRU, MGU])
def test_a_single_centroid_makes_every_string_equal(
    kind: Callable[..., RecurrentLayer], transition: str, engine: str, generator: torch.Generator
) -> None:
    layer = kind(3, 4, dtype=DOUBLE, engine=engine, transforms=Centroids(1, transition=transition))
    output, _, seen = layer(
        torch.randn(6, 5, 3, generator=generator, dtype=DOUBLE), collect=("probabilities",), generator=generator
    )
    assert torch.equal(seen.probabilities[0], torch.ones(6, 5, 1, dtype=DOUBLE))
    assert torch.equal(output, layer.get_parameter("centroids_l0").expand(6, 5, 4))


@pytest.mark.parametrize("engine", CPU_ENGINES)
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_a_high_temperature_averages_the_centroids_and_a_low_one_chooses(
    similarity: str, engine: str, generator: torch.Generator
) -> None:
    centroids = torch.randn(5, 3, generator=generator, dtype=DOUBLE)
    u = torch.randn(7, 3, generator=generator, dtype=DOUBLE)
    options: dict[str, Any] = {"engine": engine, "similarity": similarity}
    h, alpha = moved(component(centroids, temperature=1e6, **options), u)
    torch.testing.assert_close(alpha, torch.full_like(alpha, 1 / 5), rtol=0, atol=1e-5)
    torch.testing.assert_close(h, centroids.mean(0).expand_as(h), rtol=0, atol=1e-5)
    cold, alpha = moved(component(centroids, temperature=1e-6, **options), u)
    hard, _ = moved(component(centroids, transition="argmax", **options), u)
    assert (alpha.max(1).values == 1).all()
    torch.testing.assert_close(cold, hard, rtol=0, atol=1e-6)


def test_tied_centroids_share_the_probability_and_the_mixture_is_their_average() -> None:
    """Why the limit theorem needs a unique maximum."""
    centroids = torch.tensor([[1.0, 5.0], [1.0, -2.0], [0.0, 1.0]], dtype=DOUBLE)
    h, alpha = moved(component(centroids, temperature=1e-3), torch.tensor([[1.0, 0.0]], dtype=DOUBLE))
    assert alpha[0].tolist() == [0.5, 0.5, 0.0]
    assert h[0].tolist() == [1.0, 1.5]


@pytest.mark.parametrize(
    ("k", "gap", "temperature", "bound"),
    [(10, 0.5, 0.1, 0.942826), (50, 1.0, 0.1, 0.997780), (50, 5.0, 1.0, 0.751790), (10, 2.0, 1.0, 0.450853)],
)
def test_the_margin_bound_is_attained_when_all_losers_tie(k: int, gap: float, temperature: float, bound: float) -> None:
    centroids = torch.zeros(k, 1, dtype=DOUBLE)
    centroids[0] = gap
    _, alpha = moved(component(centroids, temperature=temperature), torch.ones(1, 1, dtype=DOUBLE))
    assert alpha[0, 0].item() == pytest.approx(bound, abs=5.1e-7)


def test_the_temperature_at_which_50_centroids_with_gap_one_are_one_hot_to_a_thousandth() -> None:
    centroids = torch.zeros(50, 1, dtype=DOUBLE)
    centroids[0] = 1.0
    missing = []
    for temperature in (0.092604, 0.092606):
        _, alpha = moved(component(centroids, temperature=temperature), torch.ones(1, 1, dtype=DOUBLE))
        missing.append(1 - alpha[0, 0].item())
    assert missing[0] < 1e-3 < missing[1]


@given(k=st.integers(2, 20), width=st.integers(1, 5), temperature=st.floats(0.05, 3), seed=SEEDS)
def test_the_margin_bound_holds_for_every_layer(k: int, width: int, temperature: float, seed: int) -> None:
    """``alpha_M >= 1 / (1 + (k - 1) e^(-gap/tau))`` and ``|h - s_M| <= (k - 1) e^(-gap/tau) D``."""
    generator = seeded(seed)
    centroids = torch.randn(k, width, generator=generator, dtype=DOUBLE)
    u = torch.randn(8, width, generator=generator, dtype=DOUBLE)
    h, alpha = moved(component(centroids, temperature=temperature), u)
    best, second = (u @ centroids.T).topk(2, dim=1).values.T
    tail = (k - 1) * torch.exp(-(best - second) / temperature)
    top, winner = alpha.max(1)
    assert (top >= 1 / (1 + tail) - 1e-12).all()
    diameter = torch.cdist(centroids, centroids).max()
    assert ((h - centroids[winner]).norm(dim=1) <= tail * diameter + 1e-12).all()


@pytest.mark.parametrize("transition", ["mixture", "noisy", "sample"])
@pytest.mark.parametrize("similarity", ["dot", "euclidean"])
def test_states_stay_in_the_hull_of_the_centroids_for_ten_thousand_steps(
    similarity: str, transition: str, generator: torch.Generator
) -> None:
    """No drift and no overflow, however large the weights."""
    transforms = Centroids(3, similarity=similarity, transition=transition)
    layer = GRU(2, 20, transforms=transforms, generator=generator)
    with torch.no_grad():
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
            layer.get_parameter(name).mul_(50)
        output, _, seen = layer(
            torch.randn(10_000, 2, 2, generator=generator), collect=("probabilities",), generator=generator
        )
    centroids, alpha = layer.get_parameter("centroids_l0").detach(), seen.probabilities[0]
    assert output.isfinite().all()
    assert (output.norm(dim=2) <= centroids.norm(dim=1).max() * (1 + 1e-6)).all()
    torch.testing.assert_close(alpha.sum(2), torch.ones(10_000, 2), **tolerance(torch.float32))
    if transition == "mixture":
        torch.testing.assert_close(output, alpha @ centroids, **tolerance(torch.float32))


# One step of the scalar LSTM-P, in torch's order of gates: input, forget, cell, output.
SCALAR_LSTM_P = {
    "weight_ih": torch.tensor([[0.2], [0.1], [0.4], [0.3]], dtype=DOUBLE),
    "weight_hh": torch.tensor([[-0.5], [0.5], [1.0], [0.25]], dtype=DOUBLE),
    "bias_ih": torch.tensor([0.0, 1.0, 0.0, 0.0], dtype=DOUBLE),
    "bias_hh": torch.zeros(4, dtype=DOUBLE),
    "weight_ph": torch.tensor([[-0.2], [0.3], [0.6]], dtype=DOUBLE),
}


def test_the_scalar_peephole_cell_has_the_printed_values() -> None:
    cell = PeepholeLSTMCell(1, 1, dtype=DOUBLE)
    cell.load_state_dict(SCALAR_LSTM_P)
    x, h, c = (torch.tensor([value], dtype=DOUBLE) for value in (1.0, 0.5, 0.8))
    u, new = cell(x, (h, c))
    assert [u.item(), new.item()] == pytest.approx([0.554549, 0.985174], abs=5.1e-7)


@pytest.mark.parametrize("engine", CPU_ENGINES)
def test_the_scalar_peephole_layer_has_the_printed_gates(engine: str) -> None:
    """The output gate sees the new memory; with the old one it would be .711976."""
    layer = PeepholeLSTM(1, 1, dtype=DOUBLE, engine=engine)
    layer.load_state_dict({f"{name}_l0": value for name, value in SCALAR_LSTM_P.items()})
    h, c = (torch.full((1, 1), value, dtype=DOUBLE) for value in (0.5, 0.8))
    output, (_, memory), seen = layer(torch.ones(1, 1, dtype=DOUBLE), (h, c), collect=("gates",))
    gates = {name: value.item() for name, value in seen.gates[0].items()}
    printed = {"forget": 0.830616, "input": 0.447692, "cell": 0.716298, "output": 0.734213}
    assert gates == pytest.approx(printed, abs=5.1e-7)
    assert [memory.item(), output.item()] == pytest.approx([0.985174, 0.554549], abs=5.1e-7)


@pytest.mark.parametrize("engine", CPU_ENGINES)
def test_without_peepholes_and_without_the_component_the_layers_are_torchs(
    engine: str, generator: torch.Generator
) -> None:
    plain, cell = nn.LSTM(3, 4), nn.LSTMCell(3, 4)
    inputs = torch.randn(5, 2, 3, generator=generator)
    expected, (state, memory) = plain(inputs)
    peephole = PeepholeLSTM(3, 4, engine=engine)
    peephole.load_state_dict(plain.state_dict(), strict=False)
    disabled = LSTM(3, 4, engine=engine, transforms=Centroids(3, layers=()))
    disabled.load_state_dict(plain.state_dict())
    for layer in (peephole, disabled):
        output, end = layer(inputs)
        torch.testing.assert_close(output, expected, rtol=0, atol=1e-6)
        torch.testing.assert_close(end, (state, memory), rtol=0, atol=1e-6)
    ours = PeepholeLSTMCell(3, 4)
    ours.load_state_dict(cell.state_dict(), strict=False)
    torch.testing.assert_close(ours(inputs[0]), cell(inputs[0]), rtol=0, atol=1e-6)


P_0 = torch.tensor([[0.9, 0.1], [0.4, 0.6]], dtype=DOUBLE)
P_1 = torch.tensor([[0.2, 0.8], [0.5, 0.5]], dtype=DOUBLE)
RUNS = 20_000


def assert_law(counts: Tensor, law: Tensor) -> None:
    """Every state's frequency lies within 4 standard errors of its probability."""
    runs = int(counts.sum())
    assert ((counts / runs - law).abs() <= 4 * (law * (1 - law) / runs).sqrt()).all()


def chosen(layer: nn.Module, states: Tensor) -> Tensor:
    """The index of the centroid on which each row lies, bit for bit."""
    same = (states.unsqueeze(-2) == layer.get_parameter("centroids_l0")).all(-1)
    assert (same.sum(-1) == 1).all()
    return same.int().argmax(-1)


def automaton(transition: str, engine: str) -> RAC:
    """A layer whose transition matrices are P_0 and P_1: unit (a, j) is on for token a and holds ``log P_a[i, j]``."""
    layer = RAC(2, 4, dtype=DOUBLE, engine=engine, transforms=Centroids(2, transition=transition))
    logs = torch.cat((P_0.log().T, P_1.log().T))  # rows (a, j), columns i
    fill(
        layer,
        weight_ih_l0=torch.eye(2, dtype=DOUBLE).repeat_interleave(2, dim=0),
        weight_hh_l0=logs.repeat(1, 2) / 2,
        centroids_l0=torch.eye(2, dtype=DOUBLE).repeat(1, 2),
    )
    return layer


@pytest.mark.parametrize("engine", CPU_ENGINES)
def test_sampled_states_of_a_hand_made_layer_follow_the_product_of_its_matrices(
    engine: str, generator: torch.Generator
) -> None:
    """The word 011 from state 0 gives (0.431, 0.569); the mixture's probabilities are something else."""
    law = (P_0 @ P_1 @ P_1)[0]
    torch.testing.assert_close(law, torch.tensor([0.431, 0.569], dtype=DOUBLE), **tolerance(DOUBLE))
    word = torch.eye(2, dtype=DOUBLE)[[0, 1, 1]].unsqueeze(1).expand(-1, RUNS, -1)
    for transition in ("sample", "mixture"):
        layer = automaton(transition, engine).eval()
        start = layer.get_parameter("centroids_l0").detach()[:1].expand(1, RUNS, -1).contiguous()
        with torch.no_grad():
            output, _, seen = layer(word, start, collect=("probabilities",), generator=generator)
        alpha = seen.probabilities[0]
        if transition == "sample":
            states = chosen(layer, output)
            assert_law(states[2].bincount(minlength=2), law)
            # At every step the probabilities are the row of the present state and nothing else of the past.
            torch.testing.assert_close(alpha[1], P_1[states[0]], **tolerance(DOUBLE))
            torch.testing.assert_close(alpha[2], P_1[states[1]], **tolerance(DOUBLE))
        else:
            assert (alpha[2] - law).abs().max() > 0.005


@pytest.mark.parametrize("kind", [RNN, GRU, MGU])
def test_sampled_states_of_random_layers_follow_a_probabilistic_automaton(
    kind: Callable[..., RecurrentLayer], generator: torch.Generator
) -> None:
    """Theorem 3.1: after START and a word w the law of the state is ``p_0 P_w1 ... P_wT``."""
    layer = kind(3, 4, dtype=DOUBLE, transforms=Centroids(4, transition="sample"), generator=generator).eval()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.mul_(2)
    centroids, tokens = layer.get_parameter("centroids_l0").detach(), torch.eye(3, dtype=DOUBLE)
    word = torch.randint(2, (6,), generator=generator).tolist()
    with torch.no_grad():
        _, _, seen = layer(tokens[START].expand(1, 1, -1), collect=("probabilities",))
        law = seen.probabilities[0][0, 0]
        for token in word:
            inputs = tokens[token].expand(1, 4, -1)
            _, _, seen = layer(inputs, centroids.unsqueeze(0), collect=("probabilities",))
            law = law @ seen.probabilities[0][0]
        _, end = layer(tokens[[START, *word]].unsqueeze(1).expand(-1, RUNS, -1), generator=generator)
    assert law.min() > 0.01
    assert (law - 1 / 4).abs().max() > 0.03  # else uniform states, too, would pass below
    assert_law(chosen(layer, end[0]).bincount(minlength=4), law)


@pytest.mark.parametrize("engine", CPU_ENGINES)
@pytest.mark.parametrize("kind", [GRU, LSTM, PeepholeLSTM])
def test_a_batch_of_mixed_lengths_is_what_one_by_one_runs_give(
    kind: Callable[..., RecurrentLayer], engine: str, generator: torch.Generator
) -> None:
    """Strings after START, the empty one too, then END without the component, on each row's own final state."""
    layer = kind(3, 4, dtype=DOUBLE, engine=engine, transforms=Centroids(5, temperature=0.5))
    plain = kind(3, 4, dtype=DOUBLE, engine=engine)
    plain.load_state_dict(layer.state_dict(), strict=False)
    table = torch.randn(5, 3, generator=generator, dtype=DOUBLE)
    words = [torch.tensor([START, *word]) for word in ([0, 1, 1, 0], [], [1], [0, 0, 1, 1, 0, 1])]

    def classify(sequences: Tensor | PackedSequence, rows: int) -> tuple[Any, Tensor]:
        output, state = layer(sequences)
        return output, plain(table[END].expand(1, rows, -1), state)[0][0]

    lengths = torch.tensor([len(word) for word in words])
    outputs = []
    for pad in (4, 0):  # another token in the padding changes nothing
        padded = nn.utils.rnn.pad_sequence(words, padding_value=pad)
        packed = pack_padded_sequence(table[padded], lengths, enforce_sorted=False)
        output, ends = classify(packed, len(words))
        outputs.append((pad_packed_sequence(output)[0], ends))
    (together, ends), again = outputs
    assert torch.equal(together, again[0])
    assert torch.equal(ends, again[1])
    for row, word in enumerate(words):
        alone, end = classify(table[word].unsqueeze(1), 1)
        torch.testing.assert_close(together[: len(word), row], alone[:, 0], **tolerance(DOUBLE))
        torch.testing.assert_close(ends[row], end[0], **tolerance(DOUBLE))
    sequenced, _ = layer(pack_sequence([table[word] for word in words], enforce_sorted=False))
    assert torch.equal(pad_packed_sequence(sequenced)[0], together)


@pytest.mark.parametrize("engine", CPU_ENGINES)
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_straight_through_is_argmax_forward_and_the_mixture_backward(
    similarity: str, engine: str, generator: torch.Generator
) -> None:
    """Forward bit for bit; in a one-step net the gradient that passes through alpha is the mixture's."""
    centroids = torch.randn(5, 4, generator=generator, dtype=DOUBLE)
    inputs = torch.randn(1, 6, 3, generator=generator, dtype=DOUBLE)
    slope = torch.randn(6, 4, generator=generator, dtype=DOUBLE)
    grads: dict[str, dict[str, Tensor]] = {}
    states, alpha = {}, torch.empty(0)
    for transition in ("argmax", "st_argmax", "mixture"):
        transforms = Centroids(5, similarity=similarity, transition=transition)
        layer = GRU(3, 4, dtype=DOUBLE, engine=engine, transforms=transforms, generator=seeded(5))
        fill(layer, centroids_l0=centroids)
        output, _, seen = layer(inputs, collect=("probabilities",))
        (output[0] * slope).sum().backward()
        states[transition], alpha = output.detach()[0], seen.probabilities[0][0]
        grads[transition] = {
            name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in layer.named_parameters()
        }
    assert torch.equal(states["st_argmax"], states["argmax"])
    for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
        torch.testing.assert_close(grads["st_argmax"][name], grads["mixture"][name], **tolerance(DOUBLE))
        assert grads["argmax"][name].abs().max() == 0
    # What reaches the centroids directly, as the vectors that are mixed, is left out of the comparison.
    one_hot = (alpha == alpha.max(1, keepdim=True).values).to(DOUBLE)
    straight = grads["st_argmax"]["centroids_l0"] - one_hot.T @ slope
    soft = grads["mixture"]["centroids_l0"] - alpha.T @ slope
    torch.testing.assert_close(straight, soft, **tolerance(DOUBLE))
    torch.testing.assert_close(grads["argmax"]["centroids_l0"], one_hot.T @ slope, **tolerance(DOUBLE))


@pytest.mark.parametrize("engine", CPU_ENGINES)
def test_noisy_transitions_without_noise_are_the_mixture_exactly(engine: str, generator: torch.Generator) -> None:
    inputs = torch.randn(5, 3, 2, generator=generator, dtype=DOUBLE)
    outputs = []
    for transition, noise, training in (("mixture", 1.0, True), ("noisy", 0.0, True), ("noisy", 1.0, False)):
        transforms = Centroids(4, transition=transition, noise=noise)
        layer = GRU(2, 3, dtype=DOUBLE, engine=engine, transforms=transforms, generator=seeded(6))
        outputs.append(layer.train(training)(inputs, generator=generator)[0])
    assert torch.equal(outputs[0], outputs[1])
    assert torch.equal(outputs[0], outputs[2])


@pytest.mark.parametrize("engine", CPU_ENGINES)
@pytest.mark.parametrize("transition", ["noisy", "gumbel_hard", "sample"])
def test_the_winner_under_gumbel_noise_follows_the_transition_probabilities(
    transition: str, engine: str, generator: torch.Generator
) -> None:
    """Chi-square over four centroids, which are unit vectors here, so that the state shows its own weights."""
    u = torch.tensor([[0.3, -1.0, 0.8, 0.1]], dtype=DOUBLE)
    layer = component(torch.eye(4, dtype=DOUBLE), engine=engine, transition=transition, temperature=0.7)
    h, alpha = moved(layer, u.expand(RUNS, -1), generator=generator)
    counts, expected = h.argmax(1).bincount(minlength=4), RUNS * alpha[0]
    assert ((counts - expected) ** 2 / expected).sum() < 21.1  # the upper 1e-4 quantile with 3 degrees of freedom
    if transition != "noisy":
        assert set(h.unique().tolist()) == {0.0, 1.0}


def size(layer: nn.Module) -> int:
    return sum(parameter.numel() for parameter in layer.parameters())


@pytest.mark.parametrize(("width", "hidden", "k"), [(3, 8, 5), (8, 100, 50)])
def test_centroids_add_k_times_d_parameters_and_peepholes_three_d(width: int, hidden: int, k: int) -> None:
    sizes: dict[str, Any] = {"input_size": width, "hidden_size": hidden, "device": "meta"}
    assert size(PeepholeLSTM(**sizes)) - size(nn.LSTM(**sizes)) == 3 * hidden
    for kind, layers, directions in itertools.product((RNN, GRU, LSTM), (1, 2), (1, 2)):
        options = sizes | {"num_layers": layers, "bidirectional": directions == 2}
        added = size(kind(**options, transforms=Centroids(k))) - size(kind(**options))
        assert added == k * hidden * layers * directions


def test_the_language_model_of_table_11_has_the_printed_number_of_parameters() -> None:
    """46,998,200 without centroids, 47,298,200 with a thousand; the paper has one bias where torch has two."""
    words, width = 77_000, 300
    ends = size(nn.Embedding(words, width, device="meta")) + size(nn.Linear(width, words, device="meta"))
    plain, regularized = (
        LSTM(width, width, device="meta", transforms=transforms) for transforms in ((), Centroids(1000))
    )
    second_bias = plain.get_parameter("bias_hh_l0").numel()
    assert ends + size(plain) - second_bias == 46_998_200
    assert ends + size(regularized) - second_bias == 47_298_200


def test_the_gain_of_fresh_centroids_is_about_a_squared_over_three(generator: torch.Generator) -> None:
    """Centroids start in U(-0.5, 0.5); the mean diagonal of ``Cov(s)`` under uniform alpha is then near 0.083."""
    layer = GRU(8, 100, dtype=DOUBLE, transforms=Centroids(50), generator=generator)
    centroids = layer.get_parameter("centroids_l0").detach()
    assert centroids.abs().max() <= 0.5
    gain = centroids.var(0, correction=0).mean().item()
    assert math.isclose(gain, 0.25 / 3, rel_tol=0.05)
