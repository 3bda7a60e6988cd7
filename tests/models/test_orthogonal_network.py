"""Orthogonal networks: what they compute, how they start, and what is told of their matrices."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from statewise.errors import ArgumentError
from statewise.models.orthogonal_network import OrthogonalNetwork
from statewise.train.rmsprop_tf import RMSpropTF
from statewise.weights import StiefelSGD, orthogonality_error
from statewise.weights.gradient_limit import limit_entries
from support import tolerance, weight

DOUBLE = torch.float64


def network(depth: int = 2, **options: Any) -> OrthogonalNetwork:
    given = {"generator": torch.Generator().manual_seed(5), "dtype": DOUBLE, **options}
    return OrthogonalNetwork(4, 3, 6, depth, **given)


def by_hand(net: OrthogonalNetwork, x: Tensor, start: Tensor) -> Tensor:
    """Step by step: ``h = modrelu(W h + U x)``, then the readout."""
    states, scores = list(start), []
    for below in x:
        for layer in range(net.depth):
            matrix, inputs, bias = (
                getattr(net.rnn, f"{name}_l{layer}") for name in ("weight_hh", "weight_ih", "bias_mod")
            )
            z = states[layer] @ matrix.T + below @ inputs.T
            below = states[layer] = z.sign() * (z.abs() + bias).relu()
        scores.append(below @ net.readout.weight.T + net.readout.bias)
    return torch.stack(scores)


@pytest.mark.parametrize("every_step", [True, False])
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("update", ["cayley", "full-capacity"])
def test_it_is_the_equation(depth: int, every_step: bool, update: str, generator: torch.Generator) -> None:
    net = network(depth, every_step=every_step, update=update)
    with torch.no_grad():
        for parameter in net.rnn.parameters():
            if parameter.dim() == 1 and parameter.numel() == 6:
                parameter.normal_(0, 0.1, generator=generator)
        net.readout.bias.normal_(generator=generator)
    x = torch.randn(7, 2, 4, generator=generator, dtype=DOUBLE)
    start = torch.randn(depth, 2, 6, generator=generator, dtype=DOUBLE)
    expected = by_hand(net, x, start)
    torch.testing.assert_close(net(x, start), expected if every_step else expected[-1], **tolerance(DOUBLE))


def test_symbols_are_read_as_one_hot_vectors(generator: torch.Generator) -> None:
    net = network()
    symbols = torch.randint(4, (5, 3), generator=generator)
    start = torch.randn(2, 3, 6, generator=generator, dtype=DOUBLE)
    one_hot = nn.functional.one_hot(symbols, 4).to(DOUBLE)
    assert torch.equal(net(symbols, start), net(one_hot, start))
    for wrong in (4, -1):
        with pytest.raises(ArgumentError, match=rf"OrthogonalNetwork sequences: got symbols {wrong} to {wrong}"):
            net(torch.full((2, 1), wrong))


def test_it_starts_as_published() -> None:
    """Readout Glorot-uniform with bias 0, inputs in U(-0.01, 0.01), matrices orthogonal with half the signs -1."""
    net = OrthogonalNetwork(4, 30, 50, 2, generator=torch.Generator().manual_seed(0))
    bound = (6 / (50 + 30)) ** 0.5
    assert 0.95 * bound < net.readout.weight.abs().max() <= bound
    assert abs(net.readout.weight.var().item() / (bound**2 / 3) - 1) < 0.1
    assert not net.readout.bias.any()
    assert weight(net.rnn, "weight_ih_l1").abs().max() <= 0.01
    assert net.orthogonality() < 1e-6
    assert 0 < net.largest_entry() < 1
    assert torch.linalg.det(weight(net.rnn, "weight_hh_l0").double()).item() == pytest.approx(
        -1.0, abs=1e-5
    )  # 25 signs are -1
    other = OrthogonalNetwork(4, 30, 50, 2, rho=10, generator=torch.Generator().manual_seed(0))
    assert torch.linalg.det(weight(other.rnn, "weight_hh_l0").double()).item() == pytest.approx(1.0, abs=1e-5)
    twin = OrthogonalNetwork(4, 30, 50, 2, generator=torch.Generator().manual_seed(0))
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), twin.parameters(), strict=True))


def test_the_initial_state_is_drawn_unless_it_is_told_otherwise(generator: torch.Generator) -> None:
    x = torch.randn(3, 2, 4, generator=generator, dtype=DOUBLE)
    drawn = network().eval()
    one, two, again = (drawn(x, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2, 1))
    assert not torch.equal(one, two)
    assert torch.equal(one, again)
    zeros = network(initial_state="zeros")
    assert torch.equal(zeros(x), zeros(x, torch.zeros(2, 2, 6, dtype=DOUBLE)))
    learned = network(initial_state="learned")
    learned(x).sum().backward()
    assert learned.rnn.get_parameter("state_0").grad is not None


@pytest.mark.parametrize(("update", "entries"), [("cayley", 15), ("full-capacity", 36)])
@pytest.mark.parametrize("limit", [None, 10.0])
def test_parameters_fall_into_two_groups(update: str, entries: int, limit: float | None) -> None:
    net = network(update=update, limit=limit)
    others, recurrent = net.parameter_groups(1e-3)
    assert (others["lr"], recurrent["lr"]) == (1e-3, 1e-4)
    assert [parameter.numel() for parameter in recurrent["params"]] == [entries, entries]
    both = [id(parameter) for group in (others, recurrent) for parameter in group["params"]]
    assert sorted(both) == sorted(id(parameter) for parameter in net.parameters())
    assert len(set(both)) == len(both)
    assert net.parameter_groups(1e-5)[1]["lr"] == pytest.approx(1e-6)
    assert net.parameter_groups(1e-3, 5e-4)[1]["lr"] == 5e-4
    assert net.size == 2 * entries + 6 * 4 + 6 * 6 + 2 * 6 + 3 * 6 + 3


def test_only_the_gradient_of_the_recurrent_matrices_is_limited(generator: torch.Generator) -> None:
    x = torch.randn(6, 2, 4, generator=generator, dtype=DOUBLE)
    start = torch.randn(2, 2, 6, generator=generator, dtype=DOUBLE)
    plain, limited = (network(update="full-capacity", limit=limit) for limit in (None, 10.0))
    for net in (plain, limited):
        (net(x, start) * 1e4).sum().backward()
    for one, other in zip(
        plain.parameter_groups(1.0)[1]["params"], limited.parameter_groups(1.0)[1]["params"], strict=True
    ):
        assert one.grad.abs().max() > 10
        torch.testing.assert_close(other.grad, limit_entries(one.grad))
    mine, theirs = (net.parameter_groups(1.0)[0]["params"] for net in (limited, plain))
    assert max(parameter.grad.abs().max() for parameter in mine) > 10
    # Through the upper layer's state the others see the whole gradient too.
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(mine, theirs, strict=True))


def test_training_keeps_it_orthogonal_in_float64(generator: torch.Generator) -> None:
    x = torch.randn(6, 4, 4, generator=generator, dtype=DOUBLE)
    start, y = torch.randn(2, 4, 6, generator=generator, dtype=DOUBLE), torch.randint(3, (6, 4), generator=generator)
    scornn, full = network(), network(update="full-capacity")
    rest, matrices = full.parameter_groups(1e-2)
    moving: list[tuple[OrthogonalNetwork, list[torch.optim.Optimizer]]] = [
        (scornn, [RMSpropTF(scornn.parameter_groups(1e-2, 1e-2))]),
        (full, [RMSpropTF([rest]), StiefelSGD(matrices["params"], lr=1e-2, rms=True)]),
    ]
    for net, optimizers in moving:
        before = weight(net.rnn, "weight_hh_l1").detach().clone()
        losses = []
        for _ in range(40):
            loss = nn.functional.cross_entropy(net(x, start).flatten(0, 1), y.flatten())
            net.zero_grad()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0] - 0.01
        assert not torch.allclose(weight(net.rnn, "weight_hh_l1"), before, atol=1e-4)
        assert net.orthogonality() < 1e-12
        errors = [orthogonality_error(getattr(net.rnn, f"weight_hh_l{layer}")).item() for layer in (0, 1)]
        assert net.orthogonality() == max(errors)
    assert full.largest_entry() == 0
    largest = max(scornn.rnn.get_parameter(f"parametrizations.weight_hh_l{i}.original").abs().max() for i in (0, 1))
    assert scornn.largest_entry() == largest.item()


def test_one_channel_has_no_free_entry() -> None:
    net = OrthogonalNetwork(2, 2, 1)
    assert net.largest_entry() == 0
    assert net.orthogonality() == 0


@pytest.mark.parametrize("update", ["cayley", "full-capacity"])
def test_it_can_be_copied_saved_and_loaded(update: str, generator: torch.Generator) -> None:
    x, start = torch.randint(4, (5, 2), generator=generator), torch.randn(2, 2, 6, generator=generator, dtype=DOUBLE)
    net = network(update=update)
    other = network(update=update, generator=torch.Generator().manual_seed(77))
    assert not torch.equal(net(x, start), other(x, start))
    other.load_state_dict(net.state_dict())
    assert torch.equal(net(x, start), other(x, start))
    assert torch.equal(copy.deepcopy(net)(x, start), net(x, start))


def test_senseless_networks_are_refused() -> None:
    with pytest.raises(ArgumentError, match="update: got soft, wanted one of cayley, full-capacity"):
        network(update="soft")
    with pytest.raises(ArgumentError, match=r"OrthogonalNetwork\.classes: got 0"):
        OrthogonalNetwork(2, 0, 3)
